//! Throttles attempts, above all logins. Excess attempts are delayed rather than locked out, so a person who knows the
//! password still gets in, a little later. Pure: the time is a parameter.
//!
//! An attempt is charged before its password is checked, so that concurrent attempts count too, and refunded if the
//! password was correct: people in an office behind one address can log in as often as they like. A browser that has
//! logged in to the account before has its own bucket, so the attempts of others do not delay it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::Quota;
use unjank_foundation::clock::UnixTime;
use unjank_foundation::shares::network;

use super::token_bucket::{Bucket, Rate};

/// The maximum number of buckets. An attacker with more addresses is slowed down by the cost of the hash.
const MOST_WATCHED: usize = 20_000;
/// The maximum delay. An attempt that would have to wait longer is rejected.
const MOST_DELAY: Duration = Duration::from_secs(5);

/// The source and time of an attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub address: IpAddr,
    /// The value that the browser received at an earlier login.
    pub known_device: Option<String>,
    pub now: UnixTime,
}

/// The subject that attempts are counted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counted {
    /// An address, for all accounts together.
    Address(IpAddr),
    /// An account, from one address.
    Account(u64, IpAddr),
    /// An account, from anywhere.
    Anywhere(u64),
    /// A browser that has logged in to the account before.
    Device(u64),
    /// Test messages to the channels of a project.
    ChannelTest(u64),
    /// Set-ups of the installation, from anywhere.
    SetUp,
}

impl Counted {
    /// Returns the subjects for an attempt from an unknown browser.
    pub(super) fn unknown_device(account: u64, address: IpAddr) -> [Self; 3] {
        let address = network(address);
        [
            Self::Address(address),
            Self::Account(account, address),
            Self::Anywhere(account),
        ]
    }

    /// Returns the subjects for an attempt that names no account.
    pub(crate) fn without_account(address: IpAddr) -> [Self; 1] {
        [Self::Address(network(address))]
    }

    /// Returns the rate: a burst of attempts, then one per period.
    fn rate(self) -> Rate {
        let (burst, seconds) = match self {
            Self::Address(_) => (30, 2),
            Self::Account(..) => (10, 10),
            Self::Anywhere(_) => (100, 3),
            Self::Device(_) => (20, 10),
            Self::ChannelTest(_) => (10, 60),
            Self::SetUp => (60, 2),
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
    /// Counts an attempt and returns its delay. The error is the time until a retry.
    pub fn take(&self, counted: &[Counted], now: UnixTime) -> Result<Duration, Duration> {
        let mut watched = self.watched();
        make_room(&mut watched, now);
        let mut delay = Duration::ZERO;
        for one in counted {
            let bucket = watched
                .entry(*one)
                .or_insert_with(|| Bucket::new(one.rate(), now));
            bucket.advance_to(now);
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

    /// Refunds an attempt, because the password was correct.
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

fn make_room(watched: &mut HashMap<Counted, Bucket>, now: UnixTime) {
    if watched.len() < MOST_WATCHED {
        return;
    }
    watched.retain(|_, bucket| {
        bucket.advance_to(now);
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

    const NOW: UnixTime = UnixTime::from_micros(1_795_176_000_000_000);
    const SECOND: Duration = Duration::from_secs(1);

    fn unknown_device(account: u64, address: &str) -> [Counted; 3] {
        Counted::unknown_device(account, address.parse().unwrap())
    }

    /// Makes a hundred concurrent attempts. Returns how many pass at once, are delayed, and are rejected.
    fn tries(throttle: &Throttle, counted: &[Counted], now: UnixTime) -> [usize; 3] {
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
    fn attempts_are_delayed_by_account_and_address_and_then_rejected() {
        let throttle = Throttle::default();
        assert_eq!(
            tries(&throttle, &unknown_device(1, "192.0.2.1"), NOW),
            [10, 0, 90]
        );
        // Another address tries the same account; then the first address tries another account.
        assert_eq!(
            tries(&throttle, &unknown_device(1, "192.0.2.2"), NOW),
            [10, 0, 90]
        );
        assert_eq!(
            tries(&throttle, &unknown_device(2, "192.0.2.1"), NOW),
            [10, 0, 90]
        );
        let wait = throttle
            .take(&unknown_device(1, "192.0.2.1"), NOW)
            .unwrap_err();
        assert_eq!(wait, Duration::from_secs(10));
        let later = throttle.take(&unknown_device(1, "192.0.2.1"), NOW + 7 * SECOND);
        assert_eq!(later, Ok(Duration::from_secs(3)));
    }

    #[test]
    fn one_address_can_try_few_accounts_only() {
        let throttle = Throttle::default();
        let mut all = [0; 3];
        for account in 0..10 {
            let found = tries(&throttle, &unknown_device(account, "192.0.2.1"), NOW);
            for (sum, found) in all.iter_mut().zip(found) {
                *sum += found;
            }
        }
        assert_eq!(all[0], 30);
        assert!(all[1] < 5, "{all:?}");
    }

    #[test]
    fn a_known_device_is_not_affected_by_the_attempts_of_others() {
        let throttle = Throttle::default();
        for address in 0..50_u64 {
            let address = Ipv6Addr::from_bits(u128::from(address) << 64);
            tries(&throttle, &Counted::unknown_device(1, address.into()), NOW);
        }
        let from_elsewhere = throttle.take(&unknown_device(1, "192.0.2.1"), NOW);
        assert!(from_elsewhere.is_err());
        assert_eq!(
            throttle.take(&[Counted::Device(7)], NOW),
            Ok(Duration::ZERO)
        );
    }

    #[test]
    fn a_correct_password_is_not_counted() {
        let throttle = Throttle::default();
        for _ in 0..100 {
            let counted = unknown_device(1, "192.0.2.1");
            assert_eq!(throttle.take(&counted, NOW), Ok(Duration::ZERO));
            throttle.give_back(&counted);
        }
    }

    #[test]
    fn the_number_of_buckets_is_bounded() {
        let throttle = Throttle::default();
        for n in 0..30_000 {
            let address = Ipv6Addr::from_bits(n << 64).into();
            let _wait = throttle.take(&Counted::without_account(address), NOW);
        }
        assert!(throttle.watched().len() <= MOST_WATCHED);
    }
}
