//! Cuts a new range out of the log and adds it to a fold.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use unjank_foundation::clock::UnixTime;

use crate::records::record::Record;
use crate::store::clickhouse::Failure;
use crate::store::drain::ledger::{Ledger, Range};
use crate::store::log::LogRecords;
use crate::store::range_number::Number;

/// Returns the records that have rows. Fails if a newer server has written a record, which happens after a downgrade.
pub(super) fn parse(records: &LogRecords) -> Result<Vec<(u64, Record<'_>)>, Failure> {
    let mut parsed = Vec::new();
    for (seq, bytes) in records.iter() {
        match Record::read(bytes) {
            Ok(record) if !record.frames.is_empty() => parsed.push((seq, record)),
            Err(error) if Record::is_of_a_later_version(bytes) => {
                return Err(Failure::Later(format!("record {seq} is {error}")));
            }
            _ => {}
        }
    }
    Ok(parsed)
}

/// Returns how many of the first records have one layout per table. A range sends one block to each table, because its number only shows whether a
/// block of the table is stored.
pub(super) fn same_layouts(records: &[(u64, Record<'_>)]) -> usize {
    let mut layouts = HashMap::new();
    let another = records.iter().position(|(_, record)| {
        let mut frames = record.frames.iter();
        frames.any(|frame| *layouts.entry(frame.table).or_insert(frame.key()) != frame.key())
    });
    another.map_or(records.len(), |first| first.max(1))
}

/// Gives the range its number and adds its rows to a fold.
pub(super) fn join_fold(
    ledger: &mut Ledger,
    range: &mut Range,
    parsed: &[(u64, Record<'_>)],
    now: UnixTime,
    random: u64,
) {
    let duplicates: HashSet<u64> = range.duplicates.iter().copied().collect();
    let again: HashMap<u64, Number> = range.again.iter().copied().collect();
    let sent = || {
        parsed
            .iter()
            .filter(|(seq, _)| !duplicates.contains(seq) && !again.contains_key(seq))
            .map(|(_, record)| record)
    };
    let rows = sent().map(Record::rows).sum::<usize>() as u64;
    range.number = ledger.join_fold(rows, now, random);
    ledger.add_tables(sent().flat_map(|record| record.frames.iter().map(|frame| frame.table)));
    let mut recalled: BTreeMap<Number, BTreeSet<String>> = BTreeMap::new();
    for (seq, record) in parsed {
        let number = again
            .get(seq)
            .filter(|number| **number != Number::default());
        if let Some(number) = number {
            let tables = record.frames.iter().map(|frame| frame.table.to_owned());
            recalled.entry(number.fold()).or_default().extend(tables);
        }
    }
    for (fold, tables) in recalled {
        ledger.recall_fold(fold, tables);
    }
}
