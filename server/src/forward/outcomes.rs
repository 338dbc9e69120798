//! What became of the events of a project, as the project is shown it and as metrics count it.

use std::sync::Arc;

use serde::Serialize;
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;

use super::Kind;
use crate::metrics::ForwardOutcome;

/// What became of the events that this server should forward, since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ForwardState {
    /// Events that the collector has accepted.
    pub delivered: u64,
    /// Events that were dropped because the queue was full, because the setting was removed, or by a fault of the server.
    pub dropped: u64,
    /// Events that the collector refused for good, with their whole request.
    pub refused: u64,
    /// Events that the collector rejected out of requests that it accepted.
    pub rejected: u64,
    /// Events that wait.
    pub waiting: u64,
    pub waiting_bytes: u64,
    /// Why the last attempt failed. Missing after a success.
    pub error: Option<String>,
    /// The last message of the collector about events that it rejected, or a warning of the collector.
    pub message: Option<String>,
    pub delivered_at: Option<UnixTime>,
}

impl ForwardState {
    pub(super) fn count(&mut self, outcome: ForwardOutcome, events: u64) {
        let counter = match outcome {
            ForwardOutcome::Delivered => &mut self.delivered,
            ForwardOutcome::Rejected => &mut self.rejected,
            ForwardOutcome::Refused => &mut self.refused,
            ForwardOutcome::QueueFull
            | ForwardOutcome::Removed
            | ForwardOutcome::Shutdown
            | ForwardOutcome::Failed => &mut self.dropped,
        };
        *counter += events;
    }
}

/// Events of a project that still waited when the server ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    pub project: Arc<str>,
    pub kind: Kind,
    pub events: u64,
    /// Why the last attempt failed.
    pub error: Option<String>,
}
