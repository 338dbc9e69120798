//! Removes batches from the backlog: sent, refused, expired, over the limit, or without consent.

use unjank_protocol::Signal;
use uuid::Uuid;

use super::disk::{self, Label};
use super::{Backlog, Waiting};
use crate::deliver::batch::Sealed;
use crate::deliver::losses::{Losses, Reason};

/// The batch that is being sent. If it is given up during the request, the response decides whether it counts as lost.
#[derive(Debug)]
pub(super) struct InFlight {
    batch_id: Uuid,
    given_up: Option<(Label, Reason)>,
}

impl Backlog {
    /// Removes a finished batch. It may already have been dropped to make room.
    pub(crate) fn done(&mut self, batch_id: Uuid, losses: &Losses) {
        if let Some(place) = self.place_of(batch_id) {
            self.take(place, losses);
            self.trim(losses);
        }
    }

    /// Drops a batch that the server will never accept.
    pub(crate) fn refused(&mut self, batch: &Sealed, losses: &Losses) {
        if let Some(place) = self.place_of(batch.batch_id) {
            self.give_up(place, Reason::Refused, losses);
        }
    }

    pub(super) fn give_up(&mut self, place: usize, reason: Reason, losses: &Losses) {
        self.lose(place, reason, losses);
        self.trim(losses);
    }

    /// Removes a batch and counts its events as lost. A batch that is being sent counts only if it does not arrive.
    fn lose(&mut self, place: usize, reason: Reason, losses: &Losses) {
        let Some(waiting) = self.take(place, losses) else {
            return;
        };
        match &mut self.in_flight {
            Some(sent) if sent.batch_id == waiting.label.batch_id => {
                sent.given_up = Some((waiting.label, reason));
            }
            _ => waiting.label.give_up(reason, losses),
        }
    }

    /// Removes a batch without counting its events. Counts the unreadable records before it, once: the batch may be added again.
    pub(super) fn take(&mut self, place: usize, losses: &Losses) -> Option<Waiting> {
        let mut waiting = self.waiting.remove(place)?;
        self.bytes = self.bytes.saturating_sub(waiting.bytes);
        let lost = std::mem::take(&mut waiting.lost_before);
        losses.add(Signal::Other, Reason::DiskFailed, lost);
        Some(waiting)
    }

    /// Notes that a batch is being sent.
    pub(crate) fn departs(&mut self, batch_id: Uuid) {
        self.in_flight = Some(InFlight {
            batch_id,
            given_up: None,
        });
    }

    /// Notes whether the batch that was being sent arrived.
    pub(crate) fn landed(&mut self, has_arrived: bool, losses: &Losses) {
        let sent = self.in_flight.take();
        if let Some((label, reason)) = sent.and_then(|sent| sent.given_up)
            && !has_arrived
        {
            label.give_up(reason, losses);
        }
    }

    /// Drops batches whose segment was deleted to make room.
    pub(super) fn forget_what_is_gone(&mut self, losses: &Losses) {
        let Some(disk) = &self.disk else { return };
        let oldest = disk.log.oldest_seq();
        self.cut.retain(|cut| cut.seq >= oldest);
        let is_gone = |waiting: &Waiting| waiting.seq().is_some_and(|seq| seq < oldest);
        while let Some(place) = self.waiting.iter().position(is_gone) {
            self.lose(place, Reason::DiskFull, losses);
        }
    }

    /// Drops the oldest batches, on disk or in memory, until the limit is kept.
    pub(super) fn forget_what_is_too_much(&mut self, losses: &Losses) {
        while self.bytes > self.most_bytes && !self.waiting.is_empty() {
            let reason = match (&self.disk, &self.closed) {
                (None, None) => Reason::MemoryFull,
                _ => Reason::DiskFull,
            };
            self.give_up(0, reason, losses);
        }
    }

    /// Drops expired batches. They may be anywhere: batches that were moved to the end are older than those before them. Setting the clock does not
    /// age the batches of this process.
    pub(super) fn expire(&mut self, longest_us: i64, losses: &Losses) {
        let mut place = 0;
        while let Some(waiting) = self.waiting.get(place) {
            let now = waiting.setting.now().as_micros();
            if now.saturating_sub(waiting.label.sealed_at) <= longest_us {
                place += 1;
                continue;
            }
            let unread = waiting.retry_at.is_some();
            let reason = if unread {
                Reason::DiskFailed
            } else {
                Reason::TooOld
            };
            self.give_up(place, reason, losses);
        }
    }

    /// Gives up all batches.
    pub(crate) fn clear(&mut self, losses: &Losses) {
        while !self.waiting.is_empty() {
            self.give_up(0, Reason::Disabled, losses);
        }
        if let Some(closed) = &mut self.closed {
            closed.forgotten = true;
            // What cannot be deleted now is given up when the folder can be opened.
            let _failed = closed.unread && disk::delete_all(&closed.folder).is_err();
        }
    }
}
