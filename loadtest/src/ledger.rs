//! The devices' ledger: every batch sent, and its result.

use std::collections::{BTreeMap, HashMap, HashSet};

use unjank_protocol::Signal;
use uuid::Uuid;

use crate::delivery::Fate;
use crate::fingerprint::SIGNALS;
use crate::parcel::Manifest;

/// How many rows of an event the store may contain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Claim {
    /// Acknowledged deliveries. The store must contain at least this many rows.
    pub(crate) certain: u32,
    /// Deliveries without an answer. The store may contain up to this many rows in addition.
    pub(crate) possible: u32,
}

/// Count and sum of fingerprints. Equal sums mean equal rows, unless hashes collide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) rows: u64,
    pub(crate) fingerprints: u64,
}

impl Sum {
    pub(crate) fn add(&mut self, fingerprint: u64) {
        self.rows += 1;
        self.fingerprints = self.fingerprints.wrapping_add(fingerprint);
    }
}

struct Entry {
    batch_id: Uuid,
    manifest: Manifest,
    certainty: Certainty,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Certainty {
    Stored,
    Unknown,
    Refused,
}

/// All batches of a run with the fingerprints of their events, at eight bytes per event.
#[derive(Default)]
pub(crate) struct Ledger {
    entries: Vec<Entry>,
    rejected: HashMap<Signal, u64>,
    repeated: BTreeMap<Signal, u64>,
    /// Valid events that the server rejected.
    pub(crate) rejected_though_valid: u64,
    /// Deliberately invalid events that the server accepted.
    pub(crate) accepted_though_invalid: u64,
    /// Receipts of duplicate batches that list fewer rejected events than the batch lost.
    pub(crate) vague_receipts: u64,
}

impl Ledger {
    /// Records the result of a batch. Rejected events are removed from its manifest.
    pub(crate) fn record(&mut self, batch_id: Uuid, mut manifest: Manifest, fate: &Fate) {
        let certainty = match fate {
            Fate::Acknowledged(acceptance) => {
                let events = manifest.events();
                if acceptance.duplicate {
                    manifest.count_into(&mut self.repeated);
                }
                let mut rejected: Vec<(Signal, u32)> = acceptance
                    .rejected
                    .iter()
                    .map(|one| (one.signal, one.index))
                    .collect();
                if acceptance.duplicate && acceptance.accepted + (rejected.len() as u64) < events {
                    // The first receipt, which listed the rejected events, was lost. Assume that exactly the invalid events were
                    // rejected.
                    self.vague_receipts += 1;
                    rejected.clone_from(&manifest.invalid);
                }
                self.judge(&manifest, &rejected);
                for one in &rejected {
                    *self.rejected.entry(one.0).or_default() += 1;
                }
                manifest.strike(&rejected);
                Certainty::Stored
            }
            Fate::Refused(_) => Certainty::Refused,
            Fate::Unknown(_) => {
                let invalid = std::mem::take(&mut manifest.invalid);
                manifest.strike(&invalid);
                Certainty::Unknown
            }
        };
        self.entries.push(Entry {
            batch_id,
            manifest,
            certainty,
        });
    }

    fn judge(&mut self, manifest: &Manifest, rejected: &[(Signal, u32)]) {
        let unexpected = rejected
            .iter()
            .filter(|one| !manifest.invalid.contains(one));
        self.rejected_though_valid += unexpected.count() as u64;
        let taken = manifest
            .invalid
            .iter()
            .filter(|one| !rejected.contains(one));
        self.accepted_though_invalid += taken.count() as u64;
    }

    /// Returns the rows that the signal's table must contain, by session.
    pub(crate) fn certain(&self, signal: Signal) -> HashMap<Uuid, Sum> {
        let mut sums: HashMap<Uuid, Sum> = HashMap::new();
        for entry in self.entries_of(Certainty::Stored) {
            for fingerprint in entry.manifest.list(signal) {
                sums.entry(entry.manifest.session)
                    .or_default()
                    .add(*fingerprint);
            }
        }
        sums
    }

    /// Returns how often each row of the given sessions must and may be in the signal's table.
    pub(crate) fn claims(&self, signal: Signal, sessions: &[Uuid]) -> HashMap<(Uuid, u64), Claim> {
        let wanted: HashSet<&Uuid> = sessions.iter().collect();
        let mut claims: HashMap<(Uuid, u64), Claim> = HashMap::new();
        let entries = self
            .entries
            .iter()
            .filter(|entry| wanted.contains(&entry.manifest.session));
        for entry in entries {
            let session = entry.manifest.session;
            let (certain, possible) = match entry.certainty {
                Certainty::Stored => (1, 0),
                Certainty::Unknown => (0, 1),
                Certainty::Refused => continue,
            };
            for fingerprint in entry.manifest.list(signal) {
                let claim = claims.entry((session, *fingerprint)).or_default();
                claim.certain += certain;
                claim.possible += possible;
            }
        }
        claims
    }

    /// Returns how many rows the signal's table must contain.
    pub(crate) fn certain_rows(&self, signal: Signal) -> u64 {
        self.entries_of(Certainty::Stored)
            .map(|entry| entry.manifest.list(signal).len() as u64)
            .sum()
    }

    /// Returns how many events of the signal were rejected.
    pub(crate) fn rejected(&self, signal: Signal) -> u64 {
        self.rejected.get(&signal).copied().unwrap_or_default()
    }

    /// Returns how many events arrived in batches that a receipt called duplicate, by signal.
    pub(crate) fn repeated(&self) -> BTreeMap<Signal, u64> {
        self.repeated.clone()
    }

    /// Describes for a message how much there is to compare.
    pub(crate) fn describe(&self) -> String {
        let rows: u64 = SIGNALS
            .iter()
            .map(|signal| self.certain_rows(*signal))
            .sum();
        format!("{rows} rows of {} batches", self.entries.len())
    }

    pub(crate) fn sessions(&self) -> Vec<Uuid> {
        let mut sessions: Vec<Uuid> = self
            .entries
            .iter()
            .map(|entry| entry.manifest.session)
            .collect();
        sessions.sort_unstable();
        sessions.dedup();
        sessions
    }

    /// Returns the ids of batches that the store must contain, and of those it may contain.
    pub(crate) fn batch_ids(&self) -> (Vec<Uuid>, Vec<Uuid>) {
        let of = |certainty| {
            self.entries_of(certainty)
                .map(|entry| entry.batch_id)
                .collect()
        };
        (of(Certainty::Stored), of(Certainty::Unknown))
    }

    fn entries_of(&self, certainty: Certainty) -> impl Iterator<Item = &Entry> {
        self.entries
            .iter()
            .filter(move |entry| entry.certainty == certainty)
    }

    /// Returns whether every batch was answered.
    pub(crate) fn is_certain(&self) -> bool {
        self.entries_of(Certainty::Unknown).next().is_none()
    }
}

impl Manifest {
    fn list(&self, signal: Signal) -> &[u64] {
        self.fingerprints
            .iter()
            .find(|(one, _)| *one == signal)
            .map_or(&[], |(_, list)| list)
    }

    fn events(&self) -> u64 {
        self.fingerprints
            .iter()
            .map(|(_, list)| list.len() as u64)
            .sum()
    }

    fn count_into(&self, counts: &mut BTreeMap<Signal, u64>) {
        for (signal, list) in &self.fingerprints {
            *counts.entry(*signal).or_default() += list.len() as u64;
        }
    }

    /// Removes the given events.
    fn strike(&mut self, events: &[(Signal, u32)]) {
        for (signal, list) in &mut self.fingerprints {
            let mut index = 0_u32;
            list.retain(|_| {
                let struck = events.contains(&(*signal, index));
                index += 1;
                !struck
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use unjank_protocol::Rejected;

    use super::*;
    use crate::post::Acceptance;

    fn manifest(fingerprints: &[u64]) -> Manifest {
        Manifest {
            session: Uuid::from_u128(1),
            fingerprints: vec![(Signal::Spans, fingerprints.to_vec())],
            invalid: Vec::new(),
        }
    }

    fn accepted(count: u64, rejected: &[u32]) -> Fate {
        let rejected = rejected.iter().map(|index| Rejected {
            signal: Signal::Spans,
            index: *index,
            code: "duration_out_of_range".to_owned(),
            detail: String::new(),
        });
        Fate::Acknowledged(Acceptance {
            accepted: count,
            rejected: rejected.collect(),
            ..Acceptance::default()
        })
    }

    #[test]
    fn a_rejected_event_is_not_expected_in_the_store() {
        let mut ledger = Ledger::default();
        ledger.record(Uuid::nil(), manifest(&[10, 20, 30]), &accepted(2, &[1]));
        let sums = ledger.certain(Signal::Spans);
        assert_eq!(
            sums[&Uuid::from_u128(1)],
            Sum {
                rows: 2,
                fingerprints: 40
            }
        );
        assert_eq!(ledger.rejected(Signal::Spans), 1);
        assert_eq!(ledger.rejected_though_valid, 1);
    }

    #[test]
    fn a_duplicate_receipt_without_a_list_removes_the_invalid_events() {
        let mut ledger = Ledger::default();
        let mut invalid = manifest(&[10, 20, 30]);
        invalid.invalid = vec![(Signal::Spans, 2)];
        let fate = Fate::Acknowledged(Acceptance {
            accepted: 2,
            duplicate: true,
            ..Acceptance::default()
        });
        ledger.record(Uuid::nil(), invalid, &fate);
        assert_eq!(
            ledger.certain(Signal::Spans)[&Uuid::from_u128(1)].fingerprints,
            30
        );
        assert_eq!(
            (ledger.vague_receipts, ledger.rejected_though_valid),
            (1, 0)
        );
    }

    #[test]
    fn an_unanswered_batch_adds_possible_rows() {
        let mut ledger = Ledger::default();
        ledger.record(Uuid::nil(), manifest(&[10]), &accepted(1, &[]));
        ledger.record(
            Uuid::max(),
            manifest(&[10]),
            &Fate::Unknown("timeout".to_owned()),
        );
        ledger.record(
            Uuid::max(),
            manifest(&[11]),
            &Fate::Refused("413".to_owned()),
        );
        let claims = ledger.claims(Signal::Spans, &[Uuid::from_u128(1)]);
        assert_eq!(
            claims[&(Uuid::from_u128(1), 10)],
            Claim {
                certain: 1,
                possible: 1
            }
        );
        assert_eq!(claims.len(), 1);
        assert!(!ledger.is_certain());
        assert_eq!(ledger.batch_ids(), (vec![Uuid::nil()], vec![Uuid::max()]));
    }
}
