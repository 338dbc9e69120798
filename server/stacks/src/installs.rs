//! Counts distinct installs: exactly while there are few, by an estimate in bounded memory when there are many.

/// How many of the smallest hashes are kept. The count is estimated from their density, within about 9 % (1 / √128).
const MOST: usize = 128;

/// A set of installs. Keeps the smallest of their 64-bit hashes (a k-minimum-values sketch, Bar-Yossef et al. 2002).
/// Joining sets counts no install twice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Installs {
    /// Ascending and unique.
    smallest: Vec<u64>,
}

impl Installs {
    /// The maximum number of hashes that have an effect.
    pub const MOST: usize = MOST;

    /// Creates a set from uniformly distributed hashes: all hashes of the set, or at least its [`Self::MOST`] smallest.
    #[must_use]
    pub fn new(mut hashes: Vec<u64>) -> Self {
        hashes.sort_unstable();
        hashes.dedup();
        hashes.truncate(MOST);
        Self { smallest: hashes }
    }

    pub fn join(&mut self, other: &Self) {
        self.smallest.extend_from_slice(&other.smallest);
        self.smallest.sort_unstable();
        self.smallest.dedup();
        self.smallest.truncate(MOST);
    }

    #[must_use]
    pub fn count(&self) -> u64 {
        match self.smallest.last() {
            Some(largest) if self.smallest.len() == MOST => {
                // MOST - 1 other hashes are below the largest kept one.
                let share = u128::from(*largest).max(1);
                let count = ((MOST as u128 - 1) << 64) / share;
                u64::try_from(count).unwrap_or(u64::MAX)
            }
            _ => self.smallest.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use unjank_foundation::fingerprint::fingerprint;

    use super::*;

    fn installs(numbers: std::ops::Range<u32>) -> Installs {
        let hashes = numbers.map(|number| fingerprint(&[&number.to_le_bytes()]));
        Installs::new(hashes.collect())
    }

    #[test]
    fn few_installs_are_counted_exactly_and_without_duplicates() {
        let mut some = installs(0..60);
        some.join(&installs(40..100));
        assert_eq!(some.count(), 100);
        assert_eq!(Installs::default().count(), 0);
    }

    #[test]
    fn many_installs_are_estimated() {
        let mut many = installs(0..30_000);
        many.join(&installs(20_000..50_000));
        let count = many.count();
        assert!((40_000..60_000).contains(&count), "{count}");
    }
}
