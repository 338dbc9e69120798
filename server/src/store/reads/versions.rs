//! The known versions of the apps.

use clickhouse::Row;
use serde::Deserialize;

use crate::clock::UnixTime;
use crate::store::clickhouse::{ClickHouse, Failure};

/// A version of an app that has sent batches.
#[derive(Clone, Debug, PartialEq, Eq, Row, Deserialize)]
pub struct SeenVersion {
    pub app_id: String,
    pub app_version: String,
    /// The hour in which the first batch arrived, in seconds since the epoch.
    pub first_seen: i64,
}

const SEEN: &str = "SELECT app_id, app_version, toInt64(toUnixTimestamp(min(hour))) AS first_seen \
     FROM usage_hourly WHERE project = {project:String} AND hour >= toDateTime({from:Int64}, 'UTC') \
     AND hour < toDateTime({to:Int64}, 'UTC') GROUP BY app_id, app_version ORDER BY first_seen, app_id, app_version LIMIT 10000";

impl ClickHouse {
    /// Returns the versions that sent batches between two times, in microseconds since the epoch.
    pub async fn seen_versions(
        &self,
        project: &str,
        from: UnixTime,
        to: UnixTime,
    ) -> Result<Vec<SeenVersion>, Failure> {
        let query = self
            .question(&SEEN.replace("FROM usage", &format!("FROM `{}`.usage", self.database())))?
            .param("project", project)
            .param("from", from.as_secs())
            .param("to", to.as_secs());
        Ok(self.collect(query).await?.0)
    }
}
