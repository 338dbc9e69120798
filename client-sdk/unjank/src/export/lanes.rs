//! Tracks of a drawing: bars of one track lie side by side or inside each other, never across.

/// Where a bar is drawn: its lane, from 0, and its end.
pub(super) type Drawn = (usize, i64);

/// Finds a lane for each bar, given as start and end in the order of their beginnings, longest first. What overlaps, as spans of
/// `async` code and of threads with one name do, comes into another lane.
pub(super) fn lanes(bars: &[(i64, i64)]) -> Vec<Drawn> {
    /// Times are cut to microseconds, so a child may seem to end so much after its parent.
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
    fn a_child_that_seems_to_outlive_its_parent_by_rounding_stays_inside() {
        assert_eq!(
            lanes(&[(0, 10), (4, 11), (10, 12)]),
            [(0, 10), (0, 10), (0, 12)]
        );
        assert_eq!(lanes(&[(0, 10), (4, 12)]), [(0, 10), (1, 12)]);
    }

    proptest! {
        #[test]
        fn no_bar_of_a_lane_lies_across_another(
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
