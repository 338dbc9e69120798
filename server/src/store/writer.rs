//! Drains the ingest log into ClickHouse: a range at a time, one INSERT per table, exactly once.
//!
//! A range is cut and written down before it is sent, see [`super::range`]. Each INSERT carries a token made of the log's
//! name, the range and the table; ClickHouse drops what it has seen. Counts of outcomes go last, when it is known what
//! became of each row.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::clickhouse::{ClickHouse, Failure};
use super::dead_letter::{DeadLetter, DeadLetters};
use super::fold::{self, Fold};
use super::log::{IngestLog, LogRecords};
use super::native::{Block, Frame};
use super::range::{Drain, Range};
use super::record::Record;
use super::tally::Tally;
use crate::fingerprint::fingerprint;
use crate::metrics::WriterMetrics;

#[derive(Clone, Debug)]
pub struct WriterSettings {
    /// How long records wait for company before they are sent.
    pub flush_interval: Duration,
    /// A range ends when it has this many bytes of the log …
    pub range_bytes: usize,
    /// … and is sent at once when this many are waiting.
    pub eager_bytes: u64,
    /// `drain.json`.
    pub state: PathBuf,
}

pub struct Writer {
    log: IngestLog,
    clickhouse: ClickHouse,
    dead_letters: DeadLetters,
    settings: WriterSettings,
    metrics: WriterMetrics,
    drain: Drain,
    /// When the fold is to be rolled up, if it is not full before …
    fold_at: Instant,
    /// … and nothing comes any more.
    quiet_at: Instant,
}

/// What there is to do.
enum Next {
    Range,
    Fold,
    End,
}

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

impl Writer {
    pub fn open(
        log: IngestLog,
        clickhouse: ClickHouse,
        dead_letters: DeadLetters,
        settings: WriterSettings,
        metrics: WriterMetrics,
    ) -> std::io::Result<Self> {
        let drain = Drain::load(&settings.state)?;
        log.resume_at(drain.done);
        set_unfolded(&metrics, drain.fold);
        Ok(Self {
            log,
            clickhouse,
            dead_letters,
            settings,
            metrics,
            drain,
            fold_at: Instant::now(),
            quiet_at: Instant::now(),
        })
    }

    /// Drains until `shutdown`, then what is left without waiting for more, until `give_up`.
    pub async fn run(mut self, shutdown: CancellationToken, give_up: CancellationToken) {
        let mut pause = FIRST_PAUSE;
        loop {
            let next = self.next(&shutdown).await;
            let attempt = async {
                match next {
                    Next::Range => self.drain_one_range().await,
                    Next::Fold => self.roll_up().await,
                    Next::End => Ok(()),
                }
            };
            let done = tokio::select! {
                biased;
                () = give_up.cancelled() => return,
                done = attempt => done,
            };
            match (next, done) {
                (Next::End, _) => return,
                (_, Ok(())) => pause = FIRST_PAUSE,
                (_, Err(failure)) => {
                    self.metrics.failures.inc();
                    tracing::warn!(%failure, retry_in_ms = pause.as_millis(), "the ingest log is not drained; events are kept");
                    tokio::select! {
                        () = give_up.cancelled() => return,
                        () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                    }
                }
            }
        }
    }

    /// Waits until there is something to do. What is on its way goes first; with `shutdown`, all that is left goes at once.
    async fn next(&self, shutdown: &CancellationToken) -> Next {
        let mut durable = self.log.durable();
        if self.drain.range.is_some() {
            return Next::Range;
        }
        let last = if self.drain.fold.is_some() {
            Next::Fold
        } else {
            Next::End
        };
        loop {
            if self.fold_is_due(self.fold_at) {
                return Next::Fold;
            }
            if *durable.borrow_and_update() > self.drain.done {
                break;
            }
            if self.fold_is_due(self.quiet_at) {
                return Next::Fold;
            }
            tokio::select! {
                () = shutdown.cancelled() => {
                    let more = *durable.borrow() > self.drain.done;
                    return if more { Next::Range } else { last };
                }
                () = sleep_until(self.fold_at.min(self.quiet_at)), if self.drain.fold.is_some() => {}
                changed = durable.changed() => if changed.is_err() { return last; },
            }
        }
        if self.log.pending_bytes() < self.settings.eager_bytes {
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = self.enough_waits() => {}
                () = sleep(self.settings.flush_interval) => {}
            }
        }
        Next::Range
    }

    fn fold_is_due(&self, at: Instant) -> bool {
        let fold = self.drain.fold;
        fold.is_some_and(|fold| fold.is_full() || at <= Instant::now())
    }

    /// Closes the fold and rolls it up. When that fails, ranges go on without it until it is tried again.
    async fn roll_up(&mut self) -> Result<(), Failure> {
        let Some(fold) = &mut self.drain.fold else {
            return Ok(());
        };
        fold.closed = true;
        let fold = *fold;
        (self.fold_at, self.quiet_at) = (later(fold::OLD), later(fold::OLD));
        self.save(&self.drain).await?;
        let began = Instant::now();
        self.clickhouse.roll_up(fold, self.drain.log_id).await?;
        let took = began.elapsed().as_secs_f64();
        self.metrics.fold_seconds.observe(took);
        self.drain.fold = None;
        set_unfolded(&self.metrics, None);
        self.save(&self.drain).await
    }

    async fn enough_waits(&self) {
        let mut durable = self.log.durable();
        while self.log.pending_bytes() < self.settings.eager_bytes
            && durable.changed().await.is_ok()
        {}
    }

    async fn drain_one_range(&mut self) -> Result<(), Failure> {
        let (range, records) = match self.drain.range.clone() {
            Some(range) => {
                let records = self.read(range.first, usize::MAX, range.last).await?;
                (range, records)
            }
            None => self.cut().await?,
        };
        let rows = self.send(&range, &records).await?;
        self.drain.done = range.last;
        self.drain.range = None;
        self.save(&self.drain).await?;
        self.log.drained(range.last, &records);
        self.metrics.rows.inc_by(rows);
        self.metrics.ranges.inc();
        Ok(())
    }

    /// Cuts the next range and writes it down.
    async fn cut(&mut self) -> Result<(Range, LogRecords), Failure> {
        let first = self.drain.done + 1;
        let durable = *self.log.durable().borrow();
        let records = self
            .read(first, self.settings.range_bytes, u64::MAX)
            .await?;
        let mut range = Range {
            first,
            // When nothing reads, there is damage at the end of what was durable: skip to where the log goes on.
            last: durable,
            duplicates: Vec::new(),
            one_by_one: Vec::new(),
            fold: None,
        };
        let Some(last) = records.last_seq() else {
            return Ok((range, records));
        };
        range.last = last;
        let parsed: Vec<_> = records
            .iter()
            .filter_map(|(seq, bytes)| Some((seq, Record::read(bytes).ok()?)))
            .filter(|(_, record)| !record.frames.is_empty())
            .collect();
        range.duplicates = self.duplicates(&parsed).await?;
        let rows = parsed.iter().map(|(_, record)| record.rows()).sum();
        let received_at = parsed.last().map_or(0, |(_, record)| record.received_at);
        if self.drain.fold.is_none() {
            self.fold_at = later(fold::OLD);
        }
        self.quiet_at = self.quiet_at.max(later(fold::QUIET));
        // Nothing is sent that is not written down: it counts once it is.
        let mut next = self.drain.clone();
        range.fold = next.join_fold(rows, received_at);
        next.range = Some(range.clone());
        self.save(&next).await?;
        set_unfolded(&self.metrics, next.fold);
        self.drain = next;
        Ok((range, records))
    }

    /// Records whose batch is stored already, or stands earlier in the same range.
    async fn duplicates(&self, records: &[(u64, Record<'_>)]) -> Result<Vec<u64>, Failure> {
        let mut ids: HashMap<&str, Vec<Uuid>> = HashMap::new();
        for (_, record) in records {
            ids.entry(record.project).or_default().push(record.batch_id);
        }
        let mut taken: HashSet<(&str, Uuid)> = HashSet::new();
        for (project, ids) in ids {
            let stored = self.clickhouse.stored_batches(project, &ids).await?;
            taken.extend(stored.into_iter().map(|id| (project, id)));
        }
        Ok(records
            .iter()
            .filter(|(_, record)| !taken.insert((record.project, record.batch_id)))
            .map(|(seq, _)| *seq)
            .collect())
    }

    /// Sends every table of the range, then the counts. Answers how many rows went in.
    async fn send(&mut self, range: &Range, records: &LogRecords) -> Result<u64, Failure> {
        let mut tally = Tally::default();
        let mut tables: BTreeMap<&[u8], Vec<Sent<'_>>> = BTreeMap::new();
        let duplicates: HashSet<u64> = range.duplicates.iter().copied().collect();
        for (seq, bytes) in records.iter() {
            let record = match Record::read(bytes) {
                Ok(record) => record,
                Err(error) => {
                    self.keep_unreadable(seq, bytes, &error.to_string())?;
                    continue;
                }
            };
            let duplicate = duplicates.contains(&seq);
            tally.add_record(&record, duplicate);
            let Record {
                project,
                received_at,
                frames,
                ..
            } = record;
            for frame in frames.into_iter().filter(|_| !duplicate) {
                let sent = Sent {
                    seq,
                    frame,
                    project,
                    received_at,
                };
                tables.entry(frame.key()).or_default().push(sent);
            }
        }
        let mut rows = 0;
        // `batches` last: when a batch is found there, its events are in.
        let (batches, signals): (Vec<_>, Vec<_>) = tables
            .values()
            .partition(|sent| sent.first().is_some_and(Sent::is_batches));
        for sent in signals.into_iter().chain(batches) {
            rows += self.send_table(range, sent, &mut tally).await?;
        }
        self.send_tally(range, &tally).await?;
        Ok(rows)
    }

    async fn send_table(
        &mut self,
        range: &Range,
        sent: &[Sent<'_>],
        tally: &mut Tally,
    ) -> Result<u64, Failure> {
        let Some(Sent { frame, .. }) = sent.first() else {
            return Ok(0);
        };
        let table = frame.table;
        let layout = layout(frame);
        if !range.one_by_one.contains(&layout) {
            let frames: Vec<_> = sent.iter().map(|sent| sent.frame).collect();
            let block = in_fold(Block::join(&frames)?, table, range.fold);
            let rows = block.rows() as u64;
            let token = self.token(&format!("{}-{}", range.first, range.last), frame);
            let timer = self
                .metrics
                .insert_seconds
                .with_label_values(&[table])
                .start_timer();
            let inserted = self.clickhouse.insert(table, block, &token).await;
            timer.observe_duration();
            match inserted {
                Ok(()) => return Ok(rows),
                Err(Failure::Content(error)) => {
                    tracing::warn!(
                        table,
                        error,
                        "ClickHouse refused a block for its content: its rows go record by record"
                    );
                    let mut next = self.drain.clone();
                    let refused = next.range.as_mut().map(|range| &mut range.one_by_one);
                    refused.into_iter().for_each(|all| all.push(layout.clone()));
                    self.save(&next).await?;
                    self.drain = next;
                }
                Err(later) => return Err(later),
            }
        }
        let mut rows = 0;
        for sent in sent {
            rows += self.send_alone(sent, range.fold, tally).await?;
        }
        Ok(rows)
    }

    /// One record's rows of one table; what is refused goes to the dead-letter folder.
    async fn send_alone(
        &self,
        sent: &Sent<'_>,
        fold: Option<u64>,
        tally: &mut Tally,
    ) -> Result<u64, Failure> {
        let Sent {
            seq,
            frame,
            project,
            received_at,
        } = *sent;
        let token = self.token(&seq.to_string(), &frame);
        let id = format!("{}-{seq:016x}-{}", self.drain.log_id, frame.table);
        let block = in_fold(Block::join(&[frame])?, frame.table, fold);
        match self.clickhouse.insert(frame.table, block, &token).await {
            Ok(()) => {
                self.dead_letters
                    .forget(&id)
                    .map_err(|error| Failure::Later(error.to_string()))?;
                Ok(frame.rows as u64)
            }
            Err(Failure::Content(error)) => {
                tracing::error!(
                    table = frame.table,
                    project,
                    rows = frame.rows,
                    error,
                    id,
                    "rows went to the dead-letter folder"
                );
                self.metrics.dead_letter_rows.inc_by(frame.rows as u64);
                let item = DeadLetter {
                    id,
                    table: frame.table.to_owned(),
                    project: project.to_owned(),
                    rows: frame.rows,
                    received_at,
                    error,
                    token,
                };
                self.dead_letters
                    .keep(&item, frame.bytes())
                    .map_err(|error| Failure::Later(error.to_string()))?;
                tally.move_to_dead_letter(&item);
                Ok(0)
            }
            Err(later) => Err(later),
        }
    }

    fn keep_unreadable(&self, seq: u64, bytes: &[u8], error: &str) -> Result<(), Failure> {
        tracing::error!(
            seq,
            error,
            "a record of the ingest log does not read: it went to the dead-letter folder"
        );
        let item = DeadLetter {
            id: format!("{}-{seq:016x}-record", self.drain.log_id),
            table: String::new(),
            project: String::new(),
            rows: 0,
            received_at: 0,
            error: error.to_owned(),
            token: String::new(),
        };
        self.dead_letters
            .keep(&item, bytes)
            .map_err(|error| Failure::Later(error.to_string()))
    }

    async fn send_tally(&self, range: &Range, tally: &Tally) -> Result<(), Failure> {
        let Some(bytes) = tally.frame() else {
            return Ok(());
        };
        let frame = Frame::read(&bytes)?;
        let token = self.token(&format!("{}-{}", range.first, range.last), &frame);
        self.clickhouse
            .insert("outcomes", Block::join(&[frame])?, &token)
            .await
    }

    /// The same rows always get the same token, and no others ever do.
    fn token(&self, what: &str, frame: &Frame<'_>) -> String {
        format!("{}:{what}:{}", self.drain.log_id, layout(frame))
    }

    async fn read(&self, first: u64, bytes: usize, last: u64) -> Result<LogRecords, Failure> {
        self.log
            .read(first, bytes, last)
            .await
            .map_err(|error| Failure::Later(format!("the ingest log does not read: {error}")))
    }

    async fn save(&self, drain: &Drain) -> Result<(), Failure> {
        let (drain, path) = (drain.clone(), self.settings.state.clone());
        let saved = tokio::task::spawn_blocking(move || drain.save(&path)).await;
        match saved {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(Failure::Later(format!(
                "{}: {error}",
                self.settings.state.display()
            ))),
            Err(error) => Err(Failure::Later(error.to_string())),
        }
    }
}

/// A table, and which of its columns in which order.
fn layout(frame: &Frame<'_>) -> String {
    format!("{}:{:016x}", frame.table, fingerprint(&[frame.key()]))
}

/// The block, told which fold its rows are rolled up with.
fn in_fold<'f>(block: Block<'f>, table: &str, fold: Option<u64>) -> Block<'f> {
    match fold {
        Some(number) if fold::is_folded(table) => block.numbered("fold", number),
        _ => block,
    }
}

fn later(by: Duration) -> Instant {
    Instant::now() + by
}

fn set_unfolded(metrics: &WriterMetrics, fold: Option<Fold>) {
    let rows = fold.map_or(0, |fold| fold.rows);
    metrics
        .unfolded_rows
        .set(i64::try_from(rows).unwrap_or(i64::MAX));
}

/// A frame and whose it is.
#[derive(Clone, Copy)]
struct Sent<'r> {
    seq: u64,
    frame: Frame<'r>,
    project: &'r str,
    received_at: i64,
}

impl Sent<'_> {
    fn is_batches(&self) -> bool {
        self.frame.table == "batches"
    }
}
