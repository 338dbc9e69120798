//! Puts each kind of error into an otherwise correct store, and expects the comparison to find it.

use super::*;
use crate::delivery::Fate;
use crate::parcel::Manifest;
use crate::post::Acceptance;

/// An in-memory store with the rows of one table.
#[derive(Clone, Default)]
struct Memory {
    rows: Vec<(Uuid, u64)>,
    batches: Vec<Uuid>,
    missing_stacks: u64,
}

impl Store for Memory {
    async fn sums(&self, signal: Signal) -> Result<HashMap<Uuid, Sum>> {
        let mut sums: HashMap<Uuid, Sum> = HashMap::new();
        if signal == Signal::Spans {
            for (session, fingerprint) in &self.rows {
                sums.entry(*session).or_default().add(*fingerprint);
            }
        }
        Ok(sums)
    }

    async fn rows(&self, _: Signal, sessions: &[Uuid]) -> Result<Vec<(Uuid, u64)>> {
        let wanted = |row: &&(Uuid, u64)| sessions.contains(&row.0);
        Ok(self.rows.iter().filter(wanted).copied().collect())
    }

    async fn batches(&self) -> Result<HashMap<Uuid, u64>> {
        let mut counts: HashMap<Uuid, u64> = HashMap::new();
        for id in &self.batches {
            *counts.entry(*id).or_default() += 1;
        }
        Ok(counts)
    }

    async fn stacks(&self, table: &str) -> Result<(u64, u64)> {
        let missing = if table == "stacks" {
            self.missing_stacks
        } else {
            0
        };
        Ok((9, 9 - missing))
    }
}

const SESSIONS: u128 = 40;

fn manifest(session: u128, batch: u64) -> Manifest {
    let fingerprints = (0..10).map(|event| (session as u64) << 32 | batch << 8 | event);
    Manifest {
        session: Uuid::from_u128(session),
        fingerprints: vec![(Signal::Spans, fingerprints.collect())],
        invalid: Vec::new(),
    }
}

fn acknowledged() -> Fate {
    Fate::Acknowledged(Acceptance {
        accepted: 10,
        ..Acceptance::default()
    })
}

/// Returns a ledger and a store with 40 sessions of two batches of ten spans, all acknowledged and stored.
fn correct_store() -> (Ledger, Memory) {
    let mut ledger = Ledger::default();
    let mut memory = Memory::default();
    for session in 1..=SESSIONS {
        for batch in 0..2 {
            let manifest = manifest(session, batch);
            let id = Uuid::from_u128(session << 8 | u128::from(batch));
            memory.batches.push(id);
            for fingerprint in &manifest.fingerprints[0].1 {
                memory.rows.push((manifest.session, *fingerprint));
            }
            ledger.record(id, manifest, &acknowledged());
        }
    }
    (ledger, memory)
}

async fn spans(ledger: &Ledger, memory: &Memory) -> TableCheck {
    compare(ledger, memory).await.unwrap().swap_remove(0)
}

fn table<'a>(checks: &'a [TableCheck], name: &str) -> &'a TableCheck {
    checks.iter().find(|check| check.table == name).unwrap()
}

#[tokio::test]
async fn a_correct_store_holds() {
    let (ledger, memory) = correct_store();
    let checks = compare(&ledger, &memory).await.unwrap();
    assert!(checks.iter().all(TableCheck::holds), "{checks:?}");
    assert_eq!((checks[0].expected, checks[0].found), (800, 800));
    assert_eq!(table(&checks, "batches").found, 80);
}

#[tokio::test]
async fn a_lost_row_is_found() {
    let (ledger, mut memory) = correct_store();
    memory.rows.remove(123);
    let check = spans(&ledger, &memory).await;
    assert_eq!((check.lost, check.doubled, check.unexpected), (1, 0, 0));
}

#[tokio::test]
async fn a_lost_session_is_found() {
    let (ledger, mut memory) = correct_store();
    memory.rows.retain(|row| row.0 != Uuid::from_u128(7));
    assert_eq!(spans(&ledger, &memory).await.lost, 20);
}

#[tokio::test]
async fn a_duplicated_row_is_found() {
    let (ledger, mut memory) = correct_store();
    memory.rows.push(memory.rows[55]);
    let check = spans(&ledger, &memory).await;
    assert_eq!((check.lost, check.doubled, check.unexpected), (0, 1, 0));
}

#[tokio::test]
async fn a_lost_and_a_duplicated_row_are_found_although_the_counts_agree() {
    for (lost, doubled) in [(0, 1), (0, 700)] {
        let (ledger, mut memory) = correct_store();
        memory.rows[lost] = memory.rows[doubled];
        let check = spans(&ledger, &memory).await;
        assert_eq!(check.expected, check.found);
        assert_eq!((check.lost, check.doubled, check.unexpected), (1, 1, 0));
    }
}

#[tokio::test]
async fn an_unexpected_row_is_found_in_known_and_unknown_sessions() {
    for session in [3, 999] {
        let (ledger, mut memory) = correct_store();
        memory.rows.push((Uuid::from_u128(session), 42));
        let check = spans(&ledger, &memory).await;
        assert_eq!((check.lost, check.doubled, check.unexpected), (0, 0, 1));
    }
}

#[tokio::test]
async fn a_changed_row_counts_as_one_lost_and_one_unexpected() {
    let (ledger, mut memory) = correct_store();
    memory.rows[9].1 ^= 1 << 60;
    let check = spans(&ledger, &memory).await;
    assert_eq!((check.lost, check.doubled, check.unexpected), (1, 0, 1));
}

#[tokio::test]
async fn a_row_of_a_rejected_batch_is_unexpected() {
    let (mut ledger, mut memory) = correct_store();
    ledger.record(
        Uuid::max(),
        manifest(5, 9),
        &Fate::Refused("422".to_owned()),
    );
    memory.rows.push((Uuid::from_u128(5), 5 << 32 | 9 << 8));
    assert_eq!(spans(&ledger, &memory).await.unexpected, 1);
}

#[tokio::test]
async fn an_unanswered_batch_may_be_stored_once_or_not_at_all() {
    let (mut ledger, mut memory) = correct_store();
    ledger.record(
        Uuid::max(),
        manifest(5, 9),
        &Fate::Unknown("timeout".to_owned()),
    );
    assert!(spans(&ledger, &memory).await.holds());
    let rows = manifest(5, 9).fingerprints[0].1.clone();
    let rows: Vec<(Uuid, u64)> = rows.iter().map(|row| (Uuid::from_u128(5), *row)).collect();
    memory.rows.extend(&rows);
    let once = spans(&ledger, &memory).await;
    assert!(once.holds());
    assert_eq!(once.unanswered, 10);
    memory.rows.extend(&rows);
    assert_eq!(spans(&ledger, &memory).await.doubled, 10);
}

#[tokio::test]
async fn a_missing_or_duplicated_batch_id_is_found() {
    let (ledger, mut memory) = correct_store();
    memory.batches[3] = memory.batches[4];
    let checks = compare(&ledger, &memory).await.unwrap();
    let batches = table(&checks, "batches");
    assert_eq!(
        (batches.lost, batches.doubled, batches.unexpected),
        (1, 1, 0)
    );
}

#[tokio::test]
async fn a_missing_stack_of_a_jank_is_found() {
    let (ledger, mut memory) = correct_store();
    memory.missing_stacks = 2;
    let checks = compare(&ledger, &memory).await.unwrap();
    assert_eq!(table(&checks, "stacks").lost, 2);
    assert!(table(&checks, "stack_classes").holds());
}
