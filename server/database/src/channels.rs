//! Channels: where notifications are sent. Their secrets arrive sealed.

use serde_json::{Value as Json, json};
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Row, Value, Values, values};
use super::change::{Change, Entry};
use super::checks;
use super::error::ControlError;
use super::secrets::Hidden;
use super::text_enum::text_enum;

text_enum! {
    /// The kind of receiver.
    ChannelKind { Webhook = "webhook", Alertmanager = "alertmanager", Slack = "slack", Email = "email" }
}

text_enum! {
    /// The severity of an incident, in ascending order.
    Severity { Info = "info", Warning = "warning", Critical = "critical" }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Channel {
    pub id: Uuid,
    pub project: String,
    pub kind: ChannelKind,
    pub fields: ChannelFields,
    pub created_at: UnixTime,
    pub updated_at: UnixTime,
}

/// A channel to create. The caller chooses the id, because secrets are sealed for it.
#[derive(Clone, Debug)]
pub struct NewChannel {
    pub id: Uuid,
    pub project: String,
    pub kind: ChannelKind,
    pub fields: ChannelFields,
}

/// The fields of a channel that can change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelFields {
    pub name: String,
    /// The public settings, as JSON.
    pub settings: Json,
    /// URLs, passwords and signing keys, sealed by the caller.
    pub secret: Hidden,
    pub least_severity: Severity,
    /// Whether to send incidents.
    pub incidents: bool,
    /// Whether to send the daily digest.
    pub digest: bool,
    pub enabled: bool,
}

impl Channel {
    pub(super) fn read(row: &Row) -> Result<Self, ControlError> {
        let secret = String::from_utf8(row.get("secret")?)
            .map_err(|_| checks::invalid("the secret of a channel must be text"))?;
        Ok(Self {
            id: row.id("id")?,
            project: row.get("project")?,
            kind: row.parsed("kind")?,
            fields: ChannelFields {
                name: row.get("name")?,
                settings: row.json("settings")?,
                secret: Hidden(secret),
                least_severity: row.parsed("least_severity")?,
                incidents: row.get("incidents")?,
                digest: row.get("digest")?,
                enabled: row.get("enabled")?,
            },
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        })
    }

    /// Returns the details for the audit log.
    fn detail(&self) -> Json {
        let ChannelFields {
            name,
            settings,
            least_severity,
            incidents,
            digest,
            enabled,
            ..
        } = &self.fields;
        json!({
            "name": name, "kind": self.kind.as_str(), "settings": settings, "least_severity": least_severity.as_str(),
            "incidents": incidents, "digest": digest, "enabled": enabled,
        })
    }
}

/// Every channel costs deliveries, and more are most likely a mistake.
const MOST_CHANNELS: i64 = 100;

macro_rules! columns {
    () => {
        "id, project, name, kind, settings, secret, least_severity, incidents, digest, enabled, created_at, updated_at"
    };
}

const INSERT: &str = concat!(
    "
    INSERT INTO channels (id, project, kind, name, settings, secret, least_severity, incidents, digest, enabled,
        created_at, updated_at)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11
    WHERE (SELECT count(*) FROM channels WHERE project = $2) < $12
    RETURNING ",
    columns!()
);
const UPDATE: &str = concat!(
    "
    UPDATE channels
    SET name = $3, settings = $4, secret = $5, least_severity = $6, incidents = $7, digest = $8, enabled = $9,
        updated_at = $10
    WHERE project = $1
      AND id = $2
    RETURNING ",
    columns!()
);
const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM channels WHERE project = $1 ORDER BY name, id"
);
const ONE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM channels WHERE project = $1 AND id = $2"
);
const WITH_DIGEST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM channels WHERE enabled AND digest ORDER BY project, id"
);
const ALERTMANAGERS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM channels WHERE enabled AND incidents AND kind = 'alertmanager' ORDER BY project, id"
);
pub(super) const FOR_INCIDENTS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM channels WHERE project = $1 AND enabled AND incidents ORDER BY id"
);
const FORGET_TOLD: &str = "DELETE FROM incident_channels WHERE channel = $1";
const DELETE_LOG: &str = "DELETE FROM notifications WHERE project = $1 AND channel = $2";
const DELETE: &str = "DELETE FROM channels WHERE project = $1 AND id = $2 RETURNING name";

fn fields(fields: &ChannelFields) -> Result<Values, ControlError> {
    checks::name(&fields.name)?;
    Ok(values![
        fields.name.as_str(),
        fields.settings.to_string(),
        Value::Bytes(fields.secret.0.clone().into_bytes()),
        fields.least_severity.as_str(),
        fields.incidents,
        fields.digest,
        fields.enabled,
    ])
}

impl Control {
    pub async fn create_channel(
        &self,
        new: &NewChannel,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<Channel, ControlError> {
        let mut values = values![new.id, new.project.as_str(), new.kind.as_str()];
        values.append(&mut fields(&new.fields)?);
        values.append(&mut values![at, MOST_CHANNELS]);
        let mut change = Change::begin(self, actor, at).await?;
        let inserted = change.row(INSERT, values).await?;
        let full = || checks::invalid("a project can have at most 100 channels");
        let channel = Channel::read(&inserted.ok_or_else(full)?)?;
        change
            .commit(Entry {
                action: Action::ChannelCreated,
                project: Some(&new.project),
                subject: &new.id.to_string(),
                detail: channel.detail(),
            })
            .await?;
        Ok(channel)
    }

    pub async fn update_channel(
        &self,
        (project, id): (&str, Uuid),
        new: &ChannelFields,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<Channel, ControlError> {
        let mut values = values![project, id];
        values.append(&mut fields(new)?);
        values.append(&mut values![at]);
        let mut change = Change::begin(self, actor, at).await?;
        let updated = change.row(UPDATE, values).await?;
        let channel = Channel::read(&updated.ok_or(ControlError::NotFound)?)?;
        change
            .commit(Entry {
                action: Action::ChannelUpdated,
                project: Some(project),
                subject: &id.to_string(),
                detail: channel.detail(),
            })
            .await?;
        Ok(channel)
    }

    /// Deletes a channel and its part of the delivery log, including waiting messages.
    pub async fn delete_channel(
        &self,
        (project, id): (&str, Uuid),
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        let forgotten = change.execute(DELETE_LOG, values![project, id]).await?;
        change.execute(FORGET_TOLD, values![id]).await?;
        let deleted = change.row(DELETE, values![project, id]).await?;
        let name: String = deleted.ok_or(ControlError::NotFound)?.get("name")?;
        change
            .commit(Entry {
                action: Action::ChannelDeleted,
                project: Some(project),
                subject: &id.to_string(),
                detail: json!({"name": name, "notifications": forgotten}),
            })
            .await
    }

    pub async fn channels(&self, project: &str) -> Result<Vec<Channel>, ControlError> {
        self.records(LIST, values![project], Channel::read).await
    }

    pub async fn channel(&self, project: &str, id: Uuid) -> Result<Channel, ControlError> {
        Channel::read(&self.row(ONE, values![project, id]).await?)
    }

    /// Returns the channels of all projects that receive the digest.
    pub async fn channels_with_digest(&self) -> Result<Vec<Channel>, ControlError> {
        self.records(WITH_DIGEST, values![], Channel::read).await
    }

    /// Returns the Alertmanagers of all projects, to which firing alerts are repeated.
    pub async fn alertmanagers(&self) -> Result<Vec<Channel>, ControlError> {
        self.records(ALERTMANAGERS, values![], Channel::read).await
    }
}
