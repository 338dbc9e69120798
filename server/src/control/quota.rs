//! Quotas: how much a key and its project may send. Pure: the time is a parameter, and nothing here waits.
//!
//! Events per second are a bucket (`governor`): ten seconds' worth at once, or the largest batch where that is more, so that
//! every legal batch passes after a silence. Bytes on the wire are counted per UTC day. A [`Meter`] lives as long as its key or
//! project, across snapshots; what was used stays used when the quota changes. Each server counts for itself, from its start.

use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{NotKeyed, StateStore};
use governor::{Quota, RateLimiter};

use crate::store::control::Quotas;

const DAY_US: i64 = 86_400_000_000;
/// What the bucket holds, in seconds of its rate.
const BURST_S: u32 = 10;
/// How long nothing is let in after a batch that was read did not fit: it bounds the work done for nothing.
const SHUT: Duration = Duration::from_millis(250);
/// Told to a device where waiting does not help: only another quota does.
const NEVER: Duration = Duration::from_secs(3600);

/// What a batch takes of its quotas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cost {
    pub events: u32,
    /// As sent.
    pub bytes: u64,
}

/// Which quota is used up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exceeded {
    Events,
    Bytes,
}

/// Why a batch is not taken now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverQuota {
    pub exceeded: Exceeded,
    /// Until it is worth to try again.
    pub wait: Duration,
}

impl OverQuota {
    /// Whole seconds, at least one.
    #[must_use]
    pub fn retry_after_s(&self) -> u64 {
        let begun = u64::from(self.wait.subsec_nanos() > 0);
        self.wait.as_secs().saturating_add(begun).max(1)
    }
}

/// What one device may send: what its key and its project have left.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    pub(super) key: Option<Arc<Meter>>,
    pub(super) project: Option<Arc<Meter>>,
}

impl Budget {
    /// Whether to read a body of that many bytes at all, as far as its length is told.
    pub fn admit(&self, declared_bytes: Option<u64>, now: i64) -> Result<(), OverQuota> {
        let least = Cost {
            events: 1,
            bytes: declared_bytes.unwrap_or_default().max(1),
        };
        for meter in self.meters() {
            meter.used(now).admits(least)?;
        }
        Ok(())
    }

    /// Takes the cost from both quotas, or from none.
    pub fn charge(&self, cost: Cost, now: i64) -> Result<(), OverQuota> {
        // Always the key's before the project's, which no other key's lock waits for.
        let mut used: Vec<_> = self.meters().map(|meter| meter.used(now)).collect();
        for used in &mut used {
            if let Err(over) = used.fits(cost) {
                used.bucket.shut_for(over);
                return Err(over);
            }
        }
        for used in &mut used {
            used.take(cost);
        }
        Ok(())
    }

    /// Gives back what was charged for a batch that was not stored after all.
    pub fn refund(&self, cost: Cost, now: i64) {
        for meter in self.meters() {
            meter.used(now).give_back(cost);
        }
    }

    fn meters(&self) -> impl Iterator<Item = &Meter> {
        self.key.iter().chain(&self.project).map(AsRef::as_ref)
    }
}

/// What one key or one project used.
#[derive(Debug)]
pub struct Meter(Mutex<Used>);

impl Meter {
    /// `largest_batch`: how many events one batch may have.
    pub(super) fn new(quotas: Quotas, largest_batch: u32, now: i64) -> Self {
        let meter = Self(Mutex::default());
        meter.change(quotas, largest_batch, now);
        meter
    }

    /// Another quota from now on.
    pub(super) fn change(&self, quotas: Quotas, largest_batch: u32, now: i64) {
        let mut used = self.used(now);
        used.day.most = quotas.bytes_per_day;
        let rate = Rate::new(quotas.events_per_second, largest_batch);
        used.bucket.change(rate);
    }

    /// What is used at that time.
    fn used(&self, now: i64) -> MutexGuard<'_, Used> {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        used.bucket.pass_until(now);
        used.day.pass_until(now);
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
        if self.bucket.shut > 0 {
            return Err(OverQuota {
                exceeded: Exceeded::Events,
                wait: Duration::from_nanos(self.bucket.shut),
            });
        }
        self.fits(least)
    }

    fn fits(&self, cost: Cost) -> Result<(), OverQuota> {
        // Bytes first: they make wait the longest.
        self.day.fits(cost.bytes)?;
        self.bucket.after(cost.events).map(drop)
    }

    fn take(&mut self, cost: Cost) {
        self.day.bytes = self.day.bytes.saturating_add(cost.bytes);
        if let Ok(debt) = self.bucket.after(cost.events) {
            self.bucket.debt = debt;
        }
    }

    fn give_back(&mut self, cost: Cost) {
        self.day.bytes = self.day.bytes.saturating_sub(cost.bytes);
        if let Rate::Limited(quota) = self.bucket.rate {
            let worth = event_ns(quota).saturating_mul(u64::from(cost.events));
            self.bucket.debt = self.bucket.debt.saturating_sub(worth);
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Rate {
    #[default]
    Unlimited,
    Nothing,
    Limited(Quota),
}

impl Rate {
    fn new(per_second: Option<u64>, largest_batch: u32) -> Self {
        let Some(per_second) = per_second else {
            return Self::Unlimited;
        };
        let per_second = u32::try_from(per_second).unwrap_or(u32::MAX);
        let burst = per_second.saturating_mul(BURST_S).max(largest_batch);
        match (NonZeroU32::new(per_second), NonZeroU32::new(burst)) {
            (Some(per_second), Some(burst)) => {
                Self::Limited(Quota::per_second(per_second).allow_burst(burst))
            }
            _ => Self::Nothing,
        }
    }
}

/// Events: how far they ran ahead of their rate.
#[derive(Debug, Default)]
struct Bucket {
    rate: Rate,
    /// Nanoseconds until the bucket is full again, from `as_of`.
    debt: u64,
    /// Nanoseconds for which nothing is let in, from `as_of`.
    shut: u64,
    /// Microseconds since the epoch.
    as_of: i64,
}

impl Bucket {
    /// A clock set back makes nobody wait for it to catch up.
    fn pass_until(&mut self, now: i64) {
        let passed = u64::try_from(now.saturating_sub(self.as_of)).unwrap_or(0);
        let passed = passed.saturating_mul(1_000);
        self.debt = self.debt.saturating_sub(passed);
        self.shut = self.shut.saturating_sub(passed);
        self.as_of = now;
    }

    /// The debt after that many events.
    fn after(&self, events: u32) -> Result<u64, OverQuota> {
        let over = |wait| OverQuota {
            exceeded: Exceeded::Events,
            wait,
        };
        let (quota, events) = match (self.rate, NonZeroU32::new(events)) {
            (Rate::Unlimited, _) | (_, None) => return Ok(self.debt),
            (Rate::Nothing, _) => return Err(over(NEVER)),
            (Rate::Limited(quota), Some(events)) => (quota, events),
        };
        let limiter = Limiter::new(quota, Debt::of(self.debt), Now);
        match limiter.check_n(events) {
            Ok(Ok(())) => Ok(limiter.into_state_store().into_inner()),
            Ok(Err(until)) => Err(over(until.wait_time_from(Now.now()))),
            Err(_more_than_a_full_bucket) => Err(over(NEVER)),
        }
    }

    fn shut_for(&mut self, over: OverQuota) {
        if over.exceeded == Exceeded::Events {
            self.shut = nanos(over.wait.min(SHUT));
        }
    }

    /// The events that were taken count on, each at what it is worth by the new rate.
    fn change(&mut self, rate: Rate) {
        if rate == self.rate {
            return;
        }
        self.debt = match (self.rate, rate) {
            (Rate::Limited(before), Rate::Limited(after)) => {
                let events = self.debt.div_ceil(event_ns(before));
                let most = event_ns(after).saturating_mul(u64::from(after.burst_size().get()));
                events.saturating_mul(event_ns(after)).min(most)
            }
            _ => 0,
        };
        self.shut = 0;
        self.rate = rate;
    }
}

/// The time in which the rate allows one event.
fn event_ns(quota: Quota) -> u64 {
    nanos(quota.replenish_interval()).max(1)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

type Limiter = RateLimiter<NotKeyed, Debt, Now, NoOpMiddleware<Nanos>>;

/// The time for governor: always the zero that debts are counted from.
#[derive(Clone)]
struct Now;

impl Clock for Now {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::from(0)
    }
}

/// The state for governor: kept by us, so that a change of two is both or none, and outlives its quota.
struct Debt(std::cell::Cell<u64>);

impl Debt {
    fn of(debt: u64) -> Self {
        Self(std::cell::Cell::new(debt))
    }

    fn into_inner(self) -> u64 {
        self.0.into_inner()
    }
}

impl StateStore for Debt {
    type Key = NotKeyed;

    fn measure_and_replace<T, F, E>(&self, _key: &NotKeyed, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let (answer, debt) = measure(Some(self.0.get().into()))?;
        self.0.set(debt.into());
        Ok(answer)
    }
}

/// Bytes of one UTC day.
#[derive(Debug, Default)]
struct Day {
    most: Option<u64>,
    /// Counted without a quota too: one that is set at noon holds for the whole day.
    bytes: u64,
    /// Days since the epoch.
    number: i64,
    /// Microseconds until the next.
    left: i64,
}

impl Day {
    fn pass_until(&mut self, now: i64) {
        let today = now.div_euclid(DAY_US);
        if today != self.number {
            self.number = today;
            self.bytes = 0;
        }
        self.left = DAY_US - now.rem_euclid(DAY_US);
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
            wait: Duration::from_micros(u64::try_from(self.left).unwrap_or(0)),
        })
    }
}

#[cfg(test)]
#[path = "quota_tests.rs"]
mod tests;
