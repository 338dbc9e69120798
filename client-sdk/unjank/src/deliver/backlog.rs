//! Batches that the server does not have yet: on disk, or in memory if there is no data directory.

mod disk;
mod dropping;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::Duration;

use unjank_protocol::Signal;
use unjank_spool::Seq;
use uuid::Uuid;

use self::disk::{Disk, Found, Label, OpenFailure, Opened};
use self::dropping::InFlight;
use super::batch::Sealed;
use super::losses::{Losses, Reason};
use crate::clock::{Moment, Setting};

/// Maximum size of a record. The server accepts batches of 1 MiB.
const MOST_RECORD: u32 = 1 << 20;
/// Maximum size of the header before a batch: one count for each signal, 64 loss reports and 16 ids.
const MOST_LABEL: u32 = 8 << 10;
/// Four segments of the largest batch: the minimum size of the log.
pub(crate) const LEAST_BYTES: u64 = 4 * (MOST_RECORD as u64 + 4_096);
/// Wait before a failed read is retried, unless a flush retries it earlier.
const READ_AGAIN: Duration = Duration::from_secs(60);
/// After this many failed reads, the disk is not read again until the next upload.
const MOST_FAILURES: u32 = 3;

/// Maximum age of a batch. The server accepts events up to seven days old, and a batch holds events of its last minutes.
pub(crate) const OLDEST_US: i64 = 6 * 86_400 * 1_000_000 + 23 * 3_600 * 1_000_000;

/// Batches in the order they were sealed.
#[derive(Debug)]
pub(crate) struct Backlog {
    disk: Option<Disk>,
    /// The folder, while it cannot be opened.
    closed: Option<Closed>,
    /// Those on disk are in the order of their sequence numbers.
    waiting: VecDeque<Waiting>,
    cut: Vec<Cut>,
    /// A batch is being split, and its halves are not all here yet.
    cutting: bool,
    /// Unreadable records after the last batch.
    lost: u64,
    failures: u32,
    /// Total size of all waiting batches.
    bytes: u64,
    most_bytes: u64,
    in_flight: Option<InFlight>,
}

/// What is known of a batch without reading it.
#[derive(Debug)]
struct Waiting {
    label: Label,
    setting: Setting,
    bytes: u64,
    place: StoredIn,
    /// Unreadable records before it. They are counted once the batch is done, because until then each start finds them again.
    lost_before: u64,
    /// When to retry a failed read.
    retry_at: Option<Moment>,
    changed: Changed,
}

/// How often a batch did not arrive as it was sent in this process, and when to send it again. Others are sent until then.
#[derive(Clone, Copy, Debug, Default)]
struct Changed {
    times: u32,
    again: Option<Moment>,
    /// It was written to the end of the disk once. More writes would wear the flash if a proxy changes everything.
    is_moved: bool,
}

#[derive(Debug)]
enum StoredIn {
    Disk(Seq),
    Memory(Sealed),
}

/// A batch that was split. It stays on disk while a part of it is only in memory: if the process is killed, the next one finds
/// the batch and splits it into the same parts.
#[derive(Debug)]
struct Cut {
    batch_id: Uuid,
    seq: Seq,
}

/// A folder that cannot be opened.
#[derive(Debug)]
struct Closed {
    folder: PathBuf,
    retry_at: Moment,
    /// It may hold batches of an earlier process.
    unread: bool,
    /// Another process uses it, or a newer version wrote it.
    is_foreign: bool,
    /// Consent was withdrawn for its content.
    forgotten: bool,
}

/// The next batch to send.
#[derive(Debug)]
pub(crate) enum First {
    Batch(Sealed),
    /// No batch waits.
    Nothing,
    /// The waiting batches cannot be read now.
    Unreadable,
}

impl Waiting {
    fn seq(&self) -> Option<Seq> {
        match self.place {
            StoredIn::Disk(seq) => Some(seq),
            StoredIn::Memory(_) => None,
        }
    }
}

impl Backlog {
    /// Creates a backlog that is lost with the process.
    pub(crate) fn in_memory(most_bytes: u64) -> Self {
        Self {
            disk: None,
            closed: None,
            waiting: VecDeque::new(),
            cut: Vec::new(),
            cutting: false,
            lost: 0,
            failures: 0,
            bytes: 0,
            most_bytes,
            in_flight: None,
        }
    }

    /// Opens the folder and finds what an earlier process left. While that fails, batches are kept in memory.
    pub(crate) fn open(folder: &Path, most_bytes: u64, losses: &Losses) -> Self {
        let mut backlog = Self::in_memory(most_bytes);
        backlog.closed = Some(Closed {
            folder: folder.to_owned(),
            retry_at: Moment::now(),
            unread: false,
            is_foreign: false,
            forgotten: false,
        });
        backlog.reopen(losses);
        backlog
    }

    /// Whether the folder is open.
    pub(crate) fn is_open(&self) -> bool {
        self.disk.is_some()
    }

    /// Whether another process uses the folder, or a newer version wrote it.
    pub(crate) fn is_foreign(&self) -> bool {
        self.closed.as_ref().is_some_and(|closed| closed.is_foreign)
    }

    /// Whether no batch would be lost with the process.
    pub(crate) fn is_durable(&self) -> bool {
        self.waiting.iter().all(|waiting| waiting.seq().is_some())
    }

    /// Tries again to open the folder.
    fn reopen(&mut self, losses: &Losses) {
        let Some(closed) = self.closed.take() else {
            return;
        };
        match Disk::open(&closed.folder, self.most_bytes) {
            Ok(opened) => self.take_up(opened, closed.forgotten, losses),
            Err(failure) => {
                self.closed = Some(Closed {
                    retry_at: Moment::now().after(READ_AGAIN),
                    unread: failure == OpenFailure::Disk && disk::may_hold(&closed.folder),
                    is_foreign: failure == OpenFailure::NotOurs,
                    ..closed
                });
            }
        }
    }

    /// Adds the batches on disk before those in memory, which were sealed later.
    fn take_up(&mut self, opened: Opened, forgotten: bool, losses: &Losses) {
        let (found, lost) = disk::without_repetitions(opened.found);
        self.disk = Some(opened.disk);
        let later = std::mem::take(&mut self.waiting);
        self.bytes = 0;
        if forgotten {
            found
                .iter()
                .for_each(|found| found.label.give_up(Reason::Disabled, losses));
        } else {
            found.into_iter().for_each(|found| self.add(found));
            self.lost = lost.saturating_add(opened.lost);
        }
        for waiting in later {
            if !self.has(waiting.label.batch_id) {
                self.add(waiting);
            }
        }
        self.trim(losses);
        self.forget_what_is_too_much(losses);
    }

    /// Prepares an upload. Retries reads that failed before, immediately if `urgent`. Drops batches that are older than the server accepts.
    pub(crate) fn begin(&mut self, urgent: bool, longest_us: i64, losses: &Losses) {
        let now = Moment::now();
        self.failures = 0;
        if urgent {
            let failed = self.waiting.iter_mut();
            failed
                .filter(|waiting| waiting.retry_at.is_some())
                .for_each(|waiting| waiting.retry_at = Some(now));
        }
        if let Some(closed) = &self.closed
            && (urgent || now >= closed.retry_at)
        {
            self.give_up_closed(longest_us, losses);
            self.reopen(losses);
        }
        self.expire(longest_us, losses);
    }

    /// Deletes what is in a folder that could not be read for as long as the server accepts its batches.
    fn give_up_closed(&mut self, longest_us: i64, losses: &Losses) {
        if let Some(closed) = self.closed.as_ref().filter(|closed| closed.unread)
            && let Ok(files) = disk::delete_older(&closed.folder, longest_us)
        {
            losses.add(Signal::Other, Reason::DiskFailed, files);
        }
    }

    /// Returns the total size of the waiting batches in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sets another limit. A limit above the one the disk was opened with takes effect at the next start.
    pub(crate) fn set_most_bytes(&mut self, most_bytes: u64, losses: &Losses) {
        if self.most_bytes != most_bytes {
            self.most_bytes = most_bytes;
            self.forget_what_is_too_much(losses);
        }
    }

    fn add(&mut self, waiting: impl Into<Waiting>) {
        let mut waiting = waiting.into();
        let lost = std::mem::take(&mut self.lost);
        waiting.lost_before = waiting.lost_before.saturating_add(lost);
        self.bytes = self.bytes.saturating_add(waiting.bytes);
        self.waiting.push_back(waiting);
    }

    fn has(&self, batch_id: Uuid) -> bool {
        self.place_of(batch_id).is_some()
    }

    fn place_of(&self, batch_id: Uuid) -> Option<usize> {
        let mut waiting = self.waiting.iter();
        waiting.position(|waiting| waiting.label.batch_id == batch_id)
    }

    /// Returns whether a batch, or a part of it, waits.
    pub(crate) fn holds(&self, batch_id: Uuid) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|waiting| waiting.label.is_of(batch_id))
    }

    /// Returns whether a batch, or a part of it, would be lost with the process.
    pub(crate) fn may_lose(&self, batch_id: Uuid) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|waiting| waiting.seq().is_none() && waiting.label.is_of(batch_id))
    }

    /// Appends a batch unless it already waits; durably if there is a disk. Counts the batches that are dropped to make room.
    pub(crate) fn push(&mut self, sealed: Sealed, losses: &Losses) {
        if self.has(sealed.batch_id) {
            return;
        }
        if is_too_large(&sealed) {
            return self.push_halves(&sealed, losses);
        }
        let label = Label::new(&sealed);
        let setting = sealed.setting;
        let bytes = sealed.body.len() as u64;
        let disk = self.disk.as_mut();
        let written = disk.and_then(|disk| disk.write(&label, &sealed.body));
        self.add(Waiting {
            label,
            setting,
            bytes,
            place: written.map_or_else(|| StoredIn::Memory(sealed), StoredIn::Disk),
            lost_before: 0,
            retry_at: None,
            changed: Changed::default(),
        });
        self.forget_what_is_gone(losses);
        self.forget_what_is_too_much(losses);
    }

    /// Appends a batch that an earlier process was about to append. If the batch is stored in parts, that process may have been
    /// killed between two of them: appends the missing ones.
    pub(crate) fn push_recovered(&mut self, sealed: Sealed, losses: &Losses) {
        if is_too_large(&sealed) || !self.holds(sealed.batch_id) {
            self.push(sealed, losses);
        }
    }

    fn push_halves(&mut self, sealed: &Sealed, losses: &Losses) {
        let Some(halves) = sealed.split(losses) else {
            return sealed.give_up(Reason::TooLarge, losses);
        };
        for half in halves {
            self.push(half, losses);
        }
    }

    /// Replaces a batch that is too large with its two halves, at the end, or gives up its only event. If the process was killed
    /// during an earlier split, a half may already wait: it is the same and is not added again.
    pub(crate) fn split(&mut self, batch: &Sealed, losses: &Losses) {
        let place = self.place_of(batch.batch_id);
        let Some(whole) = place.and_then(|place| self.waiting.remove(place)) else {
            return;
        };
        self.bytes = self.bytes.saturating_sub(whole.bytes);
        self.lost = self.lost.saturating_add(whole.lost_before);
        if let Some(seq) = whole.seq() {
            let batch_id = batch.batch_id;
            self.cut.push(Cut { batch_id, seq });
        }
        self.cutting = true;
        self.push_halves(batch, losses);
        self.cutting = false;
        self.trim(losses);
    }

    /// Notes that a batch did not arrive as it was sent. Others come first for `wait`, which doubles each time. Returns how often that happened to
    /// it in this process.
    pub(crate) fn changed_on_its_way(
        &mut self,
        batch: &Sealed,
        wait: Duration,
        losses: &Losses,
    ) -> u32 {
        let Some(place) = self.place_of(batch.batch_id) else {
            return 0;
        };
        let Some(waiting) = self.waiting.get_mut(place) else {
            return 0;
        };
        let Changed { times, again, .. } = &mut waiting.changed;
        *again = Some(Moment::now().after(wait.saturating_mul(1 << (*times).min(16))));
        *times += 1;
        let times = *times;
        self.move_behind_others(place, batch, losses);
        times
    }

    /// Writes a batch to the end of the disk, once. Where it was, it would keep the batches behind it on the disk after the server has them, and the
    /// next process would send them again. Leaves it there if the write fails or would push out others.
    fn move_behind_others(&mut self, place: usize, batch: &Sealed, losses: &Losses) {
        let (Some(disk), Some(waiting)) = (&mut self.disk, self.waiting.get(place)) else {
            return;
        };
        let last = disk.log.durable_seq();
        let has_others_behind = waiting.seq().is_some_and(|seq| seq < last);
        if waiting.changed.is_moved || !has_others_behind || !disk.has_room(waiting.bytes) {
            return;
        }
        let Some(seq) = disk.write(&waiting.label, &batch.body) else {
            return;
        };
        let Some(mut waiting) = self.take(place, losses) else {
            return;
        };
        waiting.place = StoredIn::Disk(seq);
        waiting.changed.is_moved = true;
        self.add(waiting);
        self.forget_what_is_gone(losses);
        self.trim(losses);
    }

    /// Writes batches that are only in memory to the disk, so that they outlive the process. They move to the end, because
    /// finished batches are trimmed in the order of the disk.
    pub(crate) fn write_again(&mut self, losses: &Losses) {
        let Some(disk) = &mut self.disk else { return };
        let is_in_memory = |waiting: &Waiting| matches!(waiting.place, StoredIn::Memory(_));
        while let Some(place) = self.waiting.iter().position(is_in_memory) {
            let Some(mut waiting) = self.waiting.remove(place) else {
                break;
            };
            let seq = match &waiting.place {
                StoredIn::Memory(sealed) => disk.write(&waiting.label, &sealed.body),
                StoredIn::Disk(seq) => Some(*seq),
            };
            let Some(seq) = seq else {
                self.waiting.insert(place, waiting);
                break;
            };
            waiting.place = StoredIn::Disk(seq);
            self.waiting.push_back(waiting);
        }
        self.forget_what_is_gone(losses);
        self.trim(losses);
    }

    /// Returns the oldest batch that can be read and sent now. Counts and skips damaged ones; keeps those that cannot be read now.
    pub(crate) fn first(&mut self, losses: &Losses) -> First {
        let now = Moment::now();
        let mut unread = self.closed.as_ref().is_some_and(|closed| closed.unread);
        let mut place = 0;
        while let Some(waiting) = self.waiting.get_mut(place) {
            if waiting.changed.again.is_some_and(|again| now < again) {
                (unread, place) = (true, place + 1);
                continue;
            }
            let seq = match &waiting.place {
                StoredIn::Memory(sealed) => return First::Batch(sealed.clone()),
                StoredIn::Disk(seq) => *seq,
            };
            if self.failures >= MOST_FAILURES || waiting.retry_at.is_some_and(|at| now < at) {
                (unread, place) = (true, place + 1);
                continue;
            }
            let disk = self.disk.as_mut();
            match disk.map_or(Ok(None), |disk| disk.read(seq)) {
                Ok(Some(sealed)) => {
                    waiting.retry_at = None;
                    return First::Batch(sealed.timed_by(waiting.setting));
                }
                Ok(None) => self.give_up(place, Reason::DiskFailed, losses),
                Err(_) => {
                    waiting.retry_at = Some(now.after(READ_AGAIN));
                    self.failures += 1;
                    (unread, place) = (true, place + 1);
                }
            }
        }
        if unread {
            First::Unreadable
        } else {
            First::Nothing
        }
    }

    /// Releases the space of finished batches, up to the first record that is still needed.
    fn trim(&mut self, losses: &Losses) {
        let Some(disk) = &self.disk else { return };
        if !self.cutting {
            let waiting = &self.waiting;
            self.cut.retain(|cut| {
                let mut in_memory = waiting.iter().filter(|waiting| waiting.seq().is_none());
                in_memory.any(|waiting| waiting.label.is_of(cut.batch_id))
            });
        }
        let first = self.waiting.iter().find_map(Waiting::seq);
        let needed = self.cut.iter().map(|cut| cut.seq).chain(first).min();
        if needed.is_none() {
            let lost = std::mem::take(&mut self.lost);
            losses.add(Signal::Other, Reason::DiskFailed, lost);
        }
        let through = needed.map_or(disk.log.durable_seq(), |needed| needed.saturating_sub(1));
        if through > disk.trimmer.trimmed() {
            // If this fails, the next trim releases the space.
            let _failed = disk.trimmer.trim(through).is_err();
        }
    }
}

/// Whether a batch does not fit into a record and is stored in parts.
fn is_too_large(sealed: &Sealed) -> bool {
    sealed.body.len() as u64 > u64::from(MOST_RECORD - MOST_LABEL)
}

impl From<Found> for Waiting {
    fn from(found: Found) -> Self {
        Self {
            label: found.label,
            setting: Setting::default(),
            bytes: found.bytes,
            place: StoredIn::Disk(found.seq),
            lost_before: found.lost_before,
            retry_at: None,
            changed: Changed::default(),
        }
    }
}
