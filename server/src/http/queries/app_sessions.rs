//! `/api/v1/projects/{project}/sessions…`: the sessions of apps, and the timeline of one. Sessions of people who are logged in are in
//! `account`.

mod timeline;

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use serde::Serialize;
use unjank_protocol::Timestamp;
use utoipa::ToSchema;
use uuid::Uuid;

pub(crate) use self::timeline::PhaseBody;
use self::timeline::TimelineBody;
use super::query::{QueryParameters, QueryString, time};
use crate::app::App;
use crate::http::api::openapi::{Missing, Refused, RunsQuery};
use crate::http::api::problem::Problem;
use crate::http::api::roles::Viewer;
use crate::http::api::turns::turn;
use crate::query::{NamedQuery, SessionPart, SessionPlace, SessionSearch, sessions, timeline};
use crate::store::reads::SessionFacts;

const DEFAULT_LISTED: u64 = 50;
const MOST_LISTED: u64 = 200;

/// A session of an app, with the numbers of its stored events. The numbers are not weighted by sample rates.
#[derive(Serialize, ToSchema)]
#[schema(as = AppSession)]
pub(crate) struct SessionBody {
    session_id: Uuid,
    install_id: Uuid,
    user_id: String,
    app_id: String,
    app_version: String,
    build: u64,
    mode: String,
    channel: String,
    os_name: String,
    os_version: String,
    device_model: String,
    device_class: String,
    /// The revision of the remote configuration that the app had last; 0 if it had none.
    config_revision: u64,
    /// When its first event began.
    #[schema(value_type = String, format = DateTime)]
    start: Timestamp,
    /// When its last event began.
    #[schema(value_type = String, format = DateTime)]
    last: Timestamp,
    /// When its last event ended.
    #[schema(value_type = String, format = DateTime)]
    end: Timestamp,
    /// When the server received its last batch.
    #[schema(value_type = String, format = DateTime)]
    received: Timestamp,
    janks: u64,
    /// The total duration of its janks.
    jank_ms: u64,
    frames_drawn: u64,
    slow_frames: u64,
    frozen_frames: u64,
    spans: u64,
    /// The spans that describe requests.
    requests: u64,
    page_loads: u64,
    app_starts: u64,
    frame_windows: u64,
    metrics: u64,
    recompositions: u64,
}

impl From<SessionFacts> for SessionBody {
    fn from(facts: SessionFacts) -> Self {
        Self {
            session_id: facts.session_id,
            install_id: facts.install_id,
            user_id: facts.user_id,
            app_id: facts.app_id,
            app_version: facts.app_version,
            build: facts.build,
            mode: facts.mode,
            channel: facts.channel,
            os_name: facts.os_name,
            os_version: facts.os_version,
            device_model: facts.device_model,
            device_class: facts.device_class,
            config_revision: facts.config_revision,
            start: Timestamp::from_micros(facts.first),
            last: Timestamp::from_micros(facts.last),
            end: Timestamp::from_micros(facts.end),
            received: Timestamp::from_micros(facts.received),
            janks: facts.janks,
            jank_ms: facts.jank_ms,
            frames_drawn: facts.frames_drawn,
            slow_frames: facts.slow_frames,
            frozen_frames: facts.frozen_frames,
            spans: facts.spans,
            requests: facts.requests,
            page_loads: facts.page_loads,
            app_starts: facts.app_starts,
            frame_windows: facts.frame_windows,
            metrics: facts.metrics,
            recompositions: facts.recompositions,
        }
    }
}

/// A page of sessions, the one with the latest event first.
#[derive(Serialize, ToSchema)]
#[schema(as = AppSessionList)]
pub(crate) struct SessionList {
    sessions: Vec<SessionBody>,
    /// The `cursor` of the next page, if there are more sessions.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// Lists the sessions that have events in the period, the one with the latest event first.
///
/// The numbers of a session cover its events from its start, at most a day before its last event, to the end of the period. Filters must be
/// dimensions that all signals have. With `with`, they may be any dimensions of that signal.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/sessions", tag = "sessions",
    operation_id = "appSessions",
    params(
        QueryParameters,
        ("with" = Option<String>, Query, description = "Only sessions with an event of this signal that meets the filters, such as `janks`. They are sorted by that event."),
        ("cursor" = Option<String>, Query, description = "`next` of the previous page of the same query. A page has at most 200 sessions, by default 50."),
    ),
    responses((status = 200, body = SessionList), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    QueryString(mut ask): QueryString,
) -> Result<Json<SessionList>, Problem> {
    let now = app.clock.now();
    let limit = ask.limit.unwrap_or(DEFAULT_LISTED).min(MOST_LISTED);
    let search = SessionSearch {
        signal: taken(&mut ask, "with"),
        after: ask.cursor.take().map(|text| place(&text)).transpose()?,
        limit: usize::try_from(limit).unwrap_or(usize::MAX),
    };
    let _turn = turn(&app, &member.actor).await?;
    let page = sessions(&app.clickhouse, &member.project, &ask, &search, now).await?;
    Ok(Json(SessionList {
        sessions: page.sessions.into_iter().map(SessionBody::from).collect(),
        next: page.next.map(cursor),
    }))
}

/// Returns what one session sent, on one time axis.
///
/// Kinds of events are bounded: of more, those that took longest or had the most jank are returned, and `left_out` says how many are missing. Use
/// `from` and `to` to read a part.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/sessions/{session}", tag = "sessions",
    operation_id = "appSession",
    params(
        ("at" = Option<String>, Query, format = DateTime, description = "A time at or near an event of the session. Only events within a day of it are searched, which is much faster."),
        ("from" = Option<String>, Query, format = DateTime, description = "Only events from this time on."),
        ("to" = Option<String>, Query, format = DateTime, description = "Only events before this time."),
    ),
    responses((status = 200, body = TimelineBody), Refused<(Viewer, Missing, RunsQuery)>),
)]
pub(super) async fn one(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    path: Result<Path<(String, Uuid)>, PathRejection>,
    QueryString(mut ask): QueryString,
) -> Result<Json<TimelineBody>, Problem> {
    let Path((_, session)) = path.map_err(|_| Problem::not_found())?;
    let part = SessionPart {
        at: taken(&mut ask, "at")
            .map(|text| time("at", &text))
            .transpose()?,
        from: ask.from,
        to: ask.to,
    };
    if let (Some(from), Some(to)) = (part.from, part.to)
        && from >= to
    {
        return Err(Problem::invalid_question("`from` must come before `to`"));
    }
    let _turn = turn(&app, &member.actor).await?;
    let found = timeline(
        &app.clickhouse,
        &member.project,
        session,
        part,
        app.clock.now(),
    )
    .await?;
    let found = found.ok_or_else(Problem::not_found)?;
    Ok(Json(TimelineBody::from(found)))
}

/// Takes a parameter out of the filters.
fn taken(ask: &mut NamedQuery, wanted: &str) -> Option<String> {
    let place = ask.filters.iter().position(|(name, _)| name == wanted)?;
    Some(ask.filters.remove(place).1)
}

fn cursor((last, session): SessionPlace) -> String {
    format!("{last}.{}", session.simple())
}

fn place(cursor: &str) -> Result<SessionPlace, Problem> {
    let read = || {
        let (last, session) = cursor.split_once('.')?;
        let last: i64 = last.parse().ok()?;
        // ClickHouse has no times beyond these.
        let is_known = (0..4_102_444_800_000_000).contains(&last);
        is_known.then_some((last, Uuid::try_parse(session).ok()?))
    };
    read().ok_or_else(|| {
        Problem::invalid_question("`cursor` must be the `next` of an earlier answer to this query")
    })
}
