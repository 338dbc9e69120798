//! Overrides that can never be seen, because a later one for every device sets all of their keys again.

use serde_json::Value;

use super::fault::{Fault, FaultCode};
use super::overrides::CompiledOverride;

/// A fault for each override that later ones without a condition hide whole, for as long as it is in force.
pub(super) fn shadowed(overrides: &[CompiledOverride]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for (position, hidden) in overrides.iter().enumerate() {
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
                "override `{}` never shows: every key it sets is set again for all devices by {}; disable it, move it \
                 below, or give the later one an `expires_at`",
                hidden.id,
                ids.join(", ")
            );
            faults.push(Fault::new(hidden.path(), FaultCode::Shadowed, message));
        }
    }
    faults
}

/// Whether a patch decides what is at `path`, whatever was there before: it replaces it, or something around it.
fn sets(patch: &Value, path: &[&str]) -> bool {
    match (patch, path) {
        (Value::Object(map), [key, rest @ ..]) => {
            map.get(*key).is_some_and(|value| sets(value, rest))
        }
        // An object is merged into what is there, and so leaves some of it.
        (Value::Object(_), []) => false,
        _ => true,
    }
}

/// Whether `holds` for the path of every value that a patch sets; false when it sets none.
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
