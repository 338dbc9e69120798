//! Drains the ingest log into ClickHouse: a range at a time, one INSERT per table, exactly once.
//!
//! A range is cut and written down before it is sent, see [`super::ledger`]. `batches` go first: a batch that is found there belongs to the
//! range whose number it has, and that range's rows are completed. Counts of outcomes go last, when it is known what became of each row.
//! How rows get to their tables is in [`super::delivery`].

mod cut;

use std::collections::{BTreeMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use self::cut::{join_fold, parse, same_layouts};
use super::clickhouse::{ClickHouse, Failure};
use super::control::{Alone, Claims};
use super::dead_letter::DeadLetters;
use super::delivery;
use super::destination::Destination;
use super::fold::{self, RollUp};
use super::holds::is_held;
use super::ledger::{Fold, Ledger, LogState, Range};
use super::log::{IngestLog, LogRecords};
use super::number::Number;
use super::old_fault::{OldFault, is_back};
use super::tally::Counted;
use crate::clock::Clock;
use crate::metrics::WriterMetrics;

#[derive(Clone, Debug)]
pub(crate) struct WriterSettings {
    /// How long records wait for company before they are sent.
    pub(crate) flush_interval: Duration,
    /// A range ends when it has this many bytes of the log …
    pub(crate) range_bytes: usize,
    /// … and is sent at once when this many are waiting.
    pub(crate) eager_bytes: u64,
    /// `drain.json`.
    pub(crate) state: PathBuf,
    /// Numbers of folds are drawn by it.
    pub(crate) clock: Clock,
}

pub(crate) struct Writer<D = ClickHouse> {
    pub(super) log: IngestLog,
    pub(super) destination: D,
    pub(super) dead_letters: DeadLetters,
    pub(super) claims: Arc<dyn Claims>,
    pub(super) claimed_at: Instant,
    settings: WriterSettings,
    pub(super) metrics: WriterMetrics,
    pub(super) ledger: Ledger,
    /// What `outcomes` had when the process started.
    pub(super) counted: Counted,
    /// An attempt at the range may have had an effect that nobody knows.
    pub(super) in_doubt: bool,
    /// Tables, with their columns, that have all of the range's rows.
    pub(super) delivered: HashSet<String>,
    /// Views whose last attempt may have had an effect, by fold.
    doubtful_views: HashSet<(Number, String)>,
    /// Folds that an earlier process may have rolled up.
    pub(super) doubtful_before: Number,
    /// Whether [`Self::learn`] is done.
    pub(super) knows_last: bool,
    /// Whether [`Self::recall_folds`] is done.
    pub(super) knows_folds: bool,
    /// When the fold is to be rolled up, if it is not full before …
    fold_at: Instant,
    /// … and nothing comes any more.
    quiet_at: Instant,
    /// After a failure folds wait until then.
    not_before: Instant,
}

/// What there is to do.
enum Next {
    Learn,
    Range,
    Fold,
    End,
}

const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// After a failure folds wait for so long.
const FOLD_PAUSE: Duration = Duration::from_secs(2);
/// After a hold they wait for so long: it is short.
const HELD_PAUSE: Duration = Duration::from_millis(300);
/// So many folds may wait for their roll-ups; then no more rows are stored until one is done. The log keeps them.
const MOST_FOLDS: usize = 512;
/// A fold that was drawn so many seconds ago may have been taken over by a rebuild: its marks are checked.
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
        log.resume_at(ledger.done)?;
        set_unfolded(&metrics, &ledger);
        Ok(Self {
            log,
            destination,
            dead_letters,
            claims: Arc::new(Alone),
            claimed_at: Instant::now(),
            settings,
            metrics,
            in_doubt: ledger.range.is_some(),
            delivered: HashSet::new(),
            doubtful_views: HashSet::new(),
            doubtful_before: ledger.last,
            ledger,
            counted: Counted::default(),
            knows_last: false,
            knows_folds: false,
            fold_at: Instant::now(),
            quiet_at: Instant::now(),
            not_before: Instant::now(),
        })
    }

    /// With other servers that share the control database.
    pub(crate) fn sharing(self, claims: Arc<dyn Claims>) -> Self {
        Self { claims, ..self }
    }

    /// Drains until `shutdown`, then what is left without waiting for more, until `give_up`.
    pub(crate) async fn run(mut self, shutdown: CancellationToken, give_up: CancellationToken) {
        let mut pause = FIRST_PAUSE;
        loop {
            let next = self.next(&shutdown).await;
            let attempt = async {
                match next {
                    Next::Learn => self.learn().await,
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
                (_, Err(failure)) if is_held(&failure) => {
                    tracing::debug!(%failure, "a fold waits for a rebuild");
                    self.not_before = later(HELD_PAUSE);
                }
                (_, Err(failure)) => {
                    self.metrics.failures.inc();
                    tracing::warn!(%failure, retry_in_ms = pause.as_millis(), "the ingest log is not drained; events are kept");
                    tokio::select! {
                        biased;
                        () = give_up.cancelled() => return,
                        () = sleep(pause) => pause = (pause * 2).min(LONGEST_PAUSE),
                    }
                }
            }
        }
    }

    /// Waits until there is something to do. What is on its way goes first; with `shutdown`, all that is left goes at once.
    async fn next(&self, shutdown: &CancellationToken) -> Next {
        if !self.knows_last && !shutdown.is_cancelled() {
            return Next::Learn;
        }
        let mut durable = self.log.durable();
        if self.ledger.range.is_some() {
            return Next::Range;
        }
        let last = if self.ledger.has_folds() && self.knows_last {
            Next::Fold
        } else {
            Next::End
        };
        loop {
            let fold_at = self.fold_due();
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
                    return if more { Next::Range } else { last };
                }
                () = sleep_until(fold_at.unwrap_or_else(Instant::now)), if fold_at.is_some() => {}
                changed = durable.changed() => if changed.is_err() { return last; },
            }
        }
        if self.log.pending_bytes() < self.settings.eager_bytes {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => {}
                () = self.enough_waits() => {}
                () = sleep(self.settings.flush_interval) => {}
            }
        }
        Next::Range
    }

    /// When folds are to be rolled up.
    fn fold_due(&self) -> Option<Instant> {
        let must_wait =
            self.ledger.done < self.ledger.folds_wait_for && self.ledger.folds.len() < MOST_FOLDS;
        let has_nothing = self.knows_folds && !self.ledger.has_folds();
        if !self.knows_last || must_wait || has_nothing {
            return None;
        }
        let waits = self.knows_folds
            && self.ledger.folds.len() == 1
            && self.ledger.old_fold.is_none()
            && self
                .ledger
                .open_fold()
                .is_some_and(|fold| fold::is_worth_waiting(fold.rows) && !fold.is_full());
        let at = if waits {
            self.fold_at.min(self.quiet_at)
        } else {
            Instant::now()
        };
        Some(at.max(self.not_before))
    }

    /// Closes the open fold and rolls up all there are. What fails is tried again; ranges go on meanwhile, and so do other views.
    async fn roll_up(&mut self) -> Result<(), Failure> {
        // The open fold stays open while closed folds wait. Otherwise each failed attempt would start another fold.
        if !self.ledger.folds.iter().any(|fold| fold.closed) {
            let mut next = self.ledger.clone();
            next.close_fold();
            self.commit(next).await?;
        }
        let began = Instant::now();
        let done = self.roll_up_all().await;
        self.metrics
            .fold_seconds
            .observe(began.elapsed().as_secs_f64());
        if done.is_err() {
            self.not_before = later(FOLD_PAUSE);
            // A rebuild may have rolled up folds that waited for hours. From now on each fold's marks are checked.
            self.doubtful_before = self.ledger.last;
        }
        done
    }

    async fn roll_up_all(&mut self) -> Result<(), Failure> {
        if let Some(old) = self.ledger.old_fold {
            let log_id = old.log_id.unwrap_or(self.ledger.log_id);
            self.destination.roll_up_old(old.number, log_id).await?;
            let mut next = self.ledger.clone();
            next.old_fold = None;
            self.commit(next).await?;
        }
        self.recall_folds().await?;
        let roll_ups = self.destination.roll_ups().await?;
        let mut failed: BTreeMap<&str, Failure> = BTreeMap::new();
        let folds = self.ledger.folds.clone().into_iter();
        for fold in folds.filter(|fold| fold.closed) {
            let of_fold =
                |one: &&RollUp| fold.tables.contains(&one.table) && !fold.done.contains(&one.name);
            let mut all_done = true;
            for roll_up in roll_ups.iter().filter(of_fold) {
                // A view takes folds in their order.
                let is_next = !failed.contains_key(&*roll_up.name);
                all_done &= is_next && self.roll_up_view(&fold, roll_up, &mut failed).await?;
            }
            if all_done {
                let mut next = self.ledger.clone();
                next.folds.retain(|one| one.number != fold.number);
                self.commit(next).await?;
            }
        }
        match failed.pop_first() {
            Some((view, failure)) => Err(Failure::Later(format!("{view}: {failure}"))),
            None => Ok(()),
        }
    }

    /// Answers whether the view has the fold now.
    async fn roll_up_view<'v>(
        &mut self,
        fold: &Fold,
        roll_up: &'v RollUp,
        failed: &mut BTreeMap<&'v str, Failure>,
    ) -> Result<bool, Failure> {
        let key = (fold.number, roll_up.name.clone());
        // A rebuild takes over folds that wait for hours.
        let is_old = fold.number.seconds() < self.settings.clock.now() / 1_000_000 - OLD_FOLD;
        let in_doubt =
            is_old || fold.number <= self.doubtful_before || self.doubtful_views.contains(&key);
        let done = delivery::roll_up(&self.destination, fold, roll_up, in_doubt).await;
        // Another attempt must check what is stored, until the ledger records the view as done.
        self.doubtful_views.insert(key.clone());
        if let Err(failure) = done {
            failed.insert(&roll_up.name, failure);
            return Ok(false);
        }
        if is_back(OldFault::FoldsBeginAgain) {
            return Ok(true);
        }
        let mut next = self.ledger.clone();
        if let Some(fold) = next.folds.iter_mut().find(|one| one.number == fold.number) {
            fold.done.insert(roll_up.name.clone());
        }
        self.commit(next).await?;
        self.doubtful_views.remove(&key);
        Ok(true)
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
                    self.give_back().await;
                    return Err(failure);
                }
            },
        };
        let sent = self.send(&range, &records).await;
        // Another attempt must check what is stored, until the ledger records the range as done.
        self.in_doubt = true;
        let rows = sent?;
        let mut next = self.ledger.clone();
        next.done = range.last;
        next.range = None;
        self.commit(next).await?;
        self.in_doubt = false;
        self.delivered.clear();
        self.log.drained(range.last, &records);
        self.metrics.rows.inc_by(rows);
        self.metrics.ranges.inc();
        Ok(())
    }

    /// Reads a range again that was cut before.
    async fn resume(&mut self, mut range: Range) -> Result<(Range, LogRecords), Failure> {
        let mut records = self.read(range.first, usize::MAX, range.last).await?;
        records.remove(&range.gaps);
        self.claim_again(&parse(&records)?, &mut range).await?;
        Ok((range, records))
    }

    /// Cuts the next range and writes it down.
    async fn cut(&mut self) -> Result<(Range, LogRecords), Failure> {
        if self.ledger.folds.len() >= MOST_FOLDS {
            return Err(Failure::Later(format!(
                "{MOST_FOLDS} folds wait for their roll-ups"
            )));
        }
        let durable = *self.log.durable().borrow();
        let first = self.ledger.done + 1;
        let mut records = self
            .read(first, self.settings.range_bytes, u64::MAX)
            .await?;
        let mut range = Range {
            first,
            // When nothing reads, there is damage at the end of what was durable: skip to where the log goes on.
            last: durable,
            ..Range::default()
        };
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
        parsed.retain(|(seq, _)| *seq <= range.last);
        range.gaps = records.gaps(first, range.last);
        let known = range.again.iter().map(|(_, number)| *number).max();
        self.ledger.last = self.ledger.last.max(known.unwrap_or_default());
        self.doubtful_before = self.doubtful_before.max(known.unwrap_or_default());
        // Nothing is sent that is not written down: it counts once it is.
        let mut next = self.ledger.clone();
        let (now, random) = (self.settings.clock.now(), self.log.files().random());
        join_fold(&mut next, &mut range, &parsed, (now, random));
        next.range = Some(range.clone());
        if self.ledger.open_fold().is_none() {
            self.fold_at = later(fold::OLD);
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
            .map_err(|error| Failure::Later(format!("the ingest log does not read: {error}")))
    }

    /// Makes a ledger durable; only then it counts.
    pub(super) async fn commit(&mut self, next: Ledger) -> Result<(), Failure> {
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
