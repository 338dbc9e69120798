//! An erasure as it is stored: its subject, its state, its receipt, and the work that is done.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::backend::Row;
use super::error::ControlError;
use super::text_enum::text_enum;

text_enum! {
    /// The subject of an erasure.
    ErasureKind { Install = "install", User = "user", Project = "project" }
}

text_enum! {
    /// The state of an erasure.
    ErasureState { Waiting = "waiting", Running = "running", Done = "done" }
}

/// The data erased so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = ErasureReceipt)]
pub struct Receipt {
    /// Rows deleted, by table.
    pub rows: BTreeMap<String, u64>,
    /// Deleted stacks, which no other event uses.
    pub stacks: u64,
    /// Deleted items of the dead-letter folder.
    pub dead_letters: u64,
    /// Hours (in `traffic`: days) whose roll-ups were rebuilt without the deleted rows. Erasures of the same pass share
    /// this number.
    pub rebuilt_hours: u64,
    /// The current step, as a text for people.
    pub step: String,
    /// Why the step has not succeeded yet. It is retried.
    pub error: Option<String>,
    /// The scrubbing rules change this user id before it is stored. Rows that were stored so cannot be told from those of other users and are
    /// kept: erase them by install id.
    pub is_scrubbed: bool,
}

/// The state that a server needs to resume a pass started by another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Work {
    /// Tables whose rows have been deleted.
    pub tables: Vec<String>,
    /// The marks of mutations that have been or are about to be started, by table.
    pub marks: BTreeMap<String, Uuid>,
    /// The number of rows that these mutations delete, by table.
    pub rows: BTreeMap<String, u64>,
    /// The hours of the deleted events, in seconds since the epoch, by table.
    pub hours: BTreeMap<String, Vec<i64>>,
    /// The stacks of the deleted rows.
    pub stacks: Vec<u64>,
    /// From when on janks bring their stacks along. Every server then forgets which stacks are stored.
    pub bring_stacks_from: Option<UnixTime>,
    /// The logs of servers that found such rows again after draining their logs.
    pub logs: Vec<Uuid>,
}

impl Work {
    /// No work has been done.
    pub const NONE: Self = Self {
        tables: Vec::new(),
        marks: BTreeMap::new(),
        rows: BTreeMap::new(),
        hours: BTreeMap::new(),
        stacks: Vec::new(),
        bring_stacks_from: None,
        logs: Vec::new(),
    };
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erasure {
    pub id: Uuid,
    pub project: String,
    pub kind: ErasureKind,
    /// The install id or user id. Empty for a project, and from 30 days after the erasure finished.
    pub subject: String,
    pub requested_at: UnixTime,
    pub requested_by: String,
    pub state: ErasureState,
    pub finished_at: Option<UnixTime>,
    pub pass: Option<Uuid>,
    pub receipt: Receipt,
    pub work: Work,
}

impl Erasure {
    pub(super) fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id("id")?,
            project: row.get("project")?,
            kind: row.parsed("kind")?,
            subject: row.get("subject")?,
            requested_at: row.get("requested_at")?,
            requested_by: row.get("requested_by")?,
            state: row.parsed("state")?,
            finished_at: row.get("finished_at")?,
            pass: row.maybe_id("pass")?,
            receipt: row.json("receipt")?,
            work: row.json("work")?,
        })
    }
}
