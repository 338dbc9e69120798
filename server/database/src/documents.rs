//! The documents of a project that operators edit: its remote configuration and its classification rules. Each save
//! creates a new, immutable revision.

use serde_json::json;
use serde_json::value::RawValue;
use unjank_foundation::clock::UnixTime;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Row, values};
use super::change::{Change, Entry};
use super::checks;
use super::error::ControlError;
use super::incidents::ActionNote;

/// The kind of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DocumentKind {
    /// Remote configuration, as JSON.
    Configuration,
    /// Classification rules, as TOML.
    RuleSet,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    pub project: String,
    /// Counts from 1, without gaps.
    pub revision: i64,
    pub text: String,
    /// The author's note on the change.
    pub note: String,
    pub author: String,
    pub created_at: UnixTime,
}

impl Document {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            project: row.get("project")?,
            revision: row.get("revision")?,
            text: row.get("document")?,
            note: row.get("note")?,
            author: row.get("author")?,
            created_at: row.get("created_at")?,
        })
    }
}

/// The kind of change that a new revision makes. It determines the action in the audit log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentChange {
    Saved,
    /// An earlier revision is saved again.
    RolledBack {
        to: i64,
    },
    /// Devices stop collecting data.
    SwitchedOff,
    /// Devices collect data again.
    SwitchedOn,
}

#[derive(Clone, Debug)]
pub struct NewDocument {
    pub project: String,
    /// The revision that was edited, or 0 for the first.
    pub expected_revision: i64,
    pub text: String,
    pub note: String,
    pub change: DocumentChange,
    /// The note stored with an incident, in the same transaction.
    pub action: Option<ActionNote>,
}

const MAX_TEXT_BYTES: usize = 4 << 20;
const MAX_NOTE_BYTES: usize = 10_000;

struct Statements {
    save: &'static str,
    current: &'static str,
    get: &'static str,
    latest: &'static str,
    list: &'static str,
    all_latest: &'static str,
}

/// The same statements for either table. Of concurrent saves, the primary key admits one. The others insert nothing;
/// since that is not an error, their transaction can still read the current revision.
macro_rules! statements {
    ($table:literal) => {
        Statements {
            save: concat!(
                "
                INSERT INTO ",
                $table,
                " (project, revision, document, note, author, created_at)
                SELECT $1, $2 + 1, $3, $4, $5, $6
                WHERE (SELECT COALESCE(MAX(revision), 0) FROM ",
                $table,
                " WHERE project = $1) = $2
                ON CONFLICT (project, revision) DO NOTHING
                RETURNING project, revision, document, note, author, created_at"
            ),
            current: concat!(
                "SELECT COALESCE(MAX(revision), 0) AS revision FROM ",
                $table,
                " WHERE project = $1"
            ),
            get: concat!(
                "SELECT project, revision, document, note, author, created_at FROM ",
                $table,
                " WHERE project = $1 AND revision = $2"
            ),
            latest: concat!(
                "SELECT project, revision, document, note, author, created_at FROM ",
                $table,
                " WHERE project = $1 ORDER BY revision DESC LIMIT 1"
            ),
            list: concat!(
                "SELECT project, revision, '' AS document, note, author, created_at FROM ",
                $table,
                " WHERE project = $1 AND revision < $2 ORDER BY revision DESC LIMIT $3"
            ),
            all_latest: concat!(
                "
                SELECT project, revision, document, note, author, created_at
                FROM ",
                $table,
                " AS one
                WHERE revision = (SELECT MAX(revision) FROM ",
                $table,
                " WHERE project = one.project)
                ORDER BY project"
            ),
        }
    };
}

static CONFIGURATIONS: Statements = statements!("configurations");
static RULE_SETS: Statements = statements!("rule_sets");

impl DocumentKind {
    fn statements(self) -> &'static Statements {
        match self {
            Self::Configuration => &CONFIGURATIONS,
            Self::RuleSet => &RULE_SETS,
        }
    }

    fn action(self, change: DocumentChange) -> Action {
        match (self, change) {
            (Self::Configuration, DocumentChange::Saved) => Action::ConfigurationSaved,
            (Self::Configuration, DocumentChange::RolledBack { .. }) => {
                Action::ConfigurationRolledBack
            }
            (Self::Configuration, DocumentChange::SwitchedOff) => Action::ConfigurationSwitchedOff,
            (Self::Configuration, DocumentChange::SwitchedOn) => Action::ConfigurationSwitchedOn,
            (Self::RuleSet, DocumentChange::RolledBack { .. }) => Action::RuleSetRolledBack,
            (Self::RuleSet, _) => Action::RuleSetSaved,
        }
    }

    fn check(self, new: &NewDocument) -> Result<(), ControlError> {
        if new.text.len() > MAX_TEXT_BYTES || new.note.len() > MAX_NOTE_BYTES {
            return Err(checks::invalid(
                "a document must have at most 4 MiB, and its note at most 10000 bytes",
            ));
        }
        // Rules are not checked again: they were compiled before.
        let is_json = || serde_json::from_str::<&RawValue>(&new.text).is_ok();
        if self == Self::RuleSet || is_json() {
            Ok(())
        } else {
            Err(checks::invalid("the configuration is not JSON"))
        }
    }
}

impl Control {
    /// Saves the next revision if the expected one is current. Otherwise [`ControlError::Conflict`] contains the
    /// current one.
    pub async fn save_document(
        &self,
        kind: DocumentKind,
        new: NewDocument,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<Document, ControlError> {
        kind.check(&new)?;
        let statements = kind.statements();
        let mut change = Change::begin(self, actor, at).await?;
        let values = values![
            new.project.as_str(),
            new.expected_revision,
            new.text,
            new.note,
            actor.to_string(),
            at,
        ];
        let Some(saved) = change.row(statements.save, values).await? else {
            let values = values![new.project.as_str()];
            let current = change.row(statements.current, values).await?;
            let current = current.ok_or(ControlError::NotFound)?.get("revision")?;
            return Err(ControlError::Conflict { current });
        };
        let saved = Document::read(&saved)?;
        if let Some(action) = new.action
            && !action.keep(&mut change).await?
        {
            // Dropping the change rolls it back.
            return Err(ControlError::Conflict {
                current: new.expected_revision,
            });
        }
        let mut detail = json!({"revision": saved.revision, "note": saved.note});
        if let DocumentChange::RolledBack { to } = new.change {
            detail["to"] = json!(to);
        }
        change
            .commit(Entry {
                action: kind.action(new.change),
                project: Some(&saved.project),
                subject: &saved.revision.to_string(),
                detail,
            })
            .await?;
        Ok(saved)
    }

    pub async fn document(
        &self,
        kind: DocumentKind,
        project: &str,
        revision: i64,
    ) -> Result<Document, ControlError> {
        let values = values![project, revision];
        Document::read(&self.row(kind.statements().get, values).await?)
    }

    pub async fn latest_document(
        &self,
        kind: DocumentKind,
        project: &str,
    ) -> Result<Document, ControlError> {
        let values = values![project];
        Document::read(&self.row(kind.statements().latest, values).await?)
    }

    /// Returns the revisions before `before`, latest first, at most 1000, without their texts.
    pub async fn documents(
        &self,
        kind: DocumentKind,
        project: &str,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Vec<Document>, ControlError> {
        let values = values![project, before.unwrap_or(i64::MAX), checks::page(limit)];
        self.records(kind.statements().list, values, Document::read)
            .await
    }

    /// Returns the latest document of each project, for the snapshot.
    pub async fn latest_documents(
        &self,
        kind: DocumentKind,
    ) -> Result<Vec<Document>, ControlError> {
        let statements = kind.statements();
        self.records(statements.all_latest, values![], Document::read)
            .await
    }
}
