//! A single override, checked and compiled.

use std::sync::Arc;

use hashbrown::HashSet;
use serde_json::Value;
use unjank_foundation::clock::UnixTime;

use super::check::check_document;
use super::condition_check;
use super::configuration::Override;
use super::document_rules;
use super::fault::{Fault, FaultCode, Faults};
use super::merge_patch::merge;
use super::predicate::Predicate;

const MAX_ID_BYTES: usize = 64;
const MAX_NOTE_BYTES: usize = 1_024;

#[derive(Debug)]
pub(super) struct CompiledOverride {
    /// Its position in the configuration.
    index: usize,
    pub(super) id: Arc<str>,
    pub(super) predicate: Predicate,
    pub(super) patch: Value,
    /// Whether its condition depends on a percentage of installs.
    pub(super) asks_for_share: bool,
    /// Whether its condition depends on the install: a percentage, or a list of ids.
    pub(super) asks_for_install: bool,
    pub(super) expires_at: Option<UnixTime>,
}

impl CompiledOverride {
    /// Checks and compiles an override. If there are faults, the result must not be used.
    pub(super) fn new(
        index: usize,
        written: &Override,
        base: Option<&Value>,
        faults: &mut Faults,
    ) -> Self {
        let path = path_of(index);
        if !is_slug(&written.id) {
            let message = format!(
                "`{}` is not an id; use 1 to {MAX_ID_BYTES} of a-z, 0-9, `-`, `_` and `.`, with a letter or digit first",
                written.id
            );
            faults.push(Fault::new(
                format!("{path}.id"),
                FaultCode::InvalidId,
                message,
            ));
        }
        if written.note.len() > MAX_NOTE_BYTES {
            let message = format!("is longer than {MAX_NOTE_BYTES} bytes");
            faults.push(Fault::new(
                format!("{path}.note"),
                FaultCode::TooLarge,
                message,
            ));
        }
        let when = format!("{path}.when");
        let predicate = condition_check::compile(&written.when, &when, &written.id, faults);
        check_patch(&written.patch, base, &format!("{path}.patch"), faults);
        Self {
            index,
            id: written.id.as_str().into(),
            predicate,
            patch: written.patch.clone(),
            asks_for_share: written.when.asks_for_share(),
            asks_for_install: written.when.asks_for_install(),
            expires_at: written.expires_at.map(UnixTime::from),
        }
    }

    pub(super) fn path(&self) -> String {
        path_of(self.index)
    }

    pub(super) fn is_expired(&self, now: UnixTime) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }

    /// Whether this override applies for at least as long as another.
    pub(super) fn outlasts(&self, other: &Self) -> bool {
        self.expires_at
            .is_none_or(|own| other.expires_at.is_some_and(|other| other <= own))
    }
}

/// Checks the shape of a patch, and that the base with only this patch applied is consistent.
fn check_patch(patch: &Value, base: Option<&Value>, path: &str, faults: &mut Faults) {
    let before = faults.len();
    check_document(patch, path, faults);
    if let Some(base) = base
        && faults.len() == before
    {
        let mut patched = base.clone();
        merge(&mut patched, patch);
        if let Err(more) = document_rules::document(&patched, path) {
            faults.extend(more);
        }
    }
}

/// Returns a fault for each id that an earlier override already uses.
pub(super) fn duplicate_ids(overrides: &[Override]) -> Vec<Fault> {
    let mut seen = HashSet::new();
    let repeated = overrides
        .iter()
        .enumerate()
        .filter(|(_, written)| !seen.insert(written.id.as_str()));
    repeated
        .map(|(index, written)| {
            let message = format!("`{}` is already the id of an earlier override", written.id);
            Fault::new(
                format!("{}.id", path_of(index)),
                FaultCode::Duplicate,
                message,
            )
        })
        .collect()
}

pub(super) fn path_of(index: usize) -> String {
    format!("overrides[{index}]")
}

fn is_slug(id: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    id.len() <= MAX_ID_BYTES
        && id.bytes().next().is_some_and(plain)
        && id.bytes().all(|byte| plain(byte) || b"-_.".contains(&byte))
}
