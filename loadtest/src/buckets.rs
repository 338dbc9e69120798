//! A Prometheus histogram: for each bound, how many values are at most that large.

use std::collections::BTreeMap;

/// Cumulative counts by bound. Bounds are in millionths; the `+Inf` bucket has the bound [`u64::MAX`].
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Buckets(BTreeMap<u64, f64>);

impl Buckets {
    pub(crate) fn read(metrics: &str, name: &str) -> Self {
        let prefix = format!("{name}_bucket{{");
        let lines = metrics.lines().filter_map(|line| {
            let (labels, count) = line.strip_prefix(&prefix)?.rsplit_once("} ")?;
            let (_, rest) = labels.split_once("le=\"")?;
            let bound = match rest.split_once('"')?.0 {
                "+Inf" => u64::MAX,
                bound => unjank_random::whole(bound.parse::<f64>().ok()? * 1e6),
            };
            Some((bound, count.trim().parse::<f64>().ok()?))
        });
        let mut buckets = BTreeMap::new();
        for (bound, count) in lines {
            *buckets.entry(bound).or_default() += count;
        }
        Self(buckets)
    }

    /// Returns the counts added since an earlier reading.
    pub(crate) fn since(&self, before: &Self) -> Self {
        let before = |bound: &u64| before.0.get(bound).copied().unwrap_or_default();
        let since = self
            .0
            .iter()
            .map(|(bound, count)| (*bound, count - before(bound)));
        Self(since.collect())
    }

    /// Returns the lowest bound that covers this share of the values, or `None` without values.
    pub(crate) fn quantile(&self, share: f64) -> Option<f64> {
        let all = self.0.last_key_value().map(|(_, count)| *count)?;
        let (bound, _) = self.0.iter().find(|(_, count)| **count >= all * share)?;
        (all > 0.0).then_some(match bound {
            &u64::MAX => f64::INFINITY,
            bound => *bound as f64 / 1e6,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_is_the_lowest_bound_that_covers_it() {
        let text = |counts: [u32; 3]| {
            let [one, five, all] = counts;
            format!(
                "fresh_bucket{{le=\"0.1\"}} {one}\nfresh_bucket{{le=\"5\"}} {five}\nfresh_bucket{{le=\"+Inf\"}} {all}\nfresh_sum 3\n"
            )
        };
        let before = Buckets::read(&text([10, 10, 10]), "fresh");
        let after = Buckets::read(&text([15, 19, 20]), "fresh");
        assert_eq!(before.quantile(0.99), Some(0.1));
        let since = after.since(&before);
        assert_eq!(since.quantile(0.5), Some(0.1));
        assert_eq!(since.quantile(0.9), Some(5.0));
        assert_eq!(since.quantile(0.99), Some(f64::INFINITY));
        assert_eq!(Buckets::default().quantile(0.5), None);
    }
}
