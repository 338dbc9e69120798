//! `/api/v1/projects/{project}/app-starts`: single app starts, with the phases of each.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use unjank_protocol::Timestamp;
use utoipa::ToSchema;
use uuid::Uuid;

use super::app_sessions::PhaseBody;
use super::query::{QueryParameters, QueryString};
use crate::app::App;
use crate::http::api::openapi::{Refused, RunsQuery};
use crate::http::api::problem::Problem;
use crate::http::api::roles::Viewer;
use crate::http::api::turns::turn;
use crate::store::reads::{FirstStarts, StoredStart};

const DEFAULT_LISTED: u64 = 20;
const MOST_LISTED: u64 = 100;

/// An app start as a device reported it.
#[derive(Serialize, ToSchema)]
#[schema(as = StoredAppStart)]
pub(super) struct StartBody {
    #[schema(value_type = String, format = DateTime)]
    start: Timestamp,
    duration_ms: u32,
    kind: String,
    page: String,
    app_version: String,
    os_name: String,
    os_version: String,
    device_model: String,
    device_class: String,
    install_id: Uuid,
    session_id: Uuid,
    /// In the order in which the device reported them.
    phases: Vec<PhaseBody>,
}

impl From<StoredStart> for StartBody {
    fn from(start: StoredStart) -> Self {
        Self {
            start: Timestamp::from_micros(start.start),
            duration_ms: start.duration_ms,
            kind: start.kind,
            page: start.page,
            app_version: start.app_version,
            os_name: start.os_name,
            os_version: start.os_version,
            device_model: start.device_model,
            device_class: start.device_class,
            install_id: start.install_id,
            session_id: start.session_id,
            phases: PhaseBody::list(start.phase_names, start.phase_durations),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = AppStartList)]
pub(crate) struct Starts {
    starts: Vec<StartBody>,
}

/// Lists single app starts: the latest, with `order=-duration_ms` the slowest, or with `near_us` those of about this duration.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/app-starts", tag = "app_starts",
    params(
        QueryParameters,
        ("near_us" = Option<u64>, Query, description = "The app starts whose durations are nearest to this one, in microseconds. Excludes `order`."),
    ),
    responses((status = 200, body = Starts), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    QueryString(mut ask): QueryString,
) -> Result<Json<Starts>, Problem> {
    let first = match (ask.near_us.take(), ask.order.take().as_deref()) {
        (Some(near), None) => FirstStarts::Near(near / 1_000),
        (None, None | Some("-start")) => FirstStarts::Latest,
        (None, Some("-duration_ms")) => FirstStarts::Slowest,
        (Some(_), Some(_)) => {
            return Err(Problem::invalid_question(
                "set either `near_us` or `order`, not both",
            ));
        }
        (None, Some(_)) => {
            return Err(Problem::invalid_question(
                "`order` must be `-start` or `-duration_ms`",
            ));
        }
    };
    ask.measures = vec!["count".to_owned()];
    let limit = ask.limit.unwrap_or(DEFAULT_LISTED).min(MOST_LISTED);
    let reading = ask.single(&member.project, "app_starts", app.clock.now())?;
    let _turn = turn(&app, &member.actor).await?;
    let (starts, _) = app.clickhouse.single_starts(&reading, first, limit).await?;
    Ok(Json(Starts {
        starts: starts.into_iter().map(StartBody::from).collect(),
    }))
}
