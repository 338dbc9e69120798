//! Sends a range: every table, then the counts of its rows by outcome.

mod after_lost_ledger;
mod record_by_record;

use std::collections::{BTreeMap, HashMap, HashSet};

use unjank_foundation::clock::UnixTime;

use super::Writer;
use crate::records::native::{Block, Frame};
use crate::records::record::Record;
use crate::store::clickhouse::Failure;
use crate::store::drain::dead_letter::Retry;
use crate::store::drain::dead_letter_header::DeadLetter;
use crate::store::drain::delivery::{Parcel, layout};
use crate::store::drain::destination::{Destination, Insert};
use crate::store::drain::ledger::Range;
use crate::store::drain::tally::{Marks, Tally};
use crate::store::log::LogRecords;
use crate::store::old_fault::{OldFault, is_back};
use crate::store::range_number::Number;
use crate::store::raw_tables::RawTable;

/// Maximum number of numbers in one statement.
const ASKED_AT_ONCE: usize = 1_000;

/// A frame with its record and project.
#[derive(Clone, Copy)]
struct Sent<'r> {
    seq: u64,
    frame: Frame<'r>,
    /// The index of the frame among the record's frames of the same table. A request of OpenTelemetry has one for each resource and session.
    place: usize,
    project: &'r str,
    received_at: UnixTime,
    /// The earlier range that first sent this record.
    again: Option<Number>,
    /// Whether `outcomes` has the counts of that range.
    was_counted: bool,
}

impl Sent<'_> {
    /// The number of the rows when the record is sent alone. It never changes, so that every later check finds the rows.
    fn number(&self, range: &Range) -> Number {
        self.again.unwrap_or(range.number).record_number(self.seq)
    }

    /// Returns the id of the dead letter that these rows become if ClickHouse rejects them.
    fn item_id(&self, range: &Range) -> String {
        let (number, table) = (self.number(range), self.frame.table);
        match self.place {
            0 => format!("{number}-{table}"),
            place => format!("{number}-{table}-{place}"),
        }
    }

    /// Returns the number that the rows get if their dead letter is retried.
    fn retry_number(&self, range: &Range) -> Number {
        Retry::new(&self.item_id(range), self.received_at).number()
    }
}

/// Whether two frames are of the same record and table, and so get the same number.
fn is_same_record(one: &Sent<'_>, next: &Sent<'_>) -> bool {
    one.seq == next.seq
        && one.frame.key() == next.frame.key()
        && !is_back(OldFault::FramesShareNumbers)
}

/// Returns the frames in the order of their table. ClickHouse sorts a block only if a row is out of order.
fn in_order<'r>(sent: &[Sent<'r>]) -> Vec<Frame<'r>> {
    let table = sent
        .first()
        .and_then(|one| RawTable::named(one.frame.table));
    let place = |one: &Sent<'r>| {
        let (hour, session) = table?.hour_and_session(&one.frame)?;
        Some((one.project, hour, one.received_at, session))
    };
    let mut placed: Vec<_> = sent.iter().map(|one| (place(one), one.frame)).collect();
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, frame)| frame).collect()
}

/// The rows of a range by table, and its counts.
#[derive(Default)]
struct Sorted<'r> {
    tables: BTreeMap<&'r [u8], Vec<Sent<'r>>>,
    again: Vec<Sent<'r>>,
    tally: Tally,
}

impl<D: Destination> Writer<D> {
    /// Sends every table of the range, then the counts. Returns the number of stored rows.
    pub(crate) async fn send(
        &mut self,
        range: &Range,
        records: &LogRecords,
    ) -> Result<u64, Failure> {
        let Sorted {
            tables,
            again,
            mut tally,
        } = self.sort(range, records)?;
        // A batch belongs to the range whose number it has in `batches`, so `batches` must be stored before the rest of the batch. `split_batches` is
        // even earlier, so that ClickHouse knows that a batch is split before it has a half of it.
        let place = |sent: &Vec<Sent<'_>>| match sent.first().map(|sent| sent.frame.table) {
            Some("split_batches") => 0,
            Some("batches") => 1,
            _ => 2,
        };
        let mut tables: Vec<_> = tables.into_values().collect();
        tables.sort_by_key(place);
        let mut rows = 0;
        for sent in &tables {
            rows += self.send_table(range, sent, &mut tally).await?;
        }
        rows += self.send_again(range, &again, &mut tally).await?;
        self.send_tally(range, &tally).await?;
        Ok(rows)
    }

    /// Sorts a range by table.
    fn sort<'r>(&self, range: &Range, records: &'r LogRecords) -> Result<Sorted<'r>, Failure> {
        let duplicates: HashSet<u64> = range.duplicates.iter().copied().collect();
        let again: HashMap<u64, Number> = range.again.iter().copied().collect();
        let mut sorted = Sorted::default();
        // Records without rows to send have no number in ClickHouse. They were counted together with the records before and after them.
        let mut passed_by = again
            .iter()
            .filter(|(_, number)| self.counted.has(**number))
            .map(|(seq, _)| *seq);
        let counted_before = passed_by.by_ref().max().unwrap_or_default();
        // The place of each table in a record, and the number of its frames so far. A request may have thousands of frames.
        let mut known = hashbrown::HashMap::<&[u8], (usize, usize)>::new();
        for (seq, bytes) in records.iter() {
            debug_assert!(
                (range.first..=range.last).contains(&seq),
                "the range has the record"
            );
            let record = match Record::read(bytes) {
                Ok(record) => record,
                Err(error) => {
                    self.keep_unreadable(seq, bytes, &error.to_string())?;
                    continue;
                }
            };
            let (duplicate, earlier) = (duplicates.contains(&seq), again.get(&seq).copied());
            let was_counted = match earlier {
                Some(number) => self.counted.has(number),
                None => (record.frames.is_empty() || duplicate) && seq < counted_before,
            };
            if !was_counted {
                sorted.tally.add_record(&record, duplicate);
            }
            let Record {
                project,
                received_at,
                frames,
                ..
            } = record;
            if duplicate || earlier == Some(Number::default()) {
                continue;
            }
            known.clear();
            let first_again = sorted.again.len();
            for frame in frames {
                let next = known.len();
                let (_, earlier_frames) = known.entry(frame.key()).or_insert((next, 0));
                let place = match is_back(OldFault::FramesShareNumbers) {
                    true => 0,
                    false => *earlier_frames,
                };
                *earlier_frames += 1;
                let sent = Sent {
                    seq,
                    frame,
                    place,
                    project,
                    received_at,
                    again: earlier,
                    was_counted,
                };
                match earlier {
                    Some(_) => sorted.again.push(sent),
                    None => sorted.tables.entry(frame.key()).or_default().push(sent),
                }
            }
            // The frames of a table follow each other.
            let place = |sent: &Sent<'_>| known.get(sent.frame.key()).map(|(place, _)| *place);
            sorted.again[first_again..].sort_by_cached_key(place);
        }
        Ok(sorted)
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
        let (table, layout) = (frame.table, layout(frame));
        let rows = sent.iter().map(|sent| sent.frame.rows).sum::<usize>() as u64;
        if self.delivered.contains(&layout) {
            return Ok(rows);
        }
        let mut one_by_one = range.one_by_one.contains(&layout);
        if !one_by_one && self.was_sent_alone(range, sent).await? {
            self.send_one_by_one(&layout).await?;
            one_by_one = true;
        }
        if self.is_missing_after_roll_up(range, sent).await? {
            return self.send_all_late(range, sent, tally).await;
        }
        if !one_by_one {
            let frames = in_order(sent);
            let seconds = self.metrics.insert_seconds.with_label_values(&[table]);
            let timer = seconds.start_timer();
            let delivered = self.deliver(range, &frames).await;
            timer.observe_duration();
            match delivered {
                Ok(()) => {
                    self.delivered.insert(layout);
                    return Ok(rows);
                }
                Err(Failure::Content(error)) => {
                    tracing::warn!(
                        table,
                        error,
                        "ClickHouse rejected a block because of its content: its rows are sent record by record"
                    );
                    self.send_one_by_one(&layout).await?;
                }
                Err(later) => return Err(later),
            }
        }
        let mut rows = 0;
        for record in sent.chunk_by(is_same_record) {
            rows += self.send_record(range, record, tally).await?;
        }
        Ok(rows)
    }

    /// Whether ClickHouse rejected the block before. An older copy of the ledger does not record that.
    async fn was_sent_alone(&self, range: &Range, sent: &[Sent<'_>]) -> Result<bool, Failure> {
        let table = sent
            .first()
            .and_then(|one| RawTable::named(one.frame.table));
        let Some(table) = table.filter(|_| self.in_doubt && range.number != Number::default())
        else {
            return Ok(false);
        };
        let mut retried = Vec::new();
        for one in sent {
            if self.dead_letters.find(&one.item_id(range))?.is_some() {
                return Ok(true);
            }
            retried.push(one.retry_number(range));
        }
        for some in retried.chunks(ASKED_AT_ONCE) {
            let found = self.destination.has_records_of(table, range.number, some);
            if found.await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Records that the rows of a layout are sent record by record from now on.
    async fn send_one_by_one(&mut self, layout: &str) -> Result<(), Failure> {
        let mut next = self.ledger.clone();
        if let Some(range) = &mut next.range {
            range.one_by_one.push(layout.to_owned());
        }
        self.commit(next).await
    }

    /// Sends a block. If ClickHouse rejects it because of its content but has all its rows, the block counts as delivered.
    async fn deliver(&mut self, range: &Range, frames: &[Frame<'_>]) -> Result<(), Failure> {
        if range.number == Number::default() {
            return self
                .deliver_old(range, frames, &format!("{}-{}", range.first, range.last))
                .await;
        }
        let parcel = Parcel {
            frames,
            number: range.number,
            earlier: &[],
            in_doubt: self.in_doubt,
            until: frames.first().and_then(|one| self.claims_end(one.table)),
        };
        let delivered = parcel.deliver(&self.destination).await;
        let table = frames
            .first()
            .and_then(|frame| RawTable::named(frame.table));
        if let (Err(Failure::Content(error)), Some(table)) = (&delivered, table)
            && !is_back(OldFault::RefusedIsNotStored)
            && parcel
                .missing(&self.destination, table)
                .await
                .is_ok_and(|missing| missing.is_empty())
        {
            tracing::warn!(
                table = table.name,
                error,
                "ClickHouse reported an error after it had stored all rows: check the materialized views that you have added"
            );
            return Ok(());
        }
        delivered
    }

    fn keep_unreadable(&self, seq: u64, bytes: &[u8], error: &str) -> Result<(), Failure> {
        tracing::error!(
            seq,
            error,
            "cannot decode a record of the ingest log: it is in the dead-letter folder"
        );
        let item = DeadLetter {
            id: format!("{}-{seq:016x}-record", self.ledger.log_id),
            error: error.to_owned(),
            ..DeadLetter::default()
        };
        self.dead_letters.keep(&item, bytes).map_err(Failure::from)
    }

    async fn send_tally(&self, range: &Range, tally: &Tally) -> Result<(), Failure> {
        if range.number == Number::default() {
            let Some(bytes) = tally.frame() else {
                return Ok(());
            };
            let frames = [Frame::read(&bytes)?];
            return self
                .deliver_old(range, &frames, &format!("{}-{}", range.first, range.last))
                .await;
        }
        let mut marks = Marks::up_to(self.ledger.log_id, range.number);
        if range.first <= self.ledger.folds_wait_for {
            // Earlier ranges may not be counted yet.
            let origins = range.again.iter().map(|(_, number)| number.range());
            marks.alone = origins.chain([range.number]).collect();
        }
        tally
            .deliver(&self.destination, &marks, self.in_doubt)
            .await
    }

    /// Inserts as an older server did, which numbered no ranges: only the tokens prevent duplicates.
    async fn deliver_old(
        &self,
        range: &Range,
        frames: &[Frame<'_>],
        what: &str,
    ) -> Result<(), Failure> {
        let Some(first) = frames.first() else {
            return Ok(());
        };
        let mut block = Block::join(frames)?;
        if let Some(fold) = range
            .old_fold
            .filter(|_| RawTable::named(first.table).is_some_and(|raw| raw.name != "batches"))
        {
            block = block.numbered_u64("fold", fold);
        }
        let log_id = range.old_log_id.unwrap_or(self.ledger.log_id);
        let insert = Insert {
            table: first.table,
            block,
            token: format!("{log_id}:{what}:{}", layout(first)),
            number: Number::default(),
            only: None,
        };
        self.destination.insert(insert).await
    }
}
