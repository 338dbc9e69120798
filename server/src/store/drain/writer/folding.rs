//! Rolls up folds while the writer goes on sending ranges.
//!
//! Only one fold is rolled up at a time. The ledger records each completed roll-up, so a restart does not repeat it.

use std::collections::{BTreeMap, HashSet};
use std::pin::Pin;

use futures_util::{Stream, StreamExt, stream};
use prometheus::HistogramTimer;
use tokio::time::Instant;

use super::{FOLD_PAUSE, HELD_PAUSE, MOST_FOLDS, OLD_FOLD, Writer, later};
use crate::store::clickhouse::Failure;
use crate::store::drain::delivery;
use crate::store::drain::destination::Destination;
use crate::store::drain::ledger::Fold;
use crate::store::old_fault::{OldFault, is_back};
use crate::store::range_number::Number;
use crate::store::roll_ups::fold::{self, RollUp};
use crate::store::roll_ups::holds::is_held;

/// Folds that are being rolled up.
pub(super) struct Folding {
    answers: Pin<Box<dyn Stream<Item = Answer> + Send>>,
    /// Failures by the name of the roll-up.
    failed: BTreeMap<String, Failure>,
    /// Number of roll-ups of each fold that are not done yet.
    left: BTreeMap<Number, usize>,
    timer: HistogramTimer,
}

/// The result of one roll-up of a fold.
pub(super) struct Answer {
    fold: Number,
    roll_up: String,
    done: Result<(), Failure>,
}

/// One roll-up of a fold.
struct Work {
    fold: Fold,
    roll_up: RollUp,
    in_doubt: bool,
}

impl Folding {
    /// Returns the next roll-up that has succeeded or failed, or `None` after the last one.
    pub(super) async fn next(&mut self) -> Option<Answer> {
        self.answers.next().await
    }
}

/// Returns the next result. Never resolves if no fold is being rolled up.
pub(super) async fn next_of(folding: &mut Option<Folding>) -> Option<Answer> {
    match folding {
        Some(folding) => folding.next().await,
        None => std::future::pending().await,
    }
}

/// Runs the roll-ups in order. A roll-up takes folds in order, so one that has failed gets no later folds.
fn answers<D: Destination>(destination: D, works: Vec<Work>) -> impl Stream<Item = Answer> + Send {
    let start = (destination, works.into_iter(), HashSet::new());
    stream::unfold(start, |(destination, mut works, mut failed)| async move {
        let work = works.find(|work| !failed.contains(&work.roll_up.name))?;
        let Work {
            fold,
            roll_up,
            in_doubt,
        } = work;
        let done = delivery::roll_up(&destination, &fold, &roll_up, in_doubt).await;
        if done.is_err() {
            failed.insert(roll_up.name.clone());
        }
        let answer = Answer {
            fold: fold.number,
            roll_up: roll_up.name,
            done,
        };
        Some((answer, (destination, works, failed)))
    })
}

impl<D: Destination> Writer<D> {
    /// Returns when folds are due.
    pub(super) fn fold_due(&self) -> Option<Instant> {
        let must_wait =
            self.ledger.done < self.ledger.folds_wait_for && self.ledger.folds.len() < MOST_FOLDS;
        let has_nothing = self.knows_folds && !self.ledger.has_folds();
        if !self.knows_last || must_wait || has_nothing {
            return None;
        }
        let is_alone =
            self.knows_folds && self.ledger.folds.len() == 1 && self.ledger.old_fold.is_none();
        let waits = self
            .ledger
            .open_fold()
            .filter(|fold| is_alone && fold::is_worth_waiting(fold.rows) && !fold.is_full());
        let at = waits.map_or_else(Instant::now, |fold| {
            self.quiet_at
                .min(self.fold_begun + fold::longest_wait(fold.rows))
        });
        Some(at.max(self.not_before))
    }

    /// Closes the open fold and begins to roll up all closed folds. Failed roll-ups are retried, while ranges and other roll-ups go on.
    pub(super) async fn begin_folds(&mut self) -> Result<Folding, Failure> {
        // The open fold stays open while closed folds wait. Otherwise each failed attempt would start another fold.
        if !self.ledger.folds.iter().any(|fold| fold.closed) {
            let mut next = self.ledger.clone();
            next.close_fold();
            self.commit(next).await?;
        }
        let timer = self.metrics.fold_seconds.start_timer();
        let begun = self.folds_to_do(timer).await;
        if begun.is_err() {
            self.hold_off(FOLD_PAUSE);
        }
        begun
    }

    async fn folds_to_do(&mut self, timer: HistogramTimer) -> Result<Folding, Failure> {
        if let Some(old) = self.ledger.old_fold {
            let log_id = old.log_id.unwrap_or(self.ledger.log_id);
            self.destination.roll_up_old(old.number, log_id).await?;
            let mut next = self.ledger.clone();
            next.old_fold = None;
            self.commit(next).await?;
        }
        self.recall_folds().await?;
        let roll_ups = self.destination.roll_ups().await?;
        let (mut works, mut left) = (Vec::new(), BTreeMap::new());
        let mut next = self.ledger.clone();
        for fold in self.ledger.folds.iter().filter(|fold| fold.closed) {
            let of_fold =
                |one: &&RollUp| fold.tables.contains(&one.table) && !fold.done.contains(&one.name);
            let before = works.len();
            for roll_up in roll_ups.iter().filter(of_fold) {
                works.push(Work {
                    fold: fold.clone(),
                    roll_up: roll_up.clone(),
                    in_doubt: self.is_in_doubt(fold, roll_up),
                });
            }
            match works.len() - before {
                0 => next.folds.retain(|one| one.number != fold.number),
                roll_ups => {
                    left.insert(fold.number, roll_ups);
                }
            }
        }
        if next != self.ledger {
            self.commit(next).await?;
        }
        // Another attempt must check which rows are stored, until the ledger records the roll-up as done.
        let attempted = works
            .iter()
            .map(|work| (work.fold.number, work.roll_up.name.clone()));
        self.doubtful_roll_ups.extend(attempted);
        Ok(Folding {
            answers: Box::pin(answers(self.destination.clone(), works).fuse()),
            failed: BTreeMap::new(),
            left,
            timer,
        })
    }

    fn is_in_doubt(&self, fold: &Fold, roll_up: &RollUp) -> bool {
        // A rebuild takes over folds that have waited for hours.
        let is_old = fold.number.seconds() < self.settings.clock.now().as_secs() - OLD_FOLD;
        let key = (fold.number, roll_up.name.clone());
        is_old || fold.number <= self.doubtful_before || self.doubtful_roll_ups.contains(&key)
    }

    /// Records the result of a roll-up. `None`: all have succeeded or failed.
    pub(super) async fn settle(
        &mut self,
        folding: &mut Option<Folding>,
        answer: Option<Answer>,
    ) -> Result<(), Failure> {
        let Some(answer) = answer else {
            return self.end_folds(folding.take());
        };
        let Some(folding) = folding else {
            return Ok(());
        };
        if let Err(failure) = answer.done {
            folding.failed.insert(answer.roll_up, failure);
            return Ok(());
        }
        let mut next = self.ledger.clone();
        let left = folding.left.entry(answer.fold).or_default();
        debug_assert!(*left > 0, "a roll-up of a fold is settled once");
        *left = left.saturating_sub(1);
        if *left == 0 {
            next.folds.retain(|one| one.number != answer.fold);
        } else if is_back(OldFault::FoldsBeginAgain) {
            return Ok(());
        } else if let Some(fold) = next.folds.iter_mut().find(|one| one.number == answer.fold) {
            fold.done.insert(answer.roll_up.clone());
        }
        self.commit(next).await?;
        self.doubtful_roll_ups
            .remove(&(answer.fold, answer.roll_up));
        Ok(())
    }

    fn end_folds(&mut self, folding: Option<Folding>) -> Result<(), Failure> {
        let Some(folding) = folding else {
            return Ok(());
        };
        folding.timer.observe_duration();
        let mut failed = folding.failed;
        let Some((view, failure)) = failed.pop_first() else {
            return Ok(());
        };
        if is_held(&failure) {
            tracing::debug!(%failure, view, "a fold waits for a rebuild");
            self.hold_off(HELD_PAUSE);
            return Ok(());
        }
        self.hold_off(FOLD_PAUSE);
        Err(Failure::Later(format!("{view}: {failure}")))
    }

    /// Begins no fold until `pause` is over.
    fn hold_off(&mut self, pause: std::time::Duration) {
        self.not_before = later(pause);
        // A rebuild may have rolled up folds that have waited for hours. From now on, the marks of each fold are checked.
        self.doubtful_before = self.ledger.last;
    }
}
