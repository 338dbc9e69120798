//! Splits a reading into sources. A period that does not match the units of its roll-up takes whole days from the daily roll-up,
//! whole hours from the hourly one, and the rest from raw rows.

use unjank_foundation::clock::{DAY, HOUR};

use super::define::Kept;
use super::reading::{Base, Grain, Reading, Span};

/// One source and the periods that it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) grain: Grain,
    pub(super) now: Vec<Span>,
    pub(super) base: Vec<Span>,
    /// Whether it is the only source.
    pub(super) is_whole: bool,
}

impl Part {
    /// Reads everything from the reading's own source.
    pub(super) fn whole(reading: &Reading) -> Self {
        Self {
            grain: reading.grain,
            now: vec![reading.span],
            base: base_of(reading).into_iter().collect(),
            is_whole: true,
        }
    }
}

fn base_of(reading: &Reading) -> Option<Span> {
    match &reading.base {
        Some(Base::Period(base)) => Some(*base),
        Some(Base::Version { span, .. }) if *span != reading.span => Some(*span),
        _ => None,
    }
}

/// Returns the sources of a reading.
pub(super) fn plan(reading: &Reading) -> Vec<Part> {
    if !reading.exact || reading.grain == Grain::Raw {
        return vec![Part::whole(reading)];
    }
    let filtered = reading.filters.iter().map(|filter| filter.dimension);
    let mut named = reading.by.iter().copied().chain(filtered);
    let hours = reading.subject.hourly.is_some() && named.all(|one| one.kept == Kept::Always);
    let finer = if hours { Grain::Hourly } else { Grain::Raw };
    let now = cut(reading.span, reading.grain, finer);
    let base = base_of(reading).map_or(Vec::new(), |base| cut(base, reading.grain, finer));
    let of_grain = |pieces: &[(Grain, Span)], grain| {
        let same = pieces.iter().filter(|(of, _)| *of == grain);
        same.map(|(_, span)| *span).collect::<Vec<_>>()
    };
    let mut parts: Vec<_> = [Grain::Daily, Grain::Hourly, Grain::Raw]
        .into_iter()
        .map(|grain| Part {
            grain,
            now: of_grain(&now, grain),
            base: of_grain(&base, grain),
            is_whole: false,
        })
        .filter(|part| !part.now.is_empty() || !part.base.is_empty())
        .collect();
    if let [only] = &mut parts[..] {
        only.is_whole = true;
    }
    parts
}

/// Splits a period into whole units of a grain and finer pieces at both ends.
fn cut(span: Span, grain: Grain, finer: Grain) -> Vec<(Grain, Span)> {
    let unit = match grain {
        _ if span.from >= span.to => return Vec::new(),
        Grain::Raw => return vec![(Grain::Raw, span)],
        Grain::Hourly => HOUR,
        Grain::Daily => DAY,
    };
    let next = if grain == Grain::Daily {
        finer
    } else {
        Grain::Raw
    };
    let from = span.from.ceil(unit);
    let to = span.to.floor(unit);
    if from >= to {
        return cut(span, next, Grain::Raw);
    }
    let mut pieces = cut(
        Span {
            from: span.from,
            to: from,
        },
        next,
        Grain::Raw,
    );
    pieces.push((grain, Span { from, to }));
    pieces.extend(cut(
        Span {
            from: to,
            to: span.to,
        },
        next,
        Grain::Raw,
    ));
    pieces
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use unjank_foundation::clock::UnixTime;

    use super::*;

    #[test]
    fn partial_units_are_read_from_finer_sources_without_gaps() {
        let at = |passed| UnixTime::default() + passed;
        let span = Span {
            from: at(22 * HOUR + Duration::from_micros(1)),
            to: at(2 * DAY + HOUR + Duration::from_micros(5)),
        };
        let pieces = cut(span, Grain::Daily, Grain::Hourly);
        let grains: Vec<_> = pieces.iter().map(|(grain, _)| *grain).collect();
        assert_eq!(
            grains,
            [
                Grain::Raw,
                Grain::Hourly,
                Grain::Daily,
                Grain::Hourly,
                Grain::Raw
            ]
        );
        let mut end = span.from;
        for (_, piece) in &pieces {
            assert_eq!(piece.from, end);
            end = piece.to;
        }
        assert_eq!(end, span.to);
        let minutes = Span {
            from: UnixTime::from_micros(1),
            to: UnixTime::from_micros(2),
        };
        assert_eq!(
            cut(minutes, Grain::Daily, Grain::Hourly),
            [(Grain::Raw, minutes)]
        );
    }
}
