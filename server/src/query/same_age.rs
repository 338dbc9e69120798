//! Compares versions at the same age: the period of the base is earlier by the time between the first appearances of both versions.

use std::time::Duration;

use unjank_foundation::clock::UnixTime;

use crate::store::reads::Span;

/// When the compared versions first appeared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstSeen {
    pub head: UnixTime,
    pub base: UnixTime,
}

/// The compared periods, of the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periods {
    pub head: Span,
    pub base: Span,
}

impl FirstSeen {
    /// Returns both times, rounded down to the units in which rows are stored.
    #[must_use]
    pub const fn floor(self, unit: Duration) -> Self {
        Self {
            head: self.head.floor(unit),
            base: self.base.floor(unit),
        }
    }

    /// Returns the periods in which both versions have the same ages. The period of the head is the part of `span` since the head appeared,
    /// limited to the age that the base has reached at `now`. Returns `None` if that part is empty.
    #[must_use]
    pub fn periods(self, span: Span, now: UnixTime) -> Option<Periods> {
        let from = span.from.max(self.head);
        let to = span.to.min(self.head + now.since(self.base));
        if from >= to {
            return None;
        }
        let at = |time: UnixTime| self.base + time.since(self.head);
        Some(Periods {
            head: Span { from, to },
            base: Span {
                from: at(from),
                to: at(to),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use unjank_foundation::clock::{DAY, HOUR};

    use super::*;

    fn day(number: u32) -> UnixTime {
        UnixTime::default() + number * DAY
    }

    fn span(from: u32, to: u32) -> Span {
        Span {
            from: day(from),
            to: day(to),
        }
    }

    #[test]
    fn the_base_period_is_earlier_by_the_time_between_the_first_appearances() {
        let seen = FirstSeen {
            head: day(20),
            base: day(6),
        };
        let periods = seen.periods(span(23, 30), day(30)).unwrap();
        assert_eq!((periods.head, periods.base), (span(23, 30), span(9, 16)));
        let younger = seen.periods(span(10, 30), day(30)).unwrap();
        assert_eq!((younger.head, younger.base), (span(20, 30), span(6, 16)));
    }

    #[test]
    fn a_base_that_is_younger_limits_the_ages() {
        let seen = FirstSeen {
            head: day(6),
            base: day(20),
        };
        let periods = seen.periods(span(10, 30), day(30)).unwrap();
        assert_eq!((periods.head, periods.base), (span(10, 16), span(24, 30)));
        assert_eq!(seen.periods(span(23, 30), day(30)), None);
    }

    #[test]
    fn times_are_rounded_to_the_units_of_the_roll_up() {
        let seen = FirstSeen {
            head: day(3) + 5 * HOUR,
            base: day(1) + 23 * HOUR,
        };
        let days = seen.floor(DAY);
        assert_eq!((days.head, days.base), (day(3), day(1)));
    }
}
