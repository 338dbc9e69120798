//! How far the log is drained. The ledger is the file `drain.json`, which is durable before anything is sent.
//!
//! A range of the log is cut once. It is recorded before its first INSERT, with a number that no other range ever gets. Its rows carry the number, so
//! the writer can query which of them ClickHouse has. Several ranges make a fold, which is rolled up as one.
//!
//! The file may be lost or be restored from an older backup, and so may the log. The ledger only saves queries: the writer asks ClickHouse for
//! whatever the ledger does not know.

mod invariants;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use crate::store::durable_file::DurableFiles;
use crate::store::old_fault::{OldFault, is_back};
use crate::store::range_number::{Number, RANGES};

/// The first version with numbers.
const VERSION: u8 = 1;

/// A fold with this many rows is rolled up at once, so that its groups fit in memory.
const FULL: u64 = 10_000_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ledger {
    /// [`VERSION`]. The ledger of an older server has none.
    #[serde(default)]
    version: u8,
    /// The log that the ledger describes. The marks in ClickHouse name it too.
    pub(crate) log_id: Uuid,
    /// Every record up to this one is in ClickHouse or in the dead-letter folder. 0 if there is none.
    pub(crate) done: u64,
    /// The last durable record of the log when the ledger was saved.
    #[serde(default)]
    pub(super) durable: u64,
    /// The range that is being sent.
    pub(crate) range: Option<Range>,
    /// Folds that are not completely rolled up, oldest first. Only the last may be open.
    #[serde(default)]
    pub(crate) folds: Vec<Fold>,
    /// The last number drawn.
    #[serde(default)]
    pub(crate) last: Number,
    /// No fold is rolled up before this record is drained: the rows of recalled folds may be incomplete until then. No dead letter is dropped either:
    /// the log may have other records of its range.
    #[serde(default)]
    pub(super) folds_wait_for: u64,
    /// The fold of an older server, which numbered rows by fold alone.
    #[serde(default, rename = "fold", skip_serializing_if = "Option::is_none")]
    pub(super) old_fold: Option<OldFold>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Range {
    #[serde(default)]
    pub(crate) number: Number,
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// Sequence numbers without a record, as pairs of first and last. A power cut can bring back records that a failed sync had removed from the log.
    /// Such records were never acknowledged and are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) gaps: Vec<(u64, u64)>,
    /// Records with a duplicate batch. They are counted and not sent.
    pub(super) duplicates: Vec<u64>,
    /// Records that an earlier range has sent completely or in part, with the number of that range.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) again: Vec<(u64, Number)>,
    /// Layouts (a table and its columns) whose block ClickHouse rejected because of its content. Their rows are sent record by record.
    pub(super) one_by_one: Vec<String>,
    /// The log id in the tokens of an older server. Such a range has no number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) old_log_id: Option<Uuid>,
    /// The fold of a range without a number.
    #[serde(default, rename = "fold", skip_serializing_if = "Option::is_none")]
    pub(super) old_fold: Option<u64>,
}

/// Rows that are rolled up together: the rows of all ranges whose numbers belong to the fold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Fold {
    pub(crate) number: Number,
    /// The log that the fold's mark names.
    pub(crate) log_id: Uuid,
    pub(crate) ranges: u16,
    pub(crate) rows: u64,
    pub(crate) tables: BTreeSet<String>,
    /// No more ranges join.
    pub(crate) closed: bool,
    /// Roll-ups that are done.
    pub(crate) done: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OldFold {
    pub(crate) number: u64,
    pub(crate) rows: u64,
    pub(crate) closed: bool,
    /// The log id in its tokens.
    #[serde(default)]
    pub(crate) log_id: Option<Uuid>,
}

impl Fold {
    pub(crate) fn new(number: Number, log_id: Uuid) -> Self {
        Self {
            number,
            log_id,
            ranges: 0,
            rows: 0,
            tables: BTreeSet::new(),
            closed: false,
            done: BTreeSet::new(),
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.rows >= FULL || self.ranges >= RANGES
    }
}

/// The state of a log when it is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogState {
    pub(crate) id: Uuid,
    /// The last durable record.
    pub(crate) durable: u64,
    /// The last trimmed record. Trimmed records are stored in ClickHouse.
    pub(crate) trimmed: u64,
}

impl Ledger {
    fn new(log_id: Uuid) -> Self {
        Self {
            version: VERSION,
            log_id,
            done: 0,
            durable: 0,
            range: None,
            folds: Vec::new(),
            last: Number::default(),
            folds_wait_for: 0,
            old_fold: None,
        }
    }

    /// Reads the ledger of a log. If the ledger describes another log, or records that the log does not have, it starts over: the writer checks all
    /// records of the log and skips what ClickHouse already has.
    pub(crate) fn load(files: &DurableFiles, path: &Path, log: LogState) -> io::Result<Self> {
        let mut ledger: Self = match files.read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| damaged(path, &error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Self::new(log.id),
            Err(error) => return Err(error),
        };
        if is_back(OldFault::LedgerOfAnotherLog) {
            ledger.log_id = log.id;
            return Ok(ledger);
        }
        let before = ledger.clone();
        if ledger.version < VERSION {
            let old_log_id = ledger.log_id;
            for range in ledger
                .range
                .iter_mut()
                .filter(|range| range.number == Number::default())
            {
                range.old_log_id.get_or_insert(old_log_id);
            }
            if let Some(fold) = &mut ledger.old_fold {
                fold.log_id.get_or_insert(old_log_id);
            }
        } else if ledger.log_id != log.id {
            tracing::error!(ledger = %ledger.log_id, log = %log.id, "the ledger belongs to another ingest log: the server drains the whole log and skips what ClickHouse already has");
            (ledger.done, ledger.durable, ledger.range) = (0, 0, None);
            ledger.folds_wait_for = log.durable;
        }
        let sent = ledger
            .range
            .as_ref()
            .map_or(ledger.done, |range| range.last);
        // Later records get the numbers of the missing ones, and must not count as sent.
        if sent > log.durable {
            tracing::error!(
                sent,
                durable = log.durable,
                "the ingest log ends before the last record that was sent: the server checks the whole log again"
            );
            (ledger.done, ledger.range) = (0, None);
            ledger.folds_wait_for = log.durable;
        }
        if ledger.done < log.trimmed {
            (ledger.done, ledger.range) = (log.trimmed, None);
        }
        (ledger.version, ledger.log_id) = (VERSION, log.id);
        ledger.folds_wait_for = ledger.folds_wait_for.min(log.durable);
        if ledger != before {
            // The correction must be durable: the log may have grown past `done` by the next start.
            ledger.save(files, path)?;
        }
        // This may be an older copy of the file, and its open fold may have grown since.
        ledger.folds.iter_mut().for_each(|fold| fold.closed = true);
        Ok(ledger)
    }

    /// Whether the server of this ledger is sending records of a range, or may do so later. The server may be another process.
    ///
    /// After a restore, the log may have records of ranges that the ledger does not know. There is no ledger at first, then one without a number, and
    /// then one that checks all records that the log had when it was opened.
    pub(super) fn is_sending(files: &DurableFiles, path: &Path, range: Number) -> io::Result<bool> {
        let ledger: Self = match files.read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| damaged(path, &error))?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
            Err(error) => return Err(error),
        };
        if ledger.last == Number::default() || ledger.done < ledger.folds_wait_for {
            return Ok(true);
        }
        let Some(sent) = ledger.range else {
            return Ok(false);
        };
        let origins = sent.again.iter().map(|(_, number)| number.range());
        // A range of an older server has no number. It says nothing about the others.
        let mut known = origins.filter(|origin| *origin != Number::default());
        Ok(sent.number.range() == range || known.any(|origin| origin == range))
    }

    /// Adds a range with this many rows to the open fold, or to a new one. Returns the number of the range.
    pub(super) fn join_fold(&mut self, rows: u64, at: UnixTime, random: u64) -> Number {
        if self
            .folds
            .last()
            .is_none_or(|fold| fold.closed || fold.is_full())
        {
            self.close_fold();
            let number = if is_back(OldFault::NumbersRepeat) {
                Number::draw(self.log_id, UnixTime::default(), self.last, 0)
            } else {
                Number::draw(self.log_id, at, self.last, random)
            };
            self.folds.push(Fold::new(number, self.log_id));
        }
        let Some(fold) = self.folds.last_mut() else {
            return self.last;
        };
        fold.ranges += 1;
        fold.rows += rows;
        self.last = fold.number.of_range(fold.ranges);
        self.last
    }

    /// Reserves the numbers of another ledger. That ledger may be on the disk even if the attempt to save it failed.
    pub(super) fn reserve_numbers(&mut self, other: &Self) {
        self.last = self.last.max(other.last);
        if let (Some(ours), Some(theirs)) = (self.folds.last_mut(), other.folds.last())
            && ours.number == theirs.number
        {
            ours.ranges = theirs.ranges;
        }
    }

    /// Adds tables to the last fold.
    pub(super) fn add_tables<'t>(&mut self, tables: impl Iterator<Item = &'t str>) {
        if let Some(fold) = self.folds.last_mut() {
            fold.tables.extend(tables.map(str::to_owned));
        }
    }

    /// Adds a fold that the ledger does not know, after one of its ranges was found in ClickHouse.
    pub(super) fn recall_fold(&mut self, number: Number, tables: BTreeSet<String>) {
        let number = number.fold();
        let at = self.folds.partition_point(|fold| fold.number < number);
        match self.folds.get_mut(at) {
            Some(fold) if fold.number == number => fold.tables.extend(tables),
            _ => self.folds.insert(
                at,
                Fold {
                    tables,
                    closed: true,
                    ..Fold::new(number, self.log_id)
                },
            ),
        }
    }

    pub(super) fn close_fold(&mut self) {
        self.folds.iter_mut().for_each(|fold| fold.closed = true);
        self.old_fold.iter_mut().for_each(|fold| fold.closed = true);
    }

    pub(super) fn open_fold(&self) -> Option<&Fold> {
        self.folds.last().filter(|fold| !fold.closed)
    }

    pub(super) fn has_folds(&self) -> bool {
        !self.folds.is_empty() || self.old_fold.is_some()
    }

    /// Returns how many rows in ClickHouse may not be rolled up yet.
    pub(super) fn unfolded_rows(&self) -> u64 {
        let old = self.old_fold.map_or(0, |fold| fold.rows);
        self.folds.iter().map(|fold| fold.rows.max(1)).sum::<u64>() + old
    }

    pub(crate) fn save(&self, files: &DurableFiles, path: &Path) -> io::Result<()> {
        files.replace(path, &serde_json::to_vec(self).map_err(io::Error::other)?)
    }
}

fn damaged(path: &Path, error: &serde_json::Error) -> io::Error {
    let text = format!(
        "{} is damaged: {error}. Move the file away and restart the server: it then checks the log from its beginning and skips what ClickHouse \
         already has",
        path.display()
    );
    io::Error::new(io::ErrorKind::InvalidData, text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const LOG: LogState = LogState {
        id: Uuid::from_u128(7),
        durable: 9,
        trimmed: 0,
    };

    #[test]
    fn ranges_share_a_fold_until_it_is_closed_or_full() {
        let mut ledger = Ledger::new(LOG.id);
        let first = ledger.join_fold(10, UnixTime::from_micros(1_000), 1);
        let second = ledger.join_fold(100_000, UnixTime::from_micros(2_000), 2);
        assert!(first < second && first.fold() == second.fold());
        ledger.close_fold();
        let third = ledger.join_fold(FULL, UnixTime::from_micros(3_000), 3);
        let fourth = ledger.join_fold(1, UnixTime::from_micros(3_000), 4);
        assert!(second.fold() < third.fold() && third.fold() < fourth.fold());
        assert_eq!(ledger.folds.len(), 3);
        assert_eq!(ledger.open_fold().unwrap().number, fourth.fold());
    }

    #[test]
    fn the_ledger_is_durable_and_a_damaged_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drain.json");
        let mut ledger = Ledger::load(&DurableFiles::default(), &path, LOG).unwrap();
        ledger.done = 7;
        ledger.range = Some(Range {
            number: ledger.join_fold(3, UnixTime::from_micros(1_000), 1),
            first: 8,
            last: 9,
            duplicates: vec![9],
            one_by_one: vec!["spans".to_owned()],
            ..Range::default()
        });
        ledger.close_fold();
        ledger.save(&DurableFiles::default(), &path).unwrap();
        assert_eq!(
            Ledger::load(&DurableFiles::default(), &path, LOG).unwrap(),
            ledger
        );
        fs::write(&path, b"{").unwrap();
        let error = Ledger::load(&DurableFiles::default(), &path, LOG).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_ledger_of_another_log_or_ahead_of_its_log_starts_over_and_keeps_its_folds() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drain.json");
        let mut ledger = Ledger::new(LOG.id);
        ledger.done = 9;
        ledger.join_fold(3, UnixTime::from_micros(1_000), 1);
        ledger.save(&DurableFiles::default(), &path).unwrap();
        assert_eq!(
            Ledger::load(&DurableFiles::default(), &path, LOG)
                .unwrap()
                .done,
            9
        );
        let other = Uuid::from_u128(8);
        for log in [
            LogState { id: other, ..LOG },
            LogState { durable: 8, ..LOG },
        ] {
            ledger.save(&DurableFiles::default(), &path).unwrap();
            let reset = Ledger::load(&DurableFiles::default(), &path, log).unwrap();
            assert_eq!((reset.done, reset.log_id), (0, log.id));
            assert_eq!(
                reset.folds_wait_for, log.durable,
                "folds and drops wait until all of the log is checked"
            );
            assert_eq!(
                reset.folds[0].log_id, LOG.id,
                "the fold keeps the log of its mark"
            );
        }
        // The same holds before the first number is drawn.
        let mut ledger = Ledger::new(LOG.id);
        ledger.done = 9;
        ledger.save(&DurableFiles::default(), &path).unwrap();
        let log = LogState { id: other, ..LOG };
        let reset = Ledger::load(&DurableFiles::default(), &path, log).unwrap();
        assert_eq!((reset.done, reset.folds_wait_for), (0, log.durable));
        // A range that the log has in part is not resumed.
        let range = r#"{"first": 8, "last": 9, "duplicates": [], "one_by_one": []}"#;
        (ledger.done, ledger.range) = (7, serde_json::from_str(range).unwrap());
        ledger.save(&DurableFiles::default(), &path).unwrap();
        let log = LogState { durable: 8, ..LOG };
        let reset = Ledger::load(&DurableFiles::default(), &path, log).unwrap();
        assert_eq!((reset.done, reset.range), (0, None));
    }

    #[test]
    fn any_range_may_be_sent_until_the_restored_log_is_drained() {
        let folder = tempfile::tempdir().unwrap();
        let (files, path) = (DurableFiles::default(), folder.path().join("drain.json"));
        let mut ledger = Ledger::new(LOG.id);
        let [old, current] = [1, 2].map(|time| {
            ledger.close_fold();
            ledger.join_fold(3, UnixTime::from_micros(time * 1_000_000), 1)
        });
        let is_sending = |ledger: &Ledger, range: Number| {
            ledger.save(&files, &path).unwrap();
            Ledger::is_sending(&files, &path, range).unwrap()
        };
        assert!(Ledger::is_sending(&files, &path, old).unwrap(), "no ledger");
        assert!(is_sending(&Ledger::new(LOG.id), old), "no number yet");
        (ledger.done, ledger.folds_wait_for) = (7, 9);
        ledger.range = Some(Range {
            number: current,
            first: 8,
            last: 8,
            ..Range::default()
        });
        assert!(is_sending(&ledger, old), "record 9 may be of the range");
        (ledger.done, ledger.range) = (8, None);
        assert!(is_sending(&ledger, old), "record 9 may be of the range");
        ledger.done = 9;
        assert!(!is_sending(&ledger, old));
        ledger.range = Some(Range {
            number: current,
            first: 10,
            last: 10,
            ..Range::default()
        });
        assert!(is_sending(&ledger, current) && !is_sending(&ledger, old));
    }

    #[test]
    fn the_ledger_of_an_older_server_is_migrated() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drain.json");
        let old = r#"{"log_id":"00000000-0000-0000-0000-000000000003","done":7,"range":{"first":8,"last":9,"duplicates":[],
            "one_by_one":[],"fold":5},"fold":{"number":5,"rows":60000,"closed":false},"last_fold":5}"#;
        fs::write(&path, old).unwrap();
        let ledger = Ledger::load(&DurableFiles::default(), &path, LOG).unwrap();
        let range = ledger.range.unwrap();
        assert_eq!(
            (ledger.log_id, range.old_log_id),
            (LOG.id, Some(Uuid::from_u128(3)))
        );
        assert_eq!(
            (range.old_fold, ledger.old_fold.unwrap().number),
            (Some(5), 5)
        );
    }
}
