//! The kill switch: stops collection on all devices of a project, shows that it is off, and switches it on again.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use unjank_database::{Actor, Control, ControlError, Document, DocumentChange, DocumentKind};
use unjank_foundation::clock::UnixTime;
use unjank_remote_config::Configuration;

use super::configurations::{Draft, SaveError, Saved, is_off, read, save};

const KIND: DocumentKind = DocumentKind::Configuration;
/// How often a switch is tried if others save at the same time.
const TRIES: usize = 10;
/// How many revisions are read back to find the one that switched the project off. If it is older, the oldest of these
/// counts.
const MOST_READ_BACK: usize = 100;
/// The start of the note of a revision that the kill switch saves.
const NOTE: &str = "kill switch";

/// A project that is off.
pub struct SwitchedOff {
    /// The revision since which the project is off.
    pub since: Document,
    /// Overrides in force that enable collection for some devices.
    pub except: Vec<String>,
}

/// How a project was switched off.
struct Switch {
    /// The revision that switched the project off.
    off: Document,
    /// The configuration before, if there is one.
    before: Option<Value>,
    /// The overrides that this revision, or a later use of the kill switch, disabled. Without those that were then enabled and
    /// disabled by hand.
    disabled: BTreeSet<String>,
}

/// Returns since when a project is off, or `None` if it is on.
pub async fn switched_off(
    control: &Control,
    project: &str,
    now: UnixTime,
) -> Result<Option<SwitchedOff>, ControlError> {
    let Some((latest, configuration)) = off(control, project).await? else {
        return Ok(None);
    };
    let switch = find_switch(control, latest).await?;
    Ok(Some(SwitchedOff {
        since: switch.off,
        except: enabling(configuration, now),
    }))
}

/// Disables collection on all devices of a project, regardless of overrides. Needs no expected revision, because it is
/// for emergencies.
pub async fn kill(
    control: &Control,
    project: &str,
    note: &str,
    actor: &Actor,
    now: UnixTime,
) -> Result<Saved, SaveError> {
    let mut last = ControlError::NotFound;
    for _ in 0..TRIES {
        let (configuration, expected_revision) = match control.latest_document(KIND, project).await
        {
            Ok(document) => (read(&document)?, document.revision),
            Err(ControlError::NotFound) => (json!({}), 0),
            Err(error) => return Err(error.into()),
        };
        let draft = Draft {
            configuration: killed(configuration),
            note: noted(NOTE, note),
            expected_revision,
            change: DocumentChange::Saved,
            action: None,
        };
        match save(control, project, draft, actor, now).await {
            Err(SaveError::Control(conflict @ ControlError::Conflict { .. })) => last = conflict,
            done => return done,
        }
    }
    Err(last.into())
}

/// Enables collection again. Enables the overrides that were disabled together with the project, and keeps every other change
/// that was saved since.
pub async fn switch_on(
    control: &Control,
    project: &str,
    note: &str,
    actor: &Actor,
    now: UnixTime,
) -> Result<Saved, SaveError> {
    let mut last = ControlError::NotFound;
    for _ in 0..TRIES {
        let Some((latest, configuration)) = off(control, project).await? else {
            return Err(ControlError::Invalid("the project is already on".to_owned()).into());
        };
        let expected_revision = latest.revision;
        let switch = find_switch(control, latest).await?;
        let draft = Draft {
            configuration: restored(configuration, &switch),
            note: noted("switched on again", note),
            expected_revision,
            change: DocumentChange::SwitchedOn,
            action: None,
        };
        match save(control, project, draft, actor, now).await {
            Err(SaveError::Control(conflict @ ControlError::Conflict { .. })) => last = conflict,
            done => return done,
        }
    }
    Err(last.into())
}

/// Returns the latest configuration of a project that is off.
async fn off(control: &Control, project: &str) -> Result<Option<(Document, Value)>, ControlError> {
    let latest = match control.latest_document(KIND, project).await {
        Ok(latest) => latest,
        Err(ControlError::NotFound) => return Ok(None),
        Err(error) => return Err(error),
    };
    let configuration = read(&latest)?;
    Ok(is_off(&configuration).then_some((latest, configuration)))
}

/// Finds the revision that switched a project off, from its latest one backwards.
async fn find_switch(control: &Control, latest: Document) -> Result<Switch, ControlError> {
    let mut configuration = read(&latest)?;
    let mut off = latest;
    let mut before = None;
    // For each override that was disabled: whether a switch did it last.
    let mut disabled = BTreeMap::new();
    for _ in 0..MOST_READ_BACK {
        if off.revision == 1 {
            break;
        }
        let earlier = control
            .document(KIND, &off.project, off.revision - 1)
            .await?;
        let previous = read(&earlier)?;
        let was_on = !is_off(&previous);
        let is_switch = was_on || off.note.starts_with(NOTE);
        for id in disabled_since(&previous, &configuration) {
            disabled.entry(id.to_owned()).or_insert(is_switch);
        }
        if was_on {
            before = Some(previous);
            break;
        }
        (off, configuration) = (earlier, previous);
    }
    let by_switch = disabled.into_iter().filter(|(_, by_switch)| *by_switch);
    Ok(Switch {
        off,
        before,
        disabled: by_switch.map(|(id, _)| id).collect(),
    })
}

/// Truncates the note, because a long one must not block the switch.
fn noted(what: &str, note: &str) -> String {
    let note: String = note.trim().chars().take(1_000).collect();
    if note.is_empty() {
        what.to_owned()
    } else {
        format!("{what}: {note}")
    }
}

/// Returns the overrides that enable collection although the base disables it.
fn enabling(configuration: Value, now: UnixTime) -> Vec<String> {
    let Ok(configuration) = Configuration::from_value(configuration) else {
        return Vec::new();
    };
    let in_force = configuration.overrides.into_iter().filter(|one| {
        let end = one.expires_at.map(UnixTime::from);
        one.enabled && end.is_none_or(|end| end > now)
    });
    // `null` returns the key to its default, which is `true`.
    let enables = |patch: &Value| patch.get("enabled").is_some_and(|one| one != false);
    in_force
        .filter(|one| enables(&one.patch))
        .map(|one| one.id)
        .collect()
}

/// Returns the configuration with collection disabled. Overrides that set `enabled` are disabled too; all others stay.
fn killed(mut configuration: Value) -> Value {
    configuration["base"]["enabled"] = Value::Bool(false);
    for one in overrides(&mut configuration) {
        if one.pointer("/patch/enabled").is_some() {
            one["enabled"] = Value::Bool(false);
        }
    }
    configuration
}

/// Returns the configuration with collection and overrides enabled as before the switch.
fn restored(mut configuration: Value, switch: &Switch) -> Value {
    let before = switch.before.as_ref();
    let enabled = before.and_then(|before| before.pointer("/base/enabled"));
    if let Some(base) = configuration.get_mut("base").and_then(Value::as_object_mut) {
        match enabled {
            Some(enabled) => base.insert("enabled".to_owned(), enabled.clone()),
            None => base.remove("enabled"),
        };
    }
    for one in overrides(&mut configuration) {
        let id = one.get("id").and_then(Value::as_str).unwrap_or_default();
        if switch.disabled.contains(id)
            && let Some(one) = one.as_object_mut()
        {
            one.remove("enabled");
        }
    }
    configuration
}

/// Returns the overrides that are enabled in `before` and disabled in `after`.
fn disabled_since<'a>(before: &'a Value, after: &Value) -> Vec<&'a str> {
    let after = enabled_by_id(after);
    let enabled = enabled_by_id(before)
        .into_iter()
        .filter(|(_, is_enabled)| *is_enabled);
    enabled
        .map(|(id, _)| id)
        .filter(|id| after.get(id) == Some(&false))
        .collect()
}

fn enabled_by_id(configuration: &Value) -> BTreeMap<&str, bool> {
    let overrides = configuration.get("overrides").and_then(Value::as_array);
    let overrides = overrides.into_iter().flatten();
    let is_enabled = |one: &Value| one.get("enabled") != Some(&Value::Bool(false));
    overrides
        .filter_map(|one| Some((one.get("id")?.as_str()?, is_enabled(one))))
        .collect()
}

fn overrides(configuration: &mut Value) -> impl Iterator<Item = &mut Value> {
    let overrides = configuration.get_mut("overrides");
    overrides
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kill_switch_disables_only_overrides_that_set_enabled() {
        let quiet =
            json!({"id": "quiet", "when": {"all": []}, "patch": {"sampling": {"janks": 0.1}}});
        let mut beta = json!({"id": "beta", "when": {"all": []}, "patch": {"enabled": true}});
        let killed = killed(json!({"base": {"poll_interval_s": 60}, "overrides": [quiet, beta]}));
        beta["enabled"] = json!(false);
        assert_eq!(
            killed,
            json!({"base": {"poll_interval_s": 60, "enabled": false}, "overrides": [quiet, beta]})
        );
    }

    #[test]
    fn only_overrides_that_were_enabled_before_count_as_disabled() {
        let one = |id: &str| json!({"id": id, "when": {"all": []}, "patch": {"enabled": true}});
        let mut paused = one("paused");
        paused["enabled"] = json!(false);
        let before = json!({"base": {}, "overrides": [one("beta"), paused, one("removed")]});
        let mut after = killed(before.clone());
        assert_eq!(disabled_since(&before, &after), ["beta", "removed"]);
        after["overrides"].as_array_mut().unwrap().pop();
        assert_eq!(disabled_since(&before, &after), ["beta"]);
        assert!(disabled_since(&after, &before).is_empty());
    }
}
