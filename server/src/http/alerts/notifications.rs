//! `/api/v1/projects/{project}/notifications`: the delivery log. Also a preview of the daily digest.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use unjank_database::{Notification, NotificationFilter};
use unjank_foundation::clock::UnixTime;
use unjank_protocol::Day;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::alerts::notify::{Digest, digest_of, digest_text, last_day};
use crate::app::App;
use crate::http::api::openapi::{Missing, QueryString, Refused, RunsQuery, notification_state};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Editor, Viewer};
use crate::http::api::turns::turn;
use crate::query::QueryError;

/// The default size of a page.
const PAGE: u32 = 100;

/// One message to one channel.
#[derive(Serialize, ToSchema)]
#[schema(as = Notification)]
pub(super) struct NotificationBody {
    id: Uuid,
    channel: Uuid,
    /// The `Idempotency-Key` of every attempt to send the message.
    key: String,
    subject: String,
    #[schema(schema_with = notification_state)]
    state: &'static str,
    attempts: i64,
    /// When the next attempt is due. Only in the state `waiting`.
    next_attempt_at: Option<UnixTime>,
    last_error: Option<String>,
    created_at: UnixTime,
    delivered_at: Option<UnixTime>,
}

impl From<Notification> for NotificationBody {
    fn from(one: Notification) -> Self {
        let waits = one.state.as_str() == "waiting";
        Self {
            id: one.id,
            channel: one.channel,
            key: one.key,
            subject: one.subject,
            state: one.state.as_str(),
            attempts: one.attempts,
            next_attempt_at: waits.then_some(one.next_attempt_at),
            last_error: one.last_error,
            created_at: one.created_at,
            delivered_at: one.delivered_at,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct NotificationList {
    notifications: Vec<NotificationBody>,
    /// The `before` of the next page. `null` on the last page.
    next: Option<Uuid>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wanted {
    /// Only messages to this channel.
    channel: Option<Uuid>,
    /// Only messages in this state.
    #[param(schema_with = notification_state)]
    state: Option<String>,
    /// Only messages before this one: the `next` of the previous page.
    before: Option<Uuid>,
    /// 1 to 1000. Default: 100.
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u32>,
}

/// Lists the delivery log, latest first. Delivered and failed messages are kept for 30 days.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/notifications", tag = "notifications",
    params(Wanted),
    responses((status = 200, body = NotificationList), Refused<(Viewer, QueryString)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Json<NotificationList>, Problem> {
    let Query(wanted) = wanted.map_err(|error| Problem::bad_query(error.body_text()))?;
    let state = wanted.state.as_deref().map(str::parse).transpose();
    let filter = NotificationFilter {
        channel: wanted.channel,
        state: state.map_err(|_| {
            Problem::bad_query("`state` must be waiting, sending, delivered or failed")
        })?,
        before: wanted.before,
    };
    let limit = wanted.limit.unwrap_or(PAGE);
    if !(1..=1_000).contains(&limit) {
        return Err(Problem::bad_query("`limit` must be 1 to 1000"));
    }
    let page = app
        .control
        .notifications(&member.project, &filter, limit)
        .await?;
    let full = u32::try_from(page.len()) == Ok(limit);
    let next = page.last().filter(|_| full).map(|one| one.id);
    Ok(Json(NotificationList {
        notifications: page.into_iter().map(NotificationBody::from).collect(),
        next,
    }))
}

/// Sends a failed message again.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/notifications/{notification}/retry", tag = "notifications",
    responses((status = 204), Refused<(Editor, Missing)>),
)]
pub(super) async fn retry(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: Result<Path<(String, Uuid)>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let Path((_, id)) = path.map_err(|_| Problem::not_found())?;
    let now = app.clock.now();
    app.control
        .retry_notification(&member.project, id, &member.actor, now)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The digest of a day.
#[derive(Serialize, ToSchema)]
pub(super) struct DigestPreview {
    subject: String,
    /// The text in mail and chat.
    text: String,
    digest: Digest,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct DayWanted {
    /// A UTC day such as `2026-11-20`. Default: yesterday.
    #[param(format = Date)]
    day: Option<String>,
}

/// Returns the digest of a day as it would be sent now.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/digest", tag = "notifications",
    params(DayWanted),
    responses((status = 200, body = DigestPreview), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn digest(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    wanted: Result<Query<DayWanted>, QueryRejection>,
) -> Result<Json<DigestPreview>, Problem> {
    let Query(wanted) = wanted.map_err(|error| Problem::bad_query(error.body_text()))?;
    let now = app.clock.now();
    let day = match wanted.day {
        Some(day) => Day::parse(&day)
            .ok_or_else(|| Problem::bad_query("`day` must be a date such as 2026-11-20"))?,
        None => last_day(now),
    };
    let _turn = turn(&app, &member.actor).await?;
    let digest = digest_of(&app.clickhouse, &member.project, day, now).await;
    let digest = digest.map_err(|error| match error {
        QueryError::Unfit(error) => Problem::invalid_question(error.to_string()),
        QueryError::Store(failure) => failure.into(),
    })?;
    Ok(Json(DigestPreview {
        subject: digest.subject(),
        text: digest_text(&digest),
        digest,
    }))
}
