//! Compares the ledger with ClickHouse once per process. The ledger may have been lost or restored from a backup, and the clock may
//! have been set back. Compares them again if `unjank log drain` has drained a copy of the log meanwhile.

use std::collections::BTreeSet;
use std::time::Duration;

use unjank_database::ClaimStore;
use uuid::Uuid;

use super::Writer;
use super::duplicates::in_time;
use crate::store::clickhouse::Failure;
use crate::store::drain::destination::Destination;
use crate::store::drain::ledger::Range;
use crate::store::drain::tally::Counted;
use crate::store::old_fault::{OldFault, is_back};
use crate::store::range_number::Number;
use crate::store::raw_tables::RawTable;

/// Only folds drawn within this time before the last number are recalled. `rollups rebuild` handles older ones.
const RECALLED: Duration = Duration::from_secs(6 * 60 * 60);
/// Maximum number of recalled folds per view, newest first. The auditor finds the others.
const MOST_RECALLED: usize = 200;

impl<D: Destination> Writer<D> {
    /// Ends the queries of earlier processes, and ensures that new numbers are greater than all numbers in ClickHouse.
    pub(super) async fn learn(&mut self) -> Result<(), Failure> {
        if self.knows_last || is_back(OldFault::NumbersRepeat) {
            self.knows_last = true;
            return Ok(());
        }
        let log_id = self.ledger.log_id;
        // The queries may be those of `unjank log drain` on a copy of the log.
        let ended_lease = match &self.claims {
            Some(shared) => in_time(shared.check_lease(log_id)).await?,
            None => None,
        };
        let mut logs: BTreeSet<Uuid> = self.ledger.folds.iter().map(|fold| fold.log_id).collect();
        logs.insert(log_id);
        for log in logs {
            if self.destination.kill_queries(log).await? {
                return Err(Failure::Later(
                    "queries of an earlier process are still running".to_owned(),
                ));
            }
        }
        let batches = RawTable::named("batches").ok_or(Failure::Later("no batches".to_owned()))?;
        let known = self.ledger.last.last_counted();
        let unknown = self.destination.folds_after(batches, log_id, known).await?;
        let marks = self.destination.marks("outcomes", log_id).await?;
        let counted = marks.into_values().max().unwrap_or_default();
        let alone = self.destination.ranges_with_own_marks(log_id).await?;
        self.counted = Counted {
            before: counted,
            alone: alone.into_iter().map(|(_, number)| number).collect(),
        };
        let mut next = self.ledger.clone();
        if let Some(newest) = unknown.last() {
            // The ledger is older than ClickHouse. Every record of the log must be checked again before any fold is rolled up.
            next.range = None;
            next.folds_wait_for = next.folds_wait_for.max(self.log.durable_at_open());
            next.last = next.last.max(newest.last_of_fold());
        }
        next.last = next.last.max(counted);
        // If this process has learned before, it may have an open fold. Ranges that join the fold must not get smaller numbers than `last`.
        next.close_fold();
        self.doubtful_before = next.last;
        self.commit(next).await?;
        if let (Some(shared), Some(ended)) = (&self.claims, ended_lease) {
            in_time(shared.forget_lease(log_id, ended)).await?;
        }
        self.knows_last = true;
        Ok(())
    }

    /// Compares the ledger with ClickHouse again before anything else, because another process has drained the log, or drains it.
    pub(super) fn learn_again(&mut self) -> Failure {
        (self.knows_last, self.knows_folds) = (false, false);
        // That process may have stored any record of this log.
        self.ledger.folds_wait_for = *self.log.durable().borrow();
        Failure::Later(
            "another process has drained records of this log; the writer compares its ledger with ClickHouse again"
                .to_owned(),
        )
    }

    /// Fails if a new range has records that ClickHouse got since [`Self::learn`], in ranges of this log that this process does not know. The next attempt
    /// learns these ranges, their counts and their folds first.
    pub(super) fn check_unknown_ranges(&mut self, range: &Range) -> Result<(), Failure> {
        let (log, last) = (Number::log_bits(self.ledger.log_id), self.ledger.last);
        let mut origins = range.again.iter().map(|(_, number)| number.range());
        let is_known = !origins.any(|origin| origin.log() == log && origin > last);
        if is_known || is_back(OldFault::NumbersRepeat) {
            return Ok(());
        }
        Err(self.learn_again())
    }

    /// Adds folds to the ledger that have rows in ClickHouse but no mark in their roll-ups.
    pub(super) async fn recall_folds(&mut self) -> Result<(), Failure> {
        if self.knows_folds || self.ledger.last == Number::default() {
            self.knows_folds = true;
            return Ok(());
        }
        let (log_id, oldest) = (self.ledger.log_id, self.ledger.last.earlier_by(RECALLED));
        let mut next = self.ledger.clone();
        for roll_up in self.destination.roll_ups().await? {
            let Some(table) = RawTable::named(&roll_up.table) else {
                continue;
            };
            let mut after: Option<Number> = None;
            for target in roll_up.targets() {
                let marks = self.destination.marks(&target.table, log_id).await?;
                let mark = marks.into_values().max().unwrap_or_default();
                after = Some(after.map_or(mark, |other| other.min(mark)));
            }
            // Views process folds in order. The last fold may be incomplete, so it is included: its rows have greater numbers than the fold.
            let after = after.unwrap_or_default().max(oldest);
            let folds = self.destination.folds_after(table, log_id, after).await?;
            for fold in folds.into_iter().rev().take(MOST_RECALLED) {
                next.recall_fold(fold, BTreeSet::from([roll_up.table.clone()]));
            }
        }
        self.commit(next).await?;
        self.knows_folds = true;
        Ok(())
    }
}
