//! Changes a project's remote configuration. Each change is validated as a whole and saved as an immutable revision.

use serde_json::{Value, json};

use super::compiling::{Busy, compiling};
use crate::clock::UnixTime;
use crate::remote_config::{Compiled, Configuration, Fault};
use crate::store::control::{
    ActionNote, Actor, Control, ControlError, Document, DocumentKind, NewDocument,
};

const KIND: DocumentKind = DocumentKind::Configuration;
/// How often the kill switch is tried if others save at the same time.
const TRIES: usize = 10;

/// A configuration to be saved.
pub struct Draft {
    pub configuration: Value,
    pub note: String,
    /// The revision the draft is based on, or 0 if there is none. If another revision has been saved since, saving
    /// fails with a conflict.
    pub expected_revision: i64,
    /// The note stored with the incident, if an incident saves the configuration.
    pub action: Option<ActionNote>,
}

/// A saved revision, with warnings for its author.
#[derive(Debug)]
pub struct Saved {
    pub document: Document,
    pub warnings: Vec<Fault>,
}

#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    #[error("the configuration has faults")]
    Faults(Vec<Fault>),
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Busy(#[from] Busy),
}

/// A configuration without faults.
pub struct Checked {
    pub configuration: Configuration,
    pub compiled: Compiled,
}

/// Validates a configuration as [`save`] does. Waits until the actor may use a compilation slot.
pub async fn compile(
    configuration: Value,
    revision: u64,
    actor: &Actor,
) -> Result<Checked, SaveError> {
    compiling(actor.holder(), move || checked(configuration, revision)).await?
}

fn checked(configuration: Value, revision: u64) -> Result<Checked, SaveError> {
    let configuration =
        Configuration::from_value(configuration).map_err(|fault| SaveError::Faults(vec![fault]))?;
    let compiled = Compiled::new(&configuration, revision).map_err(SaveError::Faults)?;
    Ok(Checked {
        configuration,
        compiled,
    })
}

pub async fn save(
    control: &Control,
    project: &str,
    draft: Draft,
    actor: &Actor,
    now: UnixTime,
) -> Result<Saved, SaveError> {
    let Draft { configuration, .. } = draft;
    let checking = move || {
        let text = configuration.to_string();
        checked(configuration, 0).map(|checked| (text, checked.compiled.warnings(now)))
    };
    let (text, warnings) = compiling(actor.holder(), checking).await??;
    let new = NewDocument {
        project: project.to_owned(),
        expected_revision: draft.expected_revision,
        text,
        note: draft.note,
        action: draft.action,
    };
    let document = control.save_document(KIND, new, actor, now).await?;
    Ok(Saved { document, warnings })
}

/// Saves an earlier revision as a new one. History is never rewritten.
pub async fn roll_back(
    control: &Control,
    project: &str,
    to: i64,
    expected_revision: i64,
    actor: &Actor,
    now: UnixTime,
) -> Result<Saved, SaveError> {
    let earlier = control.document(KIND, project, to).await?;
    let draft = Draft {
        configuration: read(&earlier)?,
        note: format!("back to revision {to}"),
        expected_revision,
        action: None,
    };
    save(control, project, draft, actor, now).await
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
    // Truncated, because a long note must not block the kill switch.
    let note: String = note.chars().take(1_000).collect();
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
            note: format!("kill switch: {note}"),
            expected_revision,
            action: None,
        };
        match save(control, project, draft, actor, now).await {
            Err(SaveError::Control(conflict @ ControlError::Conflict { .. })) => last = conflict,
            done => return done,
        }
    }
    Err(last.into())
}

/// Returns the configuration with collection disabled. Overrides that set `enabled` are disabled too.
fn killed(mut configuration: Value) -> Value {
    configuration["base"]["enabled"] = Value::Bool(false);
    let overrides = configuration
        .get_mut("overrides")
        .and_then(Value::as_array_mut);
    for one in overrides.into_iter().flatten() {
        if one.pointer("/patch/enabled").is_some() {
            one["enabled"] = Value::Bool(false);
        }
    }
    configuration
}

fn read(document: &Document) -> Result<Value, ControlError> {
    serde_json::from_str(&document.text).map_err(|_| {
        ControlError::Invalid(format!("revision {} cannot be parsed", document.revision))
    })
}
