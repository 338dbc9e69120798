//! How fast things may be tried: passwords above all. Too many tries are delayed, not locked out: a person who knows the password
//! gets in, a little later. Pure: the time is a parameter.
//!
//! A try is taken from its buckets before the password is looked at, so that tries at the same time count too, and given back when the
//! password was right: an office behind one address logs in as often as it likes. A browser that logged in to the account before has a
//! bucket of its own, so that nobody else's tries delay it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::Quota;

use super::bucket::{Bucket, Rate};
use crate::shares::network;

/// Buckets watched at once. An attacker who has more addresses is slowed by the cost of the hash.
const MOST_WATCHED: usize = 20_000;
/// A try that would have to wait longer is refused.
const MOST_DELAY: Duration = Duration::from_secs(5);

/// Where a try comes from, and when.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub address: IpAddr,
    /// What the browser was given when it logged in before.
    pub known_device: Option<String>,
    /// Microseconds since the epoch.
    pub now: i64,
}

/// What tries are counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// Of one address, for all accounts together.
    Address(IpAddr),
    /// An account, from one address.
    Account(u64, IpAddr),
    /// An account, from everywhere.
    Anywhere(u64),
    /// A browser that logged in to the account before.
    Device(u64),
    /// Messages that test the channels of a project.
    ChannelTest(u64),
}

impl Counted {
    /// Of a browser that is not known.
    pub(super) fn stranger(account: u64, address: IpAddr) -> [Self; 3] {
        let address = network(address);
        [
            Self::Address(address),
            Self::Account(account, address),
            Self::Anywhere(account),
        ]
    }

    /// Of a try that names no account.
    pub(crate) fn nameless(address: IpAddr) -> [Self; 1] {
        [Self::Address(network(address))]
    }

    /// How many tries at once, and one in which time after that.
    fn rate(self) -> Rate {
        let (burst, seconds) = match self {
            Self::Address(_) => (30, 2),
            Self::Account(..) => (10, 10),
            Self::Anywhere(_) => (100, 3),
            Self::Device(_) => (20, 10),
            Self::ChannelTest(_) => (10, 60),
        };
        let quota = Quota::with_period(Duration::from_secs(seconds));
        match (quota, NonZeroU32::new(burst)) {
            (Some(quota), Some(burst)) => Rate::Limited(quota.allow_burst(burst)),
            _ => Rate::Unlimited,
        }
    }
}

#[derive(Debug, Default)]
pub struct Throttle(Mutex<HashMap<Counted, Bucket>>);

impl Throttle {
    /// Counts a try. Answers how long to delay it; or, as the error, when it can be tried again.
    pub fn take(&self, counted: &[Counted], now: i64) -> Result<Duration, Duration> {
        let mut watched = self.watched();
        make_room(&mut watched, now);
        let mut delay = Duration::ZERO;
        for one in counted {
            let bucket = watched
                .entry(*one)
                .or_insert_with(|| Bucket::new(one.rate(), now));
            bucket.pass_until(now);
            delay = delay.max(bucket.wait().unwrap_or_default());
        }
        if delay > MOST_DELAY {
            return Err(delay);
        }
        for one in counted {
            if let Some(bucket) = watched.get_mut(one) {
                bucket.borrow(1);
            }
        }
        Ok(delay)
    }

    /// The password was right.
    pub(crate) fn give_back(&self, counted: &[Counted]) {
        let mut watched = self.watched();
        for one in counted {
            if let Some(bucket) = watched.get_mut(one) {
                bucket.give_back(1);
            }
        }
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<Counted, Bucket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn make_room(watched: &mut HashMap<Counted, Bucket>, now: i64) {
    if watched.len() < MOST_WATCHED {
        return;
    }
    watched.retain(|_, bucket| {
        bucket.pass_until(now);
        !bucket.is_full()
    });
    if watched.len() >= MOST_WATCHED {
        watched.clear();
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    const NOW: i64 = 1_795_176_000_000_000;
    const SECOND: i64 = 1_000_000;

    fn stranger(account: u64, address: &str) -> [Counted; 3] {
        Counted::stranger(account, address.parse().unwrap())
    }

    /// How many of a hundred tries at once go without a delay, go with one, and are refused.
    fn tries(throttle: &Throttle, counted: &[Counted], now: i64) -> [usize; 3] {
        let mut found = [0; 3];
        for _ in 0..100 {
            found[match throttle.take(counted, now) {
                Ok(Duration::ZERO) => 0,
                Ok(_) => 1,
                Err(_) => 2,
            }] += 1;
        }
        found
    }

    #[test]
    fn tries_are_delayed_by_account_and_address_and_then_refused_for_a_while() {
        let throttle = Throttle::default();
        assert_eq!(
            tries(&throttle, &stranger(1, "192.0.2.1"), NOW),
            [10, 0, 90]
        );
        // Another address tries the same account as before, and the same address another account.
        assert_eq!(
            tries(&throttle, &stranger(1, "192.0.2.2"), NOW),
            [10, 0, 90]
        );
        assert_eq!(
            tries(&throttle, &stranger(2, "192.0.2.1"), NOW),
            [10, 0, 90]
        );
        let wait = throttle.take(&stranger(1, "192.0.2.1"), NOW).unwrap_err();
        assert_eq!(wait, Duration::from_secs(10));
        let later = throttle.take(&stranger(1, "192.0.2.1"), NOW + 7 * SECOND);
        assert_eq!(later, Ok(Duration::from_secs(3)));
    }

    #[test]
    fn one_address_tries_few_accounts() {
        let throttle = Throttle::default();
        let mut all = [0; 3];
        for account in 0..10 {
            let found = tries(&throttle, &stranger(account, "192.0.2.1"), NOW);
            for (sum, found) in all.iter_mut().zip(found) {
                *sum += found;
            }
        }
        assert_eq!(all[0], 30);
        assert!(all[1] < 5, "{all:?}");
    }

    #[test]
    fn a_known_device_does_not_notice_the_tries_of_others() {
        let throttle = Throttle::default();
        for address in 0..50_u64 {
            let address = Ipv6Addr::from_bits(u128::from(address) << 64);
            tries(&throttle, &Counted::stranger(1, address.into()), NOW);
        }
        let from_elsewhere = throttle.take(&stranger(1, "192.0.2.1"), NOW);
        assert!(from_elsewhere.is_err());
        assert_eq!(
            throttle.take(&[Counted::Device(7)], NOW),
            Ok(Duration::ZERO)
        );
    }

    #[test]
    fn a_right_password_counts_for_nothing() {
        let throttle = Throttle::default();
        for _ in 0..100 {
            let counted = stranger(1, "192.0.2.1");
            assert_eq!(throttle.take(&counted, NOW), Ok(Duration::ZERO));
            throttle.give_back(&counted);
        }
    }

    #[test]
    fn the_memory_is_bounded() {
        let throttle = Throttle::default();
        for n in 0..30_000 {
            let address = Ipv6Addr::from_bits(n << 64).into();
            let _wait = throttle.take(&Counted::nameless(address), NOW);
        }
        assert!(throttle.watched().len() <= MOST_WATCHED);
    }
}
