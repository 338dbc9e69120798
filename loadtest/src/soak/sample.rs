//! Samples the state of the server at the end of each interval.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::engine::{EngineWork, TableWork, Totals};
use super::probe::Probe;
use crate::buckets::Buckets;
use crate::clickhouse::{Access, ClickHouse, engine_login};
use crate::drain::{gauge, metrics};
use crate::processes::{Usage, own_usage, usage};
use crate::server::Server;
use crate::stages::{Stage, Stages};
use crate::tally::{Latencies, Recent};

/// The server's histogram of how soon rows can be queried.
const FRESHNESS: &str = "unjank_freshness_seconds";

/// The sample of one interval.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Sample {
    /// Seconds since the start.
    pub(super) at_s: f64,
    pub(super) took_s: f64,
    /// Events that were acknowledged during the interval.
    pub(super) events: u64,
    pub(super) server_us: f64,
    pub(super) engine_us: f64,
    pub(super) load_us: f64,
    pub(super) latency: Latencies,
    /// Log records that wait to be stored.
    pub(super) waiting: f64,
    /// Stored rows that are not rolled up yet.
    pub(super) unfolded: f64,
    /// Rows written by INSERTs; `merged` are those written by merges.
    pub(super) inserted: u64,
    pub(super) merged: u64,
    pub(super) parts: u64,
    pub(super) server_bytes: u64,
    pub(super) engine_bytes: u64,
    /// Time from the arrival of a batch until its rows can be queried.
    pub(super) fresh_p99_s: Option<f64>,
    /// Latency of the probe's queries.
    pub(super) question_p95_ms: f64,
    pub(super) slowest_question_ms: f64,
    /// Failed queries. Their times are included above and are meaningless.
    pub(super) failed_questions: u64,
}

/// Counters that only grow.
#[derive(Clone, Default)]
struct Counters {
    server: Usage,
    engine: Usage,
    own: Usage,
    /// Batches by the time until their rows could be queried.
    fresh: Buckets,
}

pub(super) struct Sampler {
    clickhouse: ClickHouse,
    admin_url: String,
    data_dir: PathBuf,
    server: u32,
    recent: Recent,
    work: EngineWork,
    begun: Instant,
    before: (Instant, Counters, Totals),
}

impl Sampler {
    pub(super) async fn begin(server: &Server, data_dir: &Path, recent: Recent) -> Result<Self> {
        let now = Instant::now();
        let mut sampler = Self {
            clickhouse: ClickHouse::new(Access::Engine(data_dir.to_owned()))?,
            admin_url: server.admin_url(),
            data_dir: data_dir.to_owned(),
            server: server.pid(),
            recent,
            work: EngineWork::default(),
            begun: now,
            before: (now, Counters::default(), Totals::default()),
        };
        let text = metrics(&sampler.admin_url).await?;
        sampler.before = (now, sampler.counters(&text), Totals::default());
        Ok(sampler)
    }

    fn counters(&self, metrics: &str) -> Counters {
        let engine = engine_login(&self.data_dir).ok().and_then(|one| one.pid);
        Counters {
            server: usage(self.server).unwrap_or_default(),
            engine: engine.and_then(usage).unwrap_or_default(),
            own: own_usage().unwrap_or_default(),
            fresh: Buckets::read(metrics, FRESHNESS),
        }
    }

    pub(super) async fn sample(&mut self, probe: &Probe) -> Result<Sample> {
        let text = metrics(&self.admin_url).await?;
        let (now, counters) = (Instant::now(), self.counters(&text));
        self.work.read(&self.clickhouse).await?;
        let totals = self.work.totals();
        let (then, before, before_totals) =
            std::mem::replace(&mut self.before, (now, counters.clone(), totals));
        let (latency, events) = self.recent.take();
        let us =
            |after: Usage, before: Usage| (after.cpu_s - before.cpu_s) * 1e6 / events.max(1) as f64;
        let asked = probe.take()?;
        let parts = "SELECT count() FROM system.parts WHERE active AND database = 'unjank'";
        Ok(Sample {
            at_s: seconds(now - self.begun),
            took_s: seconds(now - then),
            events,
            server_us: us(counters.server, before.server),
            engine_us: us(counters.engine, before.engine),
            load_us: us(counters.own, before.own),
            latency,
            waiting: gauge(&text, "unjank_log_pending_records").unwrap_or_default(),
            unfolded: gauge(&text, "unjank_writer_unfolded_rows").unwrap_or_default(),
            inserted: totals.inserted - before_totals.inserted,
            merged: totals.merged - before_totals.merged,
            parts: self.clickhouse.value(parts).await?,
            server_bytes: counters.server.rss_bytes,
            engine_bytes: counters.engine.rss_bytes,
            fresh_p99_s: counters.fresh.since(&before.fresh).quantile(0.99),
            question_p95_ms: asked.p95_ms,
            slowest_question_ms: asked.latency.max_ms,
            failed_questions: asked.failed,
        })
    }

    /// Returns how long the stages of a batch took over the whole run.
    pub(super) async fn stages(&self) -> Result<Vec<Stage>> {
        let stages = Stages::read(&metrics(&self.admin_url).await?);
        Ok(stages.since(&Stages::default()))
    }

    /// Returns the work for each table, the most expensive first.
    pub(super) fn tables(&self) -> Vec<TableWork> {
        self.work.tables()
    }
}

fn seconds(duration: Duration) -> f64 {
    duration.as_secs_f64()
}
