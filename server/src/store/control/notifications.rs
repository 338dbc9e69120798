//! Notifications: the messages to send and the delivery log. A message is saved in the transaction that marks its incidents as announced.

use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::audit::{Action, Actor};
use super::backend::{Backend, Notice, Row, Statements, values};
use super::change::{Change, Entry, new_id, records};
use super::channels::{Channel, FOR_INCIDENTS};
use super::checks::{self, page};
use super::closed::closed;
use super::error::ControlError;
use super::incident_snapshot::IncidentSnapshot;

closed! {
    /// The state of a notification.
    NotificationState { Waiting = "waiting", Sending = "sending", Delivered = "delivered", Failed = "failed" }
}

/// A message to send.
#[derive(Clone, Debug)]
pub struct NewNotification {
    pub project: String,
    pub channel: Uuid,
    pub key: String,
    pub thread: String,
    pub subject: String,
    pub body: Json,
}

/// A message of the delivery log.
#[derive(Clone, Debug, PartialEq)]
pub struct Notification {
    pub id: Uuid,
    pub project: String,
    pub channel: Uuid,
    pub key: String,
    pub subject: String,
    pub body: Json,
    pub state: NotificationState,
    pub attempts: i64,
    pub next_attempt_at: i64,
    pub last_error: Option<String>,
    pub created_at: i64,
    pub delivered_at: Option<i64>,
}

impl Notification {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id("id")?,
            project: row.get("project")?,
            channel: row.id("channel")?,
            key: row.get("key")?,
            subject: row.get("subject")?,
            body: row.json("body")?,
            state: row.parsed("state")?,
            attempts: row.get("attempts")?,
            next_attempt_at: row.get("next_attempt_at")?,
            last_error: row.get("last_error")?,
            created_at: row.get("created_at")?,
            delivered_at: row.get("delivered_at")?,
        })
    }
}

/// The outcome of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    Delivered,
    /// The next attempt is at `at`.
    Later {
        at: i64,
        error: String,
    },
    GivenUp {
        error: String,
    },
}

/// A rule with incidents to announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnannouncedRule {
    pub project: String,
    pub rule: String,
}

/// A filter of a project's notifications.
#[derive(Clone, Debug, Default)]
pub struct NotificationFilter {
    pub channel: Option<Uuid>,
    pub state: Option<NotificationState>,
    /// The last one of the previous page.
    pub before: Option<Uuid>,
}

/// The messages that are not finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    pub waiting: i64,
    pub oldest_created_at: Option<i64>,
}

/// The maximum number of incidents in a message. A longer message would not be read.
const MOST_INCIDENTS: i64 = 100;

macro_rules! columns {
    () => {
        "id, project, channel, key, subject, body, state, attempts, next_attempt_at, last_error, created_at, delivered_at"
    };
}
macro_rules! incident_columns {
    () => {
        "id, rule, group_key, title, severity, owner, labels, summary, link, started_at, resolved_at"
    };
}
/// Whether an incident is muted: now if it is firing, at any time of its life if it is resolved.
macro_rules! muted {
    () => {
        "EXISTS (SELECT 1 FROM mutes m WHERE m.project = incidents.project AND (m.rule IS NULL OR m.rule = incidents.rule) \
         AND (m.group_key IS NULL OR m.group_key = incidents.group_key) AND CASE WHEN incidents.state = 'firing' \
         THEN m.starts_at <= $1 AND m.ends_at > $1 ELSE m.starts_at <= incidents.resolved_at AND m.ends_at > incidents.started_at END)"
    };
}

/// The first incident of a rule waits for others. Muted incidents wait until the mute or the incident ends.
const UNTOLD: &str = concat!(
    "SELECT project, rule FROM incidents WHERE (told IS NULL OR told <> state) AND NOT (state = 'firing' AND ",
    muted!(),
    ") GROUP BY project, rule \
     HAVING MIN(CASE WHEN state = 'firing' THEN started_at ELSE COALESCE(resolved_at, started_at) END) <= $2 \
     ORDER BY project, rule LIMIT 100"
);
/// The condition is repeated, because a server that waited for another one's lock checks only the outer one again.
const TELL_ENDS: &str = concat!(
    "UPDATE incidents SET told = 'resolved' WHERE state = 'resolved' AND told = 'firing' AND id IN (SELECT id FROM incidents \
     WHERE project = $1 AND rule = $2 AND state = 'resolved' AND told = 'firing' ORDER BY started_at, id LIMIT $3) RETURNING ",
    incident_columns!()
);
const TELL_NEW: &str = concat!(
    "UPDATE incidents SET told = state WHERE told IS NULL AND id IN (SELECT id FROM incidents \
     WHERE project = $2 AND rule = $3 AND told IS NULL AND NOT ",
    muted!(),
    " ORDER BY started_at, id LIMIT $4) RETURNING ",
    incident_columns!()
);
/// Marks muted incidents that are already resolved as announced, so that they create no message.
const SKIP_MUTED: &str = concat!(
    "UPDATE incidents SET told = 'resolved' WHERE project = $2 AND rule = $3 AND told IS NULL AND state = 'resolved' AND ",
    muted!()
);
const SENT_TO: &str = "SELECT channel FROM incident_channels WHERE incident = $1";
const NOTE_SENT: &str =
    "INSERT INTO incident_channels (incident, channel) VALUES ($1, $2) ON CONFLICT DO NOTHING";
/// `created_at` always increases within a thread, because the clocks of servers differ and may stand still.
const INSERT: &str = "INSERT INTO notifications (id, project, channel, key, thread, subject, body, state, attempts, next_attempt_at, \
     created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 'waiting', 0, $8, (SELECT CASE WHEN COALESCE(MAX(created_at), 0) >= $8 \
     THEN MAX(created_at) + 1 ELSE $8 END FROM notifications WHERE channel = $3 AND thread = $5)) ON CONFLICT (key) DO NOTHING";
const IS_DUE: &str = "SELECT id FROM notifications WHERE state IN ('waiting', 'sending') AND next_attempt_at <= $1 LIMIT 1";
/// One message at a time per channel, so that a slow channel does not block the others. In order within a thread.
const CLAIM: &str = concat!(
    "UPDATE notifications SET state = 'sending', attempts = attempts + 1, next_attempt_at = $2 \
     WHERE state IN ('waiting', 'sending') AND next_attempt_at <= $1 AND id IN (SELECT MIN(d.id) FROM notifications d \
     WHERE d.state IN ('waiting', 'sending') AND d.next_attempt_at <= $1 AND NOT EXISTS (SELECT 1 FROM notifications o \
     WHERE o.channel = d.channel AND o.state IN ('waiting', 'sending') AND ((o.thread = d.thread AND o.created_at < d.created_at) \
     OR (o.state = 'sending' AND o.next_attempt_at > $1))) GROUP BY d.channel ORDER BY MIN(d.next_attempt_at) LIMIT $3) RETURNING ",
    columns!()
);
/// Only for the current claim, because an expired one may belong to another server by now.
const SETTLE: &str = "UPDATE notifications SET state = $3, next_attempt_at = $4, last_error = $5, delivered_at = $6 \
     WHERE id = $1 AND attempts = $2 AND state = 'sending'";
const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM notifications WHERE project = $1 AND (CAST($2 AS TEXT) IS NULL OR channel = $2) \
     AND (CAST($3 AS TEXT) IS NULL OR state = $3) AND (CAST($4 AS TEXT) IS NULL OR id < $4) ORDER BY id DESC LIMIT $5"
);
const RETRY: &str = "UPDATE notifications SET state = 'waiting', attempts = 0, next_attempt_at = $3 \
     WHERE project = $1 AND id = $2 AND state = 'failed'";
const BACKLOG: &str = "SELECT COUNT(*) AS waiting, MIN(created_at) AS oldest FROM notifications WHERE state IN ('waiting', 'sending')";
const HAS_KEY: &str = "SELECT id FROM notifications WHERE key = $1";
const FORGET: &str =
    "DELETE FROM notifications WHERE state IN ('delivered', 'failed') AND created_at < $1";
const STILL_FIRING: &str = concat!(
    "SELECT ",
    incident_columns!(),
    " FROM incidents WHERE state = 'firing' AND told = 'firing' AND id IN (SELECT incident FROM incident_channels WHERE channel = $1) \
     ORDER BY id LIMIT 1000"
);

#[async_trait]
pub trait Notifications: Backend {
    /// Returns the rules with incidents to announce whose first one began or ended before `before`.
    async fn unannounced(
        &self,
        now: i64,
        before: i64,
    ) -> Result<Vec<UnannouncedRule>, ControlError> {
        records(self, UNTOLD, values![now, before], |row| {
            Ok(UnannouncedRule {
                project: row.get("project")?,
                rule: row.get("rule")?,
            })
        })
        .await
    }

    /// Marks the incidents of a rule as announced and saves their messages, in one transaction. Returns the number of messages.
    async fn write_messages(
        &self,
        unannounced: &UnannouncedRule,
        at: i64,
    ) -> Result<usize, ControlError> {
        let UnannouncedRule { project, rule } = unannounced;
        let (project, rule) = (project.as_str(), rule.as_str());
        let mut statements = self.begin().await?;
        let statements_ref = &mut *statements;
        let values = values![project, rule, MOST_INCIDENTS];
        let ends = incidents(statements_ref, TELL_ENDS, values).await?;
        let values = values![at, project, rule, MOST_INCIDENTS];
        let new = incidents(statements_ref, TELL_NEW, values).await?;
        statements_ref
            .execute(SKIP_MUTED, values![at, project, rule])
            .await?;
        let channels = statements_ref.rows(FOR_INCIDENTS, values![project]).await?;
        let channels: Result<Vec<_>, _> = channels.iter().map(Channel::read).collect();
        let mut sent = BTreeMap::new();
        for incident in &ends {
            let rows = statements_ref.rows(SENT_TO, values![incident.id]).await?;
            let ids: Result<Vec<_>, _> = rows.iter().map(|row| row.id("channel")).collect();
            sent.insert(incident.id, ids?);
        }
        let mut written = 0;
        for channel in channels? {
            for message in messages(&channel, &ends, &new, &sent) {
                message.write(statements_ref, &channel, at).await?;
                written += 1;
            }
        }
        statements.commit(Notice::Silent).await?;
        Ok(written)
    }

    /// Saves a message unless one with its key exists. Returns whether it was saved.
    async fn notify(&self, new: &NewNotification, at: i64) -> Result<bool, ControlError> {
        let mut statements = self.begin().await?;
        let written = insert(&mut *statements, new, at).await?;
        statements.commit(Notice::Silent).await?;
        Ok(written)
    }

    /// Whether a message with this key exists.
    async fn is_notified(&self, key: &str) -> Result<bool, ControlError> {
        Ok(!self.rows(HAS_KEY, values![key]).await?.is_empty())
    }

    /// Claims messages that are due, at most one per channel. The claims expire at `until`.
    async fn claim(
        &self,
        now: i64,
        until: i64,
        limit: u32,
    ) -> Result<Vec<Notification>, ControlError> {
        // Usually nothing is due, and this query takes no locks.
        if self.rows(IS_DUE, values![now]).await?.is_empty() {
            return Ok(Vec::new());
        }
        let mut statements = self.begin().await?;
        let rows = statements
            .rows(CLAIM, values![now, until, page(limit)])
            .await?;
        let claimed: Result<Vec<_>, _> = rows.iter().map(Notification::read).collect();
        statements.commit(Notice::Silent).await?;
        claimed
    }

    /// Saves the outcome of a claimed message. Returns `false` if the claim was no longer valid.
    async fn settle(
        &self,
        claimed: &Notification,
        attempt: &Attempt,
        at: i64,
    ) -> Result<bool, ControlError> {
        let (state, next, error) = match attempt {
            Attempt::Delivered => (NotificationState::Delivered, at, None),
            Attempt::Later { at, error } => (NotificationState::Waiting, *at, Some(error)),
            Attempt::GivenUp { error } => (NotificationState::Failed, at, Some(error)),
        };
        let delivered_at = (*attempt == Attempt::Delivered).then_some(at);
        let values = values![
            claimed.id,
            claimed.attempts,
            state.as_str(),
            next,
            error.cloned(),
            delivered_at,
        ];
        let mut statements = self.begin().await?;
        let settled = statements.execute(SETTLE, values).await?;
        statements.commit(Notice::Silent).await?;
        Ok(settled > 0)
    }

    /// Returns a page of the delivery log, latest first.
    async fn notifications(
        &self,
        project: &str,
        filter: &NotificationFilter,
        limit: u32,
    ) -> Result<Vec<Notification>, ControlError> {
        let values = values![
            project,
            filter.channel,
            filter.state.map(NotificationState::as_str),
            filter.before,
            page(limit),
        ];
        records(self, LIST, values, Notification::read).await
    }

    /// Sends a failed message again, with all its attempts.
    async fn retry_notification(
        &self,
        project: &str,
        id: Uuid,
        actor: &Actor,
        at: i64,
    ) -> Result<(), ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        change
            .execute_found(RETRY, values![project, id, at])
            .await?;
        change
            .commit(Entry {
                action: Action::NotificationRetried,
                project: Some(project),
                subject: &id.to_string(),
                detail: json!({}),
            })
            .await
    }

    async fn backlog(&self) -> Result<Backlog, ControlError> {
        let rows = self.rows(BACKLOG, values![]).await?;
        let row = rows.first().ok_or(ControlError::NotFound)?;
        Ok(Backlog {
            waiting: row.get("waiting")?,
            oldest_created_at: row.get("oldest")?,
        })
    }

    /// Deletes finished messages that were created before this time. Returns their number.
    async fn delete_finished_notifications(&self, before: i64) -> Result<u64, ControlError> {
        let mut statements = self.begin().await?;
        let forgotten = statements.execute(FORGET, values![before]).await?;
        statements.commit(Notice::Silent).await?;
        Ok(forgotten)
    }

    /// Returns the firing incidents that were announced to a channel.
    async fn firing_incidents_sent_to(
        &self,
        channel: Uuid,
    ) -> Result<Vec<IncidentSnapshot>, ControlError> {
        records(self, STILL_FIRING, values![channel], IncidentSnapshot::read).await
    }
}

async fn incidents(
    statements: &mut dyn Statements,
    sql: &'static str,
    values: super::backend::Values,
) -> Result<Vec<IncidentSnapshot>, ControlError> {
    let rows = statements.rows(sql, values).await?;
    let incidents: Result<Vec<_>, _> = rows.iter().map(IncidentSnapshot::read).collect();
    let mut incidents = incidents?;
    incidents.sort_unstable_by_key(|one| (one.started_at, one.id));
    Ok(incidents)
}

/// A message to one channel about incidents that fire, or that ended.
struct Telling<'a> {
    status: &'static str,
    incidents: Vec<&'a IncidentSnapshot>,
}

/// Returns the messages for a channel. The end of an incident is announced where its start was. An incident that ended before it was
/// announced goes to every channel that accepts its severity.
fn messages<'a>(
    channel: &Channel,
    ends: &'a [IncidentSnapshot],
    new: &'a [IncidentSnapshot],
    sent: &BTreeMap<Uuid, Vec<Uuid>>,
) -> Vec<Telling<'a>> {
    let was_sent =
        |one: &&IncidentSnapshot| sent.get(&one.id).is_some_and(|of| of.contains(&channel.id));
    let fit = || new.iter().filter(|one| one.is_for(channel));
    let ended = ends.iter().filter(was_sent);
    let ended = ended.chain(fit().filter(|one| one.resolved_at.is_some()));
    let all = [
        ("resolved", ended.collect::<Vec<_>>()),
        (
            "firing",
            fit().filter(|one| one.resolved_at.is_none()).collect(),
        ),
    ];
    all.into_iter()
        .filter(|(_, incidents)| !incidents.is_empty())
        .map(|(status, incidents)| Telling { status, incidents })
        .collect()
}

impl Telling<'_> {
    async fn write(
        &self,
        statements: &mut dyn Statements,
        channel: &Channel,
        at: i64,
    ) -> Result<(), ControlError> {
        let Some(first) = self.incidents.first() else {
            return Ok(());
        };
        let more = match self.incidents.len() {
            1 => String::new(),
            all => format!(" and {} more", all - 1),
        };
        // An incident fires once and ends once, so its status and id make a unique key.
        let new = NewNotification {
            project: channel.project.clone(),
            channel: channel.id,
            key: format!("{}:{}:{}", self.status, channel.id, first.id),
            thread: first.rule.to_string(),
            subject: format!("[{}] {}{more}", self.status.to_uppercase(), first.title),
            body: json!({"status": self.status, "incidents": self.incidents}),
        };
        insert(statements, &new, at).await?;
        for incident in self.incidents.iter().filter(|_| self.status == "firing") {
            statements
                .execute(NOTE_SENT, values![incident.id, channel.id])
                .await?;
        }
        Ok(())
    }
}

async fn insert(
    statements: &mut dyn Statements,
    new: &NewNotification,
    at: i64,
) -> Result<bool, ControlError> {
    if new.key.len() > 200 {
        return Err(checks::invalid("the key of a notification is too long"));
    }
    let values = values![
        new_id(at),
        new.project.as_str(),
        new.channel,
        new.key.as_str(),
        new.thread.as_str(),
        new.subject.as_str(),
        new.body.to_string(),
        at,
    ];
    Ok(statements.execute(INSERT, values).await? > 0)
}
