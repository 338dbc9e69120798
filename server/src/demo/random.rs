//! Repeatable random numbers: `SplitMix64` and the distributions that the demo needs.
//!
//! Not taken from a crate, because the same seed must produce the same month for years, across versions of dependencies.

use uuid::Uuid;

/// A `SplitMix64` generator: one addition and two multiplications per number.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// Creates the stream that `keys` identify. Equal keys produce equal numbers, different keys unrelated ones.
    pub(super) fn seeded(keys: &[u64]) -> Self {
        let state = keys.iter().fold(0x6a09_e667_f3bc_c908, |state: u64, key| {
            mix(state.rotate_left(23) ^ mix(key.wrapping_add(0x9e37_79b9_7f4a_7c15)))
        });
        Self(state)
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Returns a number from 0 to `end`, exclusive; 0 if `end` is 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        let product = u128::from(self.bits()) * u128::from(end);
        u64::try_from(product >> 64).unwrap_or_default()
    }

    /// Returns a number from `low` to `high`, inclusive.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// Returns a number from 0 to 1, exclusive.
    pub(super) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Returns an exponentially distributed number: the time between independent events.
    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.unit()).ln() * mean
    }

    /// Returns a log-normally distributed number. Half of the numbers are below `median`; a larger `sigma` makes the tail longer.
    pub(super) fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.unit()).cos();
        median * (sigma * normal).exp()
    }

    /// Returns a number from -`most` to `most`, inclusive.
    pub(super) fn signed(&mut self, most: u32) -> i64 {
        i64::try_from(self.below(2 * u64::from(most) + 1)).unwrap_or_default() - i64::from(most)
    }

    pub(super) fn uuid(&mut self) -> Uuid {
        let bits = u128::from(self.bits()) << 64 | u128::from(self.bits());
        uuid::Builder::from_random_bytes(bits.to_be_bytes()).into_uuid()
    }

    pub(super) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let index = self.below(choices.len() as u64);
        &choices[usize::try_from(index).unwrap_or_default()]
    }
}

/// Returns the nearest whole number, or 0 for negative numbers and NaN.
#[expect(
    clippy::cast_sign_loss,
    reason = "a float-to-integer cast saturates, and 0 is what a negative value should give"
)]
pub(super) fn whole(value: f64) -> u64 {
    value.round() as u64
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A loaded die: picks an index with a probability proportional to its weight.
#[derive(Clone, Debug)]
pub(super) struct Dice(Vec<f64>);

impl Dice {
    pub(super) fn new(weights: impl IntoIterator<Item = f64>) -> Self {
        let mut total = 0.0;
        let sums = weights.into_iter().map(|weight| {
            total += weight;
            total
        });
        Self(sums.collect())
    }

    pub(super) fn roll(&self, random: &mut Random) -> usize {
        let total = self.0.last().copied().unwrap_or_default();
        let point = random.unit() * total;
        self.0
            .partition_point(|sum| *sum <= point)
            .min(self.0.len().saturating_sub(1))
    }
}
