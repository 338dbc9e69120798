//! Changes a project's remote configuration. Each change is validated as a whole and saved as an immutable revision.

use serde_json::Value;
use unjank_database::{
    ActionNote, Actor, Control, ControlError, Document, DocumentChange, DocumentKind, NewDocument,
};
use unjank_foundation::clock::UnixTime;
use unjank_remote_config::{Compiled, Configuration, Fault};

use super::compiling::{Busy, compiling};

const KIND: DocumentKind = DocumentKind::Configuration;

/// A configuration to be saved.
pub struct Draft {
    pub configuration: Value,
    pub note: String,
    /// The revision the draft is based on, or 0 if there is none. If another revision has been saved since, saving
    /// fails with a conflict.
    pub expected_revision: i64,
    /// The change that the audit log records. A revision that switches the project off or on is always recorded as
    /// such.
    pub change: DocumentChange,
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

pub(super) fn checked(configuration: Value, revision: u64) -> Result<Checked, SaveError> {
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
    let was_off = switched_off_at(control, project, draft.expected_revision).await?;
    let change = match (was_off, is_off(&configuration)) {
        (false, true) => DocumentChange::SwitchedOff,
        (true, false) => DocumentChange::SwitchedOn,
        _ => draft.change,
    };
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
        change,
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
        change: DocumentChange::RolledBack { to },
        action: None,
    };
    save(control, project, draft, actor, now).await
}

/// Whether a revision has collection switched off. A revision that does not exist counts as on: revision 0 is the
/// defaults, and saving on top of any other fails.
async fn switched_off_at(
    control: &Control,
    project: &str,
    revision: i64,
) -> Result<bool, ControlError> {
    match control.document(KIND, project, revision).await {
        Ok(document) => Ok(read(&document).is_ok_and(|configuration| is_off(&configuration))),
        Err(ControlError::NotFound) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the base of a configuration stops collection. An override may still enable it for some devices.
pub(super) fn is_off(configuration: &Value) -> bool {
    configuration.pointer("/base/enabled") == Some(&Value::Bool(false))
}

pub(super) fn read(document: &Document) -> Result<Value, ControlError> {
    serde_json::from_str(&document.text).map_err(|_| {
        ControlError::Invalid(format!("revision {} cannot be parsed", document.revision))
    })
}
