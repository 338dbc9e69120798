//! What the server answers.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{Signal, Text};

/// The answer to an accepted batch (202): its events survive the crash of the server and of the store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Receipt<'a> {
    /// The batch that was received.
    pub batch_id: Uuid,
    /// Events made durable, now or when the batch came first.
    pub accepted: u64,
    /// Events refused, each with the reason: at most 100 of them. They never spoil the rest.
    #[serde(default)]
    #[cfg_attr(feature = "openapi", schema(max_items = 100))]
    pub rejected: Vec<Rejected>,
    /// Events refused beyond those in `rejected`, by signal. Left out when `rejected` lists all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected_unlisted: Vec<RejectedUnlisted>,
    /// Events accepted after something was cut to fit the limits (a long string, a deep stack).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub truncated: u64,
    /// The batch was seen before and is stored once.
    #[serde(default)]
    pub duplicate: bool,
    /// The `ETag` of the device's configuration now: when it differs, fetch `GET /v1/config`.
    #[serde(default, borrow, skip_serializing_if = "Option::is_none")]
    pub config_etag: Option<Text<'a>>,
    /// Signals to hold back for a while. What was not stored of them now is in [`RateLimit::dropped`], not in `rejected`.
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
    /// How many events one receipt lists in [`rejected`](Self::rejected).
    pub const MAX_REJECTED: usize = 100;

    /// How many events of a signal were refused one by one, listed or not.
    #[must_use]
    pub fn rejected_of(&self, signal: Signal) -> u64 {
        let listed = self.rejected.iter().filter(|one| one.signal == signal);
        let unlisted = self.rejected_unlisted.iter();
        let unlisted = unlisted.filter(|more| more.signal == signal);
        listed.count() as u64 + unlisted.map(|more| more.events).sum::<u64>()
    }
}

/// Refused events of one signal that the receipt does not list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RejectedUnlisted {
    /// The list they stood in.
    pub signal: Signal,
    /// How many.
    pub events: u64,
}

/// One refused event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Rejected {
    /// The list it stood in.
    pub signal: Signal,
    /// Its place in that list, from 0.
    pub index: u32,
    /// A stable machine-readable reason, such as `time_out_of_range`.
    pub code: String,
    /// The reason for a person.
    pub detail: String,
}

/// Hold back one signal, keep sending the others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct RateLimit {
    /// What to hold back.
    pub signal: Signal,
    /// For how long, in seconds; 0 when that is over.
    pub retry_after_s: u32,
    /// How many events of this batch were valid and not stored for it: count them as lost. 0 when left out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub dropped: u64,
}

/// Every error: `application/problem+json` (RFC 9457) with a stable `code`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Problem {
    /// A URI that names the kind of problem; `about:blank` where the status says it all.
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
