//! Compares the batches that were acknowledged with the rows in the store.

use std::collections::HashMap;

use anyhow::Result;
use serde::Serialize;
use unjank_protocol::Signal;
use uuid::Uuid;

use crate::fingerprint::SIGNALS;
use crate::ledger::{Claim, Ledger, Sum};

/// Reads the store. All methods are restricted to the rows of one run.
pub(crate) trait Store {
    /// Returns count and sum of the fingerprints of a signal's rows, by session.
    async fn sums(&self, signal: Signal) -> Result<HashMap<Uuid, Sum>>;

    /// Returns the fingerprints of all rows of the given sessions.
    async fn rows(&self, signal: Signal, sessions: &[Uuid]) -> Result<Vec<(Uuid, u64)>>;

    /// Returns how often each batch id occurs in the table of batches.
    async fn batches(&self) -> Result<HashMap<Uuid, u64>>;

    /// Returns the number of distinct stacks that the janks reference, and how many of them `table` contains.
    async fn stacks(&self, table: &str) -> Result<(u64, u64)>;
}

/// The comparison of one table.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct TableCheck {
    pub(crate) table: String,
    /// Rows that were acknowledged.
    pub(crate) expected: u64,
    /// Rows found.
    pub(crate) found: u64,
    /// Events that the receipts listed as rejected, and that are not expected.
    pub(crate) rejected: u64,
    /// Rows of unanswered batches that were found. They are neither right nor wrong.
    pub(crate) unanswered: u64,
    /// Acknowledged rows that are missing.
    pub(crate) lost: u64,
    /// Surplus copies of rows that were sent.
    pub(crate) doubled: u64,
    /// Rows that were never sent, or whose batch was rejected.
    pub(crate) unexpected: u64,
}

impl TableCheck {
    pub(crate) fn holds(&self) -> bool {
        self.lost == 0 && self.doubled == 0 && self.unexpected == 0
    }

    fn judge(&mut self, claim: Claim, found: u64) {
        let certain = u64::from(claim.certain);
        let possible = u64::from(claim.possible);
        self.lost += certain.saturating_sub(found);
        self.unanswered += found.saturating_sub(certain).min(possible);
        let surplus = found.saturating_sub(certain + possible);
        if certain + possible > 0 {
            self.doubled += surplus;
        } else {
            self.unexpected += surplus;
        }
    }
}

/// Maximum number of sessions that one query compares row by row.
const SESSIONS_AT_ONCE: usize = 500;

/// Compares every signal and the table of batches, and checks that all stacks that janks reference exist.
pub(crate) async fn compare(ledger: &Ledger, store: &impl Store) -> Result<Vec<TableCheck>> {
    let mut checks = Vec::new();
    for signal in SIGNALS {
        checks.push(compare_signal(ledger, store, signal).await?);
    }
    checks.push(compare_batches(ledger, store).await?);
    for table in ["stacks", "stack_classes"] {
        checks.push(compare_stacks(store, table).await?);
    }
    Ok(checks)
}

/// Checks only for missing stacks. A stack is stored once for many janks, and repeated rows are harmless.
async fn compare_stacks(store: &impl Store, table: &str) -> Result<TableCheck> {
    let (named, held) = store.stacks(table).await?;
    Ok(TableCheck {
        table: table.to_owned(),
        expected: named,
        found: held,
        lost: named.saturating_sub(held),
        ..TableCheck::default()
    })
}

/// Compares sums by session, and compares row by row only where the sums differ.
async fn compare_signal(ledger: &Ledger, store: &impl Store, signal: Signal) -> Result<TableCheck> {
    let expected = ledger.certain(signal);
    let found = store.sums(signal).await?;
    let mut check = TableCheck {
        table: signal.as_str().to_owned(),
        expected: ledger.certain_rows(signal),
        found: found.values().map(|sum| sum.rows).sum(),
        rejected: ledger.rejected(signal),
        ..TableCheck::default()
    };
    let mut differing: Vec<Uuid> = expected
        .keys()
        .chain(found.keys())
        .filter(|session| expected.get(session) != found.get(session))
        .copied()
        .collect();
    differing.sort_unstable();
    differing.dedup();
    for sessions in differing.chunks(SESSIONS_AT_ONCE) {
        let claims = ledger.claims(signal, sessions);
        let mut counts: HashMap<(Uuid, u64), u64> = HashMap::new();
        for row in store.rows(signal, sessions).await? {
            *counts.entry(row).or_default() += 1;
        }
        judge_all(&mut check, &claims, &counts);
    }
    Ok(check)
}

async fn compare_batches(ledger: &Ledger, store: &impl Store) -> Result<TableCheck> {
    let counts = store.batches().await?;
    let mut claims: HashMap<Uuid, Claim> = HashMap::new();
    let (certain, possible) = ledger.batch_ids();
    let mut check = TableCheck {
        table: "batches".to_owned(),
        expected: certain.len() as u64,
        found: counts.values().sum(),
        ..TableCheck::default()
    };
    for id in certain {
        // A batch that was sent twice counts once: its second receipt said `duplicate`.
        claims.entry(id).or_default().certain = 1;
    }
    for id in possible {
        claims.entry(id).or_default().possible = 1;
    }
    judge_all(&mut check, &claims, &counts);
    Ok(check)
}

fn judge_all<K: std::hash::Hash + Eq>(
    check: &mut TableCheck,
    claims: &HashMap<K, Claim>,
    counts: &HashMap<K, u64>,
) {
    for (key, claim) in claims {
        check.judge(*claim, counts.get(key).copied().unwrap_or_default());
    }
    for (key, count) in counts {
        if !claims.contains_key(key) {
            check.judge(Claim::default(), *count);
        }
    }
}

#[cfg(test)]
#[path = "verify_tests.rs"]
mod tests;
