//! The known versions of the apps.

use clickhouse::Row;
use serde::Deserialize;
use unjank_foundation::clock::UnixTime;

use crate::store::clickhouse::{ClickHouse, Failure};

/// A version of an app that has sent batches.
#[derive(Clone, Debug, PartialEq, Eq, Row, Deserialize)]
pub struct SeenVersion {
    pub app_id: String,
    pub app_version: String,
    /// The hour in which the first batch arrived, in seconds since the epoch.
    pub first_seen: i64,
    /// The hour in which the latest batch arrived.
    pub last_seen: i64,
}

/// A version that reached users.
#[derive(Clone, Debug, PartialEq, Eq, Row, Deserialize)]
pub struct ReachedVersion {
    pub app_id: String,
    pub app_version: String,
    /// The start of the first day on which enough installs ran the version, in seconds since the epoch.
    pub reached_day: i64,
}

const SEEN: &str = "SELECT app_id, app_version, toInt64(toUnixTimestamp(min(hour))) AS first_seen, \
     toInt64(toUnixTimestamp(max(hour))) AS last_seen FROM usage_hourly WHERE project = {project:String} AND hour >= toDateTime({from:Int64}, 'UTC') \
     AND hour < toDateTime({to:Int64}, 'UTC') GROUP BY app_id, app_version ORDER BY first_seen, app_id, app_version LIMIT 10000";

/// The share of a version is that of its installs among the installs of all versions of the app. A version that already had this share on the
/// app's first day is left out: it was in use before the data begins.
const REACHED: &str = "SELECT app_id, app_version, toInt64(toUnixTimestamp(toDateTime(min(day), 'UTC'))) AS reached_day FROM (\
     SELECT app_id, app_version, day, uniqCombined64Merge(12)(installs) AS active, min(day) OVER (PARTITION BY app_id) AS first_day, \
     active / sum(active) OVER (PARTITION BY app_id, day) AS share \
     FROM usage_daily WHERE project = {project:String} AND day >= toDate({from:Int64}) AND day < toDate({to:Int64}) \
     GROUP BY app_id, app_version, day) \
     WHERE share >= {least:Float64} GROUP BY app_id, app_version HAVING min(day) > any(first_day) \
     ORDER BY reached_day DESC, app_id, app_version LIMIT 10000";

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

    /// Returns the first day, of UTC, on which at least this share of an app's active installs ran a version.
    pub async fn reached_versions(
        &self,
        project: &str,
        from: UnixTime,
        to: UnixTime,
        least: f64,
    ) -> Result<Vec<ReachedVersion>, Failure> {
        let query = self
            .question(&REACHED.replace("FROM usage", &format!("FROM `{}`.usage", self.database())))?
            .param("project", project)
            .param("from", from.as_secs())
            .param("to", to.as_secs())
            .param("least", least);
        Ok(self.collect(query).await?.0)
    }
}
