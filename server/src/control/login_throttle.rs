//! How many wrong passwords one address may try, whatever accounts they are for. Pure: the time is a parameter.
//!
//! An attempt is taken from the address's bucket before the password is looked at, so that attempts at once count too, and given
//! back when it was right: an office behind one address logs in as often as it likes.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use governor::Quota;

use super::bucket::{Bucket, Rate};
use crate::shares::network;

/// Wrong attempts at once.
const BURST: NonZeroU32 = NonZeroU32::new(30).unwrap();
/// Then one in this time.
const PERIOD: Duration = Duration::from_secs(10);
/// Addresses watched at once. An attacker who has more of them is slowed by the throttle of accounts and the cost of the hash.
const MOST_WATCHED: usize = 20_000;

/// Who tries, and when.
#[derive(Clone, Copy, Debug)]
pub struct Attempt {
    pub address: IpAddr,
    /// Microseconds since the epoch.
    pub now: i64,
}

#[derive(Debug, Default)]
pub(super) struct LoginThrottle(Mutex<HashMap<IpAddr, Bucket>>);

impl LoginThrottle {
    /// Counts an attempt. Answers how long to wait when there were too many.
    pub(super) fn take(&self, attempt: Attempt) -> Result<(), Duration> {
        let mut watched = self.watched();
        if watched.len() >= MOST_WATCHED {
            watched.retain(|_, bucket| {
                bucket.pass_until(attempt.now);
                !bucket.is_full()
            });
        }
        if watched.len() >= MOST_WATCHED {
            watched.clear();
        }
        let bucket = watched
            .entry(network(attempt.address))
            .or_insert_with(|| Bucket::new(rate(), attempt.now));
        bucket.pass_until(attempt.now);
        if bucket.overdraw(1) {
            return Ok(());
        }
        Err(bucket.wait().unwrap_or(PERIOD))
    }

    /// The attempt was no wrong one.
    pub(super) fn give_back(&self, attempt: Attempt) {
        if let Some(bucket) = self.watched().get_mut(&network(attempt.address)) {
            bucket.give_back(1);
        }
    }

    fn watched(&self) -> MutexGuard<'_, HashMap<IpAddr, Bucket>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn rate() -> Rate {
    Quota::with_period(PERIOD).map_or(Rate::Unlimited, |quota| {
        Rate::Limited(quota.allow_burst(BURST))
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    const NOW: i64 = 1_795_176_000_000_000;

    fn attempt(address: &str, now: i64) -> Attempt {
        let address = address.parse().unwrap();
        Attempt { address, now }
    }

    fn taken(throttle: &LoginThrottle, address: &str, now: i64) -> usize {
        let tries = (0..100).map(|_| throttle.take(attempt(address, now)));
        tries.filter(Result::is_ok).count()
    }

    #[test]
    fn an_address_tries_thirty_times_and_then_once_in_ten_seconds() {
        let throttle = LoginThrottle::default();
        assert_eq!(taken(&throttle, "192.0.2.1", NOW), 30);
        let wait = throttle.take(attempt("192.0.2.1", NOW)).unwrap_err();
        assert_eq!(wait, PERIOD);
        assert_eq!(taken(&throttle, "::ffff:192.0.2.1", NOW + 10_000_000), 1);
        assert_eq!(taken(&throttle, "192.0.2.2", NOW), 30);
        throttle.give_back(attempt("192.0.2.2", NOW));
        assert_eq!(taken(&throttle, "192.0.2.2", NOW), 1);
    }

    #[test]
    fn a_customer_with_many_addresses_is_one() {
        let throttle = LoginThrottle::default();
        assert_eq!(taken(&throttle, "2001:db8:1:2::1", NOW), 30);
        assert_eq!(taken(&throttle, "2001:db8:1:2:ffff::2", NOW), 0);
        assert_eq!(taken(&throttle, "2001:db8:1:3::1", NOW), 30);
    }

    #[test]
    fn the_memory_is_bounded_and_keeps_who_tried_lately() {
        let throttle = LoginThrottle::default();
        assert_eq!(taken(&throttle, "192.0.2.1", NOW), 30);
        for n in 0..30_000 {
            let address = Ipv6Addr::from_bits(n << 64).into();
            let now = NOW + 1_000_000 + if n < 15_000 { 0 } else { 20_000_000 };
            throttle.take(Attempt { address, now }).unwrap();
        }
        assert!(throttle.watched().len() <= MOST_WATCHED);
        // In 21 s two were forgiven.
        assert_eq!(taken(&throttle, "192.0.2.1", NOW + 21_000_000), 2);
    }
}
