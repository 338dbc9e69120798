//! What a project forwards to another collector: the setting, events that match it as requests of OTLP, and the queue of these requests.
//! Knows no HTTP; `forwarding` sends the requests.

mod answer;
mod attributes;
mod functions;
mod incidents;
mod outcomes;
mod queue;
mod setting;
mod spans;

pub use self::answer::{accepted_in_part, status_message};
pub use self::functions::{obfuscated_functions, with_names};
pub use self::incidents::{ForwardedIncident, encode_incidents};
pub use self::outcomes::{ForwardState, Loss};
pub use self::queue::{ForwardQueue, Result, Work};
pub use self::setting::{Forward, ForwardError, secret_context};

/// The most bytes of a request before compression. Proxies accept 1 MiB by default, and collectors more.
const REQUEST_BYTES: usize = 1 << 20;
/// The most events of a request, so that a refused request costs few.
const REQUEST_EVENTS: u64 = 2_000;

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
    /// Whether spans have keys of obfuscated functions, to be replaced by names before the request is sent.
    pub has_keys: bool,
}
