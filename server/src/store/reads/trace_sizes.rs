//! The number of recorded spans of a trace, and their lowest sample rate.

use clickhouse::Row;
use serde::Deserialize;
use uuid::Uuid;

use crate::store::clickhouse::{ClickHouse, Failure};

/// The recorded spans of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Row, Deserialize)]
pub struct TraceSize {
    #[serde(with = "clickhouse::serde::uuid")]
    pub trace_id: Uuid,
    pub spans: u64,
    /// The lowest sample rate of a span: the trace has all spans of this rate and above.
    pub lowest_rate: f64,
}

impl ClickHouse {
    pub async fn trace_sizes(
        &self,
        project: &str,
        traces: &[Uuid],
    ) -> Result<Vec<TraceSize>, Failure> {
        let sql = format!(
            "SELECT s.trace_id AS trace_id, count() AS spans, min(s.sample_rate) AS lowest_rate FROM `{}`.spans AS s \
             WHERE s.project = {{project:String}} AND s.trace_id IN {{traces:Array(UUID)}} GROUP BY trace_id",
            self.database()
        );
        let traces: Vec<String> = traces.iter().map(Uuid::to_string).collect();
        let query = (self.question(&sql)?)
            .param("project", project)
            .param("traces", traces);
        Ok(self.collect(query).await?.0)
    }
}
