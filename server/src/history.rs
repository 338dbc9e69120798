//! What rules make of the stacks that are stored already: tried on them before a save ([`DryRuns`]), applied to them after it
//! ([`Reclassifier`]).
//!
//! Events are never touched: a class belongs to a stack. What a class is stands in `stacks`, how stacks are read and classes
//! written in `store`; here is what comes between.

mod dry_run;
mod progress;
mod reclassifier;

pub use self::dry_run::{DryRun, DryRunError, DryRuns, Tried};
pub use self::progress::{Progress, ProgressBoard, State};
pub use self::reclassifier::{Reclassifier, Waits};
