//! One override, checked and compiled.

use std::sync::Arc;

use hashbrown::HashSet;
use serde_json::Value;

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
    /// Its place in the configuration.
    index: usize,
    pub(super) id: Arc<str>,
    pub(super) predicate: Predicate,
    pub(super) patch: Value,
    /// Its condition speaks of a share of all installs.
    pub(super) asks_for_share: bool,
    /// Its condition speaks of the install: of a share, or by name.
    pub(super) asks_for_install: bool,
    /// In microseconds since the epoch.
    pub(super) expires_at: Option<i64>,
}

impl CompiledOverride {
    /// Checks one override and compiles it. What it is when there are faults does not matter.
    pub(super) fn new(
        index: usize,
        written: &Override,
        base: Option<&Value>,
        faults: &mut Faults,
    ) -> Self {
        let path = path_of(index);
        if !is_slug(&written.id) {
            let message = format!(
                "`{}` is not an id: 1 to {MAX_ID_BYTES} of a-z, 0-9, `-`, `_` and `.`, a letter or digit first",
                written.id
            );
            faults.push(Fault::new(
                format!("{path}.id"),
                FaultCode::InvalidId,
                message,
            ));
        }
        if written.note.len() > MAX_NOTE_BYTES {
            let message = format!("is over {MAX_NOTE_BYTES} bytes long");
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
            expires_at: written
                .expires_at
                .map(unjank_protocol::Timestamp::as_micros),
        }
    }

    pub(super) fn path(&self) -> String {
        path_of(self.index)
    }

    pub(super) fn is_expired(&self, now: i64) -> bool {
        self.expires_at.is_some_and(|expires_at| expires_at <= now)
    }

    /// Whether it is in force for at least as long as another.
    pub(super) fn outlasts(&self, other: &Self) -> bool {
        self.expires_at
            .is_none_or(|own| other.expires_at.is_some_and(|other| other <= own))
    }
}

/// The patch alone over the base: its shape, and that what comes out holds together.
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

/// A fault for each id that an earlier override has.
pub(super) fn duplicate_ids(overrides: &[Override]) -> Vec<Fault> {
    let mut seen = HashSet::new();
    let again = overrides
        .iter()
        .enumerate()
        .filter(|(_, written)| !seen.insert(written.id.as_str()));
    again
        .map(|(index, written)| {
            let message = format!("`{}` is the id of an earlier override", written.id);
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
