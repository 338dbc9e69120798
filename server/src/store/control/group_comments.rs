//! Comments on groups of janks.

use serde_json::json;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Row, values};
use super::change::{Change, Entry, new_id};
use super::checks;
use super::error::ControlError;
use crate::clock::UnixTime;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupComment {
    pub id: Uuid,
    pub author: String,
    pub text: String,
    pub created_at: UnixTime,
}

impl GroupComment {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id("id")?,
            author: row.get("author")?,
            text: row.get("text")?,
            created_at: row.get("created_at")?,
        })
    }
}

const MOST_CHARS: usize = 2_000;
const MOST_COMMENTS: i64 = 200;

/// Groups that merge may have more comments than one group may get. All of them are kept, and the latest are returned.
const LIST: &str = "
    SELECT id, author, text, created_at
    FROM group_comments
    WHERE project = $1
      AND group_id = $2
    ORDER BY created_at DESC, id DESC
    LIMIT $3";
const COUNT: &str =
    "SELECT COUNT(*) AS comments FROM group_comments WHERE project = $1 AND group_id = $2";
const INSERT: &str = "
    INSERT INTO group_comments (id, project, group_id, author, text, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    RETURNING id, author, text, created_at";
const DELETE: &str =
    "DELETE FROM group_comments WHERE project = $1 AND group_id = $2 AND id = $3 AND author = $4";

impl Control {
    /// Returns the comments on a group, oldest first, at most 200.
    pub async fn group_comments(
        &self,
        project: &str,
        group: u64,
    ) -> Result<Vec<GroupComment>, ControlError> {
        let values = values![project, group.to_string(), MOST_COMMENTS];
        let mut comments = self.records(LIST, values, GroupComment::read).await?;
        comments.reverse();
        Ok(comments)
    }

    /// Adds a comment to a group with a title.
    pub async fn comment_on_group(
        &self,
        project: &str,
        (group, title): (u64, &str),
        text: &str,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<GroupComment, ControlError> {
        let text = text.trim();
        let hidden = |one: char| one.is_control() && !matches!(one, '\n' | '\t');
        if text.is_empty() || text.chars().count() > MOST_CHARS || text.chars().any(hidden) {
            return Err(checks::invalid(&format!(
                "a comment must be 1 to {MOST_CHARS} characters without control characters"
            )));
        }
        let group = group.to_string();
        let mut change = Change::begin(self, actor, at).await?;
        let known = change.row(COUNT, values![project, group.as_str()]).await?;
        let known: i64 = known.map_or(Ok(0), |row| row.get("comments"))?;
        if known >= MOST_COMMENTS {
            return Err(checks::invalid(&format!(
                "the group has {MOST_COMMENTS} comments, which is the limit; delete one of yours first"
            )));
        }
        let author = actor.to_string();
        let values = values![new_id(at), project, group.as_str(), author, text, at];
        let inserted = change.row(INSERT, values).await?;
        let comment = GroupComment::read(&inserted.ok_or(ControlError::NotFound)?)?;
        change
            .commit(Entry {
                action: Action::GroupCommented,
                project: Some(project),
                subject: &group,
                detail: json!({"name": title, "comment": comment.id}),
            })
            .await?;
        Ok(comment)
    }

    /// Deletes a comment of the actor. Comments of others are not found.
    pub async fn delete_group_comment(
        &self,
        project: &str,
        (group, comment): (u64, Uuid),
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let group = group.to_string();
        let entry = Entry {
            action: Action::GroupCommentDeleted,
            project: Some(project),
            subject: &group,
            detail: json!({"comment": comment}),
        };
        let delete = values![project, group.as_str(), comment, actor.to_string()];
        self.change_once((DELETE, delete), entry, actor, at).await
    }
}
