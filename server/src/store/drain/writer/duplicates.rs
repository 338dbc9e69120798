//! Finds batches that are stored already: by an earlier range, earlier in the same range, or by another server.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::time::Duration;

use tokio::time::{Instant, timeout};
use unjank_database::{Claim, ClaimStore, Claimed, Claiming, ControlError, Owner};
use uuid::Uuid;

use super::Writer;
use crate::records::record::Record;
use crate::store::clickhouse::Failure;
use crate::store::drain::delivery::wait_for_end;
use crate::store::drain::destination::{Destination, StoredBatch};
use crate::store::drain::ledger::Range;
use crate::store::old_fault::{OldFault, is_back};
use crate::store::range_number::Number;

/// Timeout of queries to the control database.
const PATIENCE: Duration = Duration::from_secs(20);
/// The writer sends batches within this time after it has claimed them. Other servers release claims after twice this time.
const FRESH: Duration = Duration::from_secs(60);

/// A project and a batch id.
type Key<'r> = (&'r str, Uuid);
/// A record and its number in the log.
type Numbered<'r> = (u64, Record<'r>);

/// The known state of the batches of some records.
#[derive(Default)]
struct Known<'r> {
    /// In ClickHouse.
    stored: HashMap<Key<'r>, StoredBatch>,
    /// Split by a device: a server has stored or claimed the halves.
    in_halves: HashSet<Key<'r>>,
    /// Claimed by other servers.
    claimed: HashMap<Key<'r>, Owner>,
}

/// How a range handles its records.
#[derive(Default)]
struct Judgement<'a, 'r> {
    sent: Vec<&'a Numbered<'r>>,
    again: Vec<(u64, Number)>,
    duplicates: Vec<u64>,
}

impl<'r> Known<'r> {
    fn has(&self, record: &Record<'r>) -> bool {
        let mut all = record.batches().map(|id| (record.project, id));
        self.in_halves.contains(&(record.project, record.batch_id))
            || all.any(|key| self.stored.contains_key(&key))
    }

    /// Returns the other server that is storing a batch of the record.
    fn owner(&self, record: &Record<'r>) -> Option<(Uuid, Owner)> {
        let mut all = record.batches();
        all.find_map(|id| Some((id, *self.claimed.get(&(record.project, id))?)))
    }

    fn learn(&mut self, more: Self) {
        self.stored.extend(more.stored);
        self.in_halves.extend(more.in_halves);
        // Each call of `claim` replaces the earlier claims.
        self.claimed = more.claimed;
    }

    fn judge<'a>(&self, records: &'a [Numbered<'r>]) -> Judgement<'a, 'r> {
        let mut judgement = Judgement::default();
        let (mut taken, mut halved) = (HashSet::new(), HashSet::new());
        for one in records {
            let (seq, record) = one;
            let own = (record.project, record.batch_id);
            let found = self.stored.get(&own);
            // The same record: an earlier range has sent it, and the ledger of that range is lost.
            let sent_before = found.filter(|batch| batch.received_at == record.received_at);
            let mut all = record.batches().map(|id| (record.project, id));
            if sent_before.is_none()
                && (self.has(record)
                    || halved.contains(&own)
                    || all.any(|key| taken.contains(&key)))
            {
                judgement.duplicates.push(*seq);
                continue;
            }
            match sent_before {
                Some(batch) => judgement.again.push((*seq, batch.number)),
                None => judgement.sent.push(one),
            }
            taken.insert(own);
            let wholes = record.batches().skip(1);
            halved.extend(wholes.map(|id| (record.project, id)));
        }
        judgement
    }
}

impl<D: Destination> Writer<D> {
    /// Finds the records of a new range that are already stored. May shorten the range.
    pub(super) async fn find_stored(
        &mut self,
        records: &[Numbered<'_>],
        range: &mut Range,
    ) -> Result<(), Failure> {
        let mut known = Known::default();
        let mut judgement = known.judge(records);
        loop {
            let asked: HashSet<u64> = judgement.sent.iter().map(|(seq, _)| *seq).collect();
            known.learn(self.look_up(&judgement.sent).await?);
            judgement = known.judge(records);
            // If a whole batch turns out to be a duplicate, its half in the same range must be sent after all.
            if judgement.sent.iter().all(|(seq, _)| asked.contains(seq)) {
                break;
            }
        }
        self.wait_for_owners(&known, &judgement.sent).await?;
        (range.again, range.duplicates) = (judgement.again, judgement.duplicates);
        end_with_an_origin(records, range);
        Ok(())
    }

    /// Claims the batches of an unfinished range again. Another server may have stored them after a pause of this server. If the ledger was
    /// restored from a backup, an earlier process may have stored them under another number.
    pub(super) async fn claim_again(
        &mut self,
        records: &[Numbered<'_>],
        range: &mut Range,
    ) -> Result<(), Failure> {
        if range.number == Number::default() {
            return Ok(());
        }
        // Ask ClickHouse first: a server that cannot reach it must not keep its claims alive.
        wait_for_end(&self.destination, range.number).await?;
        let again = range.again.iter().map(|(seq, _)| *seq);
        let settled: HashSet<u64> = again.chain(range.duplicates.iter().copied()).collect();
        let sent: Vec<_> = records
            .iter()
            .filter(|(seq, _)| !settled.contains(seq))
            .collect();
        let known = self.look_up(&sent).await?;
        let number = |record: &Record<'_>| {
            let stored = known.stored.get(&(record.project, record.batch_id));
            stored.map(|batch| batch.number.range())
        };
        let (ours, others): (Vec<_>, Vec<_>) = sent
            .into_iter()
            .partition(|(_, record)| number(record) == Some(range.number));
        let (stored, open): (Vec<_>, Vec<_>) = others
            .into_iter()
            .partition(|(_, record)| known.has(record));
        if let Err(failure) = self.wait_for_owners(&known, &open).await {
            self.release_claims().await;
            return Err(failure);
        }
        if stored.is_empty() {
            return Ok(());
        }
        let mut next = self.ledger.clone();
        if ours.is_empty() {
            // `batches` are inserted first, so ClickHouse has no row of this range.
            next.range = None;
            self.commit(next).await?;
            return Err(Failure::Later(
                "ClickHouse has batches of this range under another number; the writer discards the range and cuts a new one".to_owned(),
            ));
        }
        range.duplicates.extend(stored.iter().map(|(seq, _)| *seq));
        next.range = Some(range.clone());
        self.commit(next).await
    }

    /// Releases all claims of this server. A server must hold no claims while it waits for another one, or both may wait for ever.
    pub(super) async fn release_claims(&mut self) {
        if self.claims.is_some()
            && let Err(error) = self.claim(&[]).await
        {
            tracing::warn!(%error, "cannot release the claims of batches");
        }
    }

    /// After this time the writer must not insert into `batches`: another server could release the claims before the INSERT ends.
    pub(super) fn claims_end(&self, table: &str) -> Option<Instant> {
        (self.claims.is_some() && table == "batches").then_some(self.claimed_at + FRESH)
    }

    /// Claims batches, then asks ClickHouse which of them are stored. The order matters: another server releases its claim only after
    /// ClickHouse has the batch.
    async fn look_up<'r>(&mut self, records: &[&Numbered<'r>]) -> Result<Known<'r>, Failure> {
        self.claimed_at = Instant::now();
        let claimed = self.claim(records).await?;
        let mut ids: BTreeMap<&'r str, Vec<Uuid>> = BTreeMap::new();
        for (_, record) in records {
            let of_project = ids.entry(record.project).or_default();
            of_project.extend(record.batches());
        }
        let mut known = Known::default();
        for (project, ids) in &ids {
            let stored = self.destination.stored_batches(project, ids).await?;
            for batch in stored.whole {
                known.stored.insert((*project, batch.batch_id), batch);
            }
            let cut = stored.cut.into_iter().map(|id| (*project, id));
            known.in_halves.extend(cut);
        }
        for one in claimed {
            let Some((project, _)) = ids.get_key_value(&*one.project) else {
                continue;
            };
            let key = (*project, one.batch_id);
            match one.by {
                None => drop(known.in_halves.insert(key)),
                Some(owner) => drop(known.claimed.insert(key, owner)),
            }
        }
        Ok(known)
    }

    async fn claim(&mut self, records: &[&Numbered<'_>]) -> Result<Vec<Claimed>, Failure> {
        let Some(shared) = &self.claims else {
            return Ok(Vec::new());
        };
        let claims: BTreeSet<(&str, Uuid, bool)> = records
            .iter()
            .flat_map(|(_, record)| {
                let all = record.batches();
                all.map(|id| (record.project, id, id != record.batch_id))
            })
            .collect();
        let claims: Vec<Claim> = claims
            .into_iter()
            .map(|(project, batch_id, is_half)| Claim {
                project: project.to_owned(),
                batch_id,
                is_half,
            })
            .collect();
        match in_time(shared.replace(self.ledger.log_id, &claims)).await? {
            Claiming::Claimed(by_others) => Ok(by_others),
            // A query of the other process may still be running in ClickHouse.
            Claiming::Leased => Err(self.learn_again()),
        }
    }

    /// Fails while another server is storing one of the records. If that server is gone, its claims are released first.
    async fn wait_for_owners<'r>(
        &self,
        known: &Known<'r>,
        records: &[&Numbered<'r>],
    ) -> Result<(), Failure> {
        let mut all = records.iter();
        let Some((batch_id, owner)) = all.find_map(|(_, record)| known.owner(record)) else {
            return Ok(());
        };
        let log_id = owner.log_id;
        // A running INSERT of that server could still store the batch.
        let waits = !is_back(OldFault::ReleasedWhileInserting);
        if owner.is_gone && !(waits && self.destination.kill_queries(log_id).await?) {
            if let Some(shared) = &self.claims {
                in_time(shared.release(log_id)).await?;
            }
            tracing::warn!(%log_id, "the server with this log is gone; its claims are released");
        }
        Err(Failure::Later(format!(
            "batch {batch_id} is being stored by the server with log {log_id}"
        )))
    }
}

/// Ends a range before the last earlier range whose records it contains, unless it begins with that one. The next range then has all records of that
/// earlier range. So they are counted together, and one mark in `outcomes` covers all of them.
fn end_with_an_origin(records: &[Numbered<'_>], range: &mut Range) {
    let origins: HashMap<u64, Number> = range.again.iter().copied().collect();
    let origin = |seq: u64| origins.get(&seq).map(|number| number.range());
    let mut seqs = records.iter().map(|(seq, _)| *seq);
    let Some(last) = records.last().and_then(|(seq, _)| origin(*seq)) else {
        return;
    };
    let first = seqs.find(|seq| origin(*seq) == Some(last));
    let Some(first) = first.filter(|first| records.first().is_some_and(|(seq, _)| seq < first))
    else {
        return;
    };
    range.last = first - 1;
    range.again.retain(|(seq, _)| *seq < first);
    range.duplicates.retain(|seq| *seq < first);
}

pub(super) async fn in_time<T>(
    answer: impl Future<Output = Result<T, ControlError>>,
) -> Result<T, Failure> {
    let late = || {
        Failure::Later(format!(
            "the control database did not answer within {PATIENCE:?}"
        ))
    };
    let answer = timeout(PATIENCE, answer).await.map_err(|_| late())?;
    answer.map_err(|error| Failure::Later(format!("batches cannot be claimed: {error}")))
}
