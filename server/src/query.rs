//! Queries over the stored data. A query with its filters and comparison becomes a reading, and the rows of the reading become the
//! answer. Screens, exports and alerts all query here, so each number has one definition.

mod answer;
mod cached_answers;
mod callees_per_span;
mod chrome;
mod flame;
mod group_filter;
mod jank_stacks;
mod known_versions;
mod latest_builds;
mod named_query;
mod nesting;
mod packages;
mod period;
mod raw_rows;
mod releases;
mod reopened_groups;
mod same_age;
mod sampled_sessions;
mod sessions;
mod significance;
mod span_breakdown;
mod span_stacks;
mod stored_form;
mod stored_run;
mod version_numbers;

pub use self::answer::{Shape, Steady, Steps, distribution, series};
pub use self::callees_per_span::{ExampleCall, PerTraced};
pub use self::chrome::{TraceJanks, chrome_trace};
pub use self::flame::{FlameNode, WeighedStack, flame, folded, speedscope};
pub use self::group_filter::{GroupFilter, GroupStatus};
pub use self::jank_stacks::{JankStack, JankStacks};
pub use self::known_versions::{KnownVersions, Version, Versions, later_versions};
pub use self::latest_builds::{LatestBuild, latest_builds};
pub use self::named_query::{MOST_VALUES, NamedQuery, ResolvedQuery};
pub use self::packages::{PackageRow, PackageTimes, Packages, packages};
pub use self::period::{Period, step_of};
pub use self::raw_rows::{raw_rows, tables};
pub use self::releases::{Release, Releases};
pub use self::reopened_groups::reopened_groups;
pub use self::same_age::{FirstSeen, Periods};
pub use self::sampled_sessions::sampled_sessions;
pub use self::sessions::{
    SessionPage, SessionPart, SessionPlace, SessionSearch, Timeline, sessions, timeline,
};
pub use self::significance::{SIGNIFICANCE, Significance, significance, strata_of};
pub use self::span_breakdown::{BaseTimes, Inside, InsideRow, Looked, inside};
pub use self::span_stacks::{ChosenSpans, SpanBounds, SpanStacks};
pub use self::stored_run::{MOST_EVENTS, stored_run};
pub use self::version_numbers::{Numbers, numbers_of_versions};

use crate::store::Failure;

/// Why a query failed.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    #[error(transparent)]
    Unfit(#[from] InvalidQuery),
    #[error(transparent)]
    Store(#[from] Failure),
}

/// Why a query is invalid. The text names the valid alternatives.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidQuery(pub String);
