//! A record of the ingest log: the data of one request, or of one flush of the outcome counters.
//!
//! ```text
//! version u8, project (u8 length + bytes), batch id 16 bytes (zero: no batch), received_at i64,
//! split_from u8 × 16 bytes (since version 2),
//! outcomes u16 × (signal u8 length + bytes, outcome likewise, reason likewise, count u32),
//! frames u16 × (len u32, frame as in `columns`)
//! ```

use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::columns::{FrameBuilder, Kind, uuid_bytes};
use super::native::{BadFrame, Cursor, Frame};

const VERSION: u8 = 2;
/// Version 1 does not record the batches that a batch was split from.
const WITHOUT_SPLITS: u8 = 1;

/// The outcome of events. Every event has exactly one, apart from [`Limited`](Self::Limited) and
/// [`Scrubbed`](Self::Scrubbed).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    Stored,
    Rejected,
    Duplicate,
    /// ClickHouse refused the event, which waits in the dead-letter folder.
    DeadLetter,
    /// Stored under the name `(other)`, because there were too many distinct names. Also counted as stored.
    Limited,
    /// Stored without the personal data or secrets of a text. Also counted as stored. Counts texts, not events.
    Scrubbed,
    /// Erased on request, after it was stored or had waited in the dead-letter folder.
    Erased,
}

impl Outcome {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Rejected => "rejected",
            Self::Duplicate => "duplicate",
            Self::DeadLetter => "dead_letter",
            Self::Limited => "limited",
            Self::Scrubbed => "scrubbed",
            Self::Erased => "erased",
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        [
            Self::Stored,
            Self::Rejected,
            Self::Duplicate,
            Self::DeadLetter,
            Self::Limited,
            Self::Scrubbed,
            Self::Erased,
        ]
        .into_iter()
        .find(|one| one.as_str() == name)
    }
}

/// A count of events of one signal with one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count<'r> {
    pub signal: &'r str,
    pub outcome: Outcome,
    /// Empty for stored events.
    pub reason: &'r str,
    pub events: u32,
}

/// Builds a record.
pub struct RecordBuilder {
    bytes: Vec<u8>,
    outcomes_at: usize,
    outcomes: u16,
    frames_at: usize,
    frames: u16,
    splits: Option<FrameBuilder>,
}

impl RecordBuilder {
    /// `split_from` lists the batches that the batch was split from.
    pub fn new(project: &str, batch_id: Uuid, split_from: &[Uuid], received_at: UnixTime) -> Self {
        let mut bytes = Vec::with_capacity(8 * 1024);
        bytes.push(VERSION);
        put_name(&mut bytes, project);
        bytes.extend_from_slice(batch_id.as_bytes());
        bytes.extend_from_slice(&received_at.to_le_bytes());
        let split_from = split_from.get(..usize::from(u8::MAX)).unwrap_or(split_from);
        bytes.push(split_from.len() as u8);
        split_from
            .iter()
            .for_each(|id| bytes.extend_from_slice(id.as_bytes()));
        let splits = !split_from.is_empty();
        let splits = splits.then(|| split_rows(project, split_from, received_at));
        let outcomes_at = bytes.len();
        bytes.extend_from_slice(&[0, 0]);
        Self {
            bytes,
            outcomes_at,
            outcomes: 0,
            frames_at: 0,
            frames: 0,
            splits,
        }
    }

    /// Adds a count. Call it before the first frame.
    pub fn count(&mut self, count: Count<'_>) {
        debug_assert_eq!(self.frames_at, 0, "counts come before frames");
        if count.events == 0 {
            return;
        }
        self.outcomes += 1;
        put_name(&mut self.bytes, count.signal);
        put_name(&mut self.bytes, count.outcome.as_str());
        put_name(&mut self.bytes, count.reason);
        self.bytes.extend_from_slice(&count.events.to_le_bytes());
    }

    pub fn frame(&mut self, frame: FrameBuilder) {
        if self.frames_at == 0 {
            self.frames_at = self.bytes.len();
            self.bytes.extend_from_slice(&[0, 0]);
        }
        self.frames += 1;
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        frame.finish(&mut self.bytes);
        let len = (self.bytes.len() - at - 4) as u32;
        self.bytes[at..at + 4].copy_from_slice(&len.to_le_bytes());
    }

    pub fn finish(mut self) -> Vec<u8> {
        if let Some(splits) = self.splits.take() {
            self.frame(splits);
        }
        if self.frames_at == 0 {
            self.frames_at = self.bytes.len();
            self.bytes.extend_from_slice(&[0, 0]);
        }
        self.bytes[self.outcomes_at..self.outcomes_at + 2]
            .copy_from_slice(&self.outcomes.to_le_bytes());
        self.bytes[self.frames_at..self.frames_at + 2].copy_from_slice(&self.frames.to_le_bytes());
        self.bytes
    }
}

/// Lists the batches of which the record has a part.
fn split_rows(project: &str, split_from: &[Uuid], received_at: UnixTime) -> FrameBuilder {
    let mut frame = FrameBuilder::new("split_batches", split_from.len());
    frame.same_text(Kind::Sym, "project", project);
    let ids = split_from.iter().map(|id| uuid_bytes(id.as_u128()));
    frame.fixed(Kind::Uuid, "batch_id", ids);
    frame.same(Kind::Micros, "received_at", received_at.to_le_bytes());
    frame
}

fn put_name(bytes: &mut Vec<u8>, name: &str) {
    debug_assert!(name.len() < 256, "projects, signals and reasons are short");
    bytes.push(name.len() as u8);
    bytes.extend_from_slice(name.as_bytes());
}

/// A record, read.
pub struct Record<'r> {
    pub project: &'r str,
    pub batch_id: Uuid,
    split_from: &'r [u8],
    pub received_at: UnixTime,
    pub outcomes: Vec<Count<'r>>,
    pub frames: Vec<Frame<'r>>,
}

impl<'r> Record<'r> {
    /// Whether a newer server wrote it.
    pub fn is_of_a_later_version(bytes: &[u8]) -> bool {
        bytes.first().is_some_and(|version| *version > VERSION)
    }

    /// When the server received the batch.
    pub(crate) fn received_at(bytes: &[u8]) -> Option<UnixTime> {
        let mut cursor = Cursor(bytes);
        let (_version, _project) = (cursor.u8().ok()?, cursor.name().ok()?);
        let _batch_id = cursor.take(size_of::<Uuid>()).ok()?;
        Some(UnixTime::from_micros(i64::from_le_bytes(
            cursor.array().ok()?,
        )))
    }

    pub fn read(bytes: &'r [u8]) -> Result<Self, BadFrame> {
        let mut cursor = Cursor(bytes);
        let version = cursor.u8()?;
        if version != VERSION && version != WITHOUT_SPLITS {
            return Err(BadFrame(
                "a record of a later version: run the version of unjank that wrote it",
            ));
        }
        let project = cursor.name()?;
        let batch_id = Uuid::from_bytes(cursor.array()?);
        let received_at = UnixTime::from_micros(i64::from_le_bytes(cursor.array()?));
        let splits = if version == WITHOUT_SPLITS {
            0
        } else {
            cursor.u8()?
        };
        let split_from = cursor.take(usize::from(splits) * size_of::<Uuid>())?;
        let mut outcomes = Vec::new();
        for _ in 0..cursor.u16()? {
            let signal = cursor.name()?;
            let outcome =
                Outcome::from_name(cursor.name()?).ok_or(BadFrame("an unknown outcome"))?;
            let reason = cursor.name()?;
            let events = u32::from_le_bytes(cursor.array()?);
            outcomes.push(Count {
                signal,
                outcome,
                reason,
                events,
            });
        }
        let mut frames = Vec::new();
        for _ in 0..cursor.u16()? {
            frames.push(Frame::read(cursor.sized()?)?);
        }
        Ok(Self {
            project,
            batch_id,
            split_from,
            received_at,
            outcomes,
            frames,
        })
    }

    /// The ids under which the events may have arrived before.
    pub fn batches(&self) -> impl Iterator<Item = Uuid> {
        let split_from = self
            .split_from
            .as_chunks()
            .0
            .iter()
            .copied()
            .map(Uuid::from_bytes);
        std::iter::once(self.batch_id).chain(split_from)
    }

    pub fn rows(&self) -> usize {
        self.frames.iter().map(|frame| frame.rows).sum()
    }
}
