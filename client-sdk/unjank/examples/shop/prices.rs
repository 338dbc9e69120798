//! The prices in the cart.

/// Computes every price from scratch: rebates, taxes and rounding take some work.
pub(crate) fn total(prices: &[u64]) -> u64 {
    prices.iter().map(|price| with_everything(*price)).sum()
}

/// Returns the price, after some pointless work.
pub(crate) fn with_everything(price: u64) -> u64 {
    let steps = 0..std::hint::black_box(200_u64);
    let rebate = steps.fold(0, |sum: u64, step| sum.wrapping_mul(31).wrapping_add(step));
    std::hint::black_box(price ^ rebate) ^ rebate
}
