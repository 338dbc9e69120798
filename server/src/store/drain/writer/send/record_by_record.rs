//! Sends records one by one, after ClickHouse rejected their block because of its content. Rejected rows become dead letters.

use std::collections::BTreeSet;

use super::Sent;
use crate::records::native::Frame;
use crate::store::clickhouse::Failure;
use crate::store::drain::dead_letter_header::DeadLetter;
use crate::store::drain::delivery::Parcel;
use crate::store::drain::destination::Destination;
use crate::store::drain::ledger::Range;
use crate::store::drain::tally::Tally;
use crate::store::drain::writer::Writer;
use crate::store::old_fault::{OldFault, is_back};
use crate::store::range_number::Number;
use crate::store::raw_tables::{Day, RawTable};

impl<D: Destination> Writer<D> {
    /// Sends one record's rows of one table. Rejected rows go to the dead-letter folder.
    pub(super) async fn send_record(
        &mut self,
        range: &Range,
        record: &[Sent<'_>],
        tally: &mut Tally,
    ) -> Result<u64, Failure> {
        if record.len() < 2 || !self.was_refused(range, record).await? {
            return self.send_frames(range, record, tally).await;
        }
        // Some frames are dead letters or were retried, each under a number of its own.
        let table = record
            .first()
            .and_then(|one| RawTable::named(one.frame.table));
        if table.is_some_and(|table| table.name != "batches") {
            // The others follow in the same way, because the number of the record is the proof of all its frames.
            return self.send_all_late(range, record, tally).await;
        }
        // These tables have no proof. A row of `batches` keeps the number of its range, which identifies the owner of the batch.
        let mut others = Vec::new();
        for sent in record {
            let number = [sent.retry_number(range)];
            let retried = match table {
                Some(table) => self.destination.periods_of(table, &number).await?,
                None => BTreeSet::new(),
            };
            if retried.is_empty() && self.dead_letters.find(&sent.item_id(range))?.is_none() {
                others.push(*sent);
            }
        }
        self.send_frames(range, &others, tally).await
    }

    /// Whether a frame is a dead letter or was one.
    async fn was_refused(&self, range: &Range, record: &[Sent<'_>]) -> Result<bool, Failure> {
        let mut retried = Vec::new();
        for sent in record {
            if self.dead_letters.find(&sent.item_id(range))?.is_some() {
                return Ok(true);
            }
            retried.push(sent.retry_number(range));
        }
        let is_new = |sent: &Sent<'_>| !self.in_doubt && sent.again.is_none();
        let first = record.first().filter(|first| !is_new(first));
        match first.and_then(|first| RawTable::named(first.frame.table)) {
            Some(table) => {
                let stored = self.destination.periods_of(table, &retried).await?;
                Ok(!stored.is_empty())
            }
            None => Ok(false),
        }
    }

    /// Sends frames of one record under its number.
    pub(super) async fn send_frames(
        &mut self,
        range: &Range,
        record: &[Sent<'_>],
        tally: &mut Tally,
    ) -> Result<u64, Failure> {
        let Some(first) = record.first() else {
            return Ok(0);
        };
        if let [sent] = record
            && self.is_dead_letter(range, sent, tally).await?
        {
            return Ok(0);
        }
        let number = first.number(range);
        // The rows may be stored already: by the block of the range or, only for a frame that is sent alone, by a retry of its dead letter.
        let mut earlier = vec![number.range()];
        if let [sent] = record {
            earlier.push(sent.retry_number(range));
        }
        let frames: Vec<_> = record.iter().map(|sent| sent.frame).collect();
        let parcel = Parcel {
            frames: &frames,
            number,
            earlier: &earlier,
            in_doubt: !is_back(OldFault::RefusedIsNotStored),
            until: self.claims_end(first.frame.table),
        };
        let delivered = if range.number == Number::default() {
            self.deliver_old(range, &frames, &first.seq.to_string())
                .await
        } else {
            parcel.deliver(&self.destination).await
        };
        match delivered {
            Ok(()) => Ok(frames.iter().map(|frame| frame.rows as u64).sum()),
            Err(Failure::Content(error)) => {
                // Asked once, before the first dead letter exists that an operator can retry.
                let stored = self.stored_periods(&parcel).await?;
                let mut rows = 0;
                for sent in record {
                    let missing = missing_rows(sent.frame, &stored);
                    self.keep_refused(range, sent, missing, &error, tally)?;
                    rows += (sent.frame.rows - missing) as u64;
                }
                Ok(rows)
            }
            Err(later) => Err(later),
        }
    }

    /// Returns the periods in which the rows of a rejected parcel are stored.
    async fn stored_periods(&self, parcel: &Parcel<'_>) -> Result<BTreeSet<Day>, Failure> {
        let first = parcel.frames.first();
        let Some(table) = first.and_then(|frame| RawTable::named(frame.table)) else {
            return Ok(BTreeSet::new());
        };
        let numbers = [parcel.earlier, &[parcel.number]].concat();
        match self.destination.periods_of(table, &numbers).await {
            Err(Failure::Content(_)) => Ok(BTreeSet::new()),
            // Rows that may be stored must not become a dead letter.
            stored => stored,
        }
    }

    /// Whether ClickHouse rejected the frame before. Only an operator retries it. Counts its rows, also if they were retried.
    async fn is_dead_letter(
        &self,
        range: &Range,
        sent: &Sent<'_>,
        tally: &mut Tally,
    ) -> Result<bool, Failure> {
        let item = self.dead_letters.find(&sent.item_id(range))?;
        if sent.was_counted {
            return Ok(item.is_some());
        }
        match &item {
            Some(item) => tally.move_to_dead_letter(item),
            None if self.in_doubt || sent.again.is_some() => {
                let retried = sent.retry_number(range);
                self.count_retried(sent, retried, tally).await?;
            }
            None => {}
        }
        Ok(item.is_some())
    }

    /// Keeps the missing rows of a frame as a dead letter.
    pub(super) fn keep_refused(
        &self,
        range: &Range,
        sent: &Sent<'_>,
        rows: usize,
        error: &str,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        if rows == 0 {
            return Ok(());
        }
        let (table, project, id) = (sent.frame.table, sent.project, sent.item_id(range));
        tracing::error!(
            table,
            project,
            rows,
            error,
            id,
            "ClickHouse rejected rows: they are in the dead-letter folder"
        );
        self.metrics.dead_letter_rows.inc_by(rows as u64);
        let item = DeadLetter {
            id,
            table: table.to_owned(),
            project: project.to_owned(),
            rows,
            received_at: sent.received_at,
            error: error.to_owned(),
            token: String::new(),
            number: sent.number(range),
        };
        self.dead_letters.keep(&item, sent.frame.bytes())?;
        if !sent.was_counted {
            tally.move_to_dead_letter(&item);
        }
        Ok(())
    }
}

/// Returns the number of rows of a frame that are not stored.
fn missing_rows(frame: Frame<'_>, stored: &BTreeSet<Day>) -> usize {
    let periods = RawTable::named(frame.table).map(|table| table.periods(&[frame]));
    match periods {
        Some(Ok(periods)) => {
            let missing = periods.into_iter().filter(|(day, _)| !stored.contains(day));
            missing.map(|(_, rows)| rows).sum()
        }
        _ => frame.rows,
    }
}
