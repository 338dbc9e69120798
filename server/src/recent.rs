//! What this server remembers of recent uploads: batches, stacks and names. Every memory is bounded and starts empty.
//!
//! Forgetting is safe: a forgotten batch is deduplicated by the writer, and a forgotten stack is stored a second time and merged away.

mod arrived_stacks;
mod batches;
mod names;
mod stacks;

pub use self::arrived_stacks::{ArrivedStack, ArrivedStacks};
pub use self::batches::{Arrival, RecentBatches, Ticket, Unstored};
pub use self::names::RecentNames;
pub(crate) use self::names::{Dimension, ProjectNames};
pub use self::stacks::{RecentStacks, StackKey};
