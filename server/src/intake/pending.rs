//! A batch between its arrival and its outcome, so that none is forgotten without a trace.

use std::thread;

use prometheus::IntCounterVec;

use crate::metrics::IngestMetrics;
use crate::recent::{Ticket, Unstored};

/// The right to store a batch, and the duty to decide what becomes of it. If it is dropped without a decision, because of a fault of this program
/// or because the server ends, the batch counts as a request with the code `internal`. It was not acknowledged, so its sender retries it.
pub(super) struct Pending {
    /// `None` after the decision.
    ticket: Option<Ticket>,
    requests: IntCounterVec,
}

impl Pending {
    pub(super) fn new(ticket: Ticket, metrics: &IngestMetrics) -> Self {
        Self {
            ticket: Some(ticket),
            requests: metrics.requests.clone(),
        }
    }

    /// The batch is durable, except for some of its events.
    pub(super) fn stored(mut self, unstored: Unstored) {
        if let Some(ticket) = self.ticket.take() {
            ticket.stored(unstored);
        }
    }

    /// The batch is not stored, and the answer says so.
    pub(super) fn refused(mut self) {
        self.ticket = None;
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.ticket.take().is_none() {
            return;
        }
        self.requests.with_label_values(&["500", "internal"]).inc();
        tracing::error!("a batch was dropped before it was stored or refused: its sender retries");
        debug_assert!(thread::panicking(), "each batch has an outcome");
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Arc;

    use prometheus::Opts;
    use uuid::Uuid;

    use super::*;
    use crate::recent::{Arrival, RecentBatches};

    struct Tried {
        batches: Arc<RecentBatches>,
        requests: IntCounterVec,
    }

    impl Tried {
        fn new() -> Self {
            let requests = Opts::new("requests", "Requests.");
            Self {
                batches: Arc::new(RecentBatches::new(8)),
                requests: IntCounterVec::new(requests, &["status", "code"]).unwrap(),
            }
        }

        fn arrive(&self) -> Arrival {
            self.batches.arrive("shop", Uuid::from_u128(1), &[])
        }

        fn pending(&self) -> Pending {
            let Arrival::New(ticket) = self.arrive() else {
                panic!("the batch is known")
            };
            Pending {
                ticket: Some(ticket),
                requests: self.requests.clone(),
            }
        }

        fn internal(&self) -> u64 {
            let labels = ["500", "internal"];
            self.requests.with_label_values(&labels).get()
        }
    }

    #[test]
    fn a_decided_batch_is_not_counted() {
        let tried = Tried::new();
        tried.pending().refused();
        tried.pending().stored(Unstored::default());
        assert!(matches!(tried.arrive(), Arrival::Duplicate(_)));
        assert_eq!(tried.internal(), 0);
    }

    #[test]
    fn a_batch_without_an_outcome_is_counted_and_may_come_again() {
        let tried = Tried::new();
        let pending = tried.pending();
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(pending)));
        assert_eq!(dropped.is_err(), cfg!(debug_assertions));
        assert_eq!(tried.internal(), 1);
        assert!(matches!(tried.arrive(), Arrival::New(_)));
    }

    #[test]
    fn a_panic_on_the_way_is_counted_too() {
        let tried = Tried::new();
        let pending = tried.pending();
        let panicked: thread::Result<()> = catch_unwind(AssertUnwindSafe(|| {
            let _pending = pending;
            panic!("a fault")
        }));
        assert!(panicked.is_err());
        assert_eq!(tried.internal(), 1);
    }
}
