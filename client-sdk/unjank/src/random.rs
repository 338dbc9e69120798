//! Random numbers for ids and sampling, not for secrets.

use std::cell::Cell;

use unjank_stack_sampler::forks;

thread_local! {
    /// The state, and the value of [`forks`] that it belongs to. A child created by `fork` has a copy of its parent's state and
    /// would draw the same numbers.
    static RANDOM: Cell<(u64, u32)> = const { Cell::new((0, 0)) };
}

/// Returns 64 random bits for ids and sampling, not for secrets.
#[inline]
pub(crate) fn random() -> u64 {
    let [one] = randoms();
    one
}

/// Returns several random numbers for the price of one look at the state.
#[inline]
pub(crate) fn randoms<const COUNT: usize>() -> [u64; COUNT] {
    let next = |state: &Cell<(u64, u32)>| {
        let (mut now, of_process) = state.get();
        let process = forks();
        if now == 0 || of_process != process {
            now = uuid::Uuid::new_v4().as_u64_pair().1 | 1;
        }
        let drawn = std::array::from_fn(|_| {
            // splitmix64 (Steele, Lea and Flood 2014).
            now = now.wrapping_add(0x9e37_79b9_7f4a_7c15);
            mix(now)
        });
        state.set((now, process));
        drawn
    };
    RANDOM.try_with(next).unwrap_or([1; COUNT])
}

/// The output function of splitmix64. Maps different numbers to different numbers.
pub(crate) fn mix(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Draws a number from 0 to below 1.
pub(crate) fn draw() -> f64 {
    share_of(random())
}

/// Returns a number from 0 to below 1 for a random one. Those with a small result have any leading bits, so they can still be ids.
#[inline]
pub(crate) fn draw_of(random: u64) -> f64 {
    share_of(random.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Returns a number from 0 to below 1. The same seed always gives the same number.
pub(crate) fn draw_for(seed: u64) -> f64 {
    share_of(mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15)))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "53 bits are what a double holds"
)]
fn share_of(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}
