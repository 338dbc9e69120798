//! Whether the server kept up.

use serde::Serialize;

use super::sample::Sample;
use crate::load::Outcome;

/// The log may hold this much load, in seconds.
const MOST_WAITING_S: f64 = 10.0;
/// An event of the last third may cost this many times as much as one of the first.
const MOST_GROWTH: f64 = 1.1;

#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    /// The most that waited in the log at the end of an interval, in seconds of load.
    pub(super) waiting_s: f64,
    /// Batches that were refused or given up.
    pub(super) lost: u64,
    /// Server and engine, in µs of CPU time per event: of the first third, of the last third, and of the whole run with what came after it.
    pub(super) first_us: f64,
    pub(super) last_us: f64,
    pub(super) total_us: f64,
    /// Whether the load itself was late.
    pub(super) generator_late: bool,
}

impl Verdict {
    /// `end`: what came after the load, until all was stored and merged.
    pub(super) fn of(
        samples: &[Sample],
        end: &Sample,
        outcome: &Outcome,
        events_per_s: f64,
    ) -> Self {
        let third = (samples.len() / 3).max(1).min(samples.len());
        let all = || samples.iter().chain([end]);
        let batches_per_s = outcome.tally.batches as f64 / outcome.took.as_secs_f64().max(0.001);
        let waiting = samples.iter().map(|one| one.waiting / batches_per_s);
        Self {
            waiting_s: waiting.fold(0.0, f64::max),
            lost: outcome.tally.refused + outcome.tally.unknown,
            first_us: cost(samples.iter().take(third)),
            last_us: cost(samples.iter().rev().take(third)),
            total_us: all().map(cpu_us).sum::<f64>()
                / all().map(|one| one.events as f64).sum::<f64>().max(1.0),
            generator_late: outcome.tally.events_sent as f64
                / outcome.took.as_secs_f64().max(0.001)
                < events_per_s * 0.97,
        }
    }

    pub(super) fn kept_up(&self) -> bool {
        self.lost == 0 && self.waiting_s <= MOST_WAITING_S && !self.generator_late
    }

    /// The growth of the cost, and whether it is small.
    pub(super) fn growth(&self) -> (f64, bool) {
        let growth = self.last_us / self.first_us.max(0.001);
        (growth, growth <= MOST_GROWTH)
    }
}

fn cpu_us(sample: &Sample) -> f64 {
    (sample.server_us + sample.engine_us) * sample.events as f64
}

/// µs of server and engine per event.
fn cost<'s>(samples: impl Iterator<Item = &'s Sample> + Clone) -> f64 {
    let events: f64 = samples.clone().map(|one| one.events as f64).sum();
    samples.map(cpu_us).sum::<f64>() / events.max(1.0)
}
