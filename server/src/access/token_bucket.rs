//! A token bucket for events per second, based on `governor`. Its capacity is ten seconds of its rate, or the largest
//! batch if that is more, so that every valid batch passes after an idle period. Pure: the time is a parameter.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{NotKeyed, StateStore};
use governor::{Quota, RateLimiter};
use unjank_foundation::clock::UnixTime;

use super::over_quota::{Exceeded, OverQuota};

/// The capacity of a bucket, in seconds of its rate.
const BURST_S: u32 = 10;
/// How long the bucket is shut after a batch was read but did not fit. This bounds the work wasted on rejected batches.
pub(super) const SHUT: Duration = Duration::from_millis(250);
/// The wait reported to a device if only a higher quota helps.
pub(super) const NEVER: Duration = Duration::from_secs(3600);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Rate {
    #[default]
    Unlimited,
    Nothing,
    Limited(Quota),
}

impl Rate {
    pub(super) fn new(per_second: Option<u64>, largest_batch: u32) -> Self {
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

/// How far events have run ahead of their rate.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    rate: Rate,
    /// Nanoseconds from `as_of` until the bucket is full again.
    debt: u64,
    /// Nanoseconds from `as_of` for which the bucket is shut.
    shut: u64,
    as_of: UnixTime,
}

impl Bucket {
    /// Creates a full bucket.
    pub(super) fn new(rate: Rate, now: UnixTime) -> Self {
        Self {
            rate,
            as_of: now,
            ..Self::default()
        }
    }

    /// Advances to `now`. If the clock was set back, no time passes, and no caller has to wait until it has caught up.
    pub(super) fn advance_to(&mut self, now: UnixTime) {
        let passed = u64::try_from(now.since(self.as_of).as_nanos()).unwrap_or(u64::MAX);
        self.debt = self.debt.saturating_sub(passed);
        self.shut = self.shut.saturating_sub(passed);
        self.as_of = now;
    }

    /// Returns the debt after this many events, or an error if they do not fit.
    pub(super) fn after(&self, events: u32) -> Result<u64, OverQuota> {
        let (quota, events) = match (self.rate, NonZeroU32::new(events)) {
            (Rate::Unlimited, _) | (_, None) => return Ok(self.debt),
            (Rate::Nothing, _) => return Err(over(NEVER)),
            (Rate::Limited(quota), Some(events)) => (quota, events),
        };
        let limiter = Limiter::new(quota, Debt::with_debt(self.debt), Now);
        match limiter.check_n(events) {
            Ok(Ok(())) => Ok(limiter.into_state_store().into_inner()),
            Ok(Err(until)) => Err(over(until.wait_time_from(Now.now()))),
            Err(_more_than_a_full_bucket) => Err(over(NEVER)),
        }
    }

    /// Takes events if they fit.
    pub(super) fn take(&mut self, events: u32) {
        if let Ok(debt) = self.after(events) {
            self.debt = debt;
        }
    }

    /// Takes all events if at least one fits. Returns whether they were taken.
    pub(super) fn overdraw(&mut self, events: u32) -> bool {
        if self.after(1).is_err() {
            return false;
        }
        self.borrow(events);
        true
    }

    /// Takes events even if they do not fit.
    pub(super) fn borrow(&mut self, events: u32) {
        if let Rate::Limited(quota) = self.rate {
            let worth = event_ns(quota).saturating_mul(u64::from(events));
            self.debt = self.debt.saturating_add(worth);
        }
    }

    /// Returns how long until an event fits, or `None` if one fits now.
    pub(super) fn wait(&self) -> Option<Duration> {
        let Rate::Limited(quota) = self.rate else {
            return self.after(1).err().map(|over| over.wait);
        };
        let full = event_ns(quota).saturating_mul(u64::from(quota.burst_size().get()));
        let over = self
            .debt
            .saturating_add(event_ns(quota))
            .checked_sub(full)?;
        (over > 0).then_some(Duration::from_nanos(over))
    }

    /// Whether the bucket is unused.
    pub(super) fn is_full(&self) -> bool {
        self.debt == 0
    }

    pub(super) fn give_back(&mut self, events: u32) {
        if let Rate::Limited(quota) = self.rate {
            let worth = event_ns(quota).saturating_mul(u64::from(events));
            self.debt = self.debt.saturating_sub(worth);
        }
    }

    /// Returns an error while the bucket is shut.
    pub(super) fn open(&self) -> Result<(), OverQuota> {
        match self.shut {
            0 => Ok(()),
            shut => Err(over(Duration::from_nanos(shut))),
        }
    }

    /// Shuts the bucket for `wait`, but at most [`SHUT`].
    pub(super) fn shut_for(&mut self, wait: Duration) {
        self.shut = nanos(wait.min(SHUT));
    }

    /// Changes the rate. Events taken before still count, converted to the new rate.
    pub(super) fn change(&mut self, rate: Rate) {
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

fn over(wait: Duration) -> OverQuota {
    OverQuota {
        exceeded: Exceeded::Events,
        wait,
    }
}

/// Returns the time in which the rate replenishes one event.
fn event_ns(quota: Quota) -> u64 {
    nanos(quota.replenish_interval()).max(1)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

type Limiter = RateLimiter<NotKeyed, Debt, Now, NoOpMiddleware<Nanos>>;

/// The clock for governor. Always zero, because debts are relative to now.
#[derive(Clone)]
struct Now;

impl Clock for Now {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::from(0)
    }
}

/// The state for governor. Kept outside of it, so that two buckets can change atomically and the state can outlive its
/// quota.
struct Debt(std::cell::Cell<u64>);

impl Debt {
    fn with_debt(debt: u64) -> Self {
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
