//! Duration of each stage that a batch passes on the server, from the server's histograms.

use serde::Serialize;

use crate::buckets::Buckets;

/// The stages in order, with their histograms.
const STAGES: [(&str, &str); 6] = [
    (
        "decode, including the wait for a thread",
        "unjank_ingest_decode_seconds",
    ),
    ("wait for the log's thread", "unjank_log_wait_seconds"),
    ("write a group", "unjank_log_write_seconds"),
    ("sync a group", "unjank_log_sync_seconds"),
    (
        "from request headers to response",
        "unjank_ingest_request_seconds",
    ),
    (
        "from arrival until its rows can be queried",
        "unjank_freshness_seconds",
    ),
];

/// The histograms of all stages at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stages(Vec<Buckets>);

/// One stage. Each quantile is the upper bound of its bucket.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) p999_ms: f64,
}

impl Stages {
    pub(crate) fn read(metrics: &str) -> Self {
        let read = |(_, metric): &(_, &str)| Buckets::read(metrics, metric);
        Self(STAGES.iter().map(read).collect())
    }

    /// Returns how long each stage took since an earlier reading. Stages without batches are omitted.
    pub(crate) fn since(&self, before: &Self) -> Vec<Stage> {
        let none = Buckets::default();
        let stages = STAGES.iter().zip(&self.0).enumerate();
        let stage = |(index, ((name, _), buckets)): (usize, (&(&'static str, _), &Buckets))| {
            let took = buckets.since(before.0.get(index).unwrap_or(&none));
            let ms = |share| took.quantile(share).map(|seconds| seconds * 1e3);
            Some(Stage {
                name,
                p50_ms: ms(0.5)?,
                p99_ms: ms(0.99)?,
                p999_ms: ms(0.999)?,
            })
        };
        stages.filter_map(stage).collect()
    }
}

impl Stage {
    pub(crate) const HEAD: [&str; 4] = ["stage of a batch", "p50 ms", "p99 ms", "p99.9 ms"];

    /// Returns the cells of a table row.
    pub(crate) fn cells(&self) -> [String; 4] {
        let at_most = |ms: f64| format!("≤ {ms}");
        [
            self.name.to_owned(),
            at_most(self.p50_ms),
            at_most(self.p99_ms),
            at_most(self.p999_ms),
        ]
    }
}
