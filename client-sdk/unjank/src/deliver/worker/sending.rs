//! Sends batches and fetches the configuration. The background thread goes on recording while a request is under way.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use super::{TICK, Worker};
use crate::clock::Moment;
use crate::deliver::backlog::OLDEST_US;
use crate::deliver::exchange::{Answer, Exchange, Outgoing};
use crate::deliver::remote::Identity;
use crate::deliver::uplink::Sent;
use crate::measure::sampling::Settings;
use crate::random::draw;

/// A long backlog is sent in pieces of this length, so that other work is done in between.
const UPLOAD_PIECE: Duration = Duration::from_secs(2);

impl Worker {
    /// Fetches the configuration if that is due.
    pub(super) fn poll(&mut self) {
        let identity = Identity {
            device: &self.device,
            install_id: self.install_id,
            user_id: self.shared.users.current(),
            network: self.shared.network(),
        };
        let Some(request) = self.remote.request(&self.shared.config, &identity) else {
            return;
        };
        let answer = self.exchange(request);
        // The user may have withdrawn consent meanwhile.
        if !self.may_work() {
            return;
        }
        let interval = self.shared.settings.load().document.poll_interval_s;
        let context = (&self.shared.config, &self.shared.problem);
        if let Some(document) = self.remote.answered(answer, context, interval) {
            let document = self.shared.config.remote_document(document);
            // Events collected until now belong to the previous settings.
            self.drain();
            self.seal();
            let most_bytes = document.upload.max_queue_bytes;
            self.backlog.set_most_bytes(most_bytes, &self.shared.losses);
            self.budget.set(&document.budget);
            self.shared
                .set_settings(Settings::new(document, self.session_draw));
        }
    }

    /// Sends the waiting batches, oldest first. Returns whether nothing is left that could be sent now.
    pub(super) fn upload(&mut self, urgent: bool) -> bool {
        if urgent || !self.uplink.is_waiting() {
            if self.ledger.read(&self.shared) {
                self.recover_traffic();
            }
            self.seal_traffic(Uuid::now_v7());
            self.settle_traffic();
        }
        let sent = self.send_piece(urgent);
        self.settle_traffic();
        if let Some(etag) = sent.config_etag {
            self.remote.config_announced(&etag);
        }
        self.waits |= sent.waits || sent.unread || sent.refused;
        let done = sent.all || sent.waits || sent.unread;
        if done {
            let interval = self.shared.settings.load().document.upload.interval_s;
            let interval = Duration::from_secs(u64::from(interval.max(1)));
            self.next_upload = Moment::now().after(interval.mul_f64(0.9 + draw() * 0.2));
        }
        done
    }

    fn send_piece(&mut self, urgent: bool) -> Sent {
        let mut sent = Sent::default();
        let begun = Moment::now();
        self.backlog.begin(urgent, OLDEST_US, &self.shared.losses);
        while self.may_work() && Moment::now().since(begun) < UPLOAD_PIECE {
            let losses = &self.shared.losses;
            let next = self
                .uplink
                .next(&mut self.backlog, losses, urgent, &mut sent);
            let Some((attempt, request)) = next else {
                break;
            };
            let answer = self.exchange(request);
            let context = (&self.shared.losses, &self.shared.problem);
            let backlog = &mut self.backlog;
            if !self
                .uplink
                .answered(&attempt, &answer, backlog, context, &mut sent)
            {
                break;
            }
        }
        sent
    }

    /// Sends a request and returns the response. Until it arrives, goes on recording and handling requests of the app, so that a server
    /// that does not respond costs no event.
    fn exchange(&mut self, request: Outgoing) -> Answer {
        let shared = Arc::clone(&self.shared);
        let wake = move || shared.requests.change(|state| state.hurry = true);
        let exchange = Exchange::begin(&self.transport, request, wake);
        // Records before it waits: each of many consecutive requests may take less than a tick, and the loop below records only after a tick.
        if self.may_work() {
            self.record(false);
        }
        loop {
            let known = self.wanted;
            self.wanted = self.shared.requests.wait_for_more(known, TICK);
            self.ending = self.wanted.last_work;
            if self.wanted.forget {
                self.forget();
            }
            if let Some(done) = exchange.take() {
                self.request_cpu += done.cpu;
                return done.answer;
            }
            if self.remote.has_polled() && self.may_work() {
                self.monitors.poll(&self.shared);
            }
            let is_urgent = self.wanted.flushes > known.flushes || self.wanted.stop && !known.stop;
            if is_urgent || self.wanted.keeps > self.wanted.kept {
                self.keep_now(self.wanted.keeps);
            } else if self.may_work() {
                self.record(false);
            }
        }
    }
}
