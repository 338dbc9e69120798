//! What the cart costs.

/// Reckons every article as thoroughly as a shop does: rebates, taxes, and rounding are some work.
pub(crate) fn total(prices: &[u64]) -> u64 {
    prices.iter().map(|price| with_everything(*price)).sum()
}

/// The price, by the long way.
pub(crate) fn with_everything(price: u64) -> u64 {
    let steps = 0..std::hint::black_box(200_u64);
    let rebate = steps.fold(0, |sum: u64, step| sum.wrapping_mul(31).wrapping_add(step));
    std::hint::black_box(price ^ rebate) ^ rebate
}
