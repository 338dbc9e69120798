//! Rows that ClickHouse rejects because of their content. They are kept on disk with the error until an operator decides.
//!
//! Each item is a file: a line of JSON, then the frame. The file name consists of the number of the record, the table and the index of the frame, so
//! a replay after a crash overwrites the item instead of adding a second one.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use unjank_foundation::clock::UnixTime;
use unjank_foundation::fingerprint::fingerprint;
use unjank_protocol::Signal;
use uuid::Uuid;

use super::dead_letter_header::DeadLetter;
use super::delivery::{self, Parcel};
use super::destination::Destination;
use super::ledger::{Fold, Ledger};
use super::tally::{Marks, Tally};
use crate::records::native::Frame;
use crate::records::record::Outcome;
use crate::store::clickhouse::{ClickHouse, Failure};
use crate::store::durable_file::DurableFiles;
use crate::store::range_number::Number;
use crate::store::upkeep::erase::ErasureScope;

/// The log id and the fold under which a retry stores, rolls up and counts its rows. No other rows use them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retry {
    log_id: Uuid,
    fold: Number,
}

impl Retry {
    /// Derived from the item's id, so that a second retry from a restored folder, or a replay, finds the stored rows.
    pub(crate) fn new(id: &str, received_at: UnixTime) -> Self {
        let [high, low] = [b"log", b"row"].map(|half| fingerprint(&[id.as_bytes(), half]));
        let log_id = Uuid::from_u64_pair(high, low);
        let fold = Number::draw(log_id, received_at, Number::default(), low);
        Self { log_id, fold }
    }

    /// The number that the retried rows get.
    pub(crate) fn number(self) -> Number {
        self.fold.of_range(1)
    }
}

impl DeadLetter {
    fn retry(&self) -> Retry {
        Retry::new(&self.id, self.received_at)
    }

    /// Stores, rolls up and counts the rows under numbers of their own. Idempotent.
    pub(crate) async fn send(
        &self,
        frame: Frame<'_>,
        destination: &impl Destination,
    ) -> Result<(), Failure> {
        let earlier = [self.number.range(), self.number];
        let parcel = Parcel {
            frames: &[frame],
            number: self.retry().number(),
            // An older server did not number its rows. It stored none of the rejected rows.
            earlier: if self.number == Number::default() {
                &[]
            } else {
                &earlier
            },
            in_doubt: true,
            until: None,
        };
        parcel.deliver(destination).await?;
        self.roll_up(destination).await?;
        self.recount(Outcome::Stored, "", destination).await
    }

    async fn roll_up(&self, destination: &impl Destination) -> Result<(), Failure> {
        let Retry { log_id, fold } = self.retry();
        let mut fold = Fold::new(fold, log_id);
        fold.tables.insert(self.table.clone());
        for roll_up in destination.roll_ups().await? {
            if fold.tables.contains(&roll_up.table) {
                delivery::roll_up(destination, &fold, &roll_up, true).await?;
            }
        }
        Ok(())
    }

    /// Moves the events from the outcome `dead_letter` to another one.
    async fn recount(
        &self,
        outcome: Outcome,
        reason: &str,
        destination: &impl Destination,
    ) -> Result<(), Failure> {
        if Signal::from_name(&self.table) == Signal::Other {
            // These rows are not events, so they were never counted.
            return Ok(());
        }
        let Retry { log_id, fold } = self.retry();
        let mut tally = Tally::default();
        tally.move_from_dead_letter(self, outcome, reason);
        tally
            .deliver(destination, &Marks::up_to(log_id, fold), true)
            .await
    }
}

/// The folder of items.
#[derive(Clone, Debug)]
pub struct DeadLetters {
    files: DurableFiles,
    folder: PathBuf,
    max_bytes: u64,
    /// The size of the folder when it was last measured, and the items since then. `None` until the first item.
    bytes: Arc<Mutex<Option<u64>>>,
}

#[derive(Debug, thiserror::Error)]
pub enum DeadLetterError {
    #[error(
        "the dead-letter folder {0} has reached its limit: run `unjank dead-letter list`, then retry or drop items, or raise --dead-letter-max-bytes"
    )]
    Full(PathBuf),
    #[error(
        "the server has not stored and counted all rows that arrived together with these: drop this item later, while the server runs. If the folder is full, raise --dead-letter-max-bytes"
    )]
    Unfinished,
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    #[error("{0} is damaged ({1}): move it out of the folder. Its rows are lost")]
    Damaged(PathBuf, String),
    #[error("there is no item {0}: see `unjank dead-letter list`")]
    Unknown(String),
    #[error(transparent)]
    Refused(#[from] Failure),
}

/// If an item cannot be written, the range is retried later.
impl From<DeadLetterError> for Failure {
    fn from(error: DeadLetterError) -> Self {
        Self::Later(error.to_string())
    }
}

const EXTENSION: &str = "frame";

impl DeadLetters {
    pub fn open(folder: PathBuf, max_bytes: u64) -> Result<Self, DeadLetterError> {
        Self::open_on(DurableFiles::default(), folder, max_bytes)
    }

    pub(crate) fn open_on(
        files: DurableFiles,
        folder: PathBuf,
        max_bytes: u64,
    ) -> Result<Self, DeadLetterError> {
        let made = files.0.create_dir(&folder).and_then(|_| {
            let parent = folder.parent().filter(|path| !path.as_os_str().is_empty());
            parent.map_or(Ok(()), |parent| files.0.sync_dir(parent))
        });
        made.map_err(|error| DeadLetterError::Io(folder.clone(), error))?;
        Ok(Self {
            files,
            folder,
            max_bytes,
            bytes: Arc::default(),
        })
    }

    /// Writes an item. An item with the same id is replaced.
    pub(crate) fn keep(&self, item: &DeadLetter, frame: &[u8]) -> Result<(), DeadLetterError> {
        let path = self.path(&item.id);
        let mut file = serde_json::to_vec(item)
            .map_err(|error| DeadLetterError::Damaged(path.clone(), error.to_string()))?;
        file.push(b'\n');
        file.extend_from_slice(frame);
        self.take_room(file.len() as u64)?;
        self.files
            .replace(&path, &file)
            .map_err(|error| DeadLetterError::Io(path, error))
    }

    /// Takes room for an item. Measures the folder only if there seems to be no room, because a range may have thousands of items.
    ///
    /// The known size is never too small: only the writer adds items, and other processes only delete them.
    fn take_room(&self, bytes: u64) -> Result<(), DeadLetterError> {
        let mut known = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let has_room = |held: u64| held.saturating_add(bytes) <= self.max_bytes;
        let held = match *known {
            Some(held) if has_room(held) => held,
            _ => self.measured()?,
        };
        if !has_room(held) {
            *known = Some(held);
            return Err(DeadLetterError::Full(self.folder.clone()));
        }
        *known = Some(held + bytes);
        Ok(())
    }

    /// Finds an item and makes its name durable: the process may have died, or the disk may have failed, between writing and syncing it.
    pub(crate) fn find(&self, id: &str) -> Result<Option<DeadLetter>, DeadLetterError> {
        match self.read(&self.path(id)) {
            Ok((item, _)) => {
                let synced = self.files.0.sync_dir(&self.folder);
                synced.map_err(|error| DeadLetterError::Io(self.folder.clone(), error))?;
                Ok(Some(item))
            }
            Err(DeadLetterError::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Deletes an item.
    pub(super) fn forget(&self, id: &str) -> Result<(), DeadLetterError> {
        let path = self.path(id);
        self.files
            .remove(&path)
            .map(drop)
            .map_err(|error| DeadLetterError::Io(path, error))
    }

    /// Returns the size of all items in bytes.
    fn measured(&self) -> Result<u64, DeadLetterError> {
        let failed = |error| DeadLetterError::Io(self.folder.clone(), error);
        let mut bytes = 0;
        for path in self.paths()? {
            bytes += self.files.0.len(&path).map_err(failed)?;
        }
        Ok(bytes)
    }

    /// Returns the items that can be read, sorted by id, and why others cannot.
    pub fn list(&self) -> Result<(Vec<DeadLetter>, Vec<DeadLetterError>), DeadLetterError> {
        let mut items = Vec::new();
        let mut unreadable = Vec::new();
        for path in self.paths()? {
            match self.read(&path) {
                Ok((item, _)) => items.push(item),
                // It was retried or dropped meanwhile.
                Err(DeadLetterError::Io(_, error)) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => unreadable.push(error),
            }
        }
        items.sort_by(|one: &DeadLetter, other| one.id.cmp(&other.id));
        Ok((items, unreadable))
    }

    fn paths(&self) -> Result<impl Iterator<Item = PathBuf>, DeadLetterError> {
        let files = self.files.0.files(&self.folder);
        let files = files.map_err(|error| DeadLetterError::Io(self.folder.clone(), error))?;
        let is_item = |path: &PathBuf| path.extension().is_some_and(|kind| kind == EXTENSION);
        Ok(files.into_iter().filter(is_item))
    }

    fn read(&self, path: &Path) -> Result<(DeadLetter, Vec<u8>), DeadLetterError> {
        let damaged = |error: &str| DeadLetterError::Damaged(path.to_owned(), error.to_owned());
        let bytes = self.files.read(path);
        let mut line = bytes.map_err(|error| DeadLetterError::Io(path.to_owned(), error))?;
        let end = line.iter().position(|byte| *byte == b'\n');
        let frame = line.split_off(end.ok_or_else(|| damaged("the header line is missing"))? + 1);
        let item = serde_json::from_slice(&line).map_err(|error| damaged(&error.to_string()))?;
        Ok((item, frame))
    }

    /// Reads the item that an operator named.
    fn read_named(&self, id: &str) -> Result<(DeadLetter, Vec<u8>), DeadLetterError> {
        let unknown = || DeadLetterError::Unknown(id.to_owned());
        // An id is the name of a file of this folder.
        if id.contains(['/', '\\']) {
            return Err(unknown());
        }
        self.read(&self.path(id)).map_err(|error| match error {
            DeadLetterError::Io(_, error) if error.kind() == io::ErrorKind::NotFound => unknown(),
            other => other,
        })
    }

    /// Sends an item again. If this succeeds, its rows are stored, rolled up and counted, and the item is deleted. An interrupted retry can be
    /// repeated.
    pub(crate) async fn retry(
        &self,
        id: &str,
        destination: &impl Destination,
    ) -> Result<DeadLetter, DeadLetterError> {
        let (item, bytes) = self.read_named(id)?;
        let frame = Frame::read(&bytes).map_err(Failure::from)?;
        item.send(frame, destination).await?;
        self.forget(id)?;
        Ok(item)
    }

    /// Drops an item: its events count as rejected. `ledger` is the file of the server that has the item.
    ///
    /// Fails while the range of the rows is unfinished: the next attempt at the range would miss the item and send its rows again.
    pub(crate) async fn drop_item(
        &self,
        id: &str,
        ledger: &Path,
        destination: &impl Destination,
    ) -> Result<DeadLetter, DeadLetterError> {
        let (item, _) = self.read_named(id)?;
        // The ledger has a range before the range has items, so an item whose range it lacks is of a finished one, except after a restore.
        let is_sent = Ledger::is_sending(&self.files, ledger, item.number.range())
            .map_err(|error| DeadLetterError::Io(ledger.to_owned(), error))?;
        if is_sent {
            return Err(DeadLetterError::Unfinished);
        }
        item.recount(Outcome::Rejected, "dropped_by_operator", destination)
            .await?;
        self.forget(id)?;
        Ok(item)
    }

    /// Deletes the items of a project, or only the items of some of its installs and users. Their events count as erased.
    pub async fn erase(
        &self,
        project: &str,
        whose: Option<&ErasureScope>,
        destination: &ClickHouse,
    ) -> Result<u64, DeadLetterError> {
        let mut erased = 0;
        for path in self.paths()? {
            let (item, bytes) = match self.read(&path) {
                Ok(read) => read,
                Err(error) => {
                    tracing::warn!(%error, "cannot read this dead letter, so it is not erased");
                    continue;
                }
            };
            if item.project != project || !is_of(&item, &bytes, whose)? {
                continue;
            }
            item.recount(Outcome::Erased, "", destination).await?;
            self.forget(&item.id)?;
            erased += 1;
        }
        Ok(erased)
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.{EXTENSION}"))
    }
}

fn is_of(item: &DeadLetter, frame: &[u8], whose: Option<&ErasureScope>) -> Result<bool, Failure> {
    let Some(whose) = whose else {
        return Ok(true);
    };
    Ok(whose.has(&Frame::read(frame)?, item.received_at)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deleted_items_make_room_and_a_restart_counts_the_others() {
        let data = tempfile::tempdir().unwrap();
        let open = || DeadLetters::open(data.path().join("dead-letter"), 1_000).unwrap();
        let keep = |letters: &DeadLetters, id: &str| {
            let item = DeadLetter {
                id: id.to_owned(),
                ..DeadLetter::default()
            };
            match letters.keep(&item, &[0; 600]) {
                Ok(()) => true,
                Err(DeadLetterError::Full(_)) => false,
                Err(error) => panic!("{error}"),
            }
        };
        let letters = open();
        assert!(keep(&letters, "one"));
        assert!(!keep(&letters, "two"));
        // The operator's command opens the folder for itself.
        open().forget("one").unwrap();
        assert!(keep(&letters, "two"));
        assert!(!keep(&letters, "three"));
        let restarted = open();
        assert!(!keep(&restarted, "three"));
        restarted.forget("two").unwrap();
        assert!(keep(&restarted, "three"));
        // A damaged item does not hide the others.
        std::fs::write(data.path().join("dead-letter/bad.frame"), "no line").unwrap();
        let (items, unreadable) = restarted.list().unwrap();
        assert_eq!((items.len(), unreadable.len()), (1, 1));
        let text = unreadable[0].to_string();
        assert!(
            text.contains("bad.frame is damaged") && text.contains("move it"),
            "{text}"
        );
    }
}
