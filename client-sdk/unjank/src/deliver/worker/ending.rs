//! What is done in case the process ends: the spill, and the last work before the end.

use std::sync::PoisonError;
use std::time::Duration;

use super::Worker;
use crate::event::Event;

impl Worker {
    /// Adds the stall that is under way to the spill, if it changed. Call it when the queue is empty: the stall belongs to the current user.
    pub(super) fn spill_stall(&mut self) {
        let (edition, stall) = {
            let now = self.shared.stall.lock();
            let now = now.unwrap_or_else(PoisonError::into_inner);
            let is_noted = now.stall.is_some() || self.spilled_stall > 0;
            if now.edition == self.spilled_stall || !is_noted {
                return;
            }
            (now.edition, now.stall.clone())
        };
        self.follow_user(self.shared.users.turn());
        self.spilled_stall = edition;
        let mut stall = stall.map(Event::Jank);
        let is_kept = stall.as_mut().is_some_and(|stall| self.lets_pass(stall));
        self.announce(stall.as_ref().filter(|_| is_kept));
        let stall = match &stall {
            Some(Event::Jank(stall)) if is_kept => Some(stall),
            _ => None,
        };
        self.spill.stall(stall, &self.pending);
    }

    /// Notifies the reporters of a stall that began.
    fn announce(&mut self, stall: Option<&Event>) {
        let Some(Event::Jank(stall)) = stall else {
            return;
        };
        let start = Some(stall.start);
        if std::mem::replace(&mut self.announced, start) != start {
            self.notify(|reporter| reporter.stall_began(stall));
        }
    }

    /// Seals the pending events. The spill then has only the stall that is under way.
    pub(super) fn seal_and_spill(&mut self) {
        self.seal();
        self.spill_stall();
    }

    pub(super) fn clear_spill(&mut self) {
        self.spill.clear();
        self.spilled_stall = 0;
    }

    /// Writes everything to disk, because the process may end.
    pub(super) fn keep_now(&mut self, keeps: u64) {
        if self.may_work() {
            self.record(true);
            self.backlog.write_again(&self.shared.losses);
        }
        let unkept = (!self.backlog.is_durable()).then_some(keeps);
        self.shared.requests.change(|now| {
            now.kept = keeps;
            now.unkept = unkept.unwrap_or(now.unkept);
        });
    }

    /// Keeps the losses of the last upload, and batches that are only in memory, for the next start to send.
    pub(super) fn keep_the_rest(&mut self) {
        if self.may_work() && self.shared.config.data_dir.is_some() {
            self.seal();
            self.backlog.write_again(&self.shared.losses);
            // A stall that is under way ends with the app.
            if self.backlog.is_durable() {
                self.clear_spill();
            }
        }
    }

    /// Fetches the configuration if this process was too short to do so and the known one is old.
    pub(super) fn fetch_for_the_next_start(&mut self) {
        let interval = self.shared.settings.load().document.poll_interval_s;
        let is_wanted = self.ending && !self.shared.config.offline;
        if is_wanted && self.remote.is_old(Duration::from_secs(u64::from(interval))) {
            self.remote.hurry();
            self.poll();
        }
    }
}
