//! The results of a run. Each output format has its own module.

pub(crate) mod json;
pub(crate) mod markdown;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::clock;
use crate::idle::Idle;
use crate::load::Outcome;
use crate::lone::Freshness;
use crate::polls::Polls;
use crate::processes::{Cost, Machine};
use crate::server_and_store::Verification;
use crate::stages::Stage;
use crate::store::{ColumnSize, TableSize};
use crate::tally::{Counts, Latencies};
use crate::watch::Watch;

/// Results of one invocation of the tool.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// `run`, `replay`, `chaos` or `bench`.
    pub(crate) kind: &'static str,
    pub(crate) tool_version: &'static str,
    pub(crate) server_version: Option<String>,
    pub(crate) started_at: String,
    pub(crate) machine: Machine,
    /// Settings that are needed to interpret the figures.
    pub(crate) settings: BTreeMap<&'static str, String>,
    pub(crate) phases: Vec<Phase>,
    /// Polls of the remote configuration, if measured.
    pub(crate) polls: Option<Polls>,
    /// Single batches, if measured.
    pub(crate) lone: Option<Freshness>,
    /// The server while nobody talks to it, if measured.
    pub(crate) idle: Option<Idle>,
    /// Rows and bytes of the whole database, including rows of other senders.
    pub(crate) storage: Vec<TableSize>,
    /// Columns of the table `spans`, if measured.
    pub(crate) span_columns: Vec<ColumnSize>,
    pub(crate) verification: Option<Verification>,
    pub(crate) chaos: Option<Chaos>,
    pub(crate) warnings: Vec<String>,
}

/// A finished load.
pub(crate) struct Measured<'a> {
    pub(crate) name: &'static str,
    pub(crate) outcome: &'a Outcome,
    pub(crate) offered: Option<f64>,
    pub(crate) drain_s: Option<f64>,
    pub(crate) watch: &'a Watch,
    pub(crate) stages: Vec<Stage>,
}

impl Report {
    pub(crate) fn new(kind: &'static str, settings: BTreeMap<&'static str, String>) -> Self {
        Self {
            kind,
            tool_version: env!("CARGO_PKG_VERSION"),
            server_version: None,
            started_at: clock::now().to_string(),
            machine: Machine::here(),
            settings,
            phases: Vec::new(),
            polls: None,
            lone: None,
            idle: None,
            storage: Vec::new(),
            span_columns: Vec::new(),
            verification: None,
            chaos: None,
            warnings: Vec::new(),
        }
    }

    /// Adds a phase and its warnings.
    pub(crate) fn add(&mut self, measured: Measured<'_>) {
        let load = LoadReport::new(measured.outcome, measured.offered);
        self.warnings.extend(load.warnings(measured.outcome));
        self.phases.push(Phase {
            name: measured.name,
            costs: measured.watch.costs(load.counts.events_accepted),
            drain_s: measured.drain_s,
            stored_events_per_s: measured.drain_s.map(|drain_s| {
                load.counts.events_accepted as f64 / (load.took_s + drain_s).max(0.001)
            }),
            stages: measured.stages,
            load,
        });
    }
}

/// A load and its costs.
#[derive(Debug, Serialize)]
pub(crate) struct Phase {
    pub(crate) name: &'static str,
    pub(crate) load: LoadReport,
    /// Costs up to the end of the drain, if the tool waited for it. The keys are `server`, `engine` and `load test`.
    pub(crate) costs: BTreeMap<&'static str, Cost>,
    /// Duration of the server's processing stages, if its metrics are reachable.
    pub(crate) stages: Vec<Stage>,
    /// Time from the last acknowledgment until the log was drained, in seconds.
    pub(crate) drain_s: Option<f64>,
    /// Events per second from the start until all were in ClickHouse: the rate that the server can sustain.
    pub(crate) stored_events_per_s: Option<f64>,
}

#[derive(Debug, Serialize)]
pub(crate) struct LoadReport {
    /// Batches per second that were scheduled to start. `None` in a closed loop.
    pub(crate) offered_batches_per_s: Option<f64>,
    /// Batches acknowledged per second, from the start to the last acknowledgment.
    pub(crate) achieved_batches_per_s: f64,
    pub(crate) acknowledged_events_per_s: f64,
    /// Time from the start to the last acknowledgment, in seconds.
    pub(crate) took_s: f64,
    #[serde(flatten)]
    pub(crate) counts: Counts,
    /// Time from the scheduled start to the acknowledgment.
    pub(crate) latency: Latencies,
    /// Time from the start of the request to the response, of every attempt.
    pub(crate) service: Latencies,
    pub(crate) generator_late: u64,
    pub(crate) generator_late_most_ms: f64,
}

impl LoadReport {
    pub(crate) fn new(outcome: &Outcome, offered: Option<f64>) -> Self {
        let tally = &outcome.tally;
        let took_s = outcome.took.as_secs_f64();
        let per_second = |count: u64| {
            if took_s > 0.0 {
                count as f64 / took_s
            } else {
                0.0
            }
        };
        Self {
            offered_batches_per_s: offered,
            achieved_batches_per_s: per_second(tally.counts.acknowledged),
            acknowledged_events_per_s: per_second(tally.counts.events_accepted),
            took_s,
            counts: tally.counts.clone(),
            latency: tally.latency(),
            service: tally.service(),
            generator_late: outcome.pacing.generator_late,
            generator_late_most_ms: outcome.pacing.generator_late_most.as_secs_f64() * 1_000.0,
        }
    }

    /// Returns the warnings that a reader of the figures needs.
    pub(crate) fn warnings(&self, outcome: &Outcome) -> Vec<String> {
        let mut warnings = Vec::new();
        // Ignore a few: the operating system causes them.
        if self.generator_late * 100 > self.counts.batches {
            warnings.push(format!(
                "the generator could not keep up: {} of {} batches were not ready at their scheduled start (at most {:.0} ms \
                 late). Latencies include that delay. Lower the rate, or build the load ahead with --prepare",
                self.generator_late, self.counts.batches, self.generator_late_most_ms
            ));
        }
        if outcome.saturated && self.offered_batches_per_s.is_some() {
            warnings.push(
                "the limit of batches in flight was reached. Later batches had to wait, and their latency includes \
                 the wait. Raise the limit with --outstanding"
                    .to_owned(),
            );
        }
        if outcome.interrupted {
            warnings.push("interrupted: the figures cover only part of the load".to_owned());
        }
        if self.counts.wrong_receipts > 0 {
            warnings.push(format!(
                "{} receipts do not match their batch",
                self.counts.wrong_receipts
            ));
        }
        warnings
    }
}

/// What `chaos` did to the server.
#[derive(Debug, Serialize)]
pub(crate) struct Chaos {
    pub(crate) server_kills: u32,
    pub(crate) engine_kills: u32,
    /// Time from the kill of the server until it was ready again, in seconds.
    pub(crate) longest_restart_s: f64,
    pub(crate) mean_restart_s: f64,
}
