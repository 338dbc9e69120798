//! What is forwarded to other collectors.

use prometheus::{IntCounterVec, IntGauge};

use super::Maker;

/// What became of an event to forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForwardOutcome {
    /// The collector accepted the event.
    Delivered,
    /// The collector accepted the request, but not this event.
    Rejected,
    /// The collector refused the request for good.
    Refused,
    /// The queue was full.
    QueueFull,
    /// The setting was removed while the event waited.
    Removed,
    /// The server shut down before the event was sent.
    Shutdown,
    /// The attempt to send it panicked.
    Failed,
}

impl ForwardOutcome {
    const ALL: [Self; 7] = [
        Self::Delivered,
        Self::Rejected,
        Self::Refused,
        Self::QueueFull,
        Self::Removed,
        Self::Shutdown,
        Self::Failed,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Rejected => "rejected",
            Self::Refused => "refused",
            Self::QueueFull => "queue_full",
            Self::Removed => "removed",
            Self::Shutdown => "shutdown",
            Self::Failed => "failed",
        }
    }
}

#[derive(Clone, Debug)]
pub struct ForwardMetrics {
    events: IntCounterVec,
    pub waiting_bytes: IntGauge,
}

impl ForwardMetrics {
    pub(super) fn new(make: &Maker) -> Self {
        let events = make.counters(
            "unjank_forward_events_total",
            "Spans and incidents to forward to other collectors, by kind and outcome: delivered; not delivered: rejected (by the collector, \
             out of an accepted request), refused (by the collector, with the whole request), queue_full, removed (with the setting), \
             shutdown, failed (a fault of the server).",
            &["kind", "outcome"],
        );
        // The counters exist before the first event, because alerts query them.
        for kind in ["spans", "incidents"] {
            for outcome in ForwardOutcome::ALL {
                events.with_label_values(&[kind, outcome.as_str()]);
            }
        }
        Self {
            events,
            waiting_bytes: make.gauge(
                "unjank_forward_waiting_bytes",
                "Bytes that wait in memory for other collectors.",
            ),
        }
    }

    pub fn count(&self, kind: &str, outcome: ForwardOutcome, events: u64) {
        self.events
            .with_label_values(&[kind, outcome.as_str()])
            .inc_by(events);
    }
}
