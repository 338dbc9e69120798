//! Drains the ingest log into ClickHouse: one range at a time, one INSERT per table, exactly once.
//!
//! A range is cut and recorded before it is sent, see [`crate::store::drain::ledger`]. `batches` is sent first: a batch in `batches` belongs to the range whose
//! number it has, and that range's rows are completed. The counts of outcomes are sent last, when the outcome of each row is known.
//! [`crate::store::drain::delivery`] inserts the rows.

mod cut;
mod duplicates;
mod folding;
mod learn;
mod send;

use std::collections::HashSet;
use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use unjank_foundation::clock::Clock;

use self::cut::{join_fold, parse, same_layouts};
use self::folding::{Answer, Folding, next_of};
use super::dead_letter::DeadLetters;
use super::destination::Destination;
use super::ledger::{Ledger, LogState, Range};
use super::tally::Counted;
use crate::metrics::WriterMetrics;
use crate::records::record::Record;
use crate::store::clickhouse::{ClickHouse, Failure};
use crate::store::log::{IngestLog, LogRecords};
use crate::store::old_fault::{OldFault, is_back};
use crate::store::range_number::Number;
use crate::store::roll_ups::fold;

#[derive(Clone, Debug)]
pub(crate) struct WriterSettings {
    /// Time between two small ranges. The first record after a pause does not wait for it.
    pub(crate) flush_interval: Duration,
    /// A range ends at this many bytes of the log …
    pub(crate) range_bytes: usize,
    /// … and is sent at once when this many bytes are waiting.
    pub(crate) eager_bytes: u64,
    /// `drain.json`.
    pub(crate) state: PathBuf,
    /// Fold numbers contain its time.
    pub(crate) clock: Clock,
}

pub(crate) struct Writer<D: Destination = ClickHouse> {
    pub(crate) log: IngestLog,
    pub(crate) destination: D,
    pub(crate) dead_letters: DeadLetters,
    /// `None` if no other server can store the same batches.
    pub(crate) claims: Option<D::Claims>,
    pub(super) claimed_at: Instant,
    settings: WriterSettings,
    pub(crate) metrics: WriterMetrics,
    pub(crate) ledger: Ledger,
    /// The ranges that `outcomes` had counted when the process started.
    pub(crate) counted: Counted,
    /// Whether an earlier attempt at the range may have had an effect.
    pub(super) in_doubt: bool,
    /// Layouts (a table and its columns) that have all rows of the range.
    pub(super) delivered: HashSet<String>,
    /// Roll-ups, by fold, whose last attempt may have had an effect.
    doubtful_roll_ups: HashSet<(Number, String)>,
    /// An earlier process may have rolled up folds up to this number.
    pub(super) doubtful_before: Number,
    /// Whether [`Self::learn`] is done.
    pub(super) knows_last: bool,
    /// Whether [`Self::recall_folds`] is done.
    pub(super) knows_folds: bool,
    /// When the open fold got its first range.
    fold_begun: Instant,
    /// When the open fold is rolled up unless another range joins.
    quiet_at: Instant,
    /// No fold is rolled up before this time, after a failure.
    not_before: Instant,
    /// The next small range waits until this time.
    flush_at: Instant,
    /// The number of batches in the range that is being drained.
    range_batches: u64,
    totals: DrainTotals,
}

/// What a writer has drained since its start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DrainTotals {
    /// Records of the log. Some have counts of rejected events and no batch.
    pub(crate) records: u64,
    /// Records with a batch.
    pub(crate) batches: u64,
    /// Batches that ClickHouse had, completely or in part, before their range was cut.
    pub(crate) stored_before: u64,
    /// Whether nothing is left to store or to roll up.
    pub(crate) is_complete: bool,
}

/// The state of a run between its steps.
struct Run {
    pause: Duration,
    folding: Option<Folding>,
}

impl Run {
    fn new() -> Self {
        Self {
            pause: FIRST_PAUSE,
            folding: None,
        }
    }
}

/// The next task of the writer.
enum Next {
    Learn,
    Range,
    Fold,
    /// A roll-up of a fold has succeeded or failed.
    Settle(Option<Answer>),
    End,
}

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How long a record waits for others that arrive at the same time.
const GATHER: Duration = Duration::from_millis(20);
/// How long folds wait after a failure.
const FOLD_PAUSE: Duration = Duration::from_secs(2);
/// How long folds wait for a hold, which is short.
const HELD_PAUSE: Duration = Duration::from_millis(300);
/// Maximum number of folds that wait for their roll-ups. At this number the writer stores no more rows until a fold is done. The log keeps the rows.
const MOST_FOLDS: usize = 512;
/// A rebuild may have taken over a fold older than this many seconds, so the fold's marks are checked.
const OLD_FOLD: i64 = 3_600;

impl<D: Destination> Writer<D> {
    pub(crate) fn open(
        log: IngestLog,
        destination: D,
        dead_letters: DeadLetters,
        settings: WriterSettings,
        metrics: WriterMetrics,
    ) -> std::io::Result<Self> {
        let state = LogState {
            id: log.identity(),
            durable: log.durable_at_open(),
            trimmed: log.trimmed(),
        };
        let ledger = Ledger::load(log.files(), &settings.state, state)?;
        if ledger.durable > state.durable {
            log.count_damage();
            tracing::error!(
                first = state.durable + 1,
                last = ledger.durable,
                "these records are missing at the end of the ingest log: those that were not stored yet are lost. Was a segment deleted, or is an \
                 older copy of the folder `log` in place?"
            );
        }
        log.resume_at(ledger.done)?;
        set_unfolded(&metrics, &ledger);
        Ok(Self {
            log,
            destination,
            dead_letters,
            claims: None,
            claimed_at: Instant::now(),
            metrics,
            in_doubt: ledger.range.is_some(),
            delivered: HashSet::new(),
            doubtful_roll_ups: HashSet::new(),
            doubtful_before: ledger.last,
            ledger,
            counted: Counted::default(),
            knows_last: false,
            knows_folds: false,
            fold_begun: Instant::now(),
            quiet_at: Instant::now(),
            not_before: Instant::now(),
            flush_at: later(settings.flush_interval),
            range_batches: 0,
            totals: DrainTotals::default(),
            settings,
        })
    }

    /// Shares the control database with other servers.
    pub(crate) fn sharing(self, claims: Option<D::Claims>) -> Self {
        Self { claims, ..self }
    }

    /// Drains the log until `shutdown`. Then drains the rest without waiting for more records, until `give_up`.
    pub(crate) async fn run(mut self, shutdown: CancellationToken, give_up: CancellationToken) {
        let mut run = Run::new();
        while self.step(&mut run, &shutdown, &give_up).await {}
    }

    /// Drains a log that gets no more records, and rolls up all its folds. Ends early at `give_up`.
    pub(crate) async fn drain(mut self, give_up: CancellationToken) -> DrainTotals {
        let (mut run, no_more) = (Run::new(), CancellationToken::new());
        while self.step(&mut run, &no_more, &give_up).await {
            // Before that, the writer may not know all folds.
            if self.knows_folds {
                no_more.cancel();
            }
        }
        self.totals.is_complete = self.knows_folds && !give_up.is_cancelled();
        self.totals
    }

    /// Does the next task. After a failure, waits for a while. Returns whether another task may follow.
    async fn step(
        &mut self,
        run: &mut Run,
        shutdown: &CancellationToken,
        give_up: &CancellationToken,
    ) -> bool {
        let Run { pause, folding } = run;
        let is_folding = folding.is_some();
        let next = tokio::select! {
            biased;
            () = give_up.cancelled() => return false,
            answer = next_of(folding) => Next::Settle(answer),
            next = self.next(shutdown, is_folding) => next,
        };
        if matches!(next, Next::End) {
            return false;
        }
        let attempt = tokio::select! {
            biased;
            () = give_up.cancelled() => return false,
            done = self.attempt(next, folding) => done,
        };
        let Err(failure) = attempt else {
            *pause = FIRST_PAUSE;
            return true;
        };
        self.metrics.failures.inc();
        tracing::warn!(%failure, retry_in_ms = pause.as_millis(), "cannot drain the ingest log; events are kept");
        tokio::select! {
            biased;
            () = give_up.cancelled() => return false,
            () = sleep(*pause) => *pause = (*pause * 2).min(LONGEST_PAUSE),
        }
        true
    }

    async fn attempt(&mut self, next: Next, folding: &mut Option<Folding>) -> Result<(), Failure> {
        match next {
            Next::Learn => self.learn().await,
            Next::Range => self.drain_while_folding(folding).await,
            Next::Fold => {
                *folding = Some(self.begin_folds().await?);
                Ok(())
            }
            Next::Settle(answer) => self.settle(folding, answer).await,
            Next::End => Ok(()),
        }
    }

    /// Sends a range while ClickHouse rolls up a fold.
    async fn drain_while_folding(&mut self, folding: &mut Option<Folding>) -> Result<(), Failure> {
        let mut answers = Vec::new();
        let drained = {
            let mut range = pin!(self.drain_one_range());
            let mut is_folding = folding.is_some();
            loop {
                tokio::select! {
                    biased;
                    drained = &mut range => break drained,
                    answer = next_of(folding), if is_folding => {
                        is_folding = answer.is_some();
                        answers.push(answer);
                    }
                }
            }
        };
        let mut settled = Ok(());
        for answer in answers {
            settled = settled.and(self.settle(folding, answer).await);
        }
        drained.and(settled)
    }

    /// Waits for the next task. An unfinished range comes first. After `shutdown`, the rest of the log is drained without waiting.
    async fn next(&self, shutdown: &CancellationToken, is_folding: bool) -> Next {
        if !self.knows_last && !shutdown.is_cancelled() {
            return Next::Learn;
        }
        let mut durable = self.log.durable();
        if self.ledger.range.is_some() {
            return Next::Range;
        }
        loop {
            let fold_at = self.fold_due().filter(|_| !is_folding);
            if fold_at.is_some_and(|at| at <= Instant::now()) {
                return Next::Fold;
            }
            if *durable.borrow_and_update() > self.ledger.done {
                break;
            }
            tokio::select! {
                biased;
                () = shutdown.cancelled() => {
                    let more = *durable.borrow() > self.ledger.done;
                    return if more { Next::Range } else { self.last(is_folding).await };
                }
                () = sleep_until(fold_at.unwrap_or_else(Instant::now)), if fold_at.is_some() => {}
                changed = durable.changed() => if changed.is_err() { return self.last(is_folding).await; },
            }
        }
        if self.log.pending_bytes() < self.settings.eager_bytes {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => {}
                () = self.enough_waits() => {}
                () = sleep_until(self.flush_at.max(later(GATHER))) => {}
            }
        }
        Next::Range
    }

    /// Returns the next task when no more records arrive.
    async fn last(&self, is_folding: bool) -> Next {
        if is_folding {
            // Wait for the results of the running roll-ups.
            return std::future::pending().await;
        }
        if self.ledger.has_folds() && self.knows_last {
            Next::Fold
        } else {
            Next::End
        }
    }

    async fn enough_waits(&self) {
        let mut durable = self.log.durable();
        while self.log.pending_bytes() < self.settings.eager_bytes
            && durable.changed().await.is_ok()
        {}
    }

    async fn drain_one_range(&mut self) -> Result<(), Failure> {
        self.learn().await?;
        let (range, records) = match self.ledger.range.clone() {
            Some(range) => self.resume(range).await?,
            None => match self.cut().await {
                Ok(cut) => cut,
                Err(failure) => {
                    self.release_claims().await;
                    return Err(failure);
                }
            },
        };
        debug_assert!(
            records.last_seq().is_none() || self.ledger.range.as_ref() == Some(&range),
            "nothing is sent before the ledger has it"
        );
        let sent = self.send(&range, &records).await;
        // Another attempt must check which rows are stored, until the ledger records the range as done.
        self.in_doubt = true;
        let rows = sent?;
        let mut next = self.ledger.clone();
        next.done = range.last;
        next.range = None;
        self.commit(next).await?;
        self.in_doubt = false;
        self.log.drained(range.last, &records).await;
        self.totals.records += records.iter().count() as u64;
        self.totals.batches += self.range_batches;
        self.totals.stored_before += (range.again.len() + range.duplicates.len()) as u64;
        let arrivals = records
            .iter()
            .filter_map(|(_, bytes)| Record::received_at(bytes));
        let now = self.settings.clock.now();
        self.metrics.freshness.stored(now, arrivals);
        self.metrics.rows.inc_by(rows);
        self.metrics.ranges.inc();
        Ok(())
    }

    /// Reads a range that was cut before.
    async fn resume(&mut self, mut range: Range) -> Result<(Range, LogRecords), Failure> {
        let mut records = self.read(range.first, usize::MAX, range.last).await?;
        records.remove(&range.gaps);
        let parsed = parse(&records)?;
        self.range_batches = parsed.len() as u64;
        self.claim_again(&parsed, &mut range).await?;
        Ok((range, records))
    }

    /// Cuts the next range and records it in the ledger.
    async fn cut(&mut self) -> Result<(Range, LogRecords), Failure> {
        if self.ledger.folds.len() >= MOST_FOLDS {
            return Err(Failure::Later(format!(
                "{MOST_FOLDS} folds wait for their roll-ups"
            )));
        }
        self.flush_at = later(self.settings.flush_interval);
        self.delivered.clear();
        let durable = *self.log.durable().borrow();
        let first = self.ledger.done + 1;
        let mut records = self
            .read(first, self.settings.range_bytes, u64::MAX)
            .await?;
        let mut range = Range {
            first,
            // If no record can be read, the end of the log is damaged: skip to the next readable record.
            last: durable,
            ..Range::default()
        };
        self.range_batches = 0;
        let Some(last) = records.last_seq() else {
            return Ok((range, records));
        };
        range.last = last;
        let mut parsed = parse(&records)?;
        let one_layout = same_layouts(&parsed);
        if one_layout < parsed.len() && !is_back(OldFault::LayoutsShareNumbers) {
            parsed.truncate(one_layout);
            range.last = parsed.last().map_or(range.last, |(seq, _)| *seq);
        }
        self.find_stored(&parsed, &mut range).await?;
        self.check_unknown_ranges(&range)?;
        parsed.retain(|(seq, _)| *seq <= range.last);
        self.range_batches = parsed.len() as u64;
        range.gaps = records.gaps(first, range.last);
        let known = range.again.iter().map(|(_, number)| *number).max();
        if known.is_some_and(|known| known > self.ledger.last) {
            // The open fold has a smaller number, so the numbers of its next ranges would be smaller than the last one.
            self.ledger.close_fold();
        }
        self.ledger.last = self.ledger.last.max(known.unwrap_or_default());
        self.doubtful_before = self.doubtful_before.max(known.unwrap_or_default());
        // Nothing is sent before the ledger has it on disk. The new ledger takes effect after that.
        let mut next = self.ledger.clone();
        let (now, random) = (self.settings.clock.now(), self.log.files().random());
        join_fold(&mut next, &mut range, &parsed, now, random);
        next.range = Some(range.clone());
        if self.ledger.open_fold().is_none() {
            self.fold_begun = Instant::now();
        }
        self.quiet_at = later(fold::QUIET);
        self.ledger.reserve_numbers(&next);
        self.commit(next).await?;
        records.cut_after(range.last);
        Ok((range, records))
    }

    async fn read(&self, first: u64, bytes: usize, last: u64) -> Result<LogRecords, Failure> {
        self.log
            .read(first, bytes, last)
            .await
            .map_err(|error| Failure::Later(format!("cannot read the ingest log: {error}")))
    }

    /// Saves a ledger, which takes effect once it is durable.
    pub(crate) async fn commit(&mut self, mut next: Ledger) -> Result<(), Failure> {
        next.debug_assert_follows(&self.ledger);
        next.durable = *self.log.durable().borrow();
        if is_back(OldFault::StateBeforeSave) {
            self.ledger = next.clone();
        }
        let path = self.settings.state.clone();
        let files = self.log.files().clone();
        let save = move || next.save(&files, &path).map(|()| next);
        let saved = self.log.files().unblocked(save).await;
        let saved = saved.map_err(|error| Failure::Later(error.to_string()))?;
        self.ledger = saved.map_err(|error| {
            Failure::Later(format!("{}: {error}", self.settings.state.display()))
        })?;
        set_unfolded(&self.metrics, &self.ledger);
        Ok(())
    }
}

fn later(by: Duration) -> Instant {
    Instant::now() + by
}

fn set_unfolded(metrics: &WriterMetrics, ledger: &Ledger) {
    let rows = i64::try_from(ledger.unfolded_rows()).unwrap_or(i64::MAX);
    metrics.unfolded_rows.set(rows);
}
