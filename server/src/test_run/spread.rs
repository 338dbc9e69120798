//! The distribution of weighted values.

/// Values with their weights.
#[derive(Clone, Debug, Default)]
pub struct Spread(Vec<(f64, f64)>);

/// A summary of a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// The number of events that the values represent.
    pub count: f64,
    pub sum: f64,
    pub p50: f64,
    pub p95: f64,
    pub max: f64,
}

impl Spread {
    pub fn add(&mut self, value: f64, weight: f64) {
        self.0.push((value, weight));
    }

    /// Returns the summary; `None` without values.
    #[must_use]
    pub fn summary(mut self) -> Option<Summary> {
        self.0.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (max, _) = *self.0.last()?;
        Some(Summary {
            count: self.0.iter().map(|(_, weight)| weight).sum(),
            sum: self.0.iter().map(|(value, weight)| value * weight).sum(),
            p50: self.percentile(0.5).unwrap_or(max),
            p95: self.percentile(0.95).unwrap_or(max),
            max,
        })
    }

    /// Returns the percentile of sorted values: the smallest measured value that reaches the share, never interpolated.
    fn percentile(&self, share: f64) -> Option<f64> {
        let all: f64 = self.0.iter().map(|(_, weight)| weight).sum();
        let mut sum = 0.0;
        let found = self.0.iter().find(|(_, weight)| {
            sum += weight;
            // Sums of fractions are inexact.
            sum >= share * all - 1e-9
        });
        found.map(|(value, _)| *value)
    }
}

impl Summary {
    #[must_use]
    pub fn mean(&self) -> f64 {
        self.sum / self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_measured_values_and_respect_weights() {
        let mut spread = Spread::default();
        (1..=100).for_each(|value| spread.add(f64::from(value), 1.0));
        let even = spread.clone().summary().unwrap();
        assert_eq!(
            (even.count, even.p50, even.p95, even.max, even.mean()),
            (100.0, 50.0, 95.0, 100.0, 50.5)
        );
        // One of ten slow events was sampled, so it represents ten.
        spread.add(1_000.0, 10.0);
        let sampled = spread.summary().unwrap();
        assert_eq!((sampled.count, sampled.p95), (110.0, 1_000.0));
        assert_eq!(Spread::default().summary(), None);
    }
}
