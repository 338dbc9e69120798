//! Comments of people on groups of janks and on incidents.

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Row, Values, values};
use super::change::{Change, Entry, new_id};
use super::checks;
use super::error::ControlError;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    pub id: Uuid,
    pub author: String,
    pub text: String,
    pub created_at: UnixTime,
}

impl Comment {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id("id")?,
            author: row.get("author")?,
            text: row.get("text")?,
            created_at: row.get("created_at")?,
        })
    }
}

/// What people comment on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Commented {
    JankGroup(u64),
    Incident(Uuid),
}

impl Commented {
    fn id(self) -> String {
        match self {
            Self::JankGroup(group) => group.to_string(),
            Self::Incident(incident) => incident.to_string(),
        }
    }

    fn kind(self) -> &'static Kind {
        match self {
            Self::JankGroup(_) => &JANK_GROUPS,
            Self::Incident(_) => &INCIDENTS,
        }
    }
}

/// What differs between the kinds of subjects.
struct Kind {
    noun: &'static str,
    added: Action,
    deleted: Action,
    list: &'static str,
    count: &'static str,
    insert: &'static str,
    delete: &'static str,
    delete_own: &'static str,
}

/// The statements for a table whose column names the subject.
macro_rules! kind {
    ($noun:literal, $added:ident, $deleted:ident, $table:literal, $column:literal) => {
        Kind {
            noun: $noun,
            added: Action::$added,
            deleted: Action::$deleted,
            list: concat!(
                "SELECT id, author, text, created_at FROM ",
                $table,
                " WHERE project = $1 AND ",
                $column,
                " = $2 ORDER BY created_at DESC, id DESC LIMIT $3"
            ),
            count: concat!(
                "SELECT COUNT(*) AS comments FROM ",
                $table,
                " WHERE project = $1 AND ",
                $column,
                " = $2"
            ),
            insert: concat!(
                "INSERT INTO ",
                $table,
                " (id, project, ",
                $column,
                ", author, text, created_at) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id, author, text, created_at"
            ),
            delete: concat!(
                "DELETE FROM ",
                $table,
                " WHERE project = $1 AND ",
                $column,
                " = $2 AND id = $3"
            ),
            delete_own: concat!(
                "DELETE FROM ",
                $table,
                " WHERE project = $1 AND ",
                $column,
                " = $2 AND id = $3 AND author = $4"
            ),
        }
    };
}

static JANK_GROUPS: Kind = kind!(
    "group",
    GroupCommented,
    GroupCommentDeleted,
    "group_comments",
    "group_id"
);
static INCIDENTS: Kind = kind!(
    "incident",
    IncidentCommented,
    IncidentCommentDeleted,
    "incident_comments",
    "incident"
);

const MOST_CHARS: usize = 2_000;
const MOST_COMMENTS: i64 = 200;

impl Control {
    /// Returns the comments on a subject, oldest first, at most 200. Groups of janks that merge may have more. All of them are kept, and
    /// the latest are returned.
    pub async fn comments(
        &self,
        project: &str,
        on: Commented,
    ) -> Result<Vec<Comment>, ControlError> {
        let values = values![project, on.id(), MOST_COMMENTS];
        let mut comments = self.records(on.kind().list, values, Comment::read).await?;
        comments.reverse();
        Ok(comments)
    }

    /// Adds a comment to a subject with a title.
    pub async fn add_comment(
        &self,
        project: &str,
        (on, title): (Commented, &str),
        text: &str,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<Comment, ControlError> {
        let text = text.trim();
        let hidden = |one: char| one.is_control() && !matches!(one, '\n' | '\t');
        if text.is_empty() || text.chars().count() > MOST_CHARS || text.chars().any(hidden) {
            return Err(checks::invalid(&format!(
                "a comment must be 1 to {MOST_CHARS} characters without control characters"
            )));
        }
        let (kind, id) = (on.kind(), on.id());
        let mut change = Change::begin(self, actor, at).await?;
        let known = change
            .row(kind.count, values![project, id.as_str()])
            .await?;
        let known: i64 = known.map_or(Ok(0), |row| row.get("comments"))?;
        if known >= MOST_COMMENTS {
            return Err(checks::invalid(&format!(
                "the {} has {MOST_COMMENTS} comments, which is the limit; delete one of yours first",
                kind.noun
            )));
        }
        let author = actor.to_string();
        let values = values![new_id(at), project, id.as_str(), author, text, at];
        let inserted = change.row(kind.insert, values).await?;
        let comment = Comment::read(&inserted.ok_or(ControlError::NotFound)?)?;
        change
            .commit(Entry {
                action: kind.added,
                project: Some(project),
                subject: &id,
                detail: json!({"name": title, "comment": comment.id}),
            })
            .await?;
        Ok(comment)
    }

    /// Deletes a comment of the actor. Comments of others are not found.
    pub async fn delete_comment(
        &self,
        project: &str,
        (on, comment): (Commented, Uuid),
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let values = values![project, on.id(), comment, actor.to_string()];
        let delete = (on.kind().delete_own, values);
        self.delete_once(delete, project, (on, comment), actor, at)
            .await
    }

    /// Deletes a comment of anybody, as an admin of the project may. The author may have left.
    pub async fn delete_any_comment(
        &self,
        project: &str,
        (on, comment): (Commented, Uuid),
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let values = values![project, on.id(), comment];
        let delete = (on.kind().delete, values);
        self.delete_once(delete, project, (on, comment), actor, at)
            .await
    }

    async fn delete_once(
        &self,
        delete: (&'static str, Values),
        project: &str,
        (on, comment): (Commented, Uuid),
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let entry = Entry {
            action: on.kind().deleted,
            project: Some(project),
            subject: &on.id(),
            detail: json!({"comment": comment}),
        };
        self.change_once(delete, entry, actor, at).await
    }
}
