//! Rows that ClickHouse refuses for their content: kept on disk with the error until a person decides.
//!
//! One file an item: a line of JSON, then the frame. Files are named by record and table, so that a replay after a crash
//! writes the same item again instead of a second one.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use unjank_protocol::Signal;

use super::clickhouse::{ClickHouse, Failure};
use super::columns::{FrameBuilder, Kind};
use super::native::{Block, Frame};
use super::range::{replace_durably, sync_folder};
use super::record::Outcome;

/// What is known of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadLetter {
    pub id: String,
    pub table: String,
    pub project: String,
    pub rows: usize,
    /// Microseconds since the epoch.
    pub received_at: i64,
    pub error: String,
    /// The deduplication token the rows were first sent with: a retry uses the same.
    pub token: String,
}

/// The folder of items.
#[derive(Clone, Debug)]
pub struct DeadLetters {
    folder: PathBuf,
    max_bytes: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum DeadLetterError {
    #[error(
        "the dead-letter folder {0} has reached its limit: run `unjank dead-letter list`, then retry or drop items"
    )]
    Full(PathBuf),
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    #[error("{0} does not read: {1}")]
    Damaged(PathBuf, String),
    #[error(transparent)]
    Refused(#[from] Failure),
}

const EXTENSION: &str = "frame";

impl DeadLetters {
    pub fn open(folder: PathBuf, max_bytes: u64) -> Result<Self, DeadLetterError> {
        fs::create_dir_all(&folder).map_err(|error| DeadLetterError::Io(folder.clone(), error))?;
        Ok(Self { folder, max_bytes })
    }

    /// Keeps an item. The same item again replaces itself.
    pub(super) fn keep(&self, item: &DeadLetter, frame: &[u8]) -> Result<(), DeadLetterError> {
        let (_, bytes) = self.size()?;
        if bytes.saturating_add(frame.len() as u64) > self.max_bytes {
            return Err(DeadLetterError::Full(self.folder.clone()));
        }
        let path = self.path(&item.id);
        let mut file = serde_json::to_vec(item)
            .map_err(|error| DeadLetterError::Damaged(path.clone(), error.to_string()))?;
        file.push(b'\n');
        file.extend_from_slice(frame);
        replace_durably(&path, &file).map_err(|error| DeadLetterError::Io(path, error))
    }

    /// The rows went in after all.
    pub(super) fn forget(&self, id: &str) -> Result<(), DeadLetterError> {
        let path = self.path(id);
        match fs::remove_file(&path) {
            Ok(()) => sync_folder(&path).map_err(|error| DeadLetterError::Io(path, error)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(DeadLetterError::Io(path, error)),
        }
    }

    /// Items and bytes kept.
    pub fn size(&self) -> Result<(usize, u64), DeadLetterError> {
        let failed = |error| DeadLetterError::Io(self.folder.clone(), error);
        let mut size = (0, 0);
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry
                .path()
                .extension()
                .is_some_and(|extension| extension == EXTENSION)
            {
                size.0 += 1;
                size.1 += entry.metadata().map_err(failed)?.len();
            }
        }
        Ok(size)
    }

    /// All items, in order of id.
    pub fn list(&self) -> Result<Vec<DeadLetter>, DeadLetterError> {
        let failed = |error| DeadLetterError::Io(self.folder.clone(), error);
        let mut items = Vec::new();
        for entry in fs::read_dir(&self.folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path
                .extension()
                .is_some_and(|extension| extension == EXTENSION)
            {
                items.push(read(&path)?.0);
            }
        }
        items.sort_by(|one: &DeadLetter, other| one.id.cmp(&other.id));
        Ok(items)
    }

    /// Sends an item again, with the token it was first sent with. On success it is stored and gone from here.
    pub async fn retry(
        &self,
        id: &str,
        clickhouse: &ClickHouse,
    ) -> Result<DeadLetter, DeadLetterError> {
        let (item, bytes) = read(&self.path(id))?;
        let frame = Frame::read(&bytes).map_err(Failure::from)?;
        let block = Block::join(&[frame]).map_err(Failure::from)?;
        clickhouse.insert(&item.table, block, &item.token).await?;
        self.recount(&item, Outcome::Stored, "", clickhouse).await?;
        self.forget(id)?;
        Ok(item)
    }

    /// Gives an item up: its events count as rejected.
    pub async fn drop_item(
        &self,
        id: &str,
        clickhouse: &ClickHouse,
    ) -> Result<DeadLetter, DeadLetterError> {
        let (item, _) = read(&self.path(id))?;
        self.recount(&item, Outcome::Rejected, "dropped_by_operator", clickhouse)
            .await?;
        self.forget(id)?;
        Ok(item)
    }

    /// Takes the events out of `dead_letter` and counts them as what they became.
    async fn recount(
        &self,
        item: &DeadLetter,
        outcome: Outcome,
        reason: &str,
        clickhouse: &ClickHouse,
    ) -> Result<(), Failure> {
        if Signal::from_name(&item.table) == Signal::Other {
            // It was never counted: these rows are no events.
            return Ok(());
        }
        let rows = i64::try_from(item.rows).unwrap_or(i64::MAX);
        let counts = [
            (Outcome::DeadLetter, "refused_by_store", -rows),
            (outcome, reason, rows),
        ];
        let mut frame = FrameBuilder::new("outcomes", counts.len());
        frame.same(
            Kind::DateTime,
            "hour",
            hour_of(item.received_at).to_le_bytes(),
        );
        frame.same_text(Kind::Sym, "project", &item.project);
        frame.same_text(Kind::Sym, "signal", &item.table);
        frame.symbols(
            "outcome",
            counts.iter().map(|(outcome, _, _)| outcome.as_str()),
        );
        frame.symbols("reason", counts.iter().map(|(_, reason, _)| *reason));
        frame.fixed(
            Kind::I64,
            "count",
            counts.iter().map(|(_, _, events)| events.to_le_bytes()),
        );
        let mut bytes = Vec::new();
        frame.finish(&mut bytes);
        let block = Block::join(&[Frame::read(&bytes)?])?;
        clickhouse
            .insert(
                "outcomes",
                block,
                &format!("{}:{}", item.token, outcome.as_str()),
            )
            .await
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.{EXTENSION}"))
    }
}

/// The hour a time falls in, in seconds since the epoch: ClickHouse's `DateTime`.
pub(super) fn hour_of(micros: i64) -> u32 {
    let seconds = micros.div_euclid(3_600_000_000).saturating_mul(3_600);
    u32::try_from(seconds).unwrap_or_default()
}

fn read(path: &PathBuf) -> Result<(DeadLetter, Vec<u8>), DeadLetterError> {
    let failed = |error| DeadLetterError::Io(path.clone(), error);
    let mut reader = BufReader::new(File::open(path).map_err(failed)?);
    let mut line = Vec::new();
    reader.read_until(b'\n', &mut line).map_err(failed)?;
    let item = serde_json::from_slice(&line)
        .map_err(|error| DeadLetterError::Damaged(path.clone(), error.to_string()))?;
    let mut frame = Vec::new();
    reader.read_to_end(&mut frame).map_err(failed)?;
    Ok((item, frame))
}
