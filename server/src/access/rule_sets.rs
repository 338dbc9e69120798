//! Changes a project's classification rules. Each change is validated as a whole and saved as an immutable revision.

use unjank_database::{
    Actor, Control, ControlError, Document, DocumentChange, DocumentKind, NewDocument,
};
use unjank_foundation::clock::UnixTime;
use unjank_stacks::{Rules, RulesError};

use super::compiling::{Busy, compiling};

const KIND: DocumentKind = DocumentKind::RuleSet;

/// Rules to be saved.
pub struct Draft {
    /// TOML.
    pub rules: String,
    pub note: String,
    /// The revision the draft is based on, or 0 if there is none. If another revision has been saved since, saving
    /// fails with a conflict.
    pub expected_revision: i64,
    pub change: DocumentChange,
}

/// A saved revision, with warnings for its author.
#[derive(Debug)]
pub struct Saved {
    pub document: Document,
    pub warnings: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    #[error(transparent)]
    Rules(#[from] RulesError),
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Busy(#[from] Busy),
}

/// Validates rules as [`save`] does, when it is the actor's turn. Returns the warnings.
pub async fn check(rules: &str, actor: &Actor) -> Result<Vec<String>, SaveError> {
    compile(rules, actor).await.map(|(_, warnings)| warnings)
}

/// Compiles rules when it is the actor's turn. Also returns the warnings, which take as long to compute.
pub async fn compile(rules: &str, actor: &Actor) -> Result<(Rules, Vec<String>), SaveError> {
    let rules = rules.to_owned();
    let compiled = compiling(actor.holder(), move || {
        Rules::parse(&rules).map(|rules| {
            let warnings = rules.warnings();
            (rules, warnings)
        })
    });
    Ok(compiled.await??)
}

pub async fn save(
    control: &Control,
    project: &str,
    draft: Draft,
    actor: &Actor,
    now: UnixTime,
) -> Result<Saved, SaveError> {
    let warnings = check(&draft.rules, actor).await?;
    let new = NewDocument {
        project: project.to_owned(),
        expected_revision: draft.expected_revision,
        text: draft.rules,
        note: draft.note,
        change: draft.change,
        action: None,
    };
    let document = control.save_document(KIND, new, actor, now).await?;
    Ok(Saved { document, warnings })
}

/// Saves an earlier revision as a new one. History is never rewritten, and stored stacks are reclassified under the new
/// revision.
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
        rules: earlier.text,
        note: format!("back to revision {to}"),
        expected_revision,
        change: DocumentChange::RolledBack { to },
    };
    save(control, project, draft, actor, now).await
}

/// Returns the revision in force, or 0 if none has been saved.
pub async fn current_revision(control: &Control, project: &str) -> Result<u32, ControlError> {
    match control.latest_document(KIND, project).await {
        Ok(document) => Ok(revision(&document)),
        Err(ControlError::NotFound) => Ok(0),
        Err(error) => Err(error),
    }
}

/// Returns the revision as `u32`. More than four billion revisions are not expected.
pub(super) fn revision(document: &Document) -> u32 {
    u32::try_from(document.revision).unwrap_or(u32::MAX)
}
