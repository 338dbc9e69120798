//! A model of the claims in PostgreSQL, for simulations. Each method is one transaction at the time `now` of PostgreSQL, in microseconds since the
//! epoch. `own` is the holder of the caller's lease.
//!
//! A test runs the same operations on the model and on PostgreSQL (`server/tests/it/claim_model.rs`).

use std::collections::BTreeMap;

use uuid::Uuid;

use super::{Claim, Claimed, Claiming, EndedLease, Lease, Owner, TakeOver, check, may_claim};
use crate::error::ControlError;

const SECOND: i64 = 1_000_000;
const TWO_MINUTES: i64 = 120 * SECOND;
const THIRTY_DAYS: i64 = 30 * 86_400 * SECOND;

/// The tables `batch_claims`, `claiming_logs` and `leases`.
#[derive(Debug, Default)]
pub struct ClaimModel {
    claims: BTreeMap<(String, Uuid), BatchClaim>,
    seen: BTreeMap<Uuid, i64>,
    leases: BTreeMap<Uuid, LogLease>,
    /// Counts leases, to give each holder a name.
    holders: u64,
}

#[derive(Debug)]
struct BatchClaim {
    log_id: Option<Uuid>,
    claimed_at: i64,
}

#[derive(Debug)]
struct LogLease {
    holder: String,
    until: i64,
}

impl ClaimModel {
    /// See [`ClaimStore::replace`](super::ClaimStore::replace).
    pub fn replace(
        &mut self,
        now: i64,
        own: Option<&str>,
        log_id: Uuid,
        claims: &[Claim],
    ) -> Claiming {
        if may_claim(own, self.lease(now, log_id).as_ref()) {
            Claiming::Claimed(self.claim(now, log_id, claims))
        } else {
            Claiming::Leased
        }
    }

    /// Replaces the claims of a log whatever its lease is.
    pub fn claim(&mut self, now: i64, log_id: Uuid, claims: &[Claim]) -> Vec<Claimed> {
        self.seen.insert(log_id, now);
        self.claims.retain(|_, claim| claim.log_id != Some(log_id));
        if claims.iter().any(|claim| claim.is_half) {
            self.claims
                .retain(|_, claim| claim.log_id.is_some() || claim.claimed_at >= now - THIRTY_DAYS);
        }
        for claim in claims {
            self.claims.entry(key(claim)).or_insert(BatchClaim {
                log_id: (!claim.is_half).then_some(log_id),
                claimed_at: now,
            });
        }
        let mut by_others = Vec::new();
        for claim in claims {
            let by = self.claims.get(&key(claim)).and_then(|claim| claim.log_id);
            if by == Some(log_id) || (by.is_none() && claim.is_half) {
                continue;
            }
            let claimed = Claimed {
                project: claim.project.clone(),
                batch_id: claim.batch_id,
                by: by.map(|log_id| Owner {
                    log_id,
                    is_gone: self.is_gone(now, log_id),
                }),
            };
            if !by_others.contains(&claimed) {
                by_others.push(claimed);
            }
        }
        by_others
    }

    /// See [`ClaimStore::release`](super::ClaimStore::release).
    pub fn release(&mut self, now: i64, log_id: Uuid) {
        if self.is_gone(now, log_id) {
            self.claims.retain(|_, claim| claim.log_id != Some(log_id));
        }
    }

    /// See [`ClaimStore::take_over`](super::ClaimStore::take_over). Returns the name of the holder.
    pub fn take_over(&mut self, now: i64, log_id: Uuid) -> TakeOver<String> {
        let lease = self.lease(now, log_id);
        if lease.as_ref().is_some_and(|lease| lease.holds) {
            return TakeOver::Held;
        }
        let ended = lease.map_or(0, |lease| lease.until);
        let seen = self.seen.get(&log_id).copied();
        if let Some(seen) = seen.filter(|seen| *seen >= now - TWO_MINUTES && *seen > ended) {
            return TakeOver::ServerSeen(seen);
        }
        self.holders += 1;
        let holder = format!("holder {}", self.holders);
        let lease = LogLease {
            holder: holder.clone(),
            until: now + TWO_MINUTES,
        };
        self.leases.insert(log_id, lease);
        TakeOver::Taken(holder)
    }

    /// See [`ClaimStore::renew`](super::ClaimStore::renew).
    pub fn renew(&mut self, now: i64, own: Option<&str>, log_id: Uuid) -> bool {
        self.change_lease(now, own, log_id, now + TWO_MINUTES)
    }

    /// See [`ClaimStore::hand_back`](super::ClaimStore::hand_back).
    pub fn hand_back(&mut self, now: i64, own: Option<&str>, log_id: Uuid) {
        self.change_lease(now, own, log_id, now);
    }

    /// See [`ClaimStore::check_lease`](super::ClaimStore::check_lease).
    pub fn check_lease(
        &self,
        now: i64,
        own: Option<&str>,
        log_id: Uuid,
    ) -> Result<Option<EndedLease>, ControlError> {
        check(own, self.lease(now, log_id).as_ref())
    }

    /// See [`ClaimStore::forget_lease`](super::ClaimStore::forget_lease).
    pub fn forget_lease(&mut self, log_id: Uuid, ended: EndedLease) {
        self.leases
            .retain(|log, lease| *log != log_id || lease.until != ended.0);
    }

    fn change_lease(&mut self, now: i64, own: Option<&str>, log_id: Uuid, until: i64) -> bool {
        let lease = self.leases.get_mut(&log_id);
        let Some(lease) = lease.filter(|lease| own == Some(&*lease.holder) && lease.until > now)
        else {
            return false;
        };
        lease.until = until;
        true
    }

    fn lease(&self, now: i64, log_id: Uuid) -> Option<Lease> {
        let LogLease { holder, until } = self.leases.get(&log_id)?;
        Some(Lease {
            holder: holder.clone(),
            until: *until,
            holds: *until > now,
        })
    }

    fn is_gone(&self, now: i64, log_id: Uuid) -> bool {
        let seen = self.seen.get(&log_id);
        seen.is_none_or(|seen| *seen < now - TWO_MINUTES)
    }
}

fn key(claim: &Claim) -> (String, Uuid) {
    (claim.project.clone(), claim.batch_id)
}
