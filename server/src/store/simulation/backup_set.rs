//! A backup of a simulated server.

use std::collections::{BTreeMap, BTreeSet};

use super::disk::Image;
use super::store::Part;

/// A complete set.
#[derive(Debug)]
pub(super) struct BackupSet {
    pub(super) tables: BTreeMap<String, Vec<Part>>,
    /// The log and the dead letters.
    pub(super) files: Image,
    /// The events that were acknowledged before the log was copied.
    pub(super) acknowledged: BTreeSet<u64>,
}
