//! Recently seen installs and their volume of events, to predict the effect of a change before it is made.

use std::ops::Range;
use std::time::Duration;

use clickhouse::Row;
use clickhouse::query::{Query, RowCursor};
use serde::Deserialize;
use unjank_foundation::clock::{UnixTime, micros};
use unjank_protocol::Signal;
use uuid::Uuid;

use super::clickhouse::{ClickHouse, Failure};

/// A slower query is cancelled, because a client waits for it.
const MAX_SECONDS: u32 = 20;
/// Maximum number of rows, one per install and name.
pub const MAX_VOLUMES: u64 = 2_000_000;
/// Maximum number of rows that an average size is computed from.
const MOST_WEIGHED: u64 = 2_000;
/// Queries also filter events by their own time, which the index finds fast. A query misses events whose own time is more than
/// this before the start of the sample.
const LATE: Duration = Duration::from_secs(86_400);

/// Selects the installs of a project that were seen since a time: one install in `one_in`, by a hash of its id.
#[derive(Clone, Copy, Debug)]
pub struct InstallSample<'s> {
    pub project: &'s str,
    pub since: UnixTime,
    pub one_in: u64,
}

/// An install's most recently reported properties.
#[derive(Debug, Row, Deserialize)]
pub struct SeenInstall {
    #[serde(with = "clickhouse::serde::uuid")]
    pub install_id: Uuid,
    pub app_id: String,
    pub app_version: String,
    pub build: u64,
    pub os_name: String,
    pub os_version: String,
    pub device_model: String,
    pub device_class: String,
    pub locale: String,
    pub sdk_version: String,
    pub user_id: String,
    /// The latest revision of the configuration that the install reported.
    pub config_revision: u64,
    /// When its latest batch arrived.
    pub last_seen: UnixTime,
    /// The size of its batches as sent, in bytes.
    pub wire_bytes: u64,
}

/// The number of events of one kind from an install.
#[derive(Debug, Row, Deserialize)]
pub struct InstallVolume<'v> {
    #[serde(with = "clickhouse::serde::uuid")]
    pub install_id: Uuid,
    /// The name of a span; empty for other signals.
    pub name: &'v str,
    pub sent: u64,
    /// The number of events before sampling, estimated from their sample rates; 0 for signals without rates.
    pub happened: f64,
}

/// Returns SQL expressions for the name, the time and the weight of an event.
fn columns(signal: Signal) -> (&'static str, &'static str, &'static str) {
    const WEIGHT: &str = "1 / sample_rate";
    match signal {
        Signal::Spans => ("toString(name)", "start", WEIGHT),
        Signal::FrameWindows
        | Signal::Janks
        | Signal::PageLoads
        | Signal::AppStarts
        | Signal::Recompositions => ("''", "start", WEIGHT),
        Signal::Metrics => ("''", "time", WEIGHT),
        Signal::Traffic => ("''", "toDateTime(day)", "0"),
        Signal::SdkHealth | Signal::Other => ("''", "received_at", "0"),
    }
}

impl ClickHouse {
    /// Counts the installs of a project that sent a batch since a time.
    pub async fn installs_since(&self, project: &str, since: UnixTime) -> Result<u64, Failure> {
        let sql = format!(
            "SELECT uniqExact(install_id) FROM `{}`.batches \
             WHERE project = {{project:String}} AND received_at >= fromUnixTimestamp64Micro({{since:Int64}})",
            self.database()
        );
        let query = self.ask(&sql)?;
        let query = query.param("project", project).param("since", since);
        Ok(query.fetch_one().await?)
    }

    /// Returns the installs of a sample with their latest properties.
    pub async fn sampled_installs(
        &self,
        sample: &InstallSample<'_>,
    ) -> Result<Vec<SeenInstall>, Failure> {
        let sql = format!(
            "{} WHERE {OF_SAMPLE} GROUP BY install_id",
            latest_properties(self.database())
        );
        Ok(of_sample(self.ask(&sql)?, sample).fetch_all().await?)
    }

    /// Returns an install with its latest properties, if it sent a batch in a period. Reads all batches of the project in that period.
    pub async fn seen_install(
        &self,
        project: &str,
        install_id: Uuid,
        during: Range<UnixTime>,
    ) -> Result<Option<SeenInstall>, Failure> {
        let sql = format!(
            "{} WHERE project = {{project:String}} AND install_id = {{install:UUID}} \
                AND received_at >= fromUnixTimestamp64Micro({{since:Int64}}) \
                AND received_at < fromUnixTimestamp64Micro({{until:Int64}}) GROUP BY install_id",
            latest_properties(self.database())
        );
        let query = self.ask(&sql)?.param("project", project);
        let query = query.param("install", install_id.to_string());
        let query = query.param("since", during.start);
        Ok(query.param("until", during.end).fetch_optional().await?)
    }

    /// Streams the volumes of a signal from the installs of a sample: at most [`MAX_VOLUMES`] rows.
    pub fn volumes(
        &self,
        sample: &InstallSample<'_>,
        signal: Signal,
    ) -> Result<RowCursor<InstallVolume<'static>>, Failure> {
        let (name, time, weight) = columns(signal);
        let late = micros(LATE);
        let sql = format!(
            "SELECT install_id, {name} AS name, count() AS sent, toFloat64(sum({weight})) AS happened FROM `{}`.{signal} \
             WHERE {OF_SAMPLE} AND {time} >= fromUnixTimestamp64Micro({{since:Int64}} - {late}) \
             GROUP BY install_id, name LIMIT {MAX_VOLUMES}",
            self.database()
        );
        Ok(of_sample(self.ask(&sql)?, sample).fetch()?)
    }

    /// Returns the average size of a signal's rows without the columns that describe the device. Uses some of the rows since a time. Returns
    /// 0 if there are no rows.
    pub async fn row_bytes(
        &self,
        project: &str,
        signal: Signal,
        since: UnixTime,
    ) -> Result<f64, Failure> {
        let (_, time, _) = columns(signal);
        let late = micros(LATE);
        let sql = format!(
            "SELECT ifNotFinite(avg(byteSize(* EXCEPT ({OF_DEVICE}))), 0) FROM (SELECT * FROM `{}`.{signal} \
             WHERE project = {{project:String}} AND received_at >= fromUnixTimestamp64Micro({{since:Int64}}) \
                AND {time} >= fromUnixTimestamp64Micro({{since:Int64}} - {late}) LIMIT {MOST_WEIGHED})",
            self.database()
        );
        let query = self.ask(&sql)?;
        let query = query.param("project", project).param("since", since);
        Ok(query.fetch_one().await?)
    }

    /// Returns the average size of a project's stacks. Uses some of the stacks. Returns 0 if there are no stacks.
    pub async fn stack_bytes(&self, project: &str) -> Result<f64, Failure> {
        let sql = format!(
            "SELECT ifNotFinite(avg(byteSize(* EXCEPT ({OF_DEVICE}))), 0) FROM (SELECT * FROM `{}`.stacks \
             WHERE project = {{project:String}} LIMIT {MOST_WEIGHED})",
            self.database()
        );
        let query = self.ask(&sql)?.param("project", project);
        Ok(query.fetch_one().await?)
    }

    /// Whether any data of a project was ever stored.
    pub async fn holds_data_of(&self, project: &str) -> Result<bool, Failure> {
        let sql = format!(
            "SELECT count() > 0 FROM (SELECT 1 FROM `{}`.usage_daily WHERE project = {{project:String}} LIMIT 1)",
            self.database()
        );
        Ok(self
            .ask(&sql)?
            .param("project", project)
            .fetch_one()
            .await?)
    }

    fn ask(&self, sql: &str) -> Result<Query, Failure> {
        let query = self.client()?.query(sql);
        Ok(query.with_setting("max_execution_time", MAX_SECONDS.to_string()))
    }
}

/// Returns the beginning of a query for [`SeenInstall`]s. Its conditions and `GROUP BY install_id` follow.
fn latest_properties(database: &str) -> String {
    let latest = |column: &str| format!("argMax(toString({column}), received_at) AS {column}");
    let texts = [
        "app_id",
        "app_version",
        "os_name",
        "os_version",
        "device_model",
        "device_class",
        "locale",
        "sdk_version",
        "user_id",
    ]
    .map(latest)
    .join(", ");
    format!(
        "SELECT install_id, {texts}, argMax(build, received_at) AS build, max(config_revision) AS config_revision, \
            toUnixTimestamp64Micro(max(received_at)) AS last_seen, sum(wire_bytes) AS wire_bytes FROM `{database}`.batches"
    )
}

/// The columns that a batch sends once for all of its events.
const OF_DEVICE: &str = "project, app_id, install_id, session_id, received_at, app_version, build, channel, mode, os_name, \
                         os_version, device_model, device_manufacturer, device_class, locale, user_id, config_revision, \
                         refresh_hz, range_id, fold";

const OF_SAMPLE: &str = "project = {project:String} AND received_at >= fromUnixTimestamp64Micro({since:Int64}) \
                         AND cityHash64(install_id) % {one_in:UInt64} = 0";

fn of_sample(query: Query, sample: &InstallSample<'_>) -> Query {
    query
        .param("project", sample.project)
        .param("since", sample.since)
        .param("one_in", sample.one_in)
}
