//! Inserts rows into their tables exactly once.
//!
//! The first attempt sends a block with a new token and does not query ClickHouse. After a crash or an error, the writer queries which periods have
//! the rows and sends only the missing periods, with the same token. So ClickHouse deduplicates the two attempts in either order. If ClickHouse
//! confirms a token whose rows are missing, the next attempt uses another token.

use std::collections::{BTreeMap, BTreeSet};

use tokio::time::Instant;
use unjank_foundation::fingerprint::fingerprint;

use super::destination::{Destination, Insert};
use super::ledger::Fold;
use crate::records::native::{Block, Frame};
use crate::store::clickhouse::Failure;
use crate::store::old_fault::{OldFault, is_back};
use crate::store::range_number::Number;
use crate::store::raw_tables::{Day, Month, RawTable};
use crate::store::roll_ups::fold::{Reach, RollUp, Step};

/// Rows of one table and one list of columns that are sent as one block.
pub(super) struct Parcel<'p> {
    pub(crate) frames: &'p [Frame<'p>],
    /// The number that the rows carry.
    pub(crate) number: Number,
    /// Other numbers under which the rows may already be stored.
    pub(crate) earlier: &'p [Number],
    /// Whether an earlier attempt may have had an effect.
    pub(super) in_doubt: bool,
    /// The deadline of all INSERTs.
    pub(crate) until: Option<Instant>,
}

/// Maximum number of tokens to try. ClickHouse forgets the first tokens long before the last one.
const TOKENS: u32 = 16;

/// Identifies a table and an ordered list of its columns.
pub(super) fn layout(frame: &Frame<'_>) -> String {
    format!("{}:{:016x}", frame.table, fingerprint(&[frame.key()]))
}

impl<'p> Parcel<'p> {
    fn insert<'f>(
        &self,
        frames: &[Frame<'f>],
        attempt: u32,
        only: Option<(&'static RawTable, BTreeSet<Day>)>,
    ) -> Result<Option<Insert<'f>>, Failure> {
        let Some(first) = frames.first() else {
            return Ok(None);
        };
        let mut block = Block::join(frames)?;
        if RawTable::named(first.table).is_some() {
            block = block.numbered("range_id", self.number.value());
        }
        Ok(Some(Insert {
            table: first.table,
            block,
            token: format!("{}:{}:{attempt}", self.number, layout(first)),
            number: self.number.range(),
            only,
        }))
    }

    /// Returns the number of rows that are not stored yet, by period.
    pub(crate) async fn missing(
        &self,
        destination: &impl Destination,
        table: &RawTable,
    ) -> Result<BTreeMap<Day, usize>, Failure> {
        let mut missing = table.periods(self.frames)?;
        let numbers = [self.earlier, &[self.number]].concat();
        for day in destination.periods_of(table, &numbers).await? {
            missing.remove(&day);
        }
        Ok(missing)
    }

    async fn send(
        &self,
        insert: Insert<'_>,
        destination: &impl Destination,
    ) -> Result<(), Failure> {
        if self.until.is_some_and(|until| Instant::now() > until) {
            return Err(Failure::Later(
                "the claims of this range are too old; the writer claims its batches again"
                    .to_owned(),
            ));
        }
        destination.insert(insert).await
    }

    /// Sends all rows without a query for stored rows.
    async fn send_all(
        &self,
        table: Option<&RawTable>,
        destination: &impl Destination,
    ) -> Result<(), Failure> {
        let blocks = match table {
            // ClickHouse remembers tokens per period, so the blocks can share one.
            Some(table) => table.blocks(self.frames)?,
            None => Vec::from([self.frames.to_vec()]),
        };
        for frames in blocks {
            if let Some(insert) = self.insert(&frames, 0, None)? {
                self.send(insert, destination).await?;
            }
        }
        Ok(())
    }

    /// Returns once ClickHouse has all rows.
    pub(crate) async fn deliver(&self, destination: &impl Destination) -> Result<(), Failure> {
        let table = self
            .frames
            .first()
            .and_then(|frame| RawTable::named(frame.table));
        let table = match table {
            Some(table) if self.in_doubt && !is_back(OldFault::TokensAreProof) => table,
            // Tables without range numbers keep only one copy of a repeated row.
            table => return self.send_all(table, destination).await,
        };
        for attempt in 0..TOKENS {
            let missing: BTreeSet<Day> = self
                .missing(destination, table)
                .await?
                .into_keys()
                .collect();
            if missing.is_empty() {
                return Ok(());
            }
            // A running INSERT may outlive its token, and its token may be visible before its rows.
            wait_for_end(destination, self.number.range()).await?;
            if let Some(insert) = self.insert(self.frames, attempt, Some((table, missing)))? {
                self.send(insert, destination).await?;
            }
        }
        tracing::error!(
            table = table.name,
            number = %self.number,
            "ClickHouse confirmed these rows 16 times, but they are not in the table. The writer gives up. Check whether the rows are older than the retention, or whether another client deletes rows"
        );
        Ok(())
    }
}

/// Fails with [`Failure::Later`] while an earlier attempt is running.
pub(super) async fn wait_for_end(
    destination: &impl Destination,
    number: Number,
) -> Result<(), Failure> {
    if destination.has_running_queries(number).await? {
        return Err(Failure::Later(format!(
            "an earlier attempt at {number} is still running"
        )));
    }
    Ok(())
}

/// Rolls up one view of a fold. Returns once the roll-ups have all months.
pub(crate) async fn roll_up(
    destination: &impl Destination,
    fold: &Fold,
    roll_up: &RollUp,
    in_doubt: bool,
) -> Result<(), Failure> {
    let Some(table) = RawTable::named(&roll_up.table) else {
        return Ok(());
    };
    let months = destination.months_of(table, fold.number).await?;
    let is_asked = in_doubt && !is_back(OldFault::TokensAreProof);
    if !is_asked || is_back(OldFault::FoldsBeginAgain) {
        return step(destination, fold, roll_up, Reach::Both, &months, 0).await;
    }
    wait_for_end(destination, fold.number).await?;
    for attempt in 0..TOKENS {
        let first = missing_months(destination, fold, &roll_up.target.table, &months).await?;
        let second = match &roll_up.next {
            Some(next) => missing_months(destination, fold, &next.table, &months).await?,
            None => first.clone(),
        };
        if first.is_empty() && second.is_empty() {
            return Ok(());
        }
        let both = first.intersection(&second).copied().collect();
        let first_alone = first.difference(&second).copied().collect();
        let second_alone = second.difference(&first).copied().collect();
        for (reach, months) in [
            (Reach::Both, both),
            (Reach::First, first_alone),
            (Reach::Second, second_alone),
        ] {
            step(destination, fold, roll_up, reach, &months, attempt).await?;
        }
    }
    Err(Failure::Later(format!(
        "ClickHouse confirmed the roll-up {} 16 times, but it is not in the table",
        roll_up.name
    )))
}

async fn step(
    destination: &impl Destination,
    fold: &Fold,
    roll_up: &RollUp,
    reach: Reach,
    months: &BTreeSet<Month>,
    attempt: u32,
) -> Result<(), Failure> {
    if months.is_empty() {
        return Ok(());
    }
    let kind = if reach == Reach::Second {
        ":second"
    } else {
        ""
    };
    let token = format!("{}:{}{kind}:{attempt}", fold.number, roll_up.name);
    let step = Step {
        fold: fold.number,
        log_id: fold.log_id,
        roll_up,
        reach,
        months,
        token,
    };
    destination.roll_up(&step).await
}

/// Returns the months without a mark of this fold or a later one.
async fn missing_months(
    destination: &impl Destination,
    fold: &Fold,
    target: &str,
    months: &BTreeSet<Month>,
) -> Result<BTreeSet<Month>, Failure> {
    let marks = destination.marks(target, fold.log_id).await?;
    let is_missing = |month: &Month| marks.get(month).is_none_or(|mark| *mark < fold.number);
    Ok(months.iter().copied().filter(is_missing).collect())
}
