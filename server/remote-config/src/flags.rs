//! The answer as flags, for clients that look flags up by name: every section and value of the document, and every toggle.

use serde::Serialize;
use serde_json::Value;

use super::resolve::Resolved;
use super::schema::DOCUMENT;
use super::shape::{Key, Shape};

/// The maximum size of a variant, in bytes. Every flag carries it, and a device may match hundreds of overrides.
const MAX_VARIANT_BYTES: usize = 256;

/// Why a flag has its value. The names are OpenFeature's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Reason {
    /// No override matched.
    Static,
    /// At least one override matched.
    TargetingMatch,
    /// At least one override for a percentage of installs matched.
    Split,
    /// Collection is disabled.
    Disabled,
}

impl Resolved {
    /// Returns why the device gets this answer.
    #[must_use]
    pub fn reason(&self) -> Reason {
        if !self.document.enabled {
            Reason::Disabled
        } else if self.by_share {
            Reason::Split
        } else if self.matched.is_empty() {
            Reason::Static
        } else {
            Reason::TargetingMatch
        }
    }

    /// Returns the ids of the applied overrides joined by `+`, or `base` if there are none. A long list is truncated,
    /// with the number of omitted ids at its end.
    #[must_use]
    pub fn variant(&self) -> String {
        if self.matched.is_empty() {
            return "base".to_owned();
        }
        let mut variant = String::new();
        for (index, id) in self.matched.iter().enumerate() {
            if variant.len() + id.len() >= MAX_VARIANT_BYTES {
                return format!("{variant}+{} more", self.matched.len() - index);
            }
            if index > 0 {
                variant.push('+');
            }
            variant.push_str(id);
        }
        variant
    }

    /// Returns every flag by its key: first the keys of the document in order, then the toggles. Keys are unique.
    #[must_use]
    pub fn flags(&self) -> Vec<(String, Value)> {
        let mut flags = Vec::new();
        sections(&DOCUMENT, "", &self.value(), &mut flags);
        let toggles = self.document.toggles.iter();
        let toggles = toggles.filter(|(name, _)| !is_reserved(name));
        flags.extend(toggles.map(|(name, value)| (name.clone(), value.clone())));
        flags
    }

    /// Returns a single flag. Keys of the document are reserved: a toggle of such a name is available in `toggles` only.
    #[must_use]
    pub fn flag(&self, key: &str) -> Option<Value> {
        if !is_reserved(key) {
            return self.document.toggles.get(key).cloned();
        }
        let mut value = self.value();
        for name in key.split('.') {
            value = value.get_mut(name)?.take();
        }
        Some(value)
    }

    /// Returns the document as JSON. Serialization cannot fail: a document holds only JSON types.
    pub(super) fn value(&self) -> Value {
        serde_json::to_value(&self.document).unwrap_or_default()
    }
}

/// Collects the flags within an object of known keys. A list, or a map with arbitrary keys, is a single flag.
fn sections(shape: &Shape, path: &str, value: &Value, flags: &mut Vec<(String, Value)>) {
    for Key { name, shape, .. } in members(shape) {
        let Some(value) = value.get(name) else {
            continue;
        };
        let path = if path.is_empty() {
            (*name).to_owned()
        } else {
            format!("{path}.{name}")
        };
        flags.push((path.clone(), value.clone()));
        sections(shape, &path, value, flags);
    }
}

/// Whether a dotted key is a key of the document.
pub(super) fn is_reserved(key: &str) -> bool {
    let found = key.split('.').try_fold(&DOCUMENT, |shape, name| {
        let found = members(shape).iter().find(|key| key.name == name)?;
        Some(&found.shape)
    });
    found.is_some()
}

fn members(shape: &Shape) -> &[Key] {
    match shape {
        Shape::Object(keys) => keys,
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use unjank_foundation::clock::UnixTime;

    use super::*;
    use crate::{Compiled, Configuration, Device};

    fn resolved(configuration: Value) -> std::sync::Arc<Resolved> {
        let configuration = Configuration::from_value(configuration).unwrap();
        Compiled::new(&configuration, 7)
            .unwrap()
            .resolve(&Device::default(), UnixTime::default())
    }

    #[test]
    fn a_single_flag_equals_its_entry_in_the_list() {
        let resolved = resolved(json!({"base": {"toggles": {
            "a.b": 1, "enabled": "mine", "sampling.spans": 2, ".": "dot", "monitors.fps": [], "poll_interval_s.x": {}
        }}}));
        let flags = resolved.flags();
        let mut keys: Vec<_> = flags.iter().map(|(key, _)| key.as_str()).collect();
        for (key, value) in &flags {
            assert_eq!(resolved.flag(key).as_ref(), Some(value), "{key}");
        }
        keys.sort_unstable();
        let count = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), count, "{keys:?}");
        assert_eq!(resolved.flag("enabled"), Some(json!(true)));
        assert_eq!(resolved.flag("toggles").unwrap()["enabled"], "mine");
        assert_eq!(resolved.flag("a.b"), Some(json!(1)));
        assert_eq!(resolved.flag("monitors.fps"), Some(json!([])));
        for unknown in ["a", "sampling.", "sampling.spans.rates", "revision", "x"] {
            assert_eq!(resolved.flag(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn a_toggle_hidden_by_a_reserved_key_is_a_warning() {
        let toggles =
            json!({"toggles": {"enabled": 1, "enabled.": 1, "sampling.spans": 1, "spans": 1}});
        let one =
            json!({"id": "one", "when": {"os_name": ["ios"]}, "patch": {"toggles": {"jank": 1}}});
        let configuration = json!({"base": toggles, "overrides": [one]});
        let configuration = Configuration::from_value(configuration).unwrap();
        let warnings = Compiled::new(&configuration, 7)
            .unwrap()
            .warnings(UnixTime::default());
        let mut paths: Vec<_> = warnings.iter().map(|fault| fault.path.as_str()).collect();
        paths.sort_unstable();
        assert_eq!(
            paths,
            [
                "base.toggles.enabled",
                "base.toggles.sampling.spans",
                "overrides[0].patch.toggles.jank"
            ]
        );
    }

    #[test]
    fn a_variant_is_truncated_when_many_overrides_match() {
        let overrides = |count: usize| -> Vec<_> {
            let one = |index: usize| {
                json!({"id": format!("override-{index:03}"), "when": {"not": {"os_name": ["ios"]}},
                       "patch": {"toggles": {format!("t{index}"): index}}})
            };
            (0..count).map(one).collect()
        };
        let few = resolved(json!({"overrides": overrides(2)}));
        assert_eq!(few.variant(), "override-000+override-001");
        let many = resolved(json!({"overrides": overrides(900)}));
        assert!(many.variant().len() < 280, "{}", many.variant());
        assert!(many.variant().ends_with("+881 more"), "{}", many.variant());
    }

    #[test]
    fn the_reason_reflects_the_matching_overrides() {
        let reason = |when: Option<Value>, patch: Value| {
            let when = when.map(|when| json!({"id": "one", "when": when, "patch": patch}));
            resolved(json!({"overrides": when.into_iter().collect::<Vec<_>>()})).reason()
        };
        let (all, patch) = (json!({"all": []}), json!({"poll_interval_s": 60}));
        let share = json!({"not": {"percentage": {"percent": 50.0}}});
        assert_eq!(reason(None, json!({})), Reason::Static);
        assert_eq!(
            reason(Some(json!({"os_name": ["ios"]})), patch.clone()),
            Reason::Static
        );
        assert_eq!(reason(Some(all), patch.clone()), Reason::TargetingMatch);
        assert_eq!(reason(Some(share.clone()), patch), Reason::Split);
        assert_eq!(
            reason(Some(share), json!({"enabled": false})),
            Reason::Disabled
        );
    }
}
