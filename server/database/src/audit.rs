//! The audit log: one row per change, written in the change's own transaction.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use unjank_foundation::clock::UnixTime;
use unjank_foundation::shares::Holder;
use uuid::Uuid;

use super::Control;
use super::backend::{Notice, Row, values};
use super::checks::{self, page};
use super::error::ControlError;
use super::text_enum::text_enum;

text_enum! {
    /// The kind of actor.
    ActorKind { User = "user", Token = "token", Cli = "cli", System = "system" }
}

/// The author of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Actor {
    pub kind: ActorKind,
    /// The id of a user or token, the account that ran a command, or the part of the server.
    pub name: String,
}

impl Actor {
    #[must_use]
    pub fn user(id: Uuid) -> Self {
        Self::new(ActorKind::User, id.to_string())
    }

    #[must_use]
    pub fn token(id: Uuid) -> Self {
        Self::new(ActorKind::Token, id.to_string())
    }

    #[must_use]
    pub fn cli(account: &str) -> Self {
        Self::new(ActorKind::Cli, account.to_owned())
    }

    #[must_use]
    pub fn system(part: &str) -> Self {
        Self::new(ActorKind::System, part.to_owned())
    }

    fn new(kind: ActorKind, name: String) -> Self {
        Self { kind, name }
    }

    /// Returns the holder whose share of the server's resources the actor uses.
    #[must_use]
    pub fn holder(&self) -> Holder {
        Holder::new(self.kind.as_str(), self.name.as_bytes())
    }
}

/// Parses the format of [`fmt::Display`].
impl FromStr for Actor {
    type Err = ControlError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unknown =
            || checks::invalid("an actor is written as `user:…`, `token:…`, `cli:…` or `system:…`");
        let (kind, name) = text.split_once(':').ok_or_else(unknown)?;
        Ok(Self::new(kind.parse()?, name.to_owned()))
    }
}

/// `user:0190…`, as stored in `created_by` and `author`.
impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.as_str(), self.name)
    }
}

text_enum! {
    /// All kinds of changes to the control database.
    Action {
        ProjectCreated = "project.created",
        ProjectUpdated = "project.updated",
        IngestKeyCreated = "ingest_key.created",
        IngestKeyExpirySet = "ingest_key.expiry_set",
        IngestKeyQuotasSet = "ingest_key.quotas_set",
        IngestKeyRevoked = "ingest_key.revoked",
        DeviceKeyCreated = "device_key.created",
        DeviceKeyRevoked = "device_key.revoked",
        UserCreated = "user.created",
        UserDisabled = "user.disabled",
        UserEnabled = "user.enabled",
        PasswordSet = "user.password_set",
        OperatorSet = "user.operator_set",
        IdentityLinked = "identity.linked",
        IdentityUnlinked = "identity.unlinked",
        MembershipSet = "membership.set",
        MembershipRemoved = "membership.removed",
        InvitationCreated = "invitation.created",
        InvitationTaken = "invitation.taken",
        InvitationCancelled = "invitation.cancelled",
        SessionCreated = "session.created",
        SessionRevoked = "session.revoked",
        SessionsOfUserRevoked = "session.all_revoked",
        SessionReused = "session.reused",
        ApiTokenCreated = "api_token.created",
        ApiTokenRevoked = "api_token.revoked",
        ConfigurationSaved = "configuration.saved",
        ConfigurationRolledBack = "configuration.rolled_back",
        ConfigurationSwitchedOff = "configuration.switched_off",
        ConfigurationSwitchedOn = "configuration.switched_on",
        RuleSetSaved = "rule_set.saved",
        RuleSetRolledBack = "rule_set.rolled_back",
        AlertRuleCreated = "alert_rule.created",
        AlertRuleUpdated = "alert_rule.updated",
        AlertRuleDeleted = "alert_rule.deleted",
        IncidentAcknowledged = "incident.acknowledged",
        AcknowledgementWithdrawn = "incident.acknowledgement_withdrawn",
        IncidentAssigned = "incident.assigned",
        IncidentUnassigned = "incident.unassigned",
        IncidentCommented = "incident.commented",
        IncidentCommentDeleted = "incident.comment_deleted",
        MuteCreated = "mute.created",
        MuteEnded = "mute.ended",
        GroupResolved = "jank_group.resolved",
        GroupIgnored = "jank_group.ignored",
        GroupReopened = "jank_group.reopened",
        GroupCommented = "jank_group.commented",
        GroupCommentDeleted = "jank_group.comment_deleted",
        ChannelCreated = "channel.created",
        ChannelUpdated = "channel.updated",
        ChannelDeleted = "channel.deleted",
        NotificationRetried = "notification.retried",
        ScrubbingSet = "scrubbing.set",
        StorageSet = "storage.set",
        SourceLinksSet = "source_links.set",
        TraceLinksSet = "trace_links.set",
        ForwardSet = "forward.set",
        SavedViewCreated = "saved_view.created",
        SavedViewUpdated = "saved_view.updated",
        SavedViewDeleted = "saved_view.deleted",
        ErasureRequested = "erasure.requested",
        ErasureFinished = "erasure.finished",
        SymbolFileAdded = "symbol_file.added",
        SymbolFileNamed = "symbol_file.named",
        SymbolFileRemoved = "symbol_file.removed",
    }
}

impl Action {
    /// Returns whether the change is announced to the holders of snapshots. Logins and changes to invitations, channels,
    /// notifications, saved views, groups of janks, and the assignees and comments of incidents are not: these are always
    /// read from the database, and would cause frequent notices.
    pub(super) fn notice(self) -> Notice {
        match self {
            Self::SessionCreated
            | Self::InvitationCreated
            | Self::InvitationTaken
            | Self::InvitationCancelled
            | Self::ChannelCreated
            | Self::ChannelUpdated
            | Self::ChannelDeleted
            | Self::NotificationRetried
            | Self::SavedViewCreated
            | Self::SavedViewUpdated
            | Self::SavedViewDeleted
            | Self::IncidentAssigned
            | Self::IncidentUnassigned
            | Self::IncidentCommented
            | Self::IncidentCommentDeleted
            | Self::GroupResolved
            | Self::GroupIgnored
            | Self::GroupReopened
            | Self::GroupCommented
            | Self::GroupCommentDeleted => Notice::Silent,
            _ => Notice::Tick,
        }
    }
}

/// A recorded change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    pub id: Uuid,
    pub at: UnixTime,
    pub actor: Actor,
    pub project: Option<String>,
    /// A name of [`Action`], or one written by a newer version.
    pub action: String,
    /// The id of the changed object.
    pub subject: String,
    pub detail: serde_json::Value,
}

impl AuditEntry {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id("id")?,
            at: row.get("at")?,
            actor: Actor {
                kind: row.parsed("actor_kind")?,
                name: row.get("actor")?,
            },
            project: row.get("project")?,
            action: row.get("action")?,
            subject: row.get("subject")?,
            detail: row.json("detail")?,
        })
    }

    /// Returns the cursor for the page after this entry.
    #[must_use]
    pub fn cursor(&self) -> AuditCursor {
        AuditCursor {
            at: self.at,
            id: self.id,
        }
    }
}

/// The position of the last entry of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditCursor {
    pub at: UnixTime,
    pub id: Uuid,
}

/// Selects the entries that match all fields that are set.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    pub project: Option<String>,
    pub action: Option<Action>,
    pub actor: Option<Actor>,
    pub subject: Option<String>,
    /// Only entries from this time on.
    pub from: Option<UnixTime>,
    /// Only entries before this time.
    pub to: Option<UnixTime>,
    pub before: Option<AuditCursor>,
}

const LIST: &str = "
    SELECT id, at, actor, actor_kind, project, action, subject, detail
    FROM audit
    WHERE (CAST($1 AS TEXT) IS NULL OR project = $1)
      AND (CAST($2 AS TEXT) IS NULL OR action = $2)
      AND (CAST($3 AS BIGINT) IS NULL OR at < $3 OR (at = $3 AND id < $4))
      AND (CAST($6 AS TEXT) IS NULL OR (actor_kind = $6 AND actor = $7))
      AND (CAST($8 AS TEXT) IS NULL OR subject = $8)
      AND (CAST($9 AS BIGINT) IS NULL OR at >= $9)
      AND (CAST($10 AS BIGINT) IS NULL OR at < $10)
    ORDER BY at DESC, id DESC
    LIMIT $5";

impl Control {
    /// Returns entries, latest first, at most 1000.
    pub async fn audit(
        &self,
        filter: &AuditFilter,
        limit: u32,
    ) -> Result<Vec<AuditEntry>, ControlError> {
        let before = filter.before;
        let values = values![
            filter.project.as_deref(),
            filter.action.map(Action::as_str),
            before.map(|cursor| cursor.at),
            before.map(|cursor| cursor.id),
            page(limit),
            filter.actor.as_ref().map(|actor| actor.kind.as_str()),
            filter.actor.as_ref().map(|actor| actor.name.as_str()),
            filter.subject.as_deref(),
            filter.from,
            filter.to,
        ];
        self.records(LIST, values, AuditEntry::read).await
    }
}
