//! `/api/v1/projects/{project}/trace-links`: how traces link to another system.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use unjank_database::ControlError;
use unjank_foundation::trace_links::{TraceLinks, TraceLinksDocument};

use crate::app::App;
use crate::http::api::object::Object;
use crate::http::api::openapi::{Invalid, JsonBody, Refused};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Editor, Viewer};

/// Returns how traces of the project link to another system.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/trace-links", tag = "traces",
    operation_id = "trace_links",
    responses((status = 200, body = TraceLinksDocument), Refused<(Viewer,)>),
)]
pub(super) async fn read(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<TraceLinksDocument>, Problem> {
    Ok(Json(app.control.trace_links(&member.project).await?))
}

/// Sets how traces of the project link to another system. The change takes effect within a second.
#[utoipa::path(
    put, path = "/api/v1/projects/{project}/trace-links", tag = "traces",
    operation_id = "set_trace_links",
    request_body = TraceLinksDocument,
    responses((status = 204), Refused<(Editor, JsonBody, Invalid)>),
)]
pub(super) async fn save(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    Object(document, ..): Object<TraceLinksDocument>,
) -> Result<StatusCode, Problem> {
    let links = TraceLinks::new(document);
    let links = links.map_err(|error| ControlError::Invalid(error.to_string()))?;
    let now = app.clock.now();
    app.control
        .set_trace_links(&member.project, &links, &member.actor, now)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
