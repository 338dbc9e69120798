//! What people decided about groups of janks: resolved or ignored, until a later version has the group. A group without a decision is open.

use serde_json::json;
use unjank_foundation::clock::UnixTime;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Notice, Row, values};
use super::change::{Change, Entry};
use super::checks;
use super::error::ControlError;
use super::text_enum::text_enum;

text_enum! {
    /// What people decided about a group of janks.
    GroupDecision { Open = "open", Resolved = "resolved", Ignored = "ignored" }
}

/// The decision about a group of janks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HandledGroup {
    pub group: u64,
    pub state: GroupDecision,
    /// A later version of this app brings the group back. Both are empty if the group is open.
    pub app_id: String,
    pub app_version: String,
    pub revision: i64,
    pub changed_by: String,
    pub changed_at: UnixTime,
}

impl HandledGroup {
    fn read(row: &Row) -> Result<Self, ControlError> {
        let group: String = row.get("group_id")?;
        Ok(Self {
            group: group.parse().unwrap_or_default(),
            state: row.parsed("state")?,
            app_id: row.get("app_id")?,
            app_version: row.get("app_version")?,
            revision: row.get("revision")?,
            changed_by: row.get("changed_by")?,
            changed_at: row.get("changed_at")?,
        })
    }
}

/// A new decision about a group.
#[derive(Clone, Debug)]
pub struct NewDecision {
    pub group: u64,
    /// The title of the group, for the audit log.
    pub title: String,
    pub state: GroupDecision,
    pub app_id: String,
    pub app_version: String,
    /// The revision that the decision replaces, 0 if there is none. Any other saved revision is a conflict.
    pub expected_revision: i64,
}

/// Queries without closed groups name all of them, so their number is limited.
const MOST_CLOSED: i64 = 5_000;

macro_rules! columns {
    () => {
        "group_id, state, app_id, app_version, revision, changed_by, changed_at"
    };
}

const CLOSED: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM handled_groups WHERE project = $1 AND state <> 'open' ORDER BY group_id"
);
const GET: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM handled_groups WHERE project = $1 AND group_id = $2"
);
const COUNT: &str =
    "SELECT COUNT(*) AS closed FROM handled_groups WHERE project = $1 AND state <> 'open'";
/// The condition is repeated here, because another server may have decided in the meantime.
const DECIDE: &str = concat!(
    "
    INSERT INTO handled_groups (project, group_id, state, app_id, app_version, revision, changed_by, changed_at)
    VALUES ($1, $2, $3, $4, $5, $6 + 1, $7, $8)
    ON CONFLICT (project, group_id) DO UPDATE
    SET state = $3, app_id = $4, app_version = $5, revision = $6 + 1, changed_by = $7, changed_at = $8
    WHERE handled_groups.revision = $6
    RETURNING ",
    columns!()
);
/// All groups that have a decision or a comment.
const GROUPS: &str = "
    SELECT group_id, MAX(handled_at) AS latest
    FROM (
        SELECT group_id, changed_at AS handled_at FROM handled_groups WHERE project = $1
        UNION ALL
        SELECT group_id, created_at AS handled_at FROM group_comments WHERE project = $1
    ) AS handled
    GROUP BY group_id
    ORDER BY group_id";
/// A later decision is about the group as it is now, which may have got its stacks back.
const MOVE: &str = "
    UPDATE handled_groups SET group_id = $3
    WHERE project = $1
      AND group_id = $2
      AND changed_at <= $4
      AND NOT EXISTS (SELECT 1 FROM handled_groups AS other WHERE other.project = $1 AND other.group_id = $3)";
const FORGET: &str =
    "DELETE FROM handled_groups WHERE project = $1 AND group_id = $2 AND changed_at <= $3";
const MOVE_COMMENTS: &str = "
    UPDATE group_comments SET group_id = $3
    WHERE project = $1
      AND group_id = $2
      AND created_at <= $4";

impl Control {
    /// Returns the resolved and ignored groups of a project.
    pub async fn closed_groups(&self, project: &str) -> Result<Vec<HandledGroup>, ControlError> {
        self.records(CLOSED, values![project], HandledGroup::read)
            .await
    }

    /// Returns the decision about a group, if there is one.
    pub async fn handled_group(
        &self,
        project: &str,
        group: u64,
    ) -> Result<Option<HandledGroup>, ControlError> {
        let found = self.records(GET, values![project, group.to_string()], HandledGroup::read);
        Ok(found.await?.into_iter().next())
    }

    /// Saves a decision. Fails if another person decided in the meantime.
    pub async fn decide_on_group(
        &self,
        project: &str,
        new: NewDecision,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<HandledGroup, ControlError> {
        let (app_id, app_version) = match new.state {
            GroupDecision::Open => ("", ""),
            _ => (new.app_id.as_str(), new.app_version.as_str()),
        };
        if new.state != GroupDecision::Open {
            let fits = checks::name(app_id).and(checks::name(app_version));
            fits.map_err(|_| {
                checks::invalid("`app_id` and `app_version` must be 1 to 200 characters")
            })?;
        }
        let group = new.group.to_string();
        let mut change = Change::begin(self, actor, at).await?;
        let known = change.row(GET, values![project, group.as_str()]).await?;
        let known = known.as_ref().map(HandledGroup::read).transpose()?;
        let current = known.as_ref().map_or(0, |known| known.revision);
        if current != new.expected_revision {
            return Err(ControlError::Conflict { current });
        }
        let was_closed = known.is_some_and(|known| known.state != GroupDecision::Open);
        if new.state != GroupDecision::Open && !was_closed {
            let closed = change.row(COUNT, values![project]).await?;
            let closed: i64 = closed.map_or(Ok(0), |row| row.get("closed"))?;
            if closed >= MOST_CLOSED {
                return Err(checks::invalid(&format!(
                    "the project has {MOST_CLOSED} resolved and ignored groups, which is the limit; reopen some first"
                )));
            }
        }
        let values = values![
            project,
            group.as_str(),
            new.state.as_str(),
            app_id,
            app_version,
            current,
            actor.to_string(),
            at,
        ];
        let Some(saved) = change.row(DECIDE, values).await? else {
            let other = change.row(GET, values![project, group.as_str()]).await?;
            let other = other.as_ref().map(HandledGroup::read).transpose()?;
            return Err(ControlError::Conflict {
                current: other.map_or(0, |other| other.revision),
            });
        };
        let saved = HandledGroup::read(&saved)?;
        change
            .commit(Entry {
                action: match new.state {
                    GroupDecision::Open => Action::GroupReopened,
                    GroupDecision::Resolved => Action::GroupResolved,
                    GroupDecision::Ignored => Action::GroupIgnored,
                },
                project: Some(project),
                subject: &group,
                detail: json!({"name": new.title, "app_id": app_id, "app_version": app_version}),
            })
            .await?;
        Ok(saved)
    }

    /// Returns the groups that have a decision or a comment, each with the time of the latest one.
    pub async fn groups_with_handling(
        &self,
        project: &str,
    ) -> Result<Vec<(u64, UnixTime)>, ControlError> {
        let read = |row: &Row| {
            let group: String = row.get("group_id")?;
            let latest: UnixTime = row.get("latest")?;
            Ok((group.parse::<u64>().unwrap_or_default(), latest))
        };
        self.records(GROUPS, values![project], read).await
    }

    /// Moves the decision about a group and its comments to the group that its stacks belong to now. If the other group has a decision of its
    /// own, that decision counts. What is later than `latest`, which was known before the stacks were looked up, stays.
    pub async fn move_group_handling(
        &self,
        project: &str,
        (from, latest): (u64, UnixTime),
        to: u64,
    ) -> Result<(), ControlError> {
        let mut statements = self.begin().await?;
        let groups = || values![project, from.to_string(), to.to_string(), latest];
        statements.execute(MOVE, groups()).await?;
        statements
            .execute(FORGET, values![project, from.to_string(), latest])
            .await?;
        statements.execute(MOVE_COMMENTS, groups()).await?;
        statements.commit(Notice::Silent).await
    }
}
