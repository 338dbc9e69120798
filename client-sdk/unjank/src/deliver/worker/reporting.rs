//! Passes events to the filters and reporters of the app.

use std::panic::{AssertUnwindSafe, catch_unwind};

use unjank_protocol::Traffic;
use uuid::Uuid;

use super::Worker;
use crate::event::Event;
use crate::measure::span_record::Waiting;
use crate::report::Reporter;

impl Worker {
    pub(super) fn notify(&self, call: impl Fn(&(dyn Reporter + 'static))) {
        for reporter in &self.shared.config.reporters {
            // The panic is the app's; its events are still sent.
            let notified = catch_unwind(AssertUnwindSafe(|| call(&**reporter)));
            notified.unwrap_or_default();
        }
    }

    /// Passes an event through the filters of `before_send`, in order. Returns whether the event is kept.
    pub(super) fn lets_pass(&self, event: &mut Event) -> bool {
        let mut filters = self.shared.config.hooks.before_send.iter();
        filters.all(|filter| {
            // If a filter panics, drop the event: it may contain data that the filter should have removed.
            catch_unwind(AssertUnwindSafe(|| filter(event))).unwrap_or(false)
        })
    }

    /// Passes an event to the reporters only.
    pub(super) fn print(&mut self, waiting: Waiting) {
        let event = self.event(waiting);
        self.notify(|reporter| reporter.report(&event));
    }

    /// Reports sums of traffic as they are sent. They are not events of the queue.
    pub(super) fn report_traffic(&self, rows: &[Traffic<'static>]) {
        if rows.is_empty() || self.shared.config.reporters.is_empty() {
            return;
        }
        for row in rows {
            let event = Event::Traffic(row.clone());
            self.notify(|reporter| reporter.report(&event));
        }
        self.notify(Reporter::flush);
    }

    /// Takes the traffic that no batch will carry, because nothing is sent.
    pub(super) fn take_unsent_traffic(&mut self) {
        if !self.shared.config.offline {
            return;
        }
        let batch_id = Uuid::now_v7();
        let rows = self.ledger.take(batch_id, &self.shared);
        self.report_traffic(&rows);
        self.ledger.confirm(batch_id, &self.shared);
    }
}
