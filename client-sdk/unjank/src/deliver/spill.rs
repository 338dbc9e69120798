//! Keeps events that are in no batch yet on disk, so that a process that is killed loses few of them.
//!
//! The file has records: a kind, the length and the checksum of the content, and the content. A record of the kind [`BATCH`] has the whole batch so
//! far, as columns, and the last one counts: copying the columns takes less time than encoding the events of each round once more. A record of the
//! kind [`STALL`] has the stall that is under way, or `null` once there is none, as JSON. Records are written, but not synced: they outlive the
//! process, not the power. When the batch is sealed, the file is emptied. A batch that was sealed just before the end has the same id.

mod json_lines;

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use unjank_protocol::{Batch, Jank, JankEnd, Signal};

use super::batch::{BOUNDS, Sealed, seal};
use super::losses::{Losses, Reason};
use super::modules;
use super::pending::Pending;
use crate::clock::Moment;

const BATCH: u8 = 1;
const STALL: u8 = 2;
/// Nothing is added to a larger file, and it is not read.
const MOST_BYTES: u64 = 64 << 20;
/// The batch is written no more often than this, because the background thread may wake many times in a second.
const AT_MOST_EVERY: Duration = Duration::from_millis(250);

/// The open file.
#[derive(Debug, Default)]
pub(crate) struct Spill {
    file: Option<File>,
    /// The file of an earlier version, until its batch is safe.
    json_lines: Option<PathBuf>,
    /// The size of the file.
    bytes: u64,
    /// Where the record of the stall begins, if it is the last one.
    last_stall: Option<u64>,
    /// When a batch was written, and how many events it had.
    written: Option<(Moment, usize)>,
    /// Nothing is written until the file is emptied: it is the only copy of a batch, or writing failed.
    is_stopped: bool,
}

impl Spill {
    /// Opens the file, which [`recover`] has read, and empties it if its batch is safe. Without a folder, nothing is written.
    pub(crate) fn open(folder: Option<&Path>, is_safe: bool) -> Self {
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).write(true);
        let mut spill = Self {
            // If it cannot be opened, events are on disk when their batch is sealed.
            file: folder.and_then(|folder| options.open(path(folder)).ok()),
            json_lines: folder.map(json_lines::path),
            is_stopped: true,
            ..Self::default()
        };
        if is_safe {
            spill.clear();
        }
        spill
    }

    fn is_open(&self) -> bool {
        self.file.is_some() && !self.is_stopped
    }

    /// Hands the pending events to the system if there are new ones.
    pub(crate) fn events(&mut self, pending: &Pending) {
        let now = Moment::now();
        let is_due = match self.written {
            None => pending.len() > 0,
            Some((at, events)) => events != pending.len() && now.since(at) >= AT_MOST_EVERY,
        };
        if is_due && self.is_open() {
            self.batch(pending);
        }
    }

    fn batch(&mut self, pending: &Pending) {
        self.last_stall = None;
        self.written = Some((Moment::now(), pending.len()));
        self.write(BATCH, &pending.so_far());
    }

    /// Writes the current stall, or that there is none, over the previous entry. A long stall therefore takes no more space. The pending batch comes
    /// first: the stall is a part of it, and has a stall that just ended.
    pub(crate) fn stall(&mut self, stall: Option<&Jank<'_>>, pending: &Pending) {
        let Ok(json) = serde_json::to_vec(&stall) else {
            return;
        };
        if !self.is_open() {
            return;
        }
        if self
            .written
            .is_none_or(|(_, events)| events != pending.len())
        {
            self.batch(pending);
        }
        if let (Some(last), Some(file)) = (self.last_stall, &mut self.file)
            && file.set_len(last).is_ok()
            && file.seek(SeekFrom::Start(last)).is_ok()
        {
            self.bytes = last;
        }
        self.last_stall = Some(self.bytes);
        self.write(STALL, &json);
    }

    fn write(&mut self, kind: u8, content: &[u8]) {
        let record = record(kind, content);
        self.bytes = self.bytes.saturating_add(record.len() as u64);
        if let Some(file) = &mut self.file
            && !self.is_stopped
        {
            // After a failure, half a record may be there, and the disk is probably full.
            self.is_stopped = self.bytes > MOST_BYTES || file.write_all(&record).is_err();
        }
    }

    /// Writes nothing more until the file is emptied.
    pub(crate) fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Empties the file, because its events are in a batch or were withdrawn.
    pub(crate) fn clear(&mut self) {
        if self.written.is_none() && !self.is_stopped {
            return;
        }
        (self.bytes, self.last_stall, self.written) = (0, None, None);
        if let Some(file) = &mut self.file {
            self.is_stopped = file.set_len(0).is_err() || file.rewind().is_err();
        }
        if let Some(file) = self.json_lines.take() {
            // There is rarely one. If it cannot be deleted, the next start sends the same batch again.
            let _failed = std::fs::remove_file(file).is_err();
        }
    }
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    // More than 4 GiB are never written.
    let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
    let checksum = crc32c::crc32c(content);
    let mut record = vec![kind];
    record.extend(length.to_le_bytes());
    record.extend(checksum.to_le_bytes());
    record.extend_from_slice(content);
    record
}

/// The records of a file, up to the first that is incomplete or damaged.
fn records(mut bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (head, rest) = bytes.split_first_chunk::<9>()?;
        let [kind, a, b, c, d, checksum @ ..] = *head;
        let length = usize::try_from(u32::from_le_bytes([a, b, c, d])).ok()?;
        let (content, rest) = rest.split_at_checked(length)?;
        bytes = rest;
        (crc32c::crc32c(content) == u32::from_le_bytes(checksum)).then_some((kind, content))
    })
}

fn path(folder: &Path) -> PathBuf {
    folder.join("pending.batch")
}

/// Deletes the files.
pub(crate) fn delete(folder: &Path) {
    for file in [path(folder), json_lines::path(folder)] {
        // It may not exist.
        let _failed = std::fs::remove_file(file).is_err();
    }
}

/// Returns the batches that an earlier process had not sealed, with the stall during which it was killed: its own, and one of a process of an
/// earlier version. Counts what cannot be read as lost.
pub(crate) fn recover(folder: &Path, losses: &Losses) -> Vec<Sealed> {
    let own = read(&path(folder)).and_then(|bytes| recovered(&bytes, losses));
    let earlier = read(&json_lines::path(folder));
    let earlier = earlier.and_then(|bytes| json_lines::recovered(&bytes));
    own.into_iter().chain(earlier).collect()
}

fn read(path: &Path) -> Option<Vec<u8>> {
    let is_small = std::fs::metadata(path).ok()?.len() <= MOST_BYTES;
    is_small.then(|| std::fs::read(path).ok()).flatten()
}

fn recovered(bytes: &[u8], losses: &Losses) -> Option<Sealed> {
    let (mut columns, mut stall) = (None, None);
    for (kind, content) in records(bytes) {
        match kind {
            BATCH => columns = Some(content),
            STALL => stall = stall_of(content),
            _ => {}
        }
    }
    let Ok(read) = unjank_columns::read(columns?, &BOUNDS) else {
        losses.add(Signal::Other, Reason::DiskFailed, 1);
        return None;
    };
    for one in &read.malformed {
        losses.add(one.signal, Reason::Refused, 1);
    }
    let mut batch = read.batch;
    add_stall(&mut batch, stall);
    modules::share(&mut batch);
    if batch.events() == 0 {
        return None;
    }
    seal(&batch).ok()
}

/// Reads a stall, or that there is none.
fn stall_of(json: &[u8]) -> Option<Jank<'_>> {
    serde_json::from_slice::<Option<Jank<'_>>>(json)
        .ok()
        .flatten()
}

/// Adds the stall during which the process was killed. It may have been killed after the stall was over, and before that was noted.
fn add_stall<'a>(batch: &mut Batch<'a>, stall: Option<Jank<'a>>) {
    let is_over = |stall: &Jank<'_>| {
        let mut known = batch.janks.iter();
        known.any(|jank| jank.start == stall.start && jank.thread == stall.thread)
    };
    if let Some(mut stall) = stall.filter(|stall| !is_over(stall)) {
        stall.ended = JankEnd::Killed;
        batch.janks.push(stall);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deliver::batch::tests::{metric_of, pending};
    use crate::deliver::form::Form;
    use crate::event::Event;

    const EARLY: &str = r#"{"start": "2026-11-20T12:00:01Z", "duration_ms": 2000}"#;
    const LATE: &str = r#"{"start": "2026-11-20T12:00:09Z", "duration_ms": 2000}"#;

    fn stall(json: &'static str) -> Jank<'static> {
        serde_json::from_str(json).unwrap()
    }

    fn content(sealed: &Sealed) -> Vec<u8> {
        assert_eq!(sealed.form, Form::Columns);
        zstd::stream::decode_all(sealed.body.as_slice()).unwrap()
    }

    fn one(folder: &Path) -> Sealed {
        let mut found = recover(folder, &Losses::default());
        assert_eq!(found.len(), 1);
        found.remove(0)
    }

    #[test]
    fn the_last_batch_so_far_is_recovered_with_the_stall_under_way() {
        let folder = tempfile::tempdir().unwrap();
        let mut spill = Spill::open(Some(folder.path()), true);
        let mut pending = pending(2);
        spill.events(&pending);
        let (early, late) = (stall(EARLY), stall(LATE));
        spill.stall(Some(&early), &pending);
        pending.add(Event::Jank(early));
        // Too early for another batch, but the stall that ended is in no other place.
        spill.events(&pending);
        spill.stall(None, &pending);
        spill.stall(Some(&late), &pending);
        let sealed = one(folder.path());
        assert_eq!(sealed.batch_id, pending.head.batch_id);
        let columns = content(&sealed);
        let batch = unjank_columns::read(&columns, &BOUNDS).unwrap().batch;
        assert_eq!(batch.metrics.len(), 2);
        let ends: Vec<_> = batch.janks.iter().map(|jank| jank.ended).collect();
        assert_eq!(ends, [JankEnd::Finished, JankEnd::Killed]);
        assert_eq!(batch.events(), 4);
        spill.clear();
        assert!(recover(folder.path(), &Losses::default()).is_empty());
    }

    #[test]
    fn a_record_that_is_cut_or_damaged_leaves_those_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut spill = Spill::open(Some(folder.path()), true);
        let mut pending = pending(2);
        spill.batch(&pending);
        let first = std::fs::read(path(folder.path())).unwrap();
        pending.add(Event::Jank(stall(EARLY)));
        spill.batch(&pending);
        let whole = std::fs::read(path(folder.path())).unwrap();
        assert_eq!(one(folder.path()).events.len(), 2);
        let mut damaged = whole.clone();
        damaged[first.len() + 20] ^= 1;
        for bytes in [
            &damaged[..],
            &whole[..whole.len() - 1],
            &whole[..first.len() + 4],
        ] {
            std::fs::write(path(folder.path()), bytes).unwrap();
            assert_eq!(one(folder.path()).events, [(Signal::Metrics, 2)]);
        }
        for bytes in [&first[..0], &first[..first.len() - 1]] {
            std::fs::write(path(folder.path()), bytes).unwrap();
            assert!(recover(folder.path(), &Losses::default()).is_empty());
        }
    }

    #[test]
    fn malformed_events_of_the_last_batch_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let mut spill = Spill::open(Some(folder.path()), true);
        let mut pending = pending(2);
        pending.add(Event::Metric(metric_of(f64::NAN)));
        spill.events(&pending);
        let losses = Losses::default();
        assert_eq!(recover(folder.path(), &losses).len(), 1);
        let lost = losses.take();
        assert_eq!(lost.len(), 1);
        assert_eq!((lost[0].signal, lost[0].count), (Signal::Metrics, 1));
    }

    #[test]
    fn lines_of_an_earlier_version_are_read_until_their_batch_is_safe() {
        let folder = tempfile::tempdir().unwrap();
        let head = r#"{"batch_id":"0192f0c0-7b3e-7cc1-9a55-0123456789ab","resource":{"app_id":"a","install_id":"5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11"}}"#;
        let metric = r#"{"name":"m","time":"2026-11-20T12:00:00Z","value":1}"#;
        let stall = r#"{"start":"2026-11-20T12:00:01Z","duration_ms":2000}"#;
        let lines = format!(
            "{head}\nmetrics\t{metric}\nmetrics\t{{\"na\nstall\t{stall}\nmetrics\t{metric}"
        );
        std::fs::write(folder.path().join("pending.jsonl"), lines).unwrap();
        let mut spill = Spill::open(Some(folder.path()), false);
        let sealed = one(folder.path());
        assert_eq!(sealed.form, Form::Json);
        let mut json = zstd::stream::decode_all(sealed.body.as_slice()).unwrap();
        json.push(b'}');
        let batch: Batch<'_> = serde_json::from_slice(&json).unwrap();
        assert_eq!((batch.metrics.len(), batch.janks.len()), (1, 1));
        assert_eq!(batch.janks[0].ended, JankEnd::Killed);
        spill.clear();
        assert!(recover(folder.path(), &Losses::default()).is_empty());
    }
}
