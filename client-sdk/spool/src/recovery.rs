//! Opens a folder: finds its records, and determines what has to be truncated or rewritten.

use std::path::Path;

use crate::Seq;
use crate::cursor::{Block, Cursor, Damage};
use crate::disk::{self, EMPTY, Files, SegmentFile};
use crate::error::{DiskError, Doing, OpenError};
use crate::file_system::Mode;
use crate::format::SegmentName;
use crate::shared::{Extent, Table};

/// Number of bytes read at a time.
const STEP: usize = 1 << 20;

/// The findings of [`crate::Log::open`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Number of readable records that are not trimmed.
    pub records: u64,
    /// Size of their payloads in bytes.
    pub bytes: u64,
    /// The oldest of them; equal to [`next_seq`](Self::next_seq) if there are none.
    pub first_seq: Seq,
    /// The sequence number of the next record.
    pub next_seq: Seq,
    /// Bytes truncated from the end of the last segment: a write that was interrupted by a crash and never synced.
    pub torn_bytes: u64,
    /// Whether these bytes contain a record of its full length whose checksum is wrong. Only a power cut leaves one, of a write that was
    /// never synced. Otherwise a synced record was damaged.
    pub torn_has_whole_record: bool,
    /// Unreadable parts. They stay on disk until their segment is trimmed, so every open reports them.
    pub damaged: Vec<Damage>,
}

impl Recovery {
    fn count(&mut self, seq: Seq, payload: usize) {
        if self.records == 0 {
            self.first_seq = seq;
        }
        self.records = self.records.saturating_add(1);
        self.bytes = self.bytes.saturating_add(payload as u64);
    }
}

/// A folder and its file system.
type LogFolder<'p> = (&'p Files, &'p Path);

/// See [`crate::Options`].
#[derive(Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) segment_bytes: u64,
    pub(crate) renews: bool,
}

/// A folder that is ready for appending.
pub(crate) struct Opened {
    pub(crate) table: Table,
    pub(crate) active: Active,
    pub(crate) recovery: Recovery,
}

/// The segment to append to.
pub(crate) struct Active {
    pub(crate) id: u64,
    pub(crate) name: SegmentName,
    pub(crate) file: SegmentFile,
    pub(crate) written: Extent,
}

/// A segment as found on disk.
struct Found {
    name: SegmentName,
    floor: Seq,
    /// Its last number is that of the last readable record.
    extent: Extent,
    /// The last number used, readable or not.
    last_used: Seq,
    damage: Vec<Damage>,
    /// See [`Cursor::broken_until`].
    broken_until: u64,
}

/// Reads the whole folder. `trimmed` comes from the hint.
pub(crate) fn open(
    place: LogFolder<'_>,
    trimmed: Seq,
    tag: u32,
    settings: Settings,
) -> Result<Opened, OpenError> {
    let Settings { renews, .. } = settings;
    let mut recovery = Recovery::default();
    let mut segments = scan_all(place, trimmed, &mut recovery)?;
    let last_used = segments.last().map_or(0, |last| last.last_used);
    recovery.next_seq = last_used.max(trimmed).saturating_add(1);

    let mut table = Table::new(trimmed);
    let last = segments.pop();
    let before_last = segments.len().checked_sub(1);
    for (at, segment) in segments.into_iter().enumerate() {
        let renews = renews && Some(at) == before_last;
        keep_or_remove(place, segment, renews, &mut table, &mut recovery)?;
    }
    let reopened = match last {
        Some(last) => reopen(place, last, settings, &mut table, &mut recovery)?,
        None => None,
    };
    let active = match reopened {
        Some(reopened) => reopened,
        None => create(place, recovery.next_seq, tag, &mut table)?,
    };
    if recovery.records == 0 {
        recovery.first_seq = recovery.next_seq;
    }
    table.durable = recovery.next_seq.saturating_sub(1);
    Ok(Opened {
        table,
        active,
        recovery,
    })
}

fn scan_all(
    place: LogFolder<'_>,
    trimmed: Seq,
    recovery: &mut Recovery,
) -> Result<Vec<Found>, OpenError> {
    let mut names = Vec::new();
    let (files, dir) = place;
    for path in files.files(dir).doing("list", dir)? {
        let name = path.file_name().and_then(|name| name.to_str());
        names.extend(name.and_then(SegmentName::parse));
    }
    names.sort_unstable();
    let mut floor = 0;
    let mut segments = Vec::with_capacity(names.len());
    for name in names {
        floor = floor.max(name.first_seq.saturating_sub(1));
        let found = scan(place, name, floor, trimmed, recovery)?;
        floor = found.last_used;
        segments.push(found);
    }
    Ok(segments)
}

fn scan(
    place: LogFolder<'_>,
    name: SegmentName,
    floor: Seq,
    trimmed: Seq,
    recovery: &mut Recovery,
) -> Result<Found, OpenError> {
    let (files, dir) = place;
    let path = dir.join(name.file_name());
    let file = files.open(&path, Mode::Read).doing("open", &path)?;
    let end = files.len(&path).doing("open", &path)?;
    let mut cursor = Cursor::new(name, floor, 0);
    let mut block = Block::default();
    let mut extent = Extent {
        bytes: end,
        records: 0,
        last_seq: floor,
    };
    let mut damage = Vec::new();
    while cursor.offset() < end {
        cursor
            .fill(&*file, end, STEP, &mut block)
            .doing("read", &path)?;
        if let Some(version) = cursor.foreign_version() {
            return Err(OpenError::Version { path, version });
        }
        for (seq, payload) in &block.records {
            extent.last_seq = *seq;
            extent.records = extent.records.saturating_add(1);
            if *seq > trimmed {
                recovery.count(*seq, payload.len());
            }
        }
        damage.append(&mut block.damage);
    }
    let (last_used, broken_until) = (cursor.last_seq(), cursor.broken_until());
    Ok(Found {
        name,
        floor,
        extent,
        last_used,
        damage,
        broken_until,
    })
}

/// Keeps an older segment unless it is empty or finished.
fn keep_or_remove(
    place: LogFolder<'_>,
    found: Found,
    renews: bool,
    table: &mut Table,
    recovery: &mut Recovery,
) -> Result<(), DiskError> {
    let (files, dir) = place;
    let path = dir.join(found.name.file_name());
    let is_empty = found.extent.records == 0 && found.damage.is_empty();
    let is_leftover = found.extent.records == 0 && found.extent.bytes <= EMPTY;
    let is_done = found.extent.records > 0 && found.extent.last_seq <= table.trimmed;
    if is_empty || is_leftover || is_done {
        disk::remove(files, &path)?;
        return disk::sync_dir(files, dir);
    }
    // The previous process may have died between a write and its sync.
    let mut file = SegmentFile::open(files, &path)?;
    if renews {
        file.renew(files, found.extent.bytes)?;
    }
    file.sync()?;
    recovery.damaged.extend(found.damage);
    table.push(dir, found.name, found.floor, found.extent);
    Ok(())
}

/// Truncates the torn tail of the last segment. Returns the segment if records can be appended to it.
fn reopen(
    place: LogFolder<'_>,
    mut found: Found,
    Settings {
        segment_bytes,
        renews,
    }: Settings,
    table: &mut Table,
    recovery: &mut Recovery,
) -> Result<Option<Active>, DiskError> {
    let (files, dir) = place;
    let path = dir.join(found.name.file_name());
    let mut file = SegmentFile::open(files, &path)?;
    let whole = found.extent.bytes;
    let torn = found
        .damage
        .pop_if(|last| last.offset.saturating_add(last.bytes) >= whole);
    if let Some(torn) = torn {
        recovery.torn_bytes = torn.bytes;
        recovery.torn_has_whole_record = torn.offset < found.broken_until;
        found.extent.bytes = torn.offset;
        file.cut(torn.offset)?;
    }
    let is_empty = found.extent.records == 0 && found.extent.bytes <= EMPTY;
    if is_empty && found.name.first_seq < recovery.next_seq {
        // Left over from an attempt to create it, after which the log continued elsewhere.
        disk::remove(files, &path)?;
        disk::sync_dir(files, dir)?;
        return Ok(None);
    }
    if found.extent.bytes < EMPTY {
        file.cut(0)?;
        file.write_header(found.name)?;
        found.extent.bytes = EMPTY;
    } else {
        if renews {
            file.renew(files, found.extent.bytes)?;
        }
        file.sync()?;
    }
    if found.extent.records == 0 {
        // The previous process may have failed to make its name durable.
        disk::sync_dir(files, dir)?;
    }
    // Appending after a destroyed header would put good records into a damaged file. Numbers skipped inside a segment would make
    // `DropReport` inexact.
    let is_behind = found.extent.last_seq.saturating_add(1) < recovery.next_seq;
    let is_headless = found.damage.iter().any(|damage| damage.offset == 0);
    let is_full = found.extent.bytes >= segment_bytes;
    recovery.damaged.append(&mut found.damage);
    let (name, written) = (found.name, found.extent);
    let id = table.push(dir, name, found.floor, written);
    Ok((!is_headless && !is_full && !is_behind).then_some(Active {
        id,
        name,
        file,
        written,
    }))
}

fn create(
    place: LogFolder<'_>,
    next_seq: Seq,
    tag: u32,
    table: &mut Table,
) -> Result<Active, DiskError> {
    let (files, dir) = place;
    let name = SegmentName {
        first_seq: next_seq,
        tag,
    };
    let file = SegmentFile::create(files, dir, name)?;
    let floor = next_seq.saturating_sub(1);
    let written = Extent {
        bytes: EMPTY,
        records: 0,
        last_seq: floor,
    };
    let id = table.push(dir, name, floor, written);
    Ok(Active {
        id,
        name,
        file,
        written,
    })
}
