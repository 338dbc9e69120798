//! Quotas: how much a key and its project may send. Pure: the time is a parameter, and nothing here waits.
//!
//! Events per second are a [`Bucket`]. Bytes on the wire are counted per UTC day. A [`Meter`] lives as long as its key or project, across
//! snapshots; the usage stays when the quota changes. Each server counts for itself, from its start.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use unjank_database::Quotas;
use unjank_foundation::clock::{DAY, UnixTime};
use unjank_protocol::{RateLimit, Signal};

use super::over_quota::{Exceeded, OverQuota};
use super::signal_meter::SignalMeter;
use super::token_bucket::{Bucket, Rate};

/// The cost of a batch, charged to its quotas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    pub events: u32,
    /// The size of the body as sent, which may be compressed.
    pub bytes: u64,
}

/// The quotas that apply to one device: the quotas of its key and of its project.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    pub(super) key: Option<Arc<Meter>>,
    pub(super) project: Option<Arc<Meter>>,
    /// `Some` for a project that limits single signals.
    pub(super) signals: Option<Arc<SignalMeter>>,
    /// Whether the project has used up its disk quota.
    pub(super) is_full: bool,
}

/// The answer to devices of a project that has used up its disk quota.
const FULL: OverQuota = OverQuota {
    exceeded: Exceeded::Disk,
    wait: Duration::from_secs(600),
};

impl Budget {
    /// Whether the quotas have room for at least one event and for the declared length of the body.
    pub fn admit(&self, declared_bytes: Option<u64>, now: UnixTime) -> Result<(), OverQuota> {
        if self.is_full {
            return Err(FULL);
        }
        let least = Cost {
            events: 1,
            bytes: declared_bytes.unwrap_or_default().max(1),
        };
        for meter in self.meters() {
            meter.used(now).admits(least)?;
        }
        Ok(())
    }

    /// Charges the cost to both quotas, or to none.
    pub fn charge(&self, cost: Cost, now: UnixTime) -> Result<(), OverQuota> {
        // Locks the key's meter before the project's. All callers use this order, so they cannot deadlock.
        let mut used: Vec<_> = self.meters().map(|meter| meter.used(now)).collect();
        for used in &mut used {
            if let Err(over) = used.fits(cost) {
                used.shut_for(over);
                return Err(over);
            }
        }
        for used in &mut used {
            used.take(cost);
        }
        Ok(())
    }

    /// Charges the cost of a refused batch, even if the quotas have less left.
    pub fn spend(&self, cost: Cost, now: UnixTime) {
        for meter in self.meters() {
            meter.used(now).spend(cost);
        }
    }

    /// Refunds the charge for a batch that was not stored after all.
    pub fn refund(&self, cost: Cost, now: UnixTime) {
        for meter in self.meters() {
            meter.used(now).give_back(cost);
        }
    }

    /// Takes the events of signals that have room. Returns the signals that have none, before or after this: `dropped` is the number
    /// of events that were not taken.
    #[must_use]
    pub fn take_signals(
        &self,
        events: impl Iterator<Item = (Signal, u32)>,
        now: UnixTime,
    ) -> Vec<RateLimit> {
        let Some(meter) = &self.signals else {
            return Vec::new();
        };
        meter.take(events, now)
    }

    /// Gives back the taken events of a batch that was not stored after all.
    pub fn give_back_signals(&self, events: impl Iterator<Item = (Signal, u32)>, now: UnixTime) {
        if let Some(meter) = &self.signals {
            meter.give_back(events, now);
        }
    }

    /// Sets the waits of the limits to their current values after something was given back. Removes limits without a wait and without
    /// dropped events.
    pub fn refresh_waits(&self, limits: &mut Vec<RateLimit>, now: UnixTime) {
        SignalMeter::refresh_waits(self.signals.as_deref(), limits, now);
    }

    fn meters(&self) -> impl Iterator<Item = &Meter> {
        self.key.iter().chain(&self.project).map(AsRef::as_ref)
    }
}

/// The usage of one key or one project.
#[derive(Debug)]
pub struct Meter(Mutex<Used>);

impl Meter {
    /// `largest_batch` is the maximum number of events in one batch.
    pub(super) fn new(quotas: Quotas, largest_batch: u32, now: UnixTime) -> Self {
        let meter = Self(Mutex::default());
        meter.change(quotas, largest_batch, now);
        meter
    }

    /// Changes the quota. The usage stays.
    pub(super) fn change(&self, quotas: Quotas, largest_batch: u32, now: UnixTime) {
        let mut used = self.used(now);
        used.day.most = quotas.bytes_per_day;
        let rate = Rate::new(quotas.events_per_second, largest_batch);
        used.bucket.change(rate);
    }

    /// The usage at that time.
    fn used(&self, now: UnixTime) -> MutexGuard<'_, Used> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        used.bucket.advance_to(now);
        used.day.advance_to(now);
        used
    }
}

#[derive(Debug, Default)]
struct Used {
    bucket: Bucket,
    day: Day,
}

impl Used {
    fn admits(&self, least: Cost) -> Result<(), OverQuota> {
        self.bucket.open()?;
        self.fits(least)
    }

    fn fits(&self, cost: Cost) -> Result<(), OverQuota> {
        // Bytes first, because their wait is the longest.
        self.day.fits(cost.bytes)?;
        self.bucket.after(cost.events).map(drop)
    }

    /// The wait of an exceeded byte quota is long enough already.
    fn shut_for(&mut self, over: OverQuota) {
        if over.exceeded == Exceeded::Events {
            self.bucket.shut_for(over.wait);
        }
    }

    fn take(&mut self, cost: Cost) {
        self.day.bytes = self.day.bytes.saturating_add(cost.bytes);
        self.bucket.take(cost.events);
    }

    fn spend(&mut self, cost: Cost) {
        self.day.bytes = self.day.bytes.saturating_add(cost.bytes);
        self.bucket.overdraw(cost.events);
    }

    fn give_back(&mut self, cost: Cost) {
        self.day.bytes = self.day.bytes.saturating_sub(cost.bytes);
        self.bucket.give_back(cost.events);
    }
}

/// Bytes of one UTC day.
#[derive(Debug, Default)]
struct Day {
    most: Option<u64>,
    /// Counted without a quota, too, because a quota that is set at noon applies to the whole day.
    bytes: u64,
    /// Days since the epoch.
    number: i64,
    /// The time until the next day.
    left: Duration,
}

impl Day {
    fn advance_to(&mut self, now: UnixTime) {
        let today = now.number_of(DAY);
        if today != self.number {
            self.number = today;
            self.bytes = 0;
        }
        self.left = (now.floor(DAY) + DAY).since(now);
    }

    fn fits(&self, bytes: u64) -> Result<(), OverQuota> {
        if self
            .most
            .is_none_or(|most| self.bytes.saturating_add(bytes) <= most)
        {
            return Ok(());
        }
        Err(OverQuota {
            exceeded: Exceeded::Bytes,
            wait: self.left,
        })
    }
}

#[cfg(test)]
#[path = "quota_tests.rs"]
mod tests;
