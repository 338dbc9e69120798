//! A configuration, checked and ready to serve devices.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};
use unjank_foundation::clock::UnixTime;
use unjank_protocol::config::{Document, SCHEMA};

use super::check::{check_document, closest, hint};
use super::configuration::Configuration;
use super::device::{Device, Facts};
use super::document_rules::{self, MONITORS};
use super::fault::{Fault, FaultCode, Faults};
use super::flags::is_reserved;
use super::merge_patch::merge;
use super::overrides::{CompiledOverride, duplicate_ids};
use super::resolve::{Answers, MAX_OVERRIDES, Matched, Resolved};
use super::shadow::shadowed;

/// A configuration, checked and compiled. Build one per revision and share it in an `Arc`.
#[derive(Debug)]
pub struct Compiled {
    revision: u64,
    /// The base with all defaults filled in, as a JSON object.
    base: Value,
    /// The enabled overrides in order, including expired ones.
    overrides: Vec<CompiledOverride>,
    warnings: Vec<Fault>,
    asks_for_network: bool,
    answers: Answers,
}

impl Compiled {
    /// Checks and compiles a configuration. Disabled overrides are checked too, so that they can be enabled later.
    ///
    /// # Errors
    /// Returns every fault of the configuration.
    pub fn new(configuration: &Configuration, revision: u64) -> Result<Self, Vec<Fault>> {
        let mut faults = Faults::new();
        if configuration.overrides.len() > MAX_OVERRIDES {
            let message = format!(
                "has {} overrides; the limit is {MAX_OVERRIDES}",
                configuration.overrides.len()
            );
            return Err(vec![Fault::new("overrides", FaultCode::TooLarge, message)]);
        }
        let base = complete_base(&configuration.base, &mut faults);
        faults.extend(duplicate_ids(&configuration.overrides));
        let mut overrides = Vec::with_capacity(configuration.overrides.len());
        for (index, written) in configuration.overrides.iter().enumerate() {
            if faults.is_full() {
                break;
            }
            let compiled = CompiledOverride::new(index, written, base.as_ref(), &mut faults);
            if written.enabled {
                overrides.push(compiled);
            }
        }
        let Some(base) = base.filter(|_| faults.is_empty()) else {
            return Err(faults.into_vec());
        };
        faults.extend(all_together(&base, &overrides));
        faults.extend(shadowed(&overrides));
        if !faults.is_empty() {
            return Err(faults.into_vec());
        }
        let warnings = warnings(&base, &overrides);
        let mut in_force = configuration.overrides.iter().filter(|one| one.enabled);
        Ok(Self {
            asks_for_network: in_force.any(|one| one.when.asks_for_network()),
            revision,
            base,
            overrides,
            warnings,
            answers: Answers::default(),
        })
    }

    /// Returns the revision that every answer carries.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Whether the answer may depend on the device's network, which can change at any time.
    #[must_use]
    pub fn asks_for_network(&self) -> bool {
        self.asks_for_network
    }

    /// Whether the answer may depend on the install. If so, a request without an install id would silently get a wrong
    /// answer.
    #[must_use]
    pub fn asks_for_install(&self, now: UnixTime) -> bool {
        let mut in_force = self.overrides.iter().filter(|one| !one.is_expired(now));
        in_force.any(|one| one.asks_for_install)
    }

    /// Returns probable mistakes.
    #[must_use]
    pub fn warnings(&self, now: UnixTime) -> Vec<Fault> {
        let expired = self.overrides.iter().filter(|one| one.is_expired(now));
        let expired = expired.map(|one| {
            let since = one.expires_at.unwrap_or_default();
            let message = format!("override `{}` expired at {since}; remove it", one.id);
            Fault::new(
                format!("{}.expires_at", one.path()),
                FaultCode::Expired,
                message,
            )
        });
        self.warnings.iter().cloned().chain(expired).collect()
    }

    /// Resolves the configuration for a device.
    ///
    /// Answers are cached by the set of matching overrides, so a poll usually costs only the evaluation of the conditions.
    #[must_use]
    pub fn resolve(&self, device: &Device<'_>, now: UnixTime) -> Arc<Resolved> {
        let facts = Facts::new(device);
        let mut matched = Matched::default();
        for (index, one) in self.overrides.iter().enumerate() {
            if !one.is_expired(now) && one.predicate.matches(&facts) {
                matched.insert(index);
            }
        }
        self.answers.get_or_make(matched, || self.make(&matched))
    }

    #[cfg(test)]
    pub(super) fn answers(&self) -> &Answers {
        &self.answers
    }

    fn make(&self, matched: &Matched) -> Resolved {
        let applied = || {
            let overrides = self.overrides.iter().enumerate();
            overrides.filter_map(|(index, one)| matched.contains(index).then_some(one))
        };
        let mut value = self.base.clone();
        for one in applied() {
            merge(&mut value, &one.patch);
        }
        Resolved::new(
            self.document(&value),
            applied().map(|one| Arc::clone(&one.id)).collect(),
            applied().filter_map(|one| one.expires_at).min(),
            applied().any(|one| one.asks_for_share),
        )
    }

    /// Reads the document of a patched base. This always succeeds, because base and patches were checked and merging
    /// keeps their shapes. If it ever failed, the default document would be safer than no answer.
    fn document(&self, value: &Value) -> Document {
        let document = Document::deserialize(value).unwrap_or_default();
        Document {
            schema: SCHEMA,
            revision: self.revision,
            ..document
        }
    }
}

/// Returns the base with all defaults filled in, or `None` if it has faults.
fn complete_base(written: &Value, faults: &mut Faults) -> Option<Value> {
    let before = faults.len();
    check_document(written, "base", faults);
    if faults.len() > before {
        return None;
    }
    // Merges into an empty object, so that `null` means the same in the base as in a patch.
    let mut base = Value::Object(Map::new());
    merge(&mut base, written);
    let document = document_rules::document(&base, "base")
        .map_err(|more| faults.extend(more))
        .ok()?;
    let mut complete = serde_json::to_value(document).ok()?;
    // These are set for each answer.
    if let Value::Object(map) = &mut complete {
        map.retain(|key, _| key != "schema" && key != "revision");
    }
    Some(complete)
}

/// Returns the faults of the document with all overrides applied, as for a device that matches every override.
fn all_together(base: &Value, overrides: &[CompiledOverride]) -> Vec<Fault> {
    let mut value = base.clone();
    for one in overrides {
        merge(&mut value, &one.patch);
    }
    let faults = document_rules::document(&value, "")
        .err()
        .unwrap_or_default();
    let explained = |fault: Fault| {
        let place = fault.path.trim_start_matches('.');
        let message = format!("with all overrides applied, {place}: {}", fault.message);
        Fault::new("overrides", fault.code, message)
    };
    faults.into_iter().map(explained).collect()
}

/// Returns warnings: harmless settings that are probably mistakes.
fn warnings(base: &Value, overrides: &[CompiledOverride]) -> Vec<Fault> {
    let empty = overrides.iter().filter(|one| {
        let patch = one.patch.as_object();
        patch.is_some_and(Map::is_empty)
    });
    let empty = empty.map(|one| {
        let message = format!("override `{}` changes nothing", one.id);
        Fault::new(
            format!("{}.patch", one.path()),
            FaultCode::NoEffect,
            message,
        )
    });
    let patches = overrides
        .iter()
        .map(|one| (format!("{}.patch", one.path()), &one.patch));
    let documents = std::iter::once(("base".to_owned(), base)).chain(patches);
    let unusual = documents.flat_map(|(path, document)| {
        let mut faults = misspelt_monitors(&path, document);
        faults.extend(hidden_toggles(&path, document));
        faults
    });
    empty.chain(unusual).collect()
}

/// Warns of toggles named like a key of the document: flags of both share one namespace.
fn hidden_toggles(path: &str, document: &Value) -> Vec<Fault> {
    let toggles = document.get("toggles").and_then(Value::as_object);
    let names = toggles.into_iter().flat_map(Map::keys);
    let hidden = names.filter(|name| is_reserved(name)).map(|name| {
        let message = format!(
            "`{name}` is a key of the document; clients that look flags up by name get that key, not the toggle"
        );
        Fault::new(format!("{path}.toggles.{name}"), FaultCode::Duplicate, message)
    });
    hidden.collect()
}

/// Warns of monitor names that resemble a built-in one. They are allowed, because apps can define their own monitors.
fn misspelt_monitors(path: &str, document: &Value) -> Vec<Fault> {
    let monitors = document.get("monitors").and_then(Value::as_object);
    let names = monitors.into_iter().flat_map(Map::keys);
    let other = names.filter(|name| !MONITORS.contains(&name.as_str()));
    let misspelt = other.filter_map(|name| Some((name, closest(name, MONITORS.into_iter())?)));
    misspelt
        .map(|(name, meant)| {
            let message = format!("`{name}` is not a built-in monitor{}", hint(Some(meant)));
            Fault::new(
                format!("{path}.monitors.{name}"),
                FaultCode::UnknownName,
                message,
            )
        })
        .collect()
}
