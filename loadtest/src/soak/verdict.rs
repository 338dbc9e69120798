//! Judges whether the server kept up.

use serde::Serialize;

use super::sample::Sample;
use crate::load::Outcome;

/// Maximum backlog in the log, in seconds of load.
const MOST_WAITING_S: f64 = 10.0;
/// How many times more an event of the last third may cost than an event of the first.
const MOST_GROWTH: f64 = 1.1;

#[derive(Debug, Serialize)]
pub(crate) struct Verdict {
    /// Largest backlog in the log at the end of an interval, in seconds of load.
    pub(super) waiting_s: f64,
    /// Batches that were rejected or given up.
    pub(super) lost: u64,
    /// CPU time of server and engine in µs per event: in the first third, in the last third, and in the whole run including the
    /// work after it.
    pub(super) first_us: f64,
    pub(super) last_us: f64,
    pub(super) total_us: f64,
    /// Whether the load test itself was too slow for the rate.
    pub(super) generator_late: bool,
}

impl Verdict {
    /// `end` is the sample after the load, when everything was stored and merged.
    pub(super) fn new(
        samples: &[Sample],
        end: &Sample,
        outcome: &Outcome,
        events_per_s: f64,
    ) -> Self {
        let third = (samples.len() / 3).max(1).min(samples.len());
        let all = || samples.iter().chain([end]);
        let batches_per_s =
            outcome.tally.counts.batches as f64 / outcome.took.as_secs_f64().max(0.001);
        let waiting = samples.iter().map(|one| one.waiting / batches_per_s);
        Self {
            waiting_s: waiting.fold(0.0, f64::max),
            lost: outcome.tally.counts.refused + outcome.tally.counts.unknown,
            first_us: cost(samples.iter().take(third)),
            last_us: cost(samples.iter().rev().take(third)),
            total_us: all().map(cpu_us).sum::<f64>()
                / all().map(|one| one.events as f64).sum::<f64>().max(1.0),
            generator_late: outcome.tally.counts.events_sent as f64
                / outcome.took.as_secs_f64().max(0.001)
                < events_per_s * 0.97,
        }
    }

    pub(super) fn kept_up(&self) -> bool {
        self.lost == 0 && self.waiting_s <= MOST_WAITING_S && !self.generator_late
    }

    /// Returns the growth of the cost per event, and whether it is acceptable.
    pub(super) fn growth(&self) -> (f64, bool) {
        let growth = self.last_us / self.first_us.max(0.001);
        (growth, growth <= MOST_GROWTH)
    }
}

fn cpu_us(sample: &Sample) -> f64 {
    (sample.server_us + sample.engine_us) * sample.events as f64
}

/// Returns the CPU time of server and engine in µs per event.
fn cost<'s>(samples: impl Iterator<Item = &'s Sample> + Clone) -> f64 {
    let events: f64 = samples.clone().map(|one| one.events as f64).sum();
    samples.map(cpu_us).sum::<f64>() / events.max(1.0)
}
