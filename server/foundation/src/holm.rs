//! Holm's correction of p-values.

/// Corrects p-values for `compared` comparisons (Holm, 1979). Comparisons that are not in `p` are assumed to have p = 1. The result
/// has the order of `p`.
#[must_use]
pub fn holm(p: &[f64], compared: usize) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|one, other| p[*one].total_cmp(&p[*other]));
    let mut corrected = vec![1.0; p.len()];
    let mut least = 0.0_f64;
    for (rank, place) in order.into_iter().enumerate() {
        let left = u32::try_from(compared.saturating_sub(rank).max(1)).unwrap_or(u32::MAX);
        least = least.max((p[place] * f64::from(left)).min(1.0));
        corrected[place] = least;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holm_multiplies_by_the_remaining_comparisons_and_keeps_the_order() {
        // The usual textbook example.
        let corrected = holm(&[0.01, 0.04, 0.03, 0.005], 4);
        let expected = [0.03, 0.06, 0.06, 0.02];
        for (actual, expected) in corrected.iter().zip(expected) {
            assert!((actual - expected).abs() < 1e-12, "{corrected:?}");
        }
        assert!(holm(&[], 0).is_empty());
        assert_eq!(holm(&[0.5], 10), [1.0]);
        assert!((holm(&[0.001], 10)[0] - 0.01).abs() < 1e-12);
    }
}
