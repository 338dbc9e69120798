//! Counts and latencies of a run.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::delivery::{Delivery, Fate};

/// Counts of all finished batches.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Counts {
    pub(crate) batches: u64,
    pub(crate) acknowledged: u64,
    pub(crate) refused: u64,
    pub(crate) unknown: u64,
    /// Acknowledged with `duplicate: true`: an earlier attempt had arrived, but its response was lost.
    pub(crate) duplicates: u64,
    pub(crate) events_sent: u64,
    pub(crate) events_accepted: u64,
    pub(crate) events_rejected: u64,
    pub(crate) events_truncated: u64,
    /// Receipts whose counts do not match the batch, or that are for another batch.
    pub(crate) wrong_receipts: u64,
    pub(crate) attempts: u64,
    pub(crate) retries: u64,
    /// Compressed bytes of all attempts, bodies only.
    pub(crate) bytes_sent: u64,
    /// Uncompressed bytes of all batches, regardless of the number of attempts.
    pub(crate) plain_bytes: u64,
    pub(crate) statuses: BTreeMap<String, u64>,
    /// Number of rejected events by code.
    pub(crate) rejections: BTreeMap<String, u64>,
    /// Number of batches that were rejected or given up, by reason.
    pub(crate) reasons: BTreeMap<String, u64>,
}

impl Counts {
    fn add_reason(&mut self, why: &str) {
        let known = self.reasons.contains_key(why) || self.reasons.len() < MOST_REASONS;
        let why = if known { why } else { "other reasons" };
        *self.reasons.entry(why.to_owned()).or_default() += 1;
    }
}

/// Counts and latencies of all finished batches.
pub(crate) struct Tally {
    pub(crate) counts: Counts,
    latency: Spread,
    service: Spread,
    last_end: Option<Instant>,
}

/// Latencies in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Latencies {
    pub(crate) p50_ms: f64,
    pub(crate) p90_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) p999_ms: f64,
    pub(crate) max_ms: f64,
    pub(crate) mean_ms: f64,
}

/// Maximum number of distinct reasons. Further ones are counted together.
const MOST_REASONS: usize = 20;

impl Tally {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            counts: Counts::default(),
            service: Spread::new()?,
            latency: Spread::new()?,
            last_end: None,
        })
    }

    pub(crate) fn add(&mut self, delivery: &Delivery) {
        let (parcel, counts) = (&delivery.parcel, &mut self.counts);
        counts.batches += 1;
        counts.events_sent += parcel.events;
        counts.plain_bytes += parcel.plain_bytes;
        counts.attempts += delivery.attempts.len() as u64;
        counts.retries += delivery.attempts.len().saturating_sub(1) as u64;
        counts.bytes_sent += parcel.body.len() as u64 * delivery.attempts.len() as u64;
        for (status, took) in &delivery.attempts {
            *counts.statuses.entry(status.clone()).or_default() += 1;
            self.service.record(*took);
        }
        match &delivery.fate {
            Fate::Acknowledged(acceptance) => {
                counts.acknowledged += 1;
                counts.duplicates += u64::from(acceptance.duplicate);
                counts.events_accepted += acceptance.accepted;
                counts.events_rejected += parcel.events.saturating_sub(acceptance.accepted);
                counts.events_truncated += acceptance.truncated;
                let reported = acceptance.accepted + acceptance.rejected.len() as u64;
                // For a duplicate, the server may remember the counts but not the list of rejected events.
                let adds_up = reported == parcel.events
                    || (acceptance.duplicate && acceptance.accepted <= parcel.events);
                if !adds_up || acceptance.batch_id != parcel.batch_id {
                    counts.wrong_receipts += 1;
                }
                for rejected in &acceptance.rejected {
                    *counts.rejections.entry(rejected.code.clone()).or_default() += 1;
                }
                self.latency.record(delivery.latency);
                self.last_end = self.last_end.max(Some(delivery.ended));
            }
            Fate::Refused(why) => {
                counts.refused += 1;
                counts.add_reason(why);
            }
            Fate::Unknown(why) => {
                counts.unknown += 1;
                counts.add_reason(why);
            }
        }
    }

    /// Returns when the last acknowledgment arrived.
    pub(crate) fn last_acknowledgment(&self) -> Option<Instant> {
        self.last_end
    }

    /// Returns the latencies from the scheduled start to the acknowledgment, including all waits and retries.
    pub(crate) fn latency(&self) -> Latencies {
        self.latency.latencies()
    }

    /// Returns the latencies of single attempts, from the start of the request to the response.
    pub(crate) fn service(&self) -> Latencies {
        self.service.latencies()
    }
}

/// Batches acknowledged since the last call of [`Recent::take`], for observing a run.
#[derive(Clone, Default)]
pub(crate) struct Recent(Arc<Mutex<Option<(Spread, u64)>>>);

impl Recent {
    pub(crate) fn add(&self, delivery: &Delivery) -> Result<()> {
        let Fate::Acknowledged(acceptance) = &delivery.fate else {
            return Ok(());
        };
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (latency, events) = match recent.as_mut() {
            Some(recent) => recent,
            None => recent.insert((Spread::new()?, 0)),
        };
        latency.record(delivery.latency);
        *events += acceptance.accepted;
        Ok(())
    }

    /// Returns the latencies and the number of accepted events since the last call.
    pub(crate) fn take(&self) -> (Latencies, u64) {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = recent.take();
        taken.map_or_else(Default::default, |(latency, events)| {
            (latency.latencies(), events)
        })
    }
}

/// A distribution of durations.
pub(crate) struct Spread(Histogram<u64>);

impl Spread {
    pub(crate) fn new() -> Result<Self> {
        // In microseconds with three significant digits. Durations above an hour count as an hour.
        Ok(Self(Histogram::new_with_bounds(1, 3_600_000_000, 3)?))
    }

    pub(crate) fn record(&mut self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.0.saturating_record(micros);
    }

    pub(crate) fn add(&mut self, other: &Self) -> Result<()> {
        Ok(self.0.add(&other.0)?)
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    pub(crate) fn quantile_ms(&self, quantile: f64) -> f64 {
        self.0.value_at_quantile(quantile) as f64 / 1_000.0
    }

    pub(crate) fn latencies(&self) -> Latencies {
        let quantile = |quantile| self.quantile_ms(quantile);
        Latencies {
            p50_ms: quantile(0.5),
            p90_ms: quantile(0.9),
            p99_ms: quantile(0.99),
            p999_ms: quantile(0.999),
            max_ms: self.0.max() as f64 / 1_000.0,
            mean_ms: self.0.mean() / 1_000.0,
        }
    }
}
