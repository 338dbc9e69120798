//! Applies rules to stored stacks: on trial before a save ([`DryRuns`]), and for real after it ([`Reclassifier`]).
//!
//! Events are never modified, because a class belongs to a stack. `stacks` defines classes, `store` reads stacks and
//! writes classes, and this module connects the two.

mod classification;
mod dry_run;
mod moved_groups;
mod progress;
mod reclassifier;
mod repair;
mod symbolication;

pub use self::dry_run::{DryRun, DryRunError, DryRuns, Tried};
pub use self::progress::{Progress, ProgressBoard, RepairProgress, State};

use std::sync::Arc;
use std::time::Duration;

use unjank_database::Control;
use unjank_foundation::clock::Clock;

use crate::access::Access;
use crate::metrics::SymbolMetrics;
use crate::recent::ArrivedStacks;
use crate::store::ClickHouse;
use crate::symbols::Symbolicator;

/// How long to wait after a finished pass before checking for late stacks.
#[derive(Clone, Copy, Debug)]
pub struct Waits {
    /// After the first pass. By then, the slowest server has the new rules.
    pub first: Duration,
    pub then: Duration,
}

/// The task. Projects take turns by chunk, several at once, so that neither a large nor a slow project delays the others.
pub struct Reclassifier {
    pub access: Arc<Access>,
    pub clickhouse: ClickHouse,
    pub board: Arc<ProgressBoard>,
    pub clock: Clock,
    pub waits: Waits,
    pub control: Control,
    pub symbolicator: Symbolicator,
    pub metrics: SymbolMetrics,
    /// New stacks that wait for symbolication.
    pub arrived: Arc<ArrivedStacks>,
}
