//! What a project forwards to another collector: the setting, events that match it as requests of OTLP, and the queue of these requests.
//! Knows no HTTP; `forwarding` sends the requests.

mod attributes;
mod incidents;
mod queue;
mod setting;
mod spans;

pub use self::incidents::{ForwardedIncident, encode_incidents};
pub use self::queue::{ForwardQueue, ForwardState, Result, Work};
pub use self::setting::{Forward, ForwardDocument, ForwardError, SpanRule, secret_context};

/// The signals of OpenTelemetry that are forwarded. Each has a path of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Spans,
    Incidents,
}

impl Kind {
    /// Returns the path below the endpoint.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::Spans => "/v1/traces",
            Self::Incidents => "/v1/logs",
        }
    }

    /// The name in metrics.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Spans => "spans",
            Self::Incidents => "incidents",
        }
    }
}

/// Events as a request of OTLP in protobuf. Joined bodies of one kind are a valid request, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    pub kind: Kind,
    pub body: Vec<u8>,
    pub events: u64,
}
