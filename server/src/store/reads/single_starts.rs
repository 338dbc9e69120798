//! Single app starts from raw rows: the latest, the slowest, or those of about a duration.

use clickhouse::Row;
use serde::Deserialize;
use uuid::Uuid;

use super::reading::Reading;
use super::run::Read;
use super::statement::Rest;
use crate::store::clickhouse::{ClickHouse, Failure};

/// An app start as it was reported.
#[derive(Clone, Debug, Row, Deserialize)]
pub struct StoredStart {
    /// Microseconds since the epoch.
    pub start: i64,
    pub duration_ms: u32,
    pub kind: String,
    pub page: String,
    pub app_version: String,
    pub os_name: String,
    pub os_version: String,
    pub device_model: String,
    pub device_class: String,
    #[serde(with = "clickhouse::serde::uuid")]
    pub install_id: Uuid,
    #[serde(with = "clickhouse::serde::uuid")]
    pub session_id: Uuid,
    pub phase_names: Vec<String>,
    pub phase_durations: Vec<u32>,
}

/// Which app starts come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstStarts {
    Latest,
    Slowest,
    /// Those whose durations are nearest to this one, in milliseconds.
    Near(i64),
}

const COLUMNS: &str = "toUnixTimestamp64Micro(s.start) AS start, s.duration_ms, toString(s.kind) AS kind, toString(s.page) AS page, \
     toString(s.app_version) AS app_version, toString(s.os_name) AS os_name, toString(s.os_version) AS os_version, \
     toString(s.device_model) AS device_model, toString(s.device_class) AS device_class, s.install_id, s.session_id, \
     arrayMap(name -> toString(name), s.`phases.name`) AS phase_names, s.`phases.duration_ms` AS phase_durations";

impl ClickHouse {
    /// Reads single app starts. The reading must be of raw rows.
    pub async fn single_starts(
        &self,
        reading: &Reading,
        first: FirstStarts,
        limit: u64,
    ) -> Result<(Vec<StoredStart>, Read), Failure> {
        let order = match first {
            FirstStarts::Latest => "s.start DESC, s.session_id",
            FirstStarts::Slowest => "s.duration_ms DESC, s.start DESC, s.session_id",
            FirstStarts::Near(_) => {
                "abs(toInt64(s.duration_ms) - {near:Int64}), s.start DESC, s.session_id"
            }
        };
        let rest = Rest {
            condition: "1",
            order,
            limit,
        };
        let mut statement = reading.events(self.database(), COLUMNS, rest);
        if let FirstStarts::Near(ms) = first {
            statement.numbers.push(("near".to_owned(), ms));
        }
        self.read(statement).await
    }
}
