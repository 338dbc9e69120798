//! Random numbers for ids and sampling, not for secrets.

use std::cell::Cell;

thread_local! {
    static RANDOM: Cell<u64> = const { Cell::new(0) };
}

/// Returns 64 random bits for ids and sampling, not for secrets.
pub(crate) fn random() -> u64 {
    let next = |state: &Cell<u64>| {
        let mut now = state.get();
        if now == 0 {
            now = uuid::Uuid::new_v4().as_u64_pair().1 | 1;
        }
        // splitmix64 (Steele, Lea and Flood 2014).
        now = now.wrapping_add(0x9e37_79b9_7f4a_7c15);
        state.set(now);
        mix(now)
    };
    RANDOM.try_with(next).unwrap_or(1)
}

/// The output function of splitmix64. Maps different numbers to different numbers.
pub(crate) fn mix(number: u64) -> u64 {
    let mut mixed = number;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Draws a number from 0 to below 1.
#[expect(
    clippy::cast_precision_loss,
    reason = "53 bits are what a double holds"
)]
pub(crate) fn draw() -> f64 {
    (random() >> 11) as f64 / (1_u64 << 53) as f64
}
