//! Places bars in lanes. Bars of one lane lie side by side or inside each other, and never overlap partially.

/// The lane of a bar, from 0, and the end that is drawn.
pub(super) type Drawn = (usize, i64);

/// Finds a lane for each bar. Bars are given as start and end, ordered by start, longest first. Bars that overlap partially, as
/// spans of `async` code and of threads with the same name do, go to different lanes.
pub(super) fn lanes(bars: &[(i64, i64)]) -> Vec<Drawn> {
    /// Times are truncated to microseconds, so a child may seem to end this much after its parent.
    const ROUNDING_US: i64 = 1;
    // Ends of the bars that are open in each lane, innermost last.
    let mut open: Vec<Vec<i64>> = Vec::new();
    let place = |&(start, end): &(i64, i64)| {
        for (number, lane) in open.iter_mut().enumerate() {
            while lane.last().is_some_and(|last| *last <= start) {
                lane.pop();
            }
            let around = lane.last().copied().unwrap_or(i64::MAX);
            if end <= around.saturating_add(ROUNDING_US) {
                let end = end.min(around);
                lane.push(end);
                return (number, end);
            }
        }
        open.push(vec![end]);
        (open.len().saturating_sub(1), end)
    };
    bars.iter().map(place).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_child_that_outlives_its_parent_by_rounding_stays_inside() {
        assert_eq!(
            lanes(&[(0, 10), (4, 11), (10, 12)]),
            [(0, 10), (0, 10), (0, 12)]
        );
        assert_eq!(lanes(&[(0, 10), (4, 12)]), [(0, 10), (1, 12)]);
    }

    proptest! {
        #[test]
        fn bars_of_a_lane_never_overlap_partially(
            mut bars in proptest::collection::vec((0..60_i64, 0..40_i64), 0..20),
        ) {
            bars.sort_by_key(|(start, long)| (*start, -long));
            let bars: Vec<_> = bars.iter().map(|(start, long)| (*start, start + long)).collect();
            let drawn = lanes(&bars);
            for (first, (lane, end)) in bars.iter().zip(&drawn) {
                for (second, (other_lane, other_end)) in bars.iter().zip(&drawn) {
                    let across = first.0 < second.0 && second.0 < *end && end < other_end;
                    prop_assert!(lane != other_lane || !across, "{first:?} {second:?}");
                }
            }
        }
    }
}
