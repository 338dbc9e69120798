//! Checks the stored data after the faults have ended and all queues are empty.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::rows::{Row, number_of};
use super::store::EVENTS;
use super::world::{Running, World};

/// Returns one line for each violation.
pub(super) fn judge(world: &World, servers: &[&Running]) -> Vec<String> {
    let mut wrong = Vec::new();
    events(world, &mut wrong);
    for (raw, roll_ups) in [
        ("spans", &["spans_hourly", "spans_daily"][..]),
        ("traffic", &["traffic_daily"]),
    ] {
        let expected = counts(&world.store.rows(raw), "id");
        for table in roll_ups {
            let rows = world.store.rows(table);
            let events: Vec<Row> = rows
                .into_iter()
                .filter(|row| row.contains_key("id"))
                .collect();
            let found = counts(&events, "id");
            // With a log, the knowledge of its folds is lost, and with a dead letter, the knowledge of its retry. The auditor finds such hours and
            // rebuilds them from raw rows.
            let truth = world.truth();
            let lost_all = truth.lost_a_log && truth.lost_a_ledger;
            let may_lack = |id: u128| lost_all || truth.lost_retries.contains(&(id as u64));
            let differ = differences(&expected, &found).into_iter();
            wrong.extend(
                differ
                    .filter(|(id, expected, found)| found > expected || !may_lack(*id))
                    .map(|(id, expected, found)| {
                        format!("event {id:x} is {expected} times in raw rows and {found} times in {table}")
                    }),
            );
        }
    }
    outcomes(world, &mut wrong);
    let batches = counts(&world.store.rows("batches"), "batch_id");
    for (id, count) in batches.iter().filter(|(_, count)| **count > 1) {
        wrong.push(format!("batch {id:x} is stored {count} times"));
    }
    for running in servers {
        drained(running, &mut wrong);
    }
    wrong
}

/// Nothing is left to do for a server.
fn drained(running: &Running, wrong: &mut Vec<String>) {
    let ledger = running.files.read(Path::new("/data/drain.json"));
    if !ledger.is_ok_and(|text| String::from_utf8_lossy(&text).contains("\"folds\":[]")) {
        wrong.push("folds wait, or there is no ledger".to_owned());
    }
    let (records, bytes) = (running.log.pending_records(), running.log.pending_bytes());
    if (records, bytes) != (0, 0) {
        wrong.push(format!(
            "everything is drained, but {records} records with {bytes} bytes still count as pending"
        ));
    }
}

/// Every acknowledged event is stored once, and no event is stored twice.
fn events(world: &World, wrong: &mut Vec<String>) {
    let truth = world.truth();
    // Records were lost in the middle of a range: ClickHouse has the batch, but not all of its events.
    let begun: BTreeSet<u128> = world
        .store
        .rows("batches")
        .iter()
        .filter(|row| number_of(row).seconds() <= truth.lost_at)
        .map(|row| row["batch_id"].number())
        .collect();
    let mut stored: BTreeMap<u128, u64> = BTreeMap::new();
    for table in EVENTS {
        let counts = counts(&world.store.rows(table), "id");
        for (id, count) in counts {
            if truth.events.get(&(id as u64)) != Some(&table) {
                wrong.push(format!("event {id:x} of {table} was never sent"));
            }
            if count > 1 {
                wrong.push(format!("event {id:x} of {table} is stored {count} times"));
            }
            stored.insert(id, count);
        }
    }
    for id in truth.acknowledged.difference(&truth.excused) {
        let is_half_lost = truth.ever_lost.contains(id)
            && truth
                .appended
                .get(id)
                .is_some_and(|batches| !batches.is_disjoint(&begun));
        if !stored.contains_key(&u128::from(*id)) && !is_half_lost {
            let table = truth.events.get(id).copied().unwrap_or_default();
            wrong.push(format!(
                "event {id:x} of {table} was acknowledged but is lost"
            ));
        }
    }
}

/// The counts in `outcomes` must match the stored events of each project and signal.
fn outcomes(world: &World, wrong: &mut Vec<String>) {
    let mut books: BTreeMap<(String, &str), Book> = BTreeMap::new();
    for table in EVENTS {
        for row in world.store.rows(table) {
            let project = row["project"].text().to_owned();
            books.entry((project, table)).or_default().rows += 1;
        }
    }
    for row in world.store.rows("outcomes") {
        let signal = EVENTS
            .into_iter()
            .find(|table| *table == row["signal"].text());
        let Some(signal) = signal else { continue };
        let book = books.entry((row["project"].text().to_owned(), signal));
        let book = book.or_default();
        let count = row["count"].number() as u64 as i64;
        match row["outcome"].text() {
            "stored" => book.stored += count,
            "dead_letter" => book.refused += count,
            _ => {}
        }
    }
    for ((project, table), book) in books {
        let Book {
            rows,
            stored,
            refused,
        } = book;
        let is_short = world.truth().lost_records && stored <= rows;
        if (stored, refused) != (rows, 0) && !is_short {
            wrong.push(format!(
                "{rows} events of {project} are in {table}, {stored} counted as stored and {refused} as dead letters"
            ));
        }
    }
}

/// Rows of a signal, and how `outcomes` counts them.
#[derive(Default)]
struct Book {
    rows: i64,
    stored: i64,
    refused: i64,
}

fn counts(rows: &[Row], column: &str) -> BTreeMap<u128, u64> {
    let mut counts = BTreeMap::new();
    for row in rows {
        *counts.entry(row[column].number()).or_default() += 1;
    }
    counts
}

/// Ids whose expected and actual counts differ, with both counts.
fn differences(
    expected: &BTreeMap<u128, u64>,
    found: &BTreeMap<u128, u64>,
) -> Vec<(u128, u64, u64)> {
    let ids: BTreeSet<u128> = expected.keys().chain(found.keys()).copied().collect();
    let count = |counts: &BTreeMap<u128, u64>, id| counts.get(&id).copied().unwrap_or_default();
    ids.into_iter()
        .map(|id| (id, count(expected, id), count(found, id)))
        .filter(|(_, expected, found)| expected != found)
        .collect()
}
