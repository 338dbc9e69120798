//! Changing a project's classification rules: checked whole before they are saved, and a revision that never changes after.

use super::compiling::{Busy, compiling};
use crate::stacks::{Rules, RulesError};
use crate::store::control::{Actor, Control, ControlError, Document, DocumentKind, NewDocument};

const KIND: DocumentKind = DocumentKind::RuleSet;

/// Rules that somebody wants to save.
pub struct Draft {
    /// TOML.
    pub rules: String,
    pub note: String,
    /// The revision they were made from; 0 when there was none. Another one in the meantime is a conflict.
    pub expected_revision: i64,
}

/// A saved revision, and what its author should look at again.
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

/// Checks rules as saving them would, when it is the actor's turn. Answers the warnings.
pub async fn check(rules: &str, actor: &Actor) -> Result<Vec<String>, SaveError> {
    compile(rules, actor).await.map(|(_, warnings)| warnings)
}

/// Compiles rules, when it is the actor's turn. Answers the warnings too: they take as long.
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
    control: &dyn Control,
    project: &str,
    draft: Draft,
    actor: &Actor,
    now: i64,
) -> Result<Saved, SaveError> {
    let warnings = check(&draft.rules, actor).await?;
    let new = NewDocument {
        project: project.to_owned(),
        expected_revision: draft.expected_revision,
        text: draft.rules,
        note: draft.note,
        action: None,
    };
    let document = control.save_document(KIND, new, actor, now).await?;
    Ok(Saved { document, warnings })
}

/// Saves an earlier revision again, as the next one: history is never rewritten, and classes of the new number are made anew.
pub async fn roll_back(
    control: &dyn Control,
    (project, to): (&str, i64),
    expected_revision: i64,
    actor: &Actor,
    now: i64,
) -> Result<Saved, SaveError> {
    let earlier = control.document(KIND, project, to).await?;
    let draft = Draft {
        rules: earlier.text,
        note: format!("back to revision {to}"),
        expected_revision,
    };
    save(control, project, draft, actor, now).await
}

/// The revision that holds; 0 when nothing was ever saved.
pub async fn current_revision(control: &dyn Control, project: &str) -> Result<u32, ControlError> {
    match control.latest_document(KIND, project).await {
        Ok(document) => Ok(revision(&document)),
        Err(ControlError::NotFound) => Ok(0),
        Err(error) => Err(error),
    }
}

/// Four billion saves will do.
pub(super) fn revision(document: &Document) -> u32 {
    u32::try_from(document.revision).unwrap_or(u32::MAX)
}
