//! What the SDK cost and lost.

use serde::{Deserialize, Serialize};

use crate::lenient::items;
use crate::scalar::{scalar, scalar_or_default};
use crate::{Signal, Text};

/// The cost of the SDK and its losses since the last report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct SdkHealth<'a> {
    /// The events dropped on the device, at most 64 entries.
    #[serde(borrow, default, deserialize_with = "items")]
    pub dropped: Vec<Dropped<'a>>,
    /// The CPU time of the SDK, in microseconds.
    #[serde(default, deserialize_with = "scalar_or_default")]
    #[cfg_attr(feature = "openapi", schema(maximum = 4_398_046_511_104i64))]
    pub overhead_us: u64,
    /// The number of bytes that wait on the device.
    #[serde(default, deserialize_with = "scalar_or_default")]
    #[cfg_attr(feature = "openapi", schema(maximum = 4_398_046_511_104i64))]
    pub queue_bytes: u64,
    /// The number of uploaded bytes.
    #[serde(default, deserialize_with = "scalar_or_default")]
    #[cfg_attr(feature = "openapi", schema(maximum = 4_398_046_511_104i64))]
    pub upload_bytes: u64,
}

/// Events of one signal that the device dropped for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Dropped<'a> {
    /// The signal.
    #[serde(default)]
    pub signal: Signal,
    /// The reason: `queue_full`, `rate_limited`, `refused` and others.
    #[serde(borrow, default)]
    pub reason: Text<'a>,
    /// The number of events.
    #[serde(deserialize_with = "scalar")]
    #[cfg_attr(feature = "openapi", schema(maximum = 4_398_046_511_104i64))]
    pub count: u64,
}
