//! A bucket of events per second (`governor`): ten seconds' worth at once, or the largest batch where that is more, so that
//! every legal batch passes after a silence. Pure: the time is a parameter.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{NotKeyed, StateStore};
use governor::{Quota, RateLimiter};

use super::quota::{Exceeded, OverQuota};

/// What the bucket holds, in seconds of its rate.
const BURST_S: u32 = 10;
/// How long nothing is let in after a batch that was read did not fit: it bounds the work done for nothing.
pub(super) const SHUT: Duration = Duration::from_millis(250);
/// Told to a device where waiting does not help: only another quota does.
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

/// Events: how far they ran ahead of their rate.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    rate: Rate,
    /// Nanoseconds until the bucket is full again, from `as_of`.
    debt: u64,
    /// Nanoseconds for which nothing is let in, from `as_of`.
    shut: u64,
    /// Microseconds since the epoch.
    as_of: i64,
}

impl Bucket {
    /// A full one.
    pub(super) fn new(rate: Rate, now: i64) -> Self {
        Self {
            rate,
            as_of: now,
            ..Self::default()
        }
    }

    /// A clock set back makes nobody wait for it to catch up.
    pub(super) fn pass_until(&mut self, now: i64) {
        let passed = u64::try_from(now.saturating_sub(self.as_of)).unwrap_or(0);
        let passed = passed.saturating_mul(1_000);
        self.debt = self.debt.saturating_sub(passed);
        self.shut = self.shut.saturating_sub(passed);
        self.as_of = now;
    }

    /// The debt after that many events.
    pub(super) fn after(&self, events: u32) -> Result<u64, OverQuota> {
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

    /// Takes events that fit.
    pub(super) fn take(&mut self, events: u32) {
        if let Ok(debt) = self.after(events) {
            self.debt = debt;
        }
    }

    /// Takes events if even one fits, however far they run ahead. Answers whether they were taken.
    pub(super) fn overdraw(&mut self, events: u32) -> bool {
        if self.after(1).is_err() {
            return false;
        }
        self.borrow(events);
        true
    }

    /// Takes events that do not fit yet: they fit after [`Self::wait`].
    pub(super) fn borrow(&mut self, events: u32) {
        if let Rate::Limited(quota) = self.rate {
            let worth = event_ns(quota).saturating_mul(u64::from(events));
            self.debt = self.debt.saturating_add(worth);
        }
    }

    /// How long until an event fits, unless one does.
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

    /// Whether nothing of it is used.
    pub(super) fn is_full(&self) -> bool {
        self.debt == 0
    }

    pub(super) fn give_back(&mut self, events: u32) {
        if let Rate::Limited(quota) = self.rate {
            let worth = event_ns(quota).saturating_mul(u64::from(events));
            self.debt = self.debt.saturating_sub(worth);
        }
    }

    /// Whether it is not shut.
    pub(super) fn open(&self) -> Result<(), OverQuota> {
        match self.shut {
            0 => Ok(()),
            shut => Err(over(Duration::from_nanos(shut))),
        }
    }

    /// Lets nothing in for a moment.
    pub(super) fn shut_for(&mut self, wait: Duration) {
        self.shut = nanos(wait.min(SHUT));
    }

    /// The events that were taken count on, each at what it is worth by the new rate.
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
