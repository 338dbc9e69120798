//! Batches that the server does not have yet: on disk, or in memory where there is none.

use std::collections::VecDeque;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use unjank_protocol::Signal;
use unjank_spool::{Log, Options, Reader, Seq, Trimmer, WhenFull};
use uuid::Uuid;

use crate::batch::Sealed;
use crate::clock::Setting;
use crate::losses::{Losses, Reason, Told};

/// A batch is at most this large; the server takes 1 MiB.
const MOST_RECORD: u32 = 1 << 20;
/// What stands before a batch is at most this large: a count of each signal, and 64 losses that are told.
const MOST_LABEL: u32 = 8 << 10;
/// Four segments of the largest batch: less cannot be kept.
pub(crate) const LEAST_BYTES: u64 = 4 * (MOST_RECORD as u64 + 4_096);

/// Batches in the order in which they were sealed.
#[derive(Debug)]
pub(crate) struct Backlog {
    disk: Option<Disk>,
    waiting: VecDeque<Waiting>,
    /// Of all that waits.
    bytes: u64,
    most_bytes: u64,
}

#[derive(Debug)]
struct Disk {
    log: Log,
    reader: Reader,
    trimmer: Trimmer,
}

/// What is known of a batch without reading it.
#[derive(Debug)]
struct Waiting {
    label: Label,
    setting: Setting,
    bytes: u64,
    place: Place,
}

#[derive(Debug)]
enum Place {
    Disk(Seq),
    Memory(Sealed),
}

/// What stands before each batch on disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Label {
    batch_id: Uuid,
    sealed_at: i64,
    events: Vec<(Signal, u32)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    told: Told,
}

impl Label {
    fn give_up(&self, reason: Reason, losses: &Losses) {
        losses.add_all(&self.events, reason);
        losses.add_told(&self.told);
    }
}

impl Backlog {
    /// One that forgets with the process.
    pub(crate) fn in_memory(most_bytes: u64) -> Self {
        Self {
            disk: None,
            waiting: VecDeque::new(),
            bytes: 0,
            most_bytes,
        }
    }

    /// Opens the folder and finds what an earlier process left. When that does not work batches are kept in memory.
    pub(crate) fn open(folder: &Path, most_bytes: u64, losses: &Losses) -> Self {
        let mut backlog = Self::in_memory(most_bytes);
        let options = Options {
            segment_bytes: u64::from(MOST_RECORD) * 2,
            max_record_bytes: MOST_RECORD,
            when_full: WhenFull::DropOldest,
            ..Options::new(folder, most_bytes.max(LEAST_BYTES))
        };
        let Ok((log, _)) = Log::open(options) else {
            return backlog;
        };
        let mut disk = Disk {
            reader: log.reader(),
            trimmer: log.trimmer(),
            log,
        };
        let mut reader = disk.log.reader();
        loop {
            let chunk = match reader.next_chunk(1 << 20) {
                Ok(Some(chunk)) => chunk,
                Ok(None) => break,
                // What is there stays for a better day: this process keeps its batches in memory.
                Err(_) => return Self::in_memory(most_bytes),
            };
            for record in chunk.iter() {
                match read_record(record.payload) {
                    Some((label, body)) => backlog.add(Waiting {
                        label,
                        setting: Setting::default(),
                        bytes: body.len() as u64,
                        place: Place::Disk(record.seq),
                    }),
                    None => losses.add(Signal::Other, Reason::DiskFailed, 1),
                }
            }
        }
        disk.reader.seek(0);
        backlog.disk = Some(disk);
        backlog
    }

    /// Bytes that wait.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Other limits from now on. More than the disk was opened with takes effect at the next start.
    pub(crate) fn set_most_bytes(&mut self, most_bytes: u64, losses: &Losses) {
        if self.most_bytes != most_bytes {
            self.most_bytes = most_bytes;
            self.forget_what_is_too_much(losses);
        }
    }

    fn add(&mut self, waiting: Waiting) {
        self.bytes = self.bytes.saturating_add(waiting.bytes);
        self.waiting.push_back(waiting);
    }

    /// Whether it holds a batch.
    pub(crate) fn holds(&self, batch_id: Uuid) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|waiting| waiting.label.batch_id == batch_id)
    }

    /// Puts a batch at the end, durably where there is a disk. What goes to make room is counted.
    pub(crate) fn push(&mut self, sealed: Sealed, losses: &Losses) {
        if u32::try_from(sealed.body.len()).is_ok_and(|bytes| bytes > MOST_RECORD - MOST_LABEL) {
            return self.push_halves(&sealed, losses);
        }
        let label = Label {
            batch_id: sealed.batch_id,
            sealed_at: sealed.setting.now().as_micros(),
            events: sealed.events.clone(),
            told: sealed.told.clone(),
        };
        let setting = sealed.setting;
        let bytes = sealed.body.len() as u64;
        let disk = self.disk.as_mut();
        let written = disk.and_then(|disk| disk.write(&label, &sealed.body));
        let place = match written {
            Some(seq) => Place::Disk(seq),
            None => Place::Memory(sealed),
        };
        self.add(Waiting {
            label,
            setting,
            bytes,
            place,
        });
        self.forget_what_is_gone(losses);
        self.forget_what_is_too_much(losses);
    }

    /// Puts a batch that is too large at the end as two, or gives up its only event.
    pub(crate) fn push_halves(&mut self, sealed: &Sealed, losses: &Losses) {
        let Some(halves) = sealed.split() else {
            return sealed.give_up(Reason::TooLarge, losses);
        };
        for half in halves {
            self.push(half, losses);
        }
    }

    /// Batches that the disk did not take go there once it does, and outlive the process. They come last then: what is done with is
    /// trimmed in the order of the disk.
    pub(crate) fn write_again(&mut self, losses: &Losses) {
        let Some(disk) = &mut self.disk else { return };
        let is_in_memory = |waiting: &Waiting| matches!(waiting.place, Place::Memory(_));
        while let Some(place) = self.waiting.iter().position(is_in_memory) {
            let Some(mut waiting) = self.waiting.remove(place) else {
                break;
            };
            let seq = match &waiting.place {
                Place::Memory(sealed) => disk.write(&waiting.label, &sealed.body),
                Place::Disk(seq) => Some(*seq),
            };
            let Some(seq) = seq else {
                self.waiting.insert(place, waiting);
                break;
            };
            waiting.place = Place::Disk(seq);
            self.waiting.push_back(waiting);
        }
        self.forget_what_is_gone(losses);
    }

    /// Those whose segment was deleted to make room.
    fn forget_what_is_gone(&mut self, losses: &Losses) {
        let oldest = self.disk.as_ref().map(|disk| disk.log.oldest_seq());
        let bytes = &mut self.bytes;
        self.waiting.retain(|waiting| {
            let gone = match (&waiting.place, oldest) {
                (Place::Disk(seq), Some(oldest)) => *seq < oldest,
                _ => false,
            };
            if gone {
                *bytes = bytes.saturating_sub(waiting.bytes);
                waiting.label.give_up(Reason::DiskFull, losses);
            }
            !gone
        });
    }

    /// The oldest make room, wherever they are.
    fn forget_what_is_too_much(&mut self, losses: &Losses) {
        while self.bytes > self.most_bytes {
            let Some(first) = self.waiting.front() else {
                return;
            };
            first.label.give_up(Reason::DiskFull, losses);
            self.done();
        }
    }

    /// Gives up what waited for longer than the server takes it. A clock that was set makes nothing older, as long as the process
    /// lives that made it.
    pub(crate) fn expire(&mut self, longest_us: i64, losses: &Losses) {
        while let Some(first) = self.waiting.front() {
            let now = first.setting.now().as_micros();
            if now.saturating_sub(first.label.sealed_at) <= longest_us {
                break;
            }
            first.label.give_up(Reason::TooOld, losses);
            self.done();
        }
    }

    /// The oldest batch. One that does not read any more is counted and passed over.
    pub(crate) fn first(&mut self, losses: &Losses) -> Option<Sealed> {
        loop {
            let first = self.waiting.front()?;
            let seq = match &first.place {
                Place::Memory(sealed) => return Some(sealed.clone()),
                Place::Disk(seq) => *seq,
            };
            let read = self.disk.as_mut().map(|disk| disk.read(seq));
            match read {
                Some(Ok(Some(sealed))) => return Some(sealed.timed_by(first.setting)),
                // The disk fails, maybe only now: nothing is given up for that.
                Some(Err(_)) => return None,
                Some(Ok(None)) | None => {}
            }
            first.label.give_up(Reason::DiskFailed, losses);
            self.done();
        }
    }

    /// The oldest batch is done with.
    pub(crate) fn done(&mut self) {
        let Some(first) = self.waiting.pop_front() else {
            return;
        };
        self.bytes = self.bytes.saturating_sub(first.bytes);
        if let Place::Disk(seq) = first.place {
            // Space that is not given back now is given back with the next.
            let trimmed = self.disk.as_ref().map(|disk| disk.trimmer.trim(seq));
            let _failed = trimmed.is_some_and(|trimmed| trimmed.is_err());
        }
    }

    /// The oldest batch is done with, if it is this one: it may have made room meanwhile.
    pub(crate) fn remove_first(&mut self, batch_id: Uuid) {
        let first = self.waiting.front();
        if first.is_some_and(|first| first.label.batch_id == batch_id) {
            self.done();
        }
    }

    /// Whether a batch is durable here.
    pub(crate) fn keeps(&self, batch_id: Uuid) -> bool {
        let mut waiting = self.waiting.iter();
        waiting.any(|waiting| {
            waiting.label.batch_id == batch_id && matches!(waiting.place, Place::Disk(_))
        })
    }

    /// Gives up everything.
    pub(crate) fn clear(&mut self, losses: &Losses) {
        while let Some(first) = self.waiting.front() {
            first.label.give_up(Reason::Disabled, losses);
            self.done();
        }
    }
}

impl Disk {
    /// Durably, or not at all.
    fn write(&mut self, label: &Label, body: &[u8]) -> Option<Seq> {
        let label = serde_json::to_vec(label).ok()?;
        let length = u16::try_from(label.len()).ok()?;
        let mut record = Vec::with_capacity(body.len() + label.len() + 2);
        record.extend_from_slice(&length.to_le_bytes());
        record.extend_from_slice(&label);
        record.extend_from_slice(body);
        let appended = self.log.append(&record).ok()?;
        self.log.sync().ok()?;
        Some(appended.seq)
    }

    /// Nothing when it is not there or does not read.
    fn read(&mut self, seq: Seq) -> io::Result<Option<Sealed>> {
        self.reader.seek(seq);
        let chunk = self.reader.next_chunk(1)?;
        let found = chunk.as_ref().and_then(|chunk| {
            let record = chunk.iter().find(|record| record.seq == seq)?;
            read_record(record.payload)
        });
        Ok(found.map(|(label, body)| Sealed {
            batch_id: label.batch_id,
            events: label.events,
            told: label.told,
            setting: Setting::default(),
            body: body.to_vec(),
        }))
    }
}

fn read_record(record: &[u8]) -> Option<(Label, &[u8])> {
    let (length, rest) = record.split_first_chunk::<2>()?;
    let (label, body) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    Some((serde_json::from_slice(label).ok()?, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(number: u128, bytes: usize) -> Sealed {
        Sealed {
            batch_id: Uuid::from_u128(number),
            events: vec![(Signal::Spans, 2)],
            told: Told::new(),
            setting: Setting::default(),
            body: vec![7; bytes],
        }
    }

    fn ids(backlog: &mut Backlog, losses: &Losses) -> Vec<u128> {
        let mut ids = Vec::new();
        while let Some(sealed) = backlog.first(losses) {
            ids.push(sealed.batch_id.as_u128());
            backlog.done();
        }
        ids
    }

    #[test]
    fn what_an_earlier_process_left_is_found_in_order_and_what_was_done_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let losses = Losses::default();
        let mut backlog = Backlog::open(folder.path(), LEAST_BYTES, &losses);
        for number in 1..=4 {
            backlog.push(sealed(number, 100), &losses);
        }
        assert_eq!(backlog.first(&losses).unwrap().batch_id.as_u128(), 1);
        backlog.done();
        drop(backlog);
        let mut backlog = Backlog::open(folder.path(), LEAST_BYTES, &losses);
        assert_eq!(ids(&mut backlog, &losses), [2, 3, 4]);
        drop(backlog);
        assert_eq!(
            Backlog::open(folder.path(), LEAST_BYTES, &losses).bytes(),
            0
        );
        assert!(losses.take().is_empty());
    }

    #[test]
    fn the_oldest_make_room_and_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let losses = Losses::default();
        let mut backlog = Backlog::open(folder.path(), LEAST_BYTES, &losses);
        for number in 0..20 {
            backlog.push(sealed(number, 500_000), &losses);
        }
        let left = ids(&mut backlog, &losses);
        assert!(left.len() >= 4 && left.last() == Some(&19), "{left:?}");
        let lost = losses.take();
        assert_eq!(lost[0].reason.as_str(), "disk_full");
        assert_eq!(lost[0].count, 2 * (20 - left.len() as u64));
    }

    #[test]
    fn without_a_disk_memory_holds_as_much() {
        let losses = Losses::default();
        let mut backlog = Backlog::in_memory(250);
        for number in 0..4 {
            backlog.push(sealed(number, 100), &losses);
        }
        assert_eq!(ids(&mut backlog, &losses), [2, 3]);
        assert_eq!(losses.take()[0].count, 4);
    }

    #[test]
    fn what_is_too_old_is_given_up() {
        let losses = Losses::default();
        let mut backlog = Backlog::in_memory(1_000);
        for number in 0..4 {
            backlog.push(sealed(number, 100), &losses);
        }
        let days = |days: i64| days * 86_400_000_000;
        for (waiting, old) in backlog.waiting.iter_mut().zip([8, 8, 6, 0]) {
            waiting.label.sealed_at -= days(old);
        }
        backlog.expire(days(7), &losses);
        assert_eq!(ids(&mut backlog, &losses), [2, 3]);
        assert_eq!(losses.take()[0].reason.as_str(), "too_old");
    }

    #[test]
    fn losses_that_a_lost_batch_told_are_told_again() {
        let losses = Losses::default();
        let mut backlog = Backlog::in_memory(150);
        let telling = Sealed {
            told: vec![(Signal::Janks, "refused".to_owned(), 3)],
            ..sealed(1, 100)
        };
        backlog.push(telling, &losses);
        backlog.push(sealed(2, 100), &losses);
        let told = losses.take();
        let told: Vec<_> = told
            .iter()
            .map(|one| (one.signal, &*one.reason, one.count))
            .collect();
        assert_eq!(
            told,
            [
                (Signal::Spans, "disk_full", 2),
                (Signal::Janks, "refused", 3)
            ]
        );
    }
}
