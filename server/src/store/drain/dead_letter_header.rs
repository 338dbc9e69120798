//! What an item of the dead-letter folder says about its rows.

use serde::{Deserialize, Serialize};
use unjank_foundation::clock::UnixTime;

use crate::store::range_number::Number;

/// The header of an item.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    pub id: String,
    pub table: String,
    pub project: String,
    pub rows: usize,
    pub received_at: UnixTime,
    pub error: String,
    /// The deduplication token under which an older server sent the rows.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub token: String,
    /// The number of the rows if ClickHouse stored them despite the error.
    #[serde(default)]
    pub number: Number,
}
