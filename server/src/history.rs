//! Applies rules to stored stacks: on trial before a save ([`DryRuns`]), and for real after it ([`Reclassifier`]).
//!
//! Events are never modified, because a class belongs to a stack. `stacks` defines classes, `store` reads stacks and
//! writes classes, and this module connects the two.

mod dry_run;
mod moved_groups;
mod progress;
mod reclassifier;
mod repair;
mod symbolication;

pub use self::dry_run::{DryRun, DryRunError, DryRuns, Tried};
pub use self::progress::{Progress, ProgressBoard, RepairProgress, State};
pub use self::reclassifier::{Reclassifier, Waits};
