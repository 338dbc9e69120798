//! Batches in a folder, one record each.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use unjank_protocol::{Batch, Signal};
use unjank_spool::{Log, OpenError, Options, Reader, Seq, Trimmer, WhenFull};
use uuid::Uuid;

use super::{LEAST_BYTES, MOST_LABEL, MOST_RECORD};
use crate::clock::{Setting, age_us};
use crate::deliver::batch::{Sealed, parts_of};
use crate::deliver::form::Form;
use crate::deliver::losses::{Losses, Reason, ReportedLosses};

/// The header before each batch on disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Label {
    pub(super) batch_id: Uuid,
    pub(super) sealed_at: i64,
    pub(super) events: Vec<(Signal, u32)>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) reported_losses: ReportedLosses,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) split_from: Vec<Uuid>,
    #[serde(default, skip_serializing_if = "Form::is_json")]
    pub(super) form: Form,
}

impl Label {
    pub(super) fn new(sealed: &Sealed) -> Self {
        Self {
            batch_id: sealed.batch_id,
            sealed_at: sealed.setting.now().as_micros(),
            events: sealed.events.clone(),
            reported_losses: sealed.reported_losses.clone(),
            split_from: sealed.split_from.clone(),
            form: sealed.form,
        }
    }

    pub(super) fn give_up(&self, reason: Reason, losses: &Losses) {
        losses.add_all(&self.events, reason);
        losses.add_reported(&self.reported_losses);
    }

    /// Returns whether this is the batch with this id, or a part of that batch.
    pub(super) fn is_of(&self, batch_id: Uuid) -> bool {
        self.batch_id == batch_id || self.split_from.contains(&batch_id)
    }
}

/// An open folder.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) log: Log,
    reader: Reader,
    pub(super) trimmer: Trimmer,
    /// The limit of the log. At this size, it drops its oldest batches.
    most_bytes: u64,
}

/// A batch that an earlier process left.
pub(super) struct Found {
    pub(super) label: Label,
    pub(super) seq: Seq,
    pub(super) bytes: u64,
    /// Number of unreadable records since the previous batch.
    pub(super) lost_before: u64,
}

/// The content of a folder.
pub(super) struct Opened {
    pub(super) disk: Disk,
    pub(super) found: Vec<Found>,
    /// Number of unreadable records after the last batch.
    pub(super) lost: u64,
}

/// Why a folder cannot be opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenFailure {
    /// Another process uses it, or a newer version wrote it.
    NotOurs,
    /// The disk failed. The failure may be temporary.
    Disk,
}

impl From<OpenError> for OpenFailure {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::InUse { .. } | OpenError::Version { .. } => Self::NotOurs,
            OpenError::Options { .. } | OpenError::Io { .. } => Self::Disk,
        }
    }
}

impl Disk {
    /// Opens the folder and lists the batches in it.
    pub(super) fn open(folder: &Path, most_bytes: u64) -> Result<Opened, OpenFailure> {
        let most_bytes = most_bytes.max(LEAST_BYTES);
        let (log, _) = Log::open(Options {
            segment_bytes: u64::from(MOST_RECORD) * 2,
            max_record_bytes: MOST_RECORD,
            when_full: WhenFull::DropOldest,
            // Rewriting at each start would wear the flash. It only helps after a failed sync followed by a power cut.
            renew_when_opened: false,
            ..Options::new(folder, most_bytes)
        })?;
        let (found, lost) = scan(&log).map_err(|_| OpenFailure::Disk)?;
        let disk = Self {
            reader: log.reader(),
            trimmer: log.trimmer(),
            log,
            most_bytes,
        };
        Ok(Opened { disk, found, lost })
    }

    /// Returns whether a batch with a body of this size can be written without dropping others.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        // The headers of a record and of a segment are much smaller than 4 KiB.
        let needed = bytes.saturating_add(u64::from(MOST_LABEL) + 4_096);
        self.log.bytes().saturating_add(needed) <= self.most_bytes
    }

    /// Writes a batch durably. Returns `None` if that fails.
    pub(super) fn write(&mut self, label: &Label, body: &[u8]) -> Option<Seq> {
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

    /// Reads a batch. Returns `None` if the record is missing or damaged, which is permanent; an error may be temporary.
    pub(super) fn read(&mut self, seq: Seq) -> io::Result<Option<Sealed>> {
        // Batches are mostly read in order, and seeking reads the segment from its start.
        if self.reader.position() != seq {
            self.reader.seek(seq);
        }
        let chunk = self.reader.next_chunk(1);
        if chunk.is_err() {
            // Opens the file again.
            self.reader.seek(seq);
        }
        let chunk = chunk?;
        let found = chunk.as_ref().and_then(|chunk| {
            let record = chunk.iter().find(|record| record.seq == seq)?;
            read_record(record.payload)
        });
        Ok(found.map(|(label, body)| Sealed {
            batch_id: label.batch_id,
            events: label.events,
            reported_losses: label.reported_losses,
            split_from: label.split_from,
            setting: Setting::default(),
            form: label.form,
            body: body.to_vec(),
        }))
    }
}

/// Returns all batches, and the number of unreadable records after the last one.
fn scan(log: &Log) -> io::Result<(Vec<Found>, u64)> {
    let mut reader = log.reader();
    let (mut found, mut lost) = (Vec::new(), 0_u64);
    // Missing sequence numbers without damage belong to records that were never durable.
    let (mut next, mut was_damaged) = (log.oldest_seq(), false);
    while let Some(chunk) = reader.next_chunk(1 << 20)? {
        let is_damaged = !chunk.damage().is_empty();
        for record in chunk.iter() {
            if is_damaged || was_damaged {
                lost = lost.saturating_add(record.seq.saturating_sub(next));
            }
            next = record.seq.saturating_add(1);
            match read_record(record.payload) {
                Some((label, body)) => found.push(Found {
                    label,
                    seq: record.seq,
                    bytes: body.len() as u64,
                    lost_before: std::mem::take(&mut lost),
                }),
                None => lost = lost.saturating_add(1),
            }
        }
        was_damaged = is_damaged || (was_damaged && chunk.is_empty());
    }
    Ok((found, lost))
}

/// Removes duplicates, and batches whose halves are both present. An earlier process was about to delete such a batch, and the
/// server may have stored its events under the ids of the halves. Also returns the number of unreadable records after the last
/// batch.
pub(super) fn without_repetitions(found: Vec<Found>) -> (Vec<Found>, u64) {
    let ids: HashSet<Uuid> = found.iter().map(|found| found.label.batch_id).collect();
    let ancestors = found.iter().flat_map(|found| &found.label.split_from);
    let cut: HashSet<Uuid> = ancestors.copied().collect();
    let mut seen = HashSet::new();
    let (mut kept, mut lost) = (Vec::with_capacity(found.len()), 0_u64);
    for mut found in found {
        let batch_id = found.label.batch_id;
        lost = lost.saturating_add(found.lost_before);
        let is_there_in_parts = cut.contains(&batch_id) && has_parts(&ids, batch_id, 0);
        if seen.insert(batch_id) && !is_there_in_parts {
            found.lost_before = std::mem::take(&mut lost);
            kept.push(found);
        }
    }
    (kept, lost)
}

/// Returns whether both halves of the batch are present. A half is also present if both of its own halves are.
fn has_parts(ids: &HashSet<Uuid>, batch_id: Uuid, depth: usize) -> bool {
    let is_there = |half: Uuid| ids.contains(&half) || has_parts(ids, half, depth + 1);
    depth < Batch::MAX_SPLIT_FROM && parts_of(batch_id).into_iter().all(is_there)
}

fn read_record(record: &[u8]) -> Option<(Label, &[u8])> {
    let (length, rest) = record.split_first_chunk::<2>()?;
    let (label, body) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    Some((serde_json::from_slice(label).ok()?, body))
}

/// Returns whether a folder that cannot be opened may hold batches.
pub(super) fn may_hold(folder: &Path) -> bool {
    match segments(folder) {
        Ok(segments) => !segments.is_empty(),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

/// Deletes the segments of an unreadable folder once all of them are too old for the server to accept. Returns the number of
/// deleted files.
pub(super) fn delete_older(folder: &Path, longest_us: i64) -> io::Result<u64> {
    let segments = segments(folder)?;
    for segment in &segments {
        if age_us(segment)? <= longest_us {
            return Ok(0);
        }
    }
    delete(&segments)?;
    Ok(segments.len() as u64)
}

/// Deletes the segments of a folder.
pub(super) fn delete_all(folder: &Path) -> io::Result<()> {
    delete(&segments(folder)?)
}

fn delete(segments: &[PathBuf]) -> io::Result<()> {
    segments.iter().try_for_each(std::fs::remove_file)
}

fn segments(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut segments = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "segment") {
            segments.push(path);
        }
    }
    Ok(segments)
}
