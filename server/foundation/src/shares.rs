//! A bounded resource that many callers share and none can use up: a total limit, and a limit for each holder.
//!
//! A caller takes from its own part first. So a caller that waits for its own part does not delay others.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::fingerprint::fingerprint;

/// The holder of a part: an ingest key, an install with a device token, a user, an API token or an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Holder(u64);

impl Holder {
    /// Returns the holder with this name. `kind` separates names of different kinds.
    #[must_use]
    pub fn new(kind: &str, name: &[u8]) -> Self {
        Self(fingerprint(&[kind.as_bytes(), name]))
    }

    /// One customer of an internet provider: an IPv4 address, or the first half of an IPv6 address.
    #[must_use]
    pub fn address(address: IpAddr) -> Self {
        match network(address) {
            IpAddr::V4(address) => Self::new("address", &address.octets()),
            IpAddr::V6(address) => Self::new("address", &address.octets()),
        }
    }
}

/// Returns the network of one customer of an internet provider: an IPv4 address, or the first half of an IPv6 address.
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let half = address.to_bits() & (u128::MAX << 64);
            IpAddr::V6(Ipv6Addr::from_bits(half))
        }
        v4 => v4,
    }
}

/// A bounded resource, such as memory in KiB, connections or concurrent work.
#[derive(Debug)]
pub struct Shares {
    all: Arc<Semaphore>,
    each: usize,
    parts: Mutex<HashMap<Holder, Part>>,
}

/// The part of one holder. It exists while the holder has taken something or waits.
#[derive(Debug)]
struct Part {
    free: Arc<Semaphore>,
    users: usize,
}

impl Shares {
    /// `all` in total, and `each` for one holder. Both are at least 1.
    #[must_use]
    pub fn new(all: usize, each: usize) -> Arc<Self> {
        let all = all.clamp(1, Semaphore::MAX_PERMITS);
        Arc::new(Self {
            all: Arc::new(Semaphore::new(all)),
            each: each.clamp(1, all),
            parts: Mutex::default(),
        })
    }

    /// Takes `amount` if the holder's part and the whole have enough.
    pub fn try_take(self: &Arc<Self>, holder: Holder, amount: u32) -> Option<Share> {
        let mut share = self.begin(holder);
        share.try_grow(amount).then_some(share)
    }

    /// Takes one. Waits for it, at most for `patience`.
    pub async fn take(self: &Arc<Self>, holder: Holder, patience: Duration) -> Option<Share> {
        let mut share = self.begin(holder);
        let own = Arc::clone(&share.part).acquire_owned();
        let both = async {
            let own = own.await.ok()?;
            let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some((own, all))
        };
        share.taken = tokio::time::timeout(patience, both).await.ok()?;
        share.taken.is_some().then_some(share)
    }

    /// Returns an empty share.
    pub fn begin(self: &Arc<Self>, holder: Holder) -> Share {
        let mut parts = self.parts();
        let part = parts.entry(holder).or_insert_with(|| Part {
            free: Arc::new(Semaphore::new(self.each)),
            users: 0,
        });
        part.users += 1;
        Share {
            taken: None,
            part: Arc::clone(&part.free),
            holder,
            of: Arc::clone(self),
        }
    }

    /// Whether no holder has taken anything or waits.
    pub fn is_idle(&self) -> bool {
        self.parts().is_empty()
    }

    fn parts(&self) -> MutexGuard<'_, HashMap<Holder, Part>> {
        self.parts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The amount that a holder has taken. Dropping the share releases it.
#[derive(Debug)]
pub struct Share {
    /// From the holder's part and from the whole.
    taken: Option<(OwnedSemaphorePermit, OwnedSemaphorePermit)>,
    part: Arc<Semaphore>,
    holder: Holder,
    of: Arc<Shares>,
}

impl Share {
    /// Takes `amount` more if there is enough.
    pub fn try_grow(&mut self, amount: u32) -> bool {
        let Ok(own) = Arc::clone(&self.part).try_acquire_many_owned(amount) else {
            return false;
        };
        let Ok(all) = Arc::clone(&self.of.all).try_acquire_many_owned(amount) else {
            return false;
        };
        match &mut self.taken {
            None => self.taken = Some((own, all)),
            Some((taken_own, taken_all)) => {
                taken_own.merge(own);
                taken_all.merge(all);
            }
        }
        true
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.taken = None;
        let mut parts = self.of.parts();
        if let Some(part) = parts.get_mut(&self.holder) {
            part.users -= 1;
            if part.users == 0 {
                parts.remove(&self.holder);
            }
        }
    }
}

/// Memory that a holder has taken, in KiB. Dropping it releases the memory.
#[derive(Debug)]
pub struct Memory {
    share: Share,
    bytes: usize,
}

impl Memory {
    /// Returns no memory yet.
    #[must_use]
    pub fn new(share: Share) -> Self {
        Self { share, bytes: 0 }
    }

    /// How much was taken.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Grows to `bytes` in total. Returns false if there is not enough memory.
    #[must_use]
    pub fn try_grow_to(&mut self, bytes: usize) -> bool {
        if bytes <= self.bytes {
            return true;
        }
        let kib = (bytes - self.bytes).div_ceil(1024);
        if !self.share.try_grow(u32::try_from(kib).unwrap_or(u32::MAX)) {
            return false;
        }
        self.bytes += kib * 1024;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(name: &str) -> Holder {
        Holder::new("key", name.as_bytes())
    }

    #[test]
    fn a_holder_is_limited_to_its_part_and_all_holders_to_the_total() {
        let shares = Shares::new(10, 6);
        let mut one = shares.try_take(holder("one"), 4).unwrap();
        assert!(one.try_grow(2));
        assert!(!one.try_grow(1));
        let other = shares.try_take(holder("other"), 4).unwrap();
        assert!(shares.try_take(holder("other"), 1).is_none());
        drop(one);
        assert!(shares.try_take(holder("other"), 2).is_some());
        drop(other);
        assert!(shares.parts().is_empty());
        assert_eq!(shares.all.available_permits(), 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_holder_that_waits_for_its_own_part_does_not_block_others() {
        let patience = Duration::from_secs(10);
        let shares = Shares::new(2, 1);
        let first = shares.take(holder("one"), patience).await.unwrap();
        let mut second = Box::pin(shares.take(holder("one"), patience));
        assert!(futures_util::poll!(&mut second).is_pending());
        assert!(shares.take(holder("other"), patience).await.is_some());
        drop(first);
        assert!(second.await.is_some());
        let _one = shares.take(holder("one"), patience).await.unwrap();
        assert!(shares.take(holder("one"), patience).await.is_none());
    }

    #[test]
    fn all_addresses_of_a_customer_are_one_holder() {
        let address = |text: &str| Holder::address(text.parse().unwrap());
        assert_eq!(address("2001:db8:1:2::1"), address("2001:db8:1:2:ffff::2"));
        assert_ne!(address("2001:db8:1:2::1"), address("2001:db8:1:3::1"));
        assert_eq!(address("192.0.2.1"), address("::ffff:192.0.2.1"));
    }
}
