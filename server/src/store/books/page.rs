//! The pages of the books: two places that must hold the same number of events.

use serde::Serialize;

/// What a page compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Book)]
pub enum Book {
    /// Raw rows against the outcomes that count them as stored, by hour of arrival.
    Arrivals,
    /// What batches brought against what became of it, by hour of arrival.
    Batches,
    /// Raw rows against the roll-up by the hour.
    Hours,
    /// The roll-up by the hour (or raw rows, where there is none) against the roll-up by the day.
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
    /// What a row counts. `1`: itself.
    pub(super) sum: &'static str,
    /// A condition, or nothing.
    pub(super) only: &'static str,
}

/// A comparison of two tables. `source` is written first, and `copy` is made of it.
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

    /// The table that is made of the other one.
    #[must_use]
    pub fn copy_table(&self) -> &'static str {
        self.copy.table
    }
}

const fn side(table: &'static str, time: &'static str, sum: &'static str) -> Side {
    Side {
        table,
        time,
        sum,
        only: "",
    }
}

const fn page(signal: &'static str, book: Book, source: Side, copy: Side) -> Page {
    Page {
        signal,
        book,
        source,
        copy,
    }
}

const fn hours(signal: &'static str, source: Side, copy: Side) -> Page {
    page(signal, Book::Hours, source, copy)
}

/// A roll-up by the day that is made of one by the hour.
const fn days(
    signal: &'static str,
    hourly: &'static str,
    daily: &'static str,
    sum: &'static str,
) -> Page {
    page(
        signal,
        Book::Days,
        side(hourly, "hour", sum),
        side(daily, "day", sum),
    )
}

const fn arrivals(signal: &'static str, stored: &'static str) -> Page {
    let outcomes = Side {
        only: stored,
        ..side("outcomes", "hour", "count")
    };
    page(
        signal,
        Book::Arrivals,
        side(signal, "received_at", "1"),
        outcomes,
    )
}

const DROPPED: &str = "arraySum(`dropped.count`)";

/// Every comparison there is.
pub const PAGES: [Page; 32] = [
    arrivals("spans", "signal = 'spans' AND outcome = 'stored'"),
    arrivals(
        "frame_windows",
        "signal = 'frame_windows' AND outcome = 'stored'",
    ),
    arrivals("janks", "signal = 'janks' AND outcome = 'stored'"),
    arrivals("page_loads", "signal = 'page_loads' AND outcome = 'stored'"),
    arrivals("app_starts", "signal = 'app_starts' AND outcome = 'stored'"),
    arrivals(
        "recompositions",
        "signal = 'recompositions' AND outcome = 'stored'",
    ),
    arrivals("metrics", "signal = 'metrics' AND outcome = 'stored'"),
    arrivals("sdk_health", "signal = 'sdk_health' AND outcome = 'stored'"),
    arrivals("traffic", "signal = 'traffic' AND outcome = 'stored'"),
    // A batch counts as accepted what it had when it was acknowledged; what the store refused then waits, or was given up.
    page(
        "batches",
        Book::Batches,
        side("batches", "received_at", "accepted"),
        Side {
            only: "(outcome IN ('stored', 'dead_letter') OR (outcome = 'rejected' AND reason = 'dropped_by_operator'))",
            ..side("outcomes", "hour", "count")
        },
    ),
    hours(
        "spans",
        side("spans", "start", "1"),
        side("spans_hourly", "hour", "samples"),
    ),
    hours(
        "frame_windows",
        side("frame_windows", "start", "1"),
        side("frame_windows_hourly", "hour", "samples"),
    ),
    hours(
        "janks",
        side("janks", "start", "1"),
        side("janks_hourly", "hour", "samples"),
    ),
    hours(
        "page_loads",
        side("page_loads", "start", "1"),
        side("page_loads_hourly", "hour", "samples"),
    ),
    hours(
        "app_starts",
        side("app_starts", "start", "1"),
        side("app_starts_hourly", "hour", "count"),
    ),
    hours(
        "recompositions",
        side("recompositions", "start", "1"),
        side("recompositions_hourly", "hour", "samples"),
    ),
    hours(
        "metrics",
        side("metrics", "time", "1"),
        side("metrics_hourly", "hour", "samples"),
    ),
    hours(
        "sdk_health",
        side("sdk_health", "received_at", "1"),
        side("sdk_health_hourly", "hour", "count"),
    ),
    hours(
        "sdk_drops",
        side("sdk_health", "received_at", DROPPED),
        side("sdk_drops_hourly", "hour", "count"),
    ),
    hours(
        "usage",
        side("batches", "received_at", "1"),
        side("usage_hourly", "hour", "count"),
    ),
    days("spans", "spans_hourly", "spans_daily", "samples"),
    days(
        "frame_windows",
        "frame_windows_hourly",
        "frame_windows_daily",
        "samples",
    ),
    page(
        "janks",
        Book::Days,
        side("janks", "start", "1"),
        side("janks_daily", "day", "samples"),
    ),
    days(
        "page_loads",
        "page_loads_hourly",
        "page_loads_daily",
        "samples",
    ),
    days(
        "app_starts",
        "app_starts_hourly",
        "app_starts_daily",
        "count",
    ),
    days(
        "recompositions",
        "recompositions_hourly",
        "recompositions_daily",
        "samples",
    ),
    days("metrics", "metrics_hourly", "metrics_daily", "samples"),
    days(
        "sdk_health",
        "sdk_health_hourly",
        "sdk_health_daily",
        "count",
    ),
    days("sdk_drops", "sdk_drops_hourly", "sdk_drops_daily", "count"),
    days("usage", "usage_hourly", "usage_daily", "count"),
    page(
        "traffic",
        Book::Days,
        side("traffic", "day", "requests"),
        side("traffic_daily", "day", "requests"),
    ),
    page(
        "traffic_bytes",
        Book::Days,
        side("traffic", "day", "tx_bytes"),
        side("traffic_daily", "day", "tx_bytes"),
    ),
];
