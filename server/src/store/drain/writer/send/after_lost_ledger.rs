//! Sends records that an earlier range has sent completely or in part, after the ledger of that range was lost.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap};

use super::{Sent, is_same_record};
use crate::store::clickhouse::Failure;
use crate::store::drain::dead_letter_header::DeadLetter;
use crate::store::drain::delivery::{Parcel, wait_for_end};
use crate::store::drain::destination::Destination;
use crate::store::drain::ledger::Range;
use crate::store::drain::tally::Tally;
use crate::store::drain::writer::Writer;
use crate::store::range_number::Number;
use crate::store::raw_tables::{Day, RawTable};
use crate::store::roll_ups::fold::RollUp;

impl<D: Destination> Writer<D> {
    /// Sends the missing rows of each record. Returns the number of stored rows.
    pub(super) async fn send_again(
        &mut self,
        range: &Range,
        again: &[Sent<'_>],
        tally: &mut Tally,
    ) -> Result<u64, Failure> {
        // An INSERT of an earlier process may still be running.
        let origins: BTreeSet<Number> = again
            .iter()
            .filter_map(|sent| Some(sent.again?.range()))
            .collect();
        for origin in origins {
            wait_for_end(&self.destination, origin).await?;
        }
        let mut rows = 0;
        let (mut rolled_up, mut blocks) = (HashMap::new(), HashMap::new());
        for record in again.chunk_by(is_same_record) {
            let Some(sent) = record.first() else {
                continue;
            };
            if self.is_in_block(record, &mut blocks).await? {
                rows += record
                    .iter()
                    .map(|sent| sent.frame.rows as u64)
                    .sum::<u64>();
                continue;
            }
            let fold = (sent.frame.table, sent.again.unwrap_or_default().fold());
            let is_late = match rolled_up.get(&fold) {
                Some(is_late) => *is_late,
                None => self.is_rolled_up(fold).await?,
            };
            rolled_up.insert(fold, is_late);
            rows += if is_late {
                self.send_all_late(range, record, tally).await?
            } else {
                self.send_record(range, record, tally).await?
            };
        }
        Ok(rows)
    }

    /// Whether the block of the record's range is stored in all periods of the record. After a restore this holds for most records, so one query per
    /// range and table proves most records. `blocks` keeps the answers.
    async fn is_in_block<'r>(
        &self,
        record: &[Sent<'r>],
        blocks: &mut HashMap<(Number, &'r str), BTreeSet<Day>>,
    ) -> Result<bool, Failure> {
        let frames: Vec<_> = record.iter().map(|sent| sent.frame).collect();
        let Some((table, sent)) = record
            .first()
            .and_then(|sent| Some((RawTable::named(sent.frame.table)?, sent)))
        else {
            return Ok(false);
        };
        // Rows whose times cannot be read are dead letters.
        let (Some(number), Ok(periods)) = (sent.again, table.periods(&frames)) else {
            return Ok(false);
        };
        let block = match blocks.entry((number.range(), sent.frame.table)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(unknown) => {
                let range = [number.range()];
                unknown.insert(self.destination.periods_of(table, &range).await?)
            }
        };
        Ok(periods.keys().all(|period| block.contains(period)))
    }

    /// Whether a roll-up of the table has the fold or a later one. Rows without a number are rolled up by views.
    pub(super) async fn is_rolled_up(
        &self,
        (table, fold): (&str, Number),
    ) -> Result<bool, Failure> {
        if fold == Number::default() {
            return Ok(false);
        }
        let mut roll_ups = self.destination.roll_ups().await?;
        roll_ups.retain(|roll_up| roll_up.table == table);
        for target in roll_ups.iter().flat_map(RollUp::targets) {
            let marks = self.destination.marks(&target.table, self.ledger.log_id);
            if marks.await?.into_values().any(|mark| mark >= fold) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether rows of a table are missing although their fold is rolled up. This happens if an older ledger was restored, or if a rebuild has taken
    /// over the fold.
    pub(super) async fn is_missing_after_roll_up(
        &self,
        range: &Range,
        all: &[Sent<'_>],
    ) -> Result<bool, Failure> {
        let table = all.first().and_then(|one| RawTable::named(one.frame.table));
        // Rows of `batches` keep the number of their range, because it identifies the owner of the batch.
        let table = table.filter(|table| table.name != "batches");
        let Some(table) = table.filter(|_| self.in_doubt && range.number != Number::default())
        else {
            return Ok(false);
        };
        let frames: Vec<_> = all.iter().map(|one| one.frame).collect();
        let parcel = Parcel {
            frames: &frames,
            number: range.number,
            earlier: &[],
            in_doubt: true,
            until: None,
        };
        let missing = parcel.missing(&self.destination, table).await?;
        let fold = (table.name, range.number.fold());
        Ok(!missing.is_empty() && self.is_rolled_up(fold).await?)
    }

    /// Sends the missing rows of a table whose fold is already rolled up. Returns the number of stored rows.
    pub(super) async fn send_all_late(
        &mut self,
        range: &Range,
        all: &[Sent<'_>],
        tally: &mut Tally,
    ) -> Result<u64, Failure> {
        let mut rows = 0;
        for sent in all {
            rows += self.send_late(range, sent, tally).await?;
        }
        Ok(rows)
    }

    /// Sends rows whose fold is already rolled up. They had been dead letters that the folder has lost since, or other frames of their record are dead letters.
    async fn send_late(
        &mut self,
        range: &Range,
        sent: &Sent<'_>,
        tally: &mut Tally,
    ) -> Result<u64, Failure> {
        let (number, id) = (sent.number(range), sent.item_id(range));
        let Some(table) = RawTable::named(sent.frame.table) else {
            return Ok(0);
        };
        let parcel = Parcel {
            frames: &[sent.frame],
            number,
            earlier: &[number.range()],
            in_doubt: true,
            until: None,
        };
        let missing = parcel.missing(&self.destination, table).await?;
        let rows: usize = missing.into_values().sum();
        if rows == 0 || self.dead_letters.find(&id)?.is_some() {
            let alone = std::slice::from_ref(sent);
            return self.send_frames(range, alone, tally).await;
        }
        let item = DeadLetter {
            id,
            table: table.name.to_owned(),
            project: sent.project.to_owned(),
            rows,
            received_at: sent.received_at,
            error: String::new(),
            token: String::new(),
            number,
        };
        match item.send(sent.frame, &self.destination).await {
            Ok(()) if sent.was_counted => Ok(rows as u64),
            Ok(()) => {
                tally.move_to_dead_letter(&item);
                Ok(rows as u64)
            }
            Err(Failure::Content(error)) => {
                self.keep_refused(range, sent, rows, &error, tally)?;
                Ok(0)
            }
            Err(later) => Err(later),
        }
    }

    /// Counts retried rows as dead letters. The retry has already moved them from `dead_letter` to `stored`.
    pub(super) async fn count_retried(
        &self,
        sent: &Sent<'_>,
        retried: Number,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        let Some(table) = RawTable::named(sent.frame.table) else {
            return Ok(());
        };
        let stored = self.destination.periods_of(table, &[retried]).await?;
        let mut rows = table.periods(&[sent.frame])?;
        rows.retain(|period, _| stored.contains(period));
        if rows.is_empty() {
            return Ok(());
        }
        tally.move_to_dead_letter(&DeadLetter {
            table: table.name.to_owned(),
            project: sent.project.to_owned(),
            rows: rows.values().sum(),
            received_at: sent.received_at,
            ..DeadLetter::default()
        });
        Ok(())
    }
}
