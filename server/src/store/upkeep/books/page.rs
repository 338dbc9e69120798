//! The pages of the books. A page compares two places that must have the same number of events.

use std::sync::LazyLock;

use serde::Serialize;

use crate::store::raw_tables::{RAW, RawTable};
use crate::store::roll_ups::RollUpTable;

/// What a page compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Book)]
pub enum Book {
    /// Raw rows against the outcomes that count them as stored, by hour of arrival.
    Arrivals,
    /// The events of batches against their outcomes, by hour of arrival.
    Batches,
    /// Raw rows against the hourly roll-up.
    Hours,
    /// The hourly roll-up, or raw rows if there is none, against the daily roll-up.
    Days,
}

impl Book {
    pub const ALL: [Self; 4] = [Self::Arrivals, Self::Batches, Self::Hours, Self::Days];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Arrivals => "arrivals",
            Self::Batches => "batches",
            Self::Hours => "hours",
            Self::Days => "days",
        }
    }

    /// The length of an entry, in seconds.
    #[must_use]
    pub const fn unit(self) -> i64 {
        match self {
            Self::Days => 86_400,
            _ => 3_600,
        }
    }

    /// Whether entries go by the time of arrival.
    #[must_use]
    pub const fn is_of_arrivals(self) -> bool {
        matches!(self, Self::Arrivals | Self::Batches)
    }
}

/// One side of a page: the sum of an expression over the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Side {
    pub(super) table: &'static str,
    /// The column that dates a row.
    pub(super) time: &'static str,
    /// The number of events of a row, as SQL. `1` if a row is one event.
    pub(super) sum: &'static str,
    pub(super) only: Only,
}

/// A comparison of two tables. `source` is written first, and `copy` is derived from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Page {
    pub signal: &'static str,
    pub book: Book,
    pub(super) source: Side,
    pub(super) copy: Side,
}

impl Page {
    /// The table that is written first.
    #[must_use]
    pub fn source_table(&self) -> &'static str {
        self.source.table
    }

    /// The table that is derived from the other one.
    #[must_use]
    pub fn copy_table(&self) -> &'static str {
        self.copy.table
    }
}

/// Which rows of a side count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Only {
    All,
    /// Outcomes of stored events of a signal.
    Stored(&'static str),
    /// Outcomes of events that the server accepted in batches.
    Accepted,
}

impl Only {
    /// Returns the condition in SQL.
    pub(super) fn sql(self) -> Option<String> {
        match self {
            Self::All => None,
            Self::Stored(signal) => Some(format!("signal = '{signal}' AND outcome = 'stored'")),
            // The accepted events of a batch are those when it was acknowledged. If ClickHouse refused some later, they wait or were
            // dropped.
            Self::Accepted => Some(
                "(outcome IN ('stored', 'dead_letter') OR (outcome = 'rejected' AND reason = 'dropped_by_operator'))"
                    .to_owned(),
            ),
        }
    }
}

const fn side(table: &'static str, time: &'static str, sum: &'static str) -> Side {
    Side {
        table,
        time,
        sum,
        only: Only::All,
    }
}

const fn outcomes(only: Only) -> Side {
    Side {
        only,
        ..side("outcomes", "hour", "count")
    }
}

impl Page {
    const fn new(signal: &'static str, book: Book, source: Side, copy: Side) -> Self {
        Self {
            signal,
            book,
            source,
            copy,
        }
    }

    /// Compares the raw rows of a table with the outcomes, by time of arrival.
    fn arrivals(raw: &RawTable) -> Self {
        if raw.name == "batches" {
            let accepted = side("batches", "received_at", "accepted");
            return Self::new("batches", Book::Batches, accepted, outcomes(Only::Accepted));
        }
        let stored = outcomes(Only::Stored(raw.name));
        let rows = side(raw.name, "received_at", "1");
        Self::new(raw.name, Book::Arrivals, rows, stored)
    }

    /// Compares a roll-up with the table that it is computed from.
    fn roll_up(table: RollUpTable) -> Self {
        let definition = table.definition;
        let (raw, rolled_up) = definition.counts;
        let time = RawTable::named(definition.table).map_or("", |raw| raw.time);
        let source = if definition.by_day == Some(table.name) {
            side(definition.target, "hour", rolled_up)
        } else {
            side(definition.table, time, raw)
        };
        let book = match table.time {
            "hour" => Book::Hours,
            _ => Book::Days,
        };
        let copy = side(table.name, table.time, rolled_up);
        Self::new(definition.signal, book, source, copy)
    }
}

/// All comparisons.
pub static PAGES: LazyLock<Vec<Page>> = LazyLock::new(|| {
    let (hourly, daily): (Vec<_>, Vec<_>) =
        RollUpTable::all().partition(|table| table.time == "hour");
    let traffic_bytes = Page::new(
        "traffic_bytes",
        Book::Days,
        side("traffic", "day", "tx_bytes"),
        side("traffic_daily", "day", "tx_bytes"),
    );
    let arrivals = RAW.iter().map(Page::arrivals);
    let roll_ups = hourly.into_iter().chain(daily).map(Page::roll_up);
    arrivals.chain(roll_ups).chain([traffic_bytes]).collect()
});
