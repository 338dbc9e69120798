//! Explains the configuration of a device: where each value comes from, and why each override applies or not.
//!
//! The document itself comes from [`Compiled::resolve`], as for a device that polls. Nothing here changes it.

use std::collections::BTreeSet;
use std::sync::Arc;

use hashbrown::HashSet;
use serde::Serialize;
use serde_json::Value;
use unjank_foundation::clock::UnixTime;
use unjank_protocol::config::Document;

use super::compiled::Compiled;
use super::configuration::{Configuration, Override};
use super::device::{Device, Facts};
use super::resolve::Resolved;
use super::schema::DOCUMENT;
use super::shape::Shape;
use super::unmet::{Judge, UnmetPart};

/// The most overridden keys that an override lists.
const MOST_OVERRIDDEN: usize = 20;

/// The configuration of a device, with its reasons.
#[derive(Debug)]
pub struct Explained {
    pub resolved: Arc<Resolved>,
    /// In the order of the document. Each entry of a map is a key.
    pub keys: Vec<ExplainedKey>,
    /// In the order of the configuration, including overrides that are disabled.
    pub overrides: Vec<ExplainedOverride>,
}

/// A value of the document, and where it comes from.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct ExplainedKey {
    /// The path, such as `sampling.janks`, `monitors.fps` or `toggles.new-cart`.
    pub key: String,
    /// `null` if an entry of a map was removed.
    pub value: Value,
    pub source: KeySource,
    /// The id of the override, if the source is one.
    pub set_by: Option<String>,
}

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeySource {
    /// The program.
    Default,
    /// The base of the configuration.
    Base,
    /// The last applied override that sets, resets or removes it.
    Override,
}

/// What an override does for a device.
#[derive(Clone, Debug, PartialEq, Serialize, utoipa::ToSchema)]
pub struct ExplainedOverride {
    pub id: String,
    pub note: String,
    pub outcome: OverrideOutcome,
    /// Whether the device meets the condition, also if the override is disabled or expired.
    pub matches: bool,
    /// The parts of the condition that the device does not meet. At most 20.
    #[schema(max_items = 20)]
    pub unmet: Vec<UnmetPart>,
    /// The number of all such parts.
    pub unmet_parts: u64,
    pub expires_at: Option<UnixTime>,
    /// The number of keys that it sets for this device.
    pub keys: u64,
    /// The number of these keys that a later override sets, too.
    pub overridden_keys: u64,
    /// The first 20 of them.
    #[schema(max_items = 20)]
    pub overridden: Vec<OverriddenKey>,
}

/// Whether an override applies to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum OverrideOutcome {
    /// It applies.
    Applied,
    /// It is disabled.
    Disabled,
    /// It expired.
    Expired,
    /// The device does not meet its condition.
    Unmet,
}

/// A key that a later override sets, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct OverriddenKey {
    pub key: String,
    /// The id of the override that takes precedence.
    pub by: String,
}

impl Compiled {
    /// Resolves the configuration for a device and explains the result. `written` is the configuration that was compiled.
    #[must_use]
    pub fn explain(
        &self,
        written: &Configuration,
        device: &Device<'_>,
        now: UnixTime,
    ) -> Explained {
        let resolved = self.resolve(device, now);
        let (keys, overrides) = reasons(written, &resolved, device, now);
        Explained {
            resolved,
            keys,
            overrides,
        }
    }
}

fn reasons(
    written: &Configuration,
    resolved: &Resolved,
    device: &Device<'_>,
    now: UnixTime,
) -> (Vec<ExplainedKey>, Vec<ExplainedOverride>) {
    let applied: HashSet<&str> = resolved.matched.iter().map(|id| &**id).collect();
    let layers = Layers::new(written, &applied, resolved);
    let mut effects = vec![Effect::default(); layers.applied.len()];
    let keys = layers.places().into_iter();
    let keys = keys.map(|place| layers.key(&place, &mut effects)).collect();
    let facts = Facts::new(device);
    let mut effects = effects.into_iter();
    let explained = |one: &Override| {
        let is_applied = applied.contains(one.id.as_str());
        let effect = if is_applied { effects.next() } else { None };
        explained_override(one, effect, &facts, now)
    };
    (keys, written.overrides.iter().map(explained).collect())
}

/// Explains an override. It has an effect if it was applied.
fn explained_override(
    one: &Override,
    effect: Option<Effect>,
    facts: &Facts<'_>,
    now: UnixTime,
) -> ExplainedOverride {
    let mut judge = Judge::new(&one.id, facts);
    let judged = judge.judge(&one.when);
    let (unmet, unmet_parts) = judge.unmet(&judged);
    let expires_at = one.expires_at.map(UnixTime::from);
    let outcome = if effect.is_some() {
        OverrideOutcome::Applied
    } else if !one.enabled {
        OverrideOutcome::Disabled
    } else if expires_at.is_some_and(|at| at <= now) {
        OverrideOutcome::Expired
    } else {
        OverrideOutcome::Unmet
    };
    let effect = effect.unwrap_or_default();
    ExplainedOverride {
        id: one.id.clone(),
        note: one.note.clone(),
        outcome,
        matches: judged.holds,
        unmet,
        unmet_parts: unmet_parts as u64,
        expires_at,
        keys: effect.keys,
        overridden_keys: effect.overridden_keys,
        overridden: effect.overridden,
    }
}

/// The keys that an applied override sets.
#[derive(Clone, Debug, Default)]
struct Effect {
    keys: u64,
    overridden_keys: u64,
    overridden: Vec<OverriddenKey>,
}

impl Effect {
    /// Counts a key that a later override sets, too.
    fn is_overridden(&mut self, key: &str, by: &str) {
        self.overridden_keys += 1;
        if self.overridden.len() < MOST_OVERRIDDEN {
            self.overridden.push(OverriddenKey {
                key: key.to_owned(),
                by: by.to_owned(),
            });
        }
    }
}

/// What a document is made of, from the bottom to the top.
struct Layers<'c> {
    defaults: Value,
    base: &'c Value,
    /// The overrides that apply to the device, in order.
    applied: Vec<&'c Override>,
    /// The result.
    document: Value,
}

/// Where a value is in the document.
#[derive(Debug)]
struct Place {
    path: Vec<String>,
    /// Whether it is an entry of a map with arbitrary keys.
    is_entry: bool,
}

impl<'c> Layers<'c> {
    fn new(written: &'c Configuration, applied: &HashSet<&str>, resolved: &Resolved) -> Self {
        let overrides = written.overrides.iter();
        Self {
            // Cannot fail, as in `Resolved::value`.
            defaults: serde_json::to_value(Document::default()).unwrap_or_default(),
            base: &written.base,
            applied: overrides
                .filter(|one| applied.contains(one.id.as_str()))
                .collect(),
            document: resolved.value(),
        }
    }

    /// Returns the places of all values, in the order of the document.
    fn places(&self) -> Vec<Place> {
        let mut found = Vec::new();
        self.add_places(&DOCUMENT, &mut Vec::new(), &mut found);
        found
    }

    fn add_places(&self, shape: &Shape, path: &mut Vec<String>, found: &mut Vec<Place>) {
        match shape {
            Shape::Object(keys) => {
                for key in *keys {
                    path.push(key.name.to_owned());
                    self.add_places(&key.shape, path, found);
                    path.pop();
                }
            }
            Shape::Map { .. } => {
                let map: &[String] = path;
                let entry = |name: String| Place {
                    path: map.iter().cloned().chain([name]).collect(),
                    is_entry: true,
                };
                found.extend(self.names(map).into_iter().map(entry));
            }
            _ => found.push(Place {
                path: path.clone(),
                is_entry: false,
            }),
        }
    }

    /// Returns the names of the entries of a map, also of those that a layer removes.
    fn names(&self, path: &[String]) -> BTreeSet<String> {
        let patches = self.applied.iter().map(|one| &one.patch);
        let layers = [&self.document, &self.defaults, self.base];
        layers
            .into_iter()
            .chain(patches)
            .filter_map(|layer| at(layer, path)?.as_object())
            .flat_map(|map| map.keys().cloned())
            .collect()
    }

    /// Explains the value at a place, and counts it for the overrides that set it. `effects` are in the order of the overrides.
    fn key(&self, place: &Place, effects: &mut [Effect]) -> ExplainedKey {
        let key = place.path.join(".");
        let mut set_by: Option<&str> = None;
        for (one, effect) in self.applied.iter().zip(effects.iter_mut()).rev() {
            if set_in(&one.patch, &place.path).is_none() {
                continue;
            }
            effect.keys += 1;
            match set_by {
                None => set_by = Some(&one.id),
                Some(by) => effect.is_overridden(&key, by),
            }
        }
        let source = match set_by {
            Some(_) => KeySource::Override,
            None if self.is_from_base(place) => KeySource::Base,
            None => KeySource::Default,
        };
        ExplainedKey {
            key,
            value: at(&self.document, &place.path).cloned().unwrap_or_default(),
            source,
            set_by: set_by.map(str::to_owned),
        }
    }

    /// Whether the base decides a value that no override sets. `null` in the base means the default. A map in the base replaces the whole map of
    /// the defaults.
    fn is_from_base(&self, place: &Place) -> bool {
        let path = match place.path.split_last() {
            Some((_, map)) if place.is_entry => map,
            _ => place.path.as_slice(),
        };
        set_in(self.base, path).is_some_and(|value| !value.is_null())
    }
}

/// Returns what a merge patch sets at a path or around it. `None` if it leaves the value unchanged.
fn set_in<'v>(patch: &'v Value, path: &[String]) -> Option<&'v Value> {
    match (patch, path) {
        (Value::Object(members), [name, rest @ ..]) => set_in(members.get(name)?, rest),
        _ => Some(patch),
    }
}

fn at<'v>(value: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(value, |inner, name| inner.get(name))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const INSTALL: &str = "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11";

    fn explained(configuration: Value, device: &Device<'_>) -> Explained {
        let written = Configuration::from_value(configuration).unwrap();
        let compiled = Compiled::new(&written, 7).unwrap();
        compiled.explain(&written, device, UnixTime::from_secs(1_000))
    }

    fn android() -> Device<'static> {
        Device {
            os_name: Some("android"),
            install_id: Some(INSTALL),
            ..Device::default()
        }
    }

    fn key(explained: &Explained, name: &str) -> (Value, KeySource, Option<String>) {
        let key = explained.keys.iter().find(|one| one.key == name).unwrap();
        (key.value.clone(), key.source, key.set_by.clone())
    }

    #[test]
    fn each_value_has_its_source_and_is_that_of_the_document() {
        let explained = explained(
            json!({
                "base": {"sampling": {"janks": 0.5, "metrics": null}, "monitors": {"fps": {"interval_ms": 500}}},
                "overrides": [
                    {"id": "one", "when": {"all": []}, "patch": {"sampling": {"janks": 0.25}, "toggles": {"grid": true}}},
                    {"id": "two", "when": {"os_name": ["android"]},
                     "patch": {"sampling": {"janks": 1}, "monitors": {"fps": null}, "upload": null}},
                    {"id": "three", "when": {"os_name": ["ios"]}, "patch": {"sampling": {"spans": {"default": 1}}}}
                ]
            }),
            &android(),
        );
        let by = |id: &str| (KeySource::Override, Some(id.to_owned()));
        let expected = [
            ("sampling.janks", json!(1.0), by("two")),
            ("sampling.metrics", json!(0.1), (KeySource::Default, None)),
            (
                "sampling.spans.default",
                json!(0.01),
                (KeySource::Default, None),
            ),
            ("monitors.fps", json!(null), by("two")),
            ("monitors.cpu", json!(null), (KeySource::Base, None)),
            ("upload.interval_s", json!(60), by("two")),
            ("toggles.grid", json!(true), by("one")),
            ("enabled", json!(true), (KeySource::Default, None)),
        ];
        for (name, value, (source, id)) in expected {
            assert_eq!(key(&explained, name), (value, source, id), "{name}");
        }
        let document = explained.resolved.value();
        for one in &explained.keys {
            let path: Vec<_> = one.key.split('.').map(str::to_owned).collect();
            let value = at(&document, &path).cloned().unwrap_or_default();
            assert_eq!(one.value, value, "{}", one.key);
        }
        let lost = OverriddenKey {
            key: "sampling.janks".to_owned(),
            by: "two".to_owned(),
        };
        let first = &explained.overrides[0];
        assert_eq!((first.keys, first.overridden_keys), (2, 1));
        assert_eq!(first.overridden, [lost]);
    }

    #[test]
    fn each_override_that_does_not_apply_has_its_reason() {
        let patch = json!({"enabled": false});
        let explained = explained(
            json!({"overrides": [
                {"id": "off", "enabled": false, "when": {"all": []}, "patch": patch},
                {"id": "past", "expires_at": "1970-01-01T00:00:10Z", "when": {"all": []}, "patch": {"poll_interval_s": 60}},
                {"id": "new-checkout", "when": {"percentage": {"percent": 10}}, "patch": patch},
                {"id": "not-android", "when": {"all": [{"not": {"os_name": ["Android"]}}, {"build": {"min": 5, "max": 9}}]},
                 "patch": {"poll_interval_s": 61}},
            ]}),
            &android(),
        );
        let outcomes: Vec<_> = explained.overrides.iter().map(|one| one.outcome).collect();
        assert_eq!(
            outcomes,
            [
                OverrideOutcome::Disabled,
                OverrideOutcome::Expired,
                OverrideOutcome::Unmet,
                OverrideOutcome::Unmet
            ]
        );
        assert!(explained.overrides[0].matches && explained.overrides[0].unmet.is_empty());
        // The place is the bucket of the worked examples: a percentage of 29.923 reaches it, and 29.922 does not.
        let share = explained.overrides[2].unmet[0].percentage.unwrap();
        assert_eq!((share.below, share.install), (10.0, Some(29.922)));
        let unmet = &explained.overrides[3].unmet;
        let shown = |at: usize| {
            let one: &UnmetPart = &unmet[at];
            (one.negated, one.device.as_deref(), one.wanted.join(", "))
        };
        assert_eq!(shown(0), (true, Some("android"), "Android".to_owned()));
        assert_eq!(shown(1), (false, None, "5 to 9".to_owned()));
        assert_eq!(explained.overrides[3].unmet_parts, 2);
    }

    #[test]
    fn long_lists_of_a_condition_are_cut() {
        let installs: Vec<_> = (0..30).map(|number| format!("install-{number}")).collect();
        let parts: Vec<_> = (0..30)
            .map(|build| json!({"build": {"min": build + 1}}))
            .collect();
        let explained = explained(
            json!({"overrides": [
                {"id": "installs", "when": {"install_id": installs}, "patch": {"enabled": false}},
                {"id": "builds", "when": {"any": parts}, "patch": {"enabled": false}},
            ]}),
            &android(),
        );
        let part = &explained.overrides[0].unmet[0];
        assert_eq!((part.wanted.len(), part.left_out), (5, 25));
        let builds = &explained.overrides[1];
        assert_eq!((builds.unmet.len(), builds.unmet_parts), (20, 30));
    }
}
