//! `/api/v1/projects/{project}/scrubbing`: the rules by which texts are scrubbed before they are stored.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use unjank_database::ControlError;
use unjank_foundation::clock::DAY;

use crate::access::scrubbing::{self, SaveError, Tried};
use crate::app::App;
use crate::http::api::object::{Exact, Object};
use crate::http::api::openapi::{Invalid, JsonBody, Overloaded, Refused, RunsQuery};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Admin, Viewer};
use crate::http::api::turns::turn;
use crate::ingest::ScrubbingDocument;

impl From<SaveError> for Problem {
    fn from(error: SaveError) -> Self {
        match error {
            SaveError::Document(error) => ControlError::Invalid(error.to_string()).into(),
            SaveError::Control(error) => error.into(),
            SaveError::Busy(_) => Self::overloaded(),
        }
    }
}

/// Returns the scrubbing rules of the project.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/scrubbing", tag = "scrubbing",
    responses((status = 200, body = ScrubbingDocument), Refused<(Viewer,)>),
)]
pub(super) async fn read(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<ScrubbingDocument>, Problem> {
    let document = app.control.scrubbing(&member.project).await?;
    Ok(Json(document.read()?))
}

/// Sets the scrubbing rules of the project. They take effect within a second and do not change stored texts.
#[utoipa::path(
    put, path = "/api/v1/projects/{project}/scrubbing", tag = "scrubbing",
    request_body = ScrubbingDocument,
    responses((status = 204), Refused<(Admin, JsonBody, Invalid, Overloaded)>),
)]
pub(super) async fn save(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    Object(document, ..): Exact<ScrubbingDocument>,
) -> Result<StatusCode, Problem> {
    let now = app.clock.now();
    let by = (&member.actor, now);
    scrubbing::save(&app.control, &member.project, document, by).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Shows what a document would change in texts of the last 24 hours. Saves nothing.
///
/// These texts were scrubbed when they arrived, so the result shows the effect of new rules. It cannot show the effect of removed rules, because
/// the original texts are not stored.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/scrubbing/dry-run", tag = "scrubbing",
    request_body = ScrubbingDocument,
    responses((status = 200, body = Tried), Refused<(Admin, JsonBody, Invalid, Overloaded, RunsQuery)>),
)]
pub(super) async fn dry_run(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    Object(document, ..): Exact<ScrubbingDocument>,
) -> Result<Json<Tried>, Problem> {
    let compiled = scrubbing::compile(document, &member.actor).await?;
    let since = app.clock.now() - DAY;
    let texts = {
        let _turn = turn(&app, &member.actor).await?;
        app.clickhouse.recent_texts(&member.project, since).await?
    };
    Ok(Json(
        scrubbing::try_on(compiled, texts, &member.actor).await?,
    ))
}
