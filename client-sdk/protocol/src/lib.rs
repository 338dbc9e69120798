//! The wire types of unjank: what devices send to `POST /v1/ingest`, and what the server answers there and to
//! `GET /v1/config` ([`config`]).
//!
//! The server, the SDK and the load test share this crate, so it depends on no runtime, HTTP library or storage.
//! JSON names are stable: old devices must work with new servers, and new devices with old servers.
//!
//! * Unknown fields are ignored; unknown enum values become `Other`.
//! * Numbers may be written as texts, whole numbers with a fraction, which is rounded, and booleans as 0 and 1.
//! * `null` means the same as leaving a field out, wherever a field has a default.
//! * Times are UTC, RFC 3339 on the wire, microseconds in memory ([`Timestamp`]).
//! * Durations are integers in microseconds (`_us`) or milliseconds (`_ms`), as the name says.
//! * Strings borrow from the input where they can ([`Text`]).
#![warn(missing_docs)]

mod batch;
pub mod config;
mod glob;
mod id;
mod jank;
mod latest;
mod lenient;
mod limits;
mod module;
mod names;
mod receipt;
mod scalar;
#[cfg(feature = "openapi")]
mod schema;
mod sdk_health;
mod signal_list;
mod signals;
mod text;
mod timestamp;

pub use batch::{Batch, Resource};
pub use glob::Glob;
pub use id::{SpanId, TraceId};
pub use jank::{Frame, Jank, JankSample, JankStrategy, LogLine};
pub use lenient::{AtMost, Attributes, Histogram, NotEmpty};
pub use limits::Limits;
pub use module::Module;
pub use names::{
    AppStartKind, JankEnd, JankKind, LaunchKind, Network, PageOutcome, Signal, SpanKind, SpanStatus,
};
pub use receipt::{Problem, RateLimit, Receipt, Rejected, RejectedUnlisted};
pub use scalar::{WholeNumber, whole_number};
pub use sdk_health::{Dropped, SdkHealth};
pub use signal_list::Events;
pub use signals::{
    AppStart, Code, FrameWindow, Metric, PageLoad, PageRequest, Phase, Recomposition, Span,
    SpanEvent, Traffic,
};
pub use text::Text;
pub use timestamp::{Day, Timestamp};
