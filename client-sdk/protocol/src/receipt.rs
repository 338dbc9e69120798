//! The server's answers to batches.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Signal, Text};

/// The answer to an accepted batch (202): its events survive the crash of the server and of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Receipt<'a> {
    /// The batch that was received.
    pub batch_id: Uuid,
    /// The number of events made durable, now or when the batch arrived first. A duplicate is counted as it is sent now: events that were added
    /// since are counted, but not stored.
    pub accepted: u64,
    /// Rejected events with their reasons, at most 100. They do not affect the other events.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_items = 100))]
    pub rejected: Vec<Rejected>,
    /// The number of further rejected events, by signal. Left out when `rejected` lists all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected_unlisted: Vec<RejectedUnlisted>,
    /// The number of accepted events that were truncated to fit the limits (a long string, a deep stack).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub truncated: u64,
    /// Whether the batch was stored before. It is stored once. False if only a batch of its `split_from` was stored before.
    #[serde(default)]
    pub duplicate: bool,
    /// The `ETag` of the device's current configuration. If it differs from the device's own, fetch `GET /v1/config`.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub config_etag: Option<Text<'a>>,
    /// Signals to hold back for a while. Their events that were not stored are counted in [`RateLimit::dropped`], not in `rejected`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rate_limits: Vec<RateLimit>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Receipt<'_> {
    /// The maximum number of events in [`rejected`](Self::rejected).
    pub const MAX_REJECTED: usize = 100;

    /// The number of rejected events of a signal, listed or not.
    #[must_use]
    pub fn rejected_of(&self, signal: Signal) -> u64 {
        let listed = self.rejected.iter().filter(|one| one.signal == signal);
        let unlisted = self.rejected_unlisted.iter();
        let unlisted = unlisted.filter(|more| more.signal == signal);
        listed.count() as u64 + unlisted.map(|more| more.events).sum::<u64>()
    }
}

/// Rejected events of one signal that the receipt does not list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RejectedUnlisted {
    /// The list in the batch.
    pub signal: Signal,
    /// The number of events.
    pub events: u64,
}

/// A rejected event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Rejected {
    /// The list in the batch.
    pub signal: Signal,
    /// Its index in that list, from 0.
    pub index: u32,
    /// A stable machine-readable reason, such as `time_out_of_range`.
    pub code: String,
    /// The reason in plain words.
    pub detail: String,
}

/// Hold back one signal, keep sending the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RateLimit {
    /// The signal to hold back.
    pub signal: Signal,
    /// The wait in seconds; 0 when it is over.
    pub retry_after_s: u32,
    /// The number of valid events of this batch that were not stored because of the limit. Count them as lost. 0 when left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
}

/// Every error: `application/problem+json` (RFC 9457) with a stable `code`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// A URI that identifies the type of the problem; `about:blank` if the status is enough.
    #[serde(rename = "type")]
    pub kind: String,
    /// A short title, the same for every problem of a kind.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What happened and what to do.
    pub detail: String,
    /// A stable machine-readable name, such as `invalid_json`.
    pub code: String,
}
