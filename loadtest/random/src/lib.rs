//! Repeatable random numbers: `SplitMix64` and the distributions that simulated devices need, in the load test and in the demo.
//!
//! Not taken from a crate, because the same seed must produce the same data for years, across versions of dependencies.

use uuid::Uuid;

/// A `SplitMix64` generator: one addition and two multiplications per number.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates the stream that `keys` identify. Equal keys produce equal numbers, different keys unrelated ones.
    pub fn seeded(keys: &[u64]) -> Self {
        let state = keys.iter().fold(0x6a09_e667_f3bc_c908, |state: u64, key| {
            mix(state.rotate_left(23) ^ mix(key.wrapping_add(0x9e37_79b9_7f4a_7c15)))
        });
        Self(state)
    }

    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number from 0 to `end`, exclusive; 0 if `end` is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        let product = u128::from(self.bits()) * u128::from(end);
        u64::try_from(product >> 64).unwrap_or_default()
    }

    /// Returns a number from `low` to `high`, inclusive.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// Returns a number from 0 to 1, exclusive.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Returns an exponentially distributed number: the time between independent events.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.unit()).ln() * mean
    }

    /// Returns a log-normally distributed number. Half of the numbers are below `median`; a larger `sigma` makes the tail longer.
    pub fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.unit()).cos();
        median * (sigma * normal).exp()
    }

    /// Returns a number from -`most` to `most`, inclusive.
    pub fn signed(&mut self, most: u32) -> i64 {
        i64::try_from(self.below(2 * u64::from(most) + 1)).unwrap_or_default() - i64::from(most)
    }

    pub fn uuid(&mut self) -> Uuid {
        let bits = u128::from(self.bits()) << 64 | u128::from(self.bits());
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }

    /// Returns [`Random::log_normal`] as a whole number, at most `max`.
    pub fn long_tail(&mut self, median: f64, sigma: f64, max: u64) -> u64 {
        whole(self.log_normal(median, sigma)).min(max)
    }

    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let index = self.below(choices.len() as u64);
        &choices[usize::try_from(index).unwrap_or_default()]
    }
}

/// Returns the nearest whole number, or 0 for negative numbers and NaN.
#[expect(
    clippy::cast_sign_loss,
    reason = "a float-to-integer cast saturates, and 0 is what a negative value should give"
)]
pub fn whole(value: f64) -> u64 {
    value.round() as u64
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A loaded die: picks an index with a probability proportional to its weight.
#[derive(Clone, Debug)]
pub struct Dice(Vec<f64>);

impl Dice {
    pub fn new(weights: impl IntoIterator<Item = f64>) -> Self {
        let mut total = 0.0;
        let sums = weights.into_iter().map(|weight| {
            total += weight;
            total
        });
        Self(sums.collect())
    }

    /// Weights by Zipf's law, which names in real programs follow: the n-th is used 1/n^s times as often as the first.
    pub fn zipf(count: usize, s: f64) -> Self {
        Self::new((1..=count).map(|rank| 1.0 / (rank as f64).powf(s)))
    }

    pub fn roll(&self, random: &mut Random) -> usize {
        let total = self.0.last().copied().unwrap_or_default();
        let point = random.unit() * total;
        self.0
            .partition_point(|sum| *sum <= point)
            .min(self.0.len().saturating_sub(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_give_equal_numbers_and_different_keys_different_ones() {
        let numbers = |keys: &[u64]| {
            let mut random = Random::seeded(keys);
            [random.bits(), random.bits(), random.bits()]
        };
        assert_eq!(numbers(&[1, 2]), numbers(&[1, 2]));
        assert_ne!(numbers(&[1, 2]), numbers(&[2, 1]));
        assert_ne!(numbers(&[1]), numbers(&[1, 0]));
    }

    #[test]
    fn a_die_follows_its_weights() {
        let dice = Dice::new([1.0, 0.0, 3.0]);
        let mut random = Random::seeded(&[7]);
        let mut counts = [0_u32; 3];
        for _ in 0..40_000 {
            counts[dice.roll(&mut random)] += 1;
        }
        assert_eq!(counts[1], 0);
        assert!((9_500..10_500).contains(&counts[0]), "{counts:?}");
    }

    #[test]
    fn half_of_the_log_normal_numbers_are_below_the_median() {
        let mut random = Random::seeded(&[9]);
        let under = (0..40_000)
            .filter(|_| random.log_normal(100.0, 1.0) < 100.0)
            .count();
        assert!((19_400..20_600).contains(&under), "{under}");
    }

    #[test]
    fn between_includes_both_ends() {
        let mut random = Random::seeded(&[3]);
        let mut seen = [false; 3];
        for _ in 0..200 {
            let value = random.between(4, 6);
            seen[usize::try_from(value - 4).unwrap()] = true;
        }
        assert_eq!(seen, [true; 3]);
        assert_eq!(random.below(0), 0);
    }
}
