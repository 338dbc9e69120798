//! Questions about what is stored: typed filters and comparisons become readings, and readings become answers. The screens, the
//! exports and the alerts ask here, so that one number has one definition.

mod answer;
mod ask;
mod flame;
mod inside;
mod period;

pub use self::answer::{Shape, Steady, Steps, distribution, series};
pub use self::ask::{Ask, AskError, Asked};
pub use self::flame::{FlameNode, WeighedStack, flame, folded, speedscope};
pub use self::inside::{Inside, InsideRow, inside};
pub use self::period::{Period, step_of};
