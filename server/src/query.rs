//! Queries over the stored data. A query with its filters and comparison becomes a reading, and the rows of the reading become the
//! answer. Screens, exports and alerts all query here, so each number has one definition.

mod answer;
mod chrome;
mod flame;
mod inside;
mod latest_builds;
mod named_query;
mod period;
mod raw_rows;
mod recorded;
mod sampled;
mod version_numbers;
mod weighed;

pub use self::answer::{Shape, Steady, Steps, distribution, series};
pub use self::chrome::chrome_trace;
pub use self::flame::{FlameNode, WeighedStack, flame, folded, speedscope};
pub use self::inside::{BaseTimes, Inside, InsideRow, beside, inside};
pub use self::latest_builds::{LatestBuild, latest_builds};
pub use self::named_query::{InvalidQuery, NamedQuery, ResolvedQuery};
pub use self::period::{Period, step_of};
pub use self::raw_rows::{raw_rows, tables};
pub use self::recorded::{MOST_EVENTS, recorded};
pub use self::sampled::sampled_sessions;
pub use self::version_numbers::{Numbers, numbers_of_versions};
pub use self::weighed::{JankStack, Weighed};

use crate::store::Failure;

/// Why a query failed.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    #[error(transparent)]
    Unfit(#[from] InvalidQuery),
    #[error(transparent)]
    Store(#[from] Failure),
}
