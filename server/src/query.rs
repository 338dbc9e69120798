//! Questions about what is stored: typed filters and comparisons become readings, and readings become answers. The screens, the
//! exports and the alerts ask here, so that one number has one definition.

mod answer;
mod ask;
mod chrome;
mod flame;
mod inside;
mod period;
mod raw_rows;
mod recorded;
mod sampled;
mod version_numbers;
mod weighed;

pub use self::answer::{Shape, Steady, Steps, distribution, series};
pub use self::ask::{Ask, AskError, Asked};
pub use self::chrome::chrome_trace;
pub use self::flame::{FlameNode, WeighedStack, flame, folded, speedscope};
pub use self::inside::{BaseTimes, Inside, InsideRow, beside, inside};
pub use self::period::{Period, step_of};
pub use self::raw_rows::{raw_rows, tables};
pub use self::recorded::{MOST_EVENTS, recorded};
pub use self::sampled::sampled_sessions;
pub use self::version_numbers::{Numbers, numbers_of_versions};
pub use self::weighed::{JankStack, Weighed};

use crate::store::Failure;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    #[error(transparent)]
    Unfit(#[from] AskError),
    #[error(transparent)]
    Store(#[from] Failure),
}
