//! Repeatable randomness: `SplitMix64` and the few distributions that a shop's use follows.
//!
//! Own code, because the same seed has to make the same month for years, whatever a crate's next version does.

use uuid::Uuid;

/// A `SplitMix64` generator: one addition and three multiplications a number.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    /// A stream named by `keys`: equal keys give equal numbers, any other keys give unrelated ones.
    pub(super) fn of(keys: &[u64]) -> Self {
        let state = keys.iter().fold(0x6a09_e667_f3bc_c908, |state: u64, key| {
            mix(state.rotate_left(23) ^ mix(key.wrapping_add(0x9e37_79b9_7f4a_7c15)))
        });
        Self(state)
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// From 0 up to, not including, `end`; 0 when `end` is 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        let product = u128::from(self.bits()) * u128::from(end);
        u64::try_from(product >> 64).unwrap_or_default()
    }

    /// From `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// From 0 to just under 1.
    pub(super) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.unit() < probability
    }

    /// Times between events that know nothing of each other.
    pub(super) fn exponential(&mut self, mean: f64) -> f64 {
        -(1.0 - self.unit()).ln() * mean
    }

    /// Durations: half of them under `median`, with a long tail that `sigma` stretches.
    pub(super) fn log_normal(&mut self, median: f64, sigma: f64) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.unit()).cos();
        median * (sigma * normal).exp()
    }

    /// From -`most` to `most`.
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

/// The nearest whole number, 0 for what is negative or not a number.
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

/// A loaded die: picks an index in proportion to its weight.
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
