//! The writer's work around appending: making room, starting segments, and recovering from a failing disk.

use std::io::IoSlice;

use super::{Health, Log};
use crate::disk::{EMPTY, SegmentFile};
use crate::error::DiskError;
use crate::format::{RECORD_HEADER, SegmentName, framed};
use crate::shared::{DropReport, Extent};
use crate::{AppendError, MAX_RECORD_BYTES, Seq, SyncError, WhenFull};

impl Log {
    pub(super) fn check_length(&self, payload: &[u8]) -> Result<u32, AppendError> {
        let limit = self.options.max_record_bytes.min(MAX_RECORD_BYTES);
        match u32::try_from(payload.len()) {
            Ok(length) if length <= limit => Ok(length),
            _ => Err(AppendError::TooLarge {
                bytes: payload.len() as u64,
                limit,
            }),
        }
    }

    /// Makes room for a payload of this length. Returns how many bytes can be written.
    pub(super) fn make_room(
        &mut self,
        length: u32,
        dropped: &mut DropReport,
    ) -> Result<u64, AppendError> {
        let max_bytes = self.options.max_bytes;
        // Opening the log starts a segment, even if the log is full, so reserve space for its header.
        let usable = max_bytes.saturating_sub(EMPTY);
        // A quarter, because a quiet log whose records are finished at once would otherwise start a segment for each of them.
        if self.written.bytes >= self.segment_bytes / 4 && self.active_is_done() {
            self.replace_active()?;
        }
        loop {
            let header = if self.fits(length) { 0 } else { EMPTY };
            let needed = framed(length).saturating_add(header);
            let bytes = self.bytes();
            if bytes.saturating_add(needed) <= usable {
                break;
            }
            if self.active_is_done() {
                self.replace_active()?;
                continue;
            }
            if self.options.when_full == WhenFull::Refuse {
                return Err(AppendError::Full { bytes, max_bytes });
            }
            if self.segments() == 1 {
                self.rotate()?;
            }
            let before = dropped.bytes;
            self.shared.drop_oldest(dropped)?;
            if dropped.bytes == before {
                return Err(AppendError::Full { bytes, max_bytes });
            }
        }
        if !self.fits(length) {
            self.rotate()?;
        }
        let in_segment = self.segment_bytes.saturating_sub(self.written.bytes);
        Ok(in_segment.min(usable.saturating_sub(self.bytes())))
    }

    /// Returns whether the active segment has room for a payload of this length. A new segment always has.
    fn fits(&self, length: u32) -> bool {
        let after = self.written.bytes.saturating_add(framed(length));
        self.written.bytes <= EMPTY || after <= self.segment_bytes
    }

    /// Returns whether the active segment has records and all of them are trimmed.
    fn active_is_done(&self) -> bool {
        let table = self.shared.table();
        self.written.records > 0
            && table
                .segments
                .back()
                .is_some_and(|active| table.is_done(active))
    }

    /// Starts a segment and deletes the previous one, whose records are finished.
    fn replace_active(&mut self) -> Result<(), DiskError> {
        self.rotate()?;
        self.shared.delete_done()
    }

    /// Starts a new segment, unless the active one is as good as new.
    fn rotate(&mut self) -> Result<(), DiskError> {
        if self.active_name.first_seq == self.next_seq {
            return Ok(());
        }
        let name = SegmentName {
            first_seq: self.next_seq,
            tag: self.tag,
        };
        let file = SegmentFile::create(&self.shared.files, &self.shared.dir, name)?;
        let floor = self.next_seq.saturating_sub(1);
        let extent = Extent {
            bytes: EMPTY,
            records: 0,
            last_seq: floor,
        };
        let mut table = self.shared.table();
        let sealed_id = self.active_id;
        self.active_id = table.push(&self.shared.dir, name, floor, extent);
        self.active_name = name;
        self.written = extent;
        let sealed = std::mem::replace(&mut self.active, file);
        if table
            .get(sealed_id)
            .is_some_and(|sealed| sealed.written != sealed.durable)
        {
            self.unsynced.push((sealed_id, sealed));
        }
        Ok(())
    }

    /// Appends framed records. After an error, the segment is unchanged.
    pub(super) fn write(
        &mut self,
        records: &[([u8; RECORD_HEADER], &[u8])],
    ) -> Result<(), DiskError> {
        let mut slices: Vec<IoSlice<'_>> = records
            .iter()
            .flat_map(|(header, payload)| [IoSlice::new(header), IoSlice::new(payload)])
            .collect();
        let end = self.written.bytes;
        let written = self.active.write(end, &mut slices);
        if written.is_err() && self.active.cut(end).is_err() {
            self.health = Health::Overlong;
        }
        written
    }

    pub(super) fn sync_files(&self) -> Result<(), DiskError> {
        for (_, sealed) in &self.unsynced {
            sealed.sync()?;
        }
        let is_synced = {
            let table = self.shared.table();
            table
                .get(self.active_id)
                .is_some_and(|active| active.durable == self.written)
        };
        if is_synced {
            Ok(())
        } else {
            self.active.sync()
        }
    }

    /// Makes synced records visible to readers.
    pub(super) fn publish(&mut self) -> Seq {
        self.unsynced.clear();
        let mut table = self.shared.table();
        let mut durable = table.durable;
        for segment in table.segments.iter_mut().rev() {
            if segment.durable != segment.written {
                segment.durable = segment.written;
                durable = durable.max(segment.written.last_seq);
            }
        }
        table.durable = durable;
        durable
    }

    /// Gives up everything that is not synced. Returns the number of these records.
    pub(super) fn abandon_unsynced(&mut self) -> u64 {
        let mut table = self.shared.table();
        let unsynced: Vec<(u64, Extent, u64)> = table
            .segments
            .iter()
            .filter(|segment| segment.written != segment.durable)
            .map(|segment| {
                let lost = segment
                    .written
                    .records
                    .saturating_sub(segment.durable.records);
                (segment.id, segment.durable, lost)
            })
            .collect();
        let mut lost_records = 0_u64;
        for (id, durable, lost) in unsynced {
            lost_records = lost_records.saturating_add(lost);
            table.set_written(id, durable);
            if id == self.active_id {
                self.written = durable;
            }
        }
        self.health = Health::Condemned;
        lost_records
    }

    /// Completes the repair after an earlier failure.
    pub(super) fn repair(&mut self) -> Result<(), DiskError> {
        match self.health {
            Health::Good => return Ok(()),
            Health::Overlong => self.active.cut(self.written.bytes)?,
            Health::Condemned => {
                for (id, sealed) in &mut self.unsynced {
                    // A missing entry was dropped to make room.
                    let end = self
                        .shared
                        .table()
                        .get(*id)
                        .map(|segment| segment.written.bytes);
                    end.map_or(Ok(()), |end| cut_back(sealed, end))?;
                }
                cut_back(&mut self.active, self.written.bytes)?;
                self.rotate()?;
                self.unsynced.clear();
            }
        }
        self.health = Health::Good;
        Ok(())
    }

    pub(super) fn sync_error(&self, error: DiskError, lost_records: u64) -> SyncError {
        SyncError {
            path: error.path,
            lost_records,
            durable: self.durable_seq(),
            source: error.source,
        }
    }
}

fn cut_back(segment: &mut SegmentFile, end: u64) -> Result<(), DiskError> {
    segment.cut(end)?;
    // Best effort: if a power cut undoes the truncation, records that were reported lost are read after all. That is better than
    // refusing to append.
    drop(segment.sync());
    Ok(())
}
