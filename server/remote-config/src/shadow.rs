//! Detects overrides without effect, because later overrides for every device set all of their keys again.

use serde_json::Value;

use super::fault::{Fault, FaultCode};
use super::overrides::CompiledOverride;

/// The id prefix of overrides that the server creates for incidents. They expire on their own and must not block a save.
pub const INCIDENT_ID_PREFIX: &str = "incident-";

/// Returns a fault for each override that later, unconditional overrides hide completely, for as long as it applies.
pub(super) fn shadowed(overrides: &[CompiledOverride]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (position, hidden) in overrides.iter().enumerate() {
        if hidden.id.starts_with(INCIDENT_ID_PREFIX) {
            continue;
        }
        let later = overrides.iter().skip(position + 1);
        let hiding: Vec<_> = later
            .filter(|later| later.predicate.constant() == Some(true) && later.outlasts(hidden))
            .collect();
        let is_hidden = |path: &[&str]| hiding.iter().any(|later| sets(&later.patch, path));
        if !hiding.is_empty() && every_leaf(&hidden.patch, &mut Vec::new(), &is_hidden) {
            let ids: Vec<_> = hiding
                .iter()
                .map(|later| format!("`{}`", later.id))
                .collect();
            let message = format!(
                "override `{}` has no effect: every key it sets is set again for all devices by {}; disable it, \
                 move it below, or give the later one an `expires_at`",
                hidden.id,
                ids.join(", ")
            );
            faults.push(Fault::new(hidden.path(), FaultCode::Shadowed, message));
        }
    }
    faults
}

/// Whether a patch determines the value at `path` regardless of its previous value: the patch replaces it or a parent.
fn sets(patch: &Value, path: &[&str]) -> bool {
    match (patch, path) {
        (Value::Object(map), [key, rest @ ..]) => {
            map.get(*key).is_some_and(|value| sets(value, rest))
        }
        // An object is merged into the existing value, so parts of that value may remain.
        (Value::Object(_), []) => false,
        _ => true,
    }
}

/// Whether `holds` is true for the path of every value that a patch sets. An empty object counts as a value.
fn every_leaf<'a>(
    patch: &'a Value,
    path: &mut Vec<&'a str>,
    holds: &impl Fn(&[&str]) -> bool,
) -> bool {
    let Some(map) = patch.as_object().filter(|map| !map.is_empty()) else {
        return holds(path);
    };
    map.iter().all(|(key, value)| {
        path.push(key);
        let all = every_leaf(value, path, holds);
        path.pop();
        all
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::fault_tests::faults;

    fn one(id: &str, when: &Value, patch: &Value) -> Value {
        json!({"id": id, "when": when, "patch": patch})
    }

    /// Whether the first override is rejected. Asserts that there is no other fault.
    #[track_caller]
    fn hides_first(overrides: &[Value]) -> bool {
        let faults = faults(json!({"overrides": overrides}));
        for fault in &faults {
            let found = (fault.path.as_str(), fault.code);
            assert_eq!(found, ("overrides[0]", FaultCode::Shadowed), "{fault}");
        }
        !faults.is_empty()
    }

    #[test]
    fn later_overrides_for_all_devices_hide_the_keys_they_set_again() {
        let (some, all) = (json!({"os_name": ["ios"]}), json!({"all": []}));
        let first = one(
            "a",
            &some,
            &json!({"sampling": {"janks": 0.5, "metrics": 0.5}}),
        );
        let both = json!({"sampling": {"metrics": 1, "janks": 1}, "enabled": true});
        let janks = json!({"sampling": {"janks": 1}});
        assert!(hides_first(&[first.clone(), one("b", &all, &both)]));
        assert!(hides_first(&[
            first.clone(),
            one("b", &all, &json!({"sampling": null}))
        ]));
        // Two overrides together hide it. A condition that is always true counts as none.
        let always =
            json!({"any": [{"os_name": ["ios"]}, {"not": {"any": [{"not": {"all": []}}]}}]});
        let metrics = json!({"sampling": {"metrics": 1}});
        assert!(hides_first(&[
            first.clone(),
            one("b", &always, &janks),
            one("c", &all, &metrics)
        ]));
        // An override of only some keys, for only some devices, or before it does not hide it.
        assert!(!hides_first(&[first.clone(), one("b", &all, &janks)]));
        assert!(!hides_first(&[first.clone(), one("b", &some, &both)]));
        assert!(!hides_first(&[one("b", &all, &both), first]));
    }

    #[test]
    fn merging_into_an_object_keeps_its_other_keys() {
        let toggles = |value: Value| json!({"toggles": {"x": value}});
        let hides = |first: Value, second: Value| {
            let first = one("a", &json!({"os_name": ["ios"]}), &toggles(first));
            hides_first(&[first, one("b", &json!({"all": []}), &toggles(second))])
        };
        assert!(hides(json!({"y": 2}), json!({"y": 1})));
        assert!(hides(json!({"y": 2}), json!(5)));
        assert!(!hides(json!({}), json!({"y": 1})));
        assert!(!hides(json!(5), json!({"y": 1})));
    }

    #[test]
    fn expiring_and_disabled_overrides_hide_nothing_permanently() {
        let mut first = one(
            "a",
            &json!({"os_name": ["ios"]}),
            &json!({"enabled": false}),
        );
        let mut second = one("b", &json!({"all": []}), &json!({"enabled": true}));
        assert!(hides_first(&[first.clone(), second.clone()]));
        second["expires_at"] = json!("2030-01-01T00:00:00Z");
        assert!(!hides_first(&[first.clone(), second.clone()]));
        first["expires_at"] = json!("2029-01-01T00:00:00Z");
        assert!(hides_first(&[first.clone(), second.clone()]));
        second["enabled"] = json!(false);
        assert!(!hides_first(&[first, second]));
    }
}
