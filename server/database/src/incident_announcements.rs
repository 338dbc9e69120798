//! Announces incidents: writes a message for each channel in the transaction that marks the incidents as announced.

use std::collections::BTreeMap;

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::backend::{Notice, Statements, Values, values};
use super::channels::{Channel, FOR_INCIDENTS};
use super::error::ControlError;
use super::incident_snapshot::IncidentSnapshot;
use super::notifications::{NewNotification, insert};

/// A rule with incidents to announce.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnannouncedRule {
    pub project: String,
    pub rule: String,
}

/// What was announced.
#[derive(Clone, Debug)]
pub struct Announced {
    /// The number of saved messages.
    pub messages: usize,
    pub incidents: Vec<IncidentSnapshot>,
}

/// The maximum number of incidents in a message. A longer message would not be read.
const MOST_INCIDENTS: i64 = 100;

macro_rules! incident_columns {
    () => {
        "id, rule, group_key, title, severity, owner, labels, summary, link, started_at, resolved_at"
    };
}

/// Whether an incident is muted: now if it is firing, at any time of its life if it is resolved.
macro_rules! muted {
    () => {
        "EXISTS (
            SELECT 1
            FROM mutes AS m
            WHERE m.project = incidents.project
              AND (m.rule IS NULL OR m.rule = incidents.rule)
              AND (m.group_key IS NULL OR m.group_key = incidents.group_key)
              AND CASE WHEN incidents.state = 'firing'
                THEN m.starts_at <= $1 AND m.ends_at > $1
                ELSE m.starts_at <= incidents.resolved_at AND m.ends_at > incidents.started_at
              END
          )"
    };
}

/// The first incident of a rule waits for others. Muted incidents wait until the mute or the incident ends.
const UNANNOUNCED: &str = concat!(
    "
    SELECT project, rule
    FROM incidents
    WHERE (told IS NULL OR told <> state)
      AND NOT (state = 'firing' AND ",
    muted!(),
    ")
    GROUP BY project, rule
    HAVING MIN(CASE WHEN state = 'firing' THEN started_at ELSE COALESCE(resolved_at, started_at) END) <= $2
    ORDER BY project, rule
    LIMIT 100"
);
/// The condition is repeated, because a server that waited for another one's lock checks only the outer one again.
const ANNOUNCE_ENDS: &str = concat!(
    "
    UPDATE incidents
    SET told = 'resolved'
    WHERE state = 'resolved'
      AND told = 'firing'
      AND id IN (
        SELECT id
        FROM incidents
        WHERE project = $1
          AND rule = $2
          AND state = 'resolved'
          AND told = 'firing'
        ORDER BY started_at, id
        LIMIT $3
      )
    RETURNING ",
    incident_columns!()
);
const ANNOUNCE_NEW: &str = concat!(
    "
    UPDATE incidents
    SET told = state
    WHERE told IS NULL
      AND id IN (
        SELECT id
        FROM incidents
        WHERE project = $2
          AND rule = $3
          AND told IS NULL
          AND NOT ",
    muted!(),
    "
        ORDER BY started_at, id
        LIMIT $4
      )
    RETURNING ",
    incident_columns!()
);
/// Marks muted incidents that are already resolved as announced, so that they create no message.
const SKIP_MUTED: &str = concat!(
    "
    UPDATE incidents
    SET told = 'resolved'
    WHERE project = $2
      AND rule = $3
      AND told IS NULL
      AND state = 'resolved'
      AND ",
    muted!()
);
const CHANNELS_OF: &str = "SELECT channel FROM incident_channels WHERE incident = $1";
const RECORD_CHANNEL: &str = "
    INSERT INTO incident_channels (incident, channel)
    VALUES ($1, $2)
    ON CONFLICT DO NOTHING";
/// An end is left out if a later incident has the same labels: for an Alertmanager, both are the same alert.
const TO_REPEAT: &str = concat!(
    "
    SELECT ",
    incident_columns!(),
    "
    FROM incidents
    WHERE told = state
      AND id IN (SELECT incident FROM incident_channels WHERE channel = $1)
      AND (state = 'firing' OR (resolved_at > $2 AND NOT EXISTS (
        SELECT 1
        FROM incidents AS later
        WHERE later.project = incidents.project
          AND later.rule = incidents.rule
          AND later.labels = incidents.labels
          AND later.started_at > incidents.started_at
      )))
    ORDER BY state, id
    LIMIT 1000"
);

impl Control {
    /// Returns the rules with incidents to announce whose first one began or ended before `before`.
    pub async fn unannounced(
        &self,
        now: UnixTime,
        before: UnixTime,
    ) -> Result<Vec<UnannouncedRule>, ControlError> {
        self.records(UNANNOUNCED, values![now, before], |row| {
            Ok(UnannouncedRule {
                project: row.get("project")?,
                rule: row.get("rule")?,
            })
        })
        .await
    }

    /// Marks the incidents of a rule as announced and saves their messages, in one transaction.
    pub async fn announce_incidents(
        &self,
        unannounced: &UnannouncedRule,
        at: UnixTime,
    ) -> Result<Announced, ControlError> {
        let UnannouncedRule { project, rule } = unannounced;
        let (project, rule) = (project.as_str(), rule.as_str());
        let mut statements = self.begin().await?;
        let statements_ref = &mut *statements;
        let values = values![project, rule, MOST_INCIDENTS];
        let ends = incidents(statements_ref, ANNOUNCE_ENDS, values).await?;
        let values = values![at, project, rule, MOST_INCIDENTS];
        let new = incidents(statements_ref, ANNOUNCE_NEW, values).await?;
        statements_ref
            .execute(SKIP_MUTED, values![at, project, rule])
            .await?;
        let channels = statements_ref.rows(FOR_INCIDENTS, values![project]).await?;
        let channels: Result<Vec<_>, _> = channels.iter().map(Channel::read).collect();
        let mut sent = BTreeMap::new();
        for incident in &ends {
            let rows = statements_ref
                .rows(CHANNELS_OF, values![incident.id])
                .await?;
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
        Ok(Announced {
            messages: written,
            incidents: ends.into_iter().chain(new).collect(),
        })
    }

    /// Returns the incidents that were announced to a channel and are firing, or ended after `since`.
    pub async fn incidents_to_repeat(
        &self,
        channel: Uuid,
        since: UnixTime,
    ) -> Result<Vec<IncidentSnapshot>, ControlError> {
        self.records(TO_REPEAT, values![channel, since], IncidentSnapshot::read)
            .await
    }
}

async fn incidents(
    statements: &mut dyn Statements,
    sql: &'static str,
    values: Values,
) -> Result<Vec<IncidentSnapshot>, ControlError> {
    let rows = statements.rows(sql, values).await?;
    let incidents: Result<Vec<_>, _> = rows.iter().map(IncidentSnapshot::read).collect();
    let mut incidents = incidents?;
    incidents.sort_unstable_by_key(|one| (one.started_at, one.id));
    Ok(incidents)
}

/// A message to one channel about incidents that fire, or that ended.
struct Announcement<'a> {
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
) -> Vec<Announcement<'a>> {
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
        .map(|(status, incidents)| Announcement { status, incidents })
        .collect()
}

impl Announcement<'_> {
    async fn write(
        &self,
        statements: &mut dyn Statements,
        channel: &Channel,
        at: UnixTime,
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
                .execute(RECORD_CHANNEL, values![incident.id, channel.id])
                .await?;
        }
        Ok(())
    }
}
