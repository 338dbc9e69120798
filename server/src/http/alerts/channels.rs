//! `/api/v1/projects/{project}/channels`: where notifications are sent. URLs, passwords and signing keys are write-only.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Deserializer, Serialize};
use unjank_database::{
    Channel, ChannelFields, ChannelKind, ControlError, Hidden, NewChannel, Severity, new_id,
};
use unjank_foundation::clock::UnixTime;
use unjank_foundation::fingerprint::fingerprint;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::access::Counted;
use crate::alerts::notify::{ChannelSecret, ChannelSettings, Message, Outcome, OutgoingMessage};
use crate::app::App;
use crate::http::api::object::{Exact, Object};
use crate::http::api::openapi::{
    Invalid, JsonBody, Missing, Refused, Tested, Unsendable, channel_kind, severity,
};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Admin, Editor};

/// A channel, without its secrets.
#[derive(Serialize, ToSchema)]
#[schema(as = Channel)]
pub(super) struct ChannelBody {
    id: Uuid,
    name: String,
    #[schema(schema_with = channel_kind)]
    kind: &'static str,
    /// The host of the URL.
    host: Option<String>,
    /// The recipients of mail.
    to: Vec<String>,
    #[schema(schema_with = severity)]
    least_severity: &'static str,
    incidents: bool,
    digest: bool,
    /// The hour at which yesterday's digest is sent, in UTC.
    digest_hour: u8,
    enabled: bool,
    created_at: UnixTime,
    updated_at: UnixTime,
}

impl TryFrom<Channel> for ChannelBody {
    type Error = ControlError;

    fn try_from(channel: Channel) -> Result<Self, ControlError> {
        let settings = ChannelSettings::read(&channel)?;
        Ok(Self {
            id: channel.id,
            name: channel.fields.name,
            kind: channel.kind.as_str(),
            host: settings.host,
            to: settings.to,
            least_severity: channel.fields.least_severity.as_str(),
            incidents: channel.fields.incidents,
            digest: channel.fields.digest,
            digest_hour: settings.digest_hour,
            enabled: channel.fields.enabled,
            created_at: channel.created_at,
            updated_at: channel.updated_at,
        })
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct ChannelList {
    channels: Vec<ChannelBody>,
}

/// Lists the channels of a project.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/channels", tag = "channels",
    responses((status = 200, body = ChannelList), Refused<(Editor,)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
) -> Result<Json<ChannelList>, Problem> {
    let channels = app.control.channels(&member.project).await?;
    let channels = channels
        .into_iter()
        .map(ChannelBody::try_from)
        .collect::<Result<_, _>>()?;
    Ok(Json(ChannelList { channels }))
}

/// The fields of a channel. A missing field keeps its value; in a new channel, it has its default.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ChannelChange)]
pub(crate) struct Change {
    /// `webhook`, `alertmanager`, `slack` or `email`. Required for a new channel; cannot be changed.
    kind: Option<String>,
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    /// Where messages are posted: the URL of a webhook, of Slack, or the root of an Alertmanager. Stored encrypted.
    url: Option<String>,
    /// The key that signs the messages of a webhook. Stored encrypted. `null` removes it.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<String>)]
    signing_key: Option<Option<String>>,
    /// The user name for HTTP Basic authentication. Stored encrypted. `null` removes it and the password.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<String>)]
    username: Option<Option<String>>,
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<String>)]
    password: Option<Option<String>>,
    /// The recipients of mail.
    to: Option<Vec<String>>,
    /// The minimum severity of incidents to send: `info`, `warning` or `critical`.
    #[schema(value_type = Option<String>)]
    least_severity: Option<String>,
    /// Whether to send incidents. Default: `true`.
    incidents: Option<bool>,
    /// Whether to send the daily digest. Default: `false`.
    digest: Option<bool>,
    /// The hour at which yesterday's digest is sent, in UTC. Default: 7.
    #[schema(maximum = 23)]
    digest_hour: Option<u8>,
    enabled: Option<bool>,
}

/// Distinguishes `null` from a missing field.
fn nullable<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

/// The new state of a channel, with its secrets.
struct Draft {
    kind: ChannelKind,
    fields: ChannelFields,
    settings: ChannelSettings,
    secret: ChannelSecret,
}

impl Draft {
    fn new(kind: ChannelKind) -> Self {
        let fields = ChannelFields {
            name: String::new(),
            settings: serde_json::Value::Null,
            secret: Hidden(String::new()),
            least_severity: Severity::Info,
            incidents: true,
            digest: false,
            enabled: true,
        };
        Self {
            kind,
            fields,
            settings: ChannelSettings::default(),
            secret: ChannelSecret::default(),
        }
    }

    /// Starts from an existing channel. If its secrets can no longer be decrypted, all of them must be sent again.
    fn of(channel: Channel, app: &App) -> Result<Self, ControlError> {
        let context = ChannelSecret::context(channel.id);
        let opened = app.secret.open(&context, &channel.fields.secret.0).ok();
        let secret = opened.and_then(|text| ChannelSecret::parse(&text).ok());
        Ok(Self {
            kind: channel.kind,
            settings: ChannelSettings::read(&channel)?,
            fields: channel.fields,
            secret: secret.unwrap_or_default(),
        })
    }

    fn change(&mut self, change: Change) -> Result<(), Problem> {
        if change.kind.is_some_and(|kind| kind != self.kind.as_str()) {
            return Err(Problem::unfit_channel(
                "the `kind` of a channel cannot be changed: create another channel",
            ));
        }
        if let Some(least) = change.least_severity {
            self.fields.least_severity = least.parse().map_err(|_| {
                Problem::unfit_channel("`least_severity` must be info, warning or critical")
            })?;
        }
        set(&mut self.fields.name, change.name);
        set(&mut self.fields.incidents, change.incidents);
        set(&mut self.fields.digest, change.digest);
        set(&mut self.fields.enabled, change.enabled);
        set(&mut self.settings.to, change.to);
        set(&mut self.settings.digest_hour, change.digest_hour);
        let url = change.url.as_deref();
        let elsewhere = url.is_some_and(|url| self.secret.changes_origin(url));
        if elsewhere && self.secret.password.is_some() && change.password.is_none() {
            return Err(Problem::unfit_channel(
                "the saved password belongs to the server of the old `url`: send `password` again, or null",
            ));
        }
        set(&mut self.secret.url, change.url);
        set(&mut self.secret.signing_key, change.signing_key);
        if change.username == Some(None) {
            self.secret.password = None;
        }
        set(&mut self.secret.username, change.username);
        set(&mut self.secret.password, change.password);
        Ok(())
    }

    /// Checks the channel and seals its secrets.
    fn finished(mut self, id: Uuid, app: &App) -> Result<ChannelFields, Problem> {
        if self.kind == ChannelKind::Alertmanager && self.fields.digest {
            return Err(Problem::unfit_channel(
                "an Alertmanager channel cannot receive the digest",
            ));
        }
        self.secret
            .check(self.kind, &mut self.settings, &app.notifier.outbound)
            .map_err(|unfit| Problem::unfit_channel(unfit.0))?;
        let text = serde_json::to_string(&self.secret).map_err(|_| Problem::overloaded())?;
        let sealed = app.secret.seal(&ChannelSecret::context(id), &text);
        self.fields.secret = Hidden(sealed.map_err(|_| Problem::overloaded())?);
        self.fields.settings =
            serde_json::to_value(&self.settings).map_err(|_| Problem::overloaded())?;
        Ok(self.fields)
    }
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

/// Creates a channel.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/channels", tag = "channels",
    request_body = Change,
    responses((status = 201, body = ChannelBody), Refused<(Admin, JsonBody, Unsendable, Invalid)>),
)]
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    Object(change, ..): Exact<Change>,
) -> Result<(StatusCode, Json<ChannelBody>), Problem> {
    let kind = change.kind.as_deref().and_then(|kind| kind.parse().ok());
    let kind = kind.ok_or_else(|| {
        Problem::unfit_channel("`kind` must be webhook, alertmanager, slack or email")
    })?;
    let now = app.clock.now();
    let id = new_id(now);
    let mut draft = Draft::new(kind);
    draft.change(change)?;
    let new = NewChannel {
        id,
        project: member.project,
        kind,
        fields: draft.finished(id, &app)?,
    };
    let channel = app.control.create_channel(&new, &member.actor, now).await?;
    Ok((StatusCode::CREATED, Json(channel.try_into()?)))
}

/// Changes a channel. A missing field keeps its value.
#[utoipa::path(
    patch, path = "/api/v1/projects/{project}/channels/{channel}", tag = "channels",
    request_body = Change,
    responses((status = 200, body = ChannelBody), Refused<(Admin, JsonBody, Unsendable, Invalid, Missing)>),
)]
pub(super) async fn update(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    path: Result<Path<(String, Uuid)>, PathRejection>,
    Object(change, ..): Exact<Change>,
) -> Result<Json<ChannelBody>, Problem> {
    let Path((_, id)) = path.map_err(|_| Problem::not_found())?;
    let channel = app.control.channel(&member.project, id).await?;
    let mut draft = Draft::of(channel, &app)?;
    draft.change(change)?;
    let fields = draft.finished(id, &app)?;
    let now = app.clock.now();
    let place = (member.project.as_str(), id);
    let channel = app
        .control
        .update_channel(place, &fields, &member.actor, now)
        .await?;
    Ok(Json(channel.try_into()?))
}

/// Deletes a channel and its part of the delivery log. Waiting messages are not sent.
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}/channels/{channel}", tag = "channels",
    responses((status = 204), Refused<(Admin, Missing)>),
)]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    path: Result<Path<(String, Uuid)>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let Path((_, id)) = path.map_err(|_| Problem::not_found())?;
    let now = app.clock.now();
    let place = (member.project.as_str(), id);
    app.control
        .delete_channel(place, &member.actor, now)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The result of a test message.
#[derive(Serialize, ToSchema)]
pub(super) struct ChannelTest {
    delivered: bool,
    /// Why the message was not delivered.
    error: Option<String>,
}

/// Sends a test message now and returns the result.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/channels/{channel}/test", tag = "channels",
    operation_id = "test",
    responses((status = 200, body = ChannelTest), Refused<(Admin, Missing, Tested)>),
)]
pub(super) async fn test(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    path: Result<Path<(String, Uuid)>, PathRejection>,
) -> Result<Json<ChannelTest>, Problem> {
    let Path((_, id)) = path.map_err(|_| Problem::not_found())?;
    let channel = app.control.channel(&member.project, id).await?;
    let now = app.clock.now();
    let project = Counted::ChannelTest(fingerprint(&[member.project.as_bytes()]));
    if let Err(wait) = app.channel_tests.take(&[project], now) {
        return Err(Problem::too_many_tests(wait));
    }
    let message = Message::test(&member.project, now);
    let parcel = OutgoingMessage {
        project: &member.project,
        key: &format!("test:{id}:{}", Uuid::new_v4()),
        subject: "[TEST] unjank: test of this channel",
        message: &message,
        public_url: &app.notifier.public_url,
        now,
    };
    let outcome = app.notifier.send(&channel, &parcel).await;
    let error = match outcome {
        Outcome::Delivered => None,
        Outcome::Later { error, .. } | Outcome::Never(error) => Some(error),
    };
    Ok(Json(ChannelTest {
        delivered: error.is_none(),
        error,
    }))
}
