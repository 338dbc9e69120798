//! `/api/v1/projects/{project}/source-links`: how frames link to source lines.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use unjank_database::ControlError;
use unjank_foundation::source_links::{
    AppBuild, CodeLocation, NoLink, SourceLinks, SourceLinksDocument, SourceLinksError,
};
use utoipa::ToSchema;

use crate::app::App;
use crate::http::api::object::{Object, no_list};
use crate::http::api::openapi::{Invalid, JsonBody, Refused};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Editor, Viewer};

impl From<SourceLinksError> for Problem {
    fn from(error: SourceLinksError) -> Self {
        ControlError::Invalid(error.to_string()).into()
    }
}

/// Returns how frames of the project link to source lines.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/source-links", tag = "symbols",
    operation_id = "source_links",
    responses((status = 200, body = SourceLinksDocument), Refused<(Viewer,)>),
)]
pub(super) async fn read(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<SourceLinksDocument>, Problem> {
    Ok(Json(app.control.source_links(&member.project).await?))
}

/// Sets how frames of the project link to source lines. The change takes effect within a second, also for stored stacks.
#[utoipa::path(
    put, path = "/api/v1/projects/{project}/source-links", tag = "symbols",
    operation_id = "set_source_links",
    request_body = SourceLinksDocument,
    responses((status = 204), Refused<(Editor, JsonBody, Invalid)>),
)]
pub(super) async fn save(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    Object(document, ..): Object<SourceLinksDocument>,
) -> Result<StatusCode, Problem> {
    let links = SourceLinks::new(document)?;
    let now = app.clock.now();
    app.control
        .set_source_links(&member.project, &links, &member.actor, now)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Source links to try, and a frame.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SourceLinksTrial)]
pub(crate) struct Trial {
    #[serde(deserialize_with = "no_list")]
    links: SourceLinksDocument,
    /// `com.example.shop.Cart`, for Java and Kotlin.
    #[serde(default)]
    class: String,
    file: String,
    /// 0 if unknown.
    #[serde(default)]
    line: u32,
    #[serde(default)]
    app_version: String,
    /// The build number of the app. 0 if unknown.
    #[serde(default)]
    build: u64,
}

/// Where the frame leads.
#[derive(Serialize, ToSchema)]
#[schema(as = SourceLinksTried)]
pub(crate) struct Tried {
    /// The path in the repository.
    path: Option<String>,
    url: Option<String>,
    /// Why there is no `url`.
    reason: Option<NoLink>,
}

/// Shows where a frame would lead. Saves nothing.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/source-links/preview", tag = "symbols",
    operation_id = "preview_source_links",
    request_body = Trial,
    responses((status = 200, body = Tried), Refused<(Viewer, JsonBody, Invalid)>),
)]
pub(super) async fn preview(
    Viewer(_): Viewer,
    Object(trial, ..): Object<Trial>,
) -> Result<Json<Tried>, Problem> {
    let links = SourceLinks::new(trial.links)?;
    let location = CodeLocation {
        class: &trial.class,
        file: &trial.file,
        line: trial.line,
    };
    let app = AppBuild {
        version: &trial.app_version,
        number: trial.build,
    };
    let url = links.url(location, app);
    Ok(Json(Tried {
        path: links.path(location).ok(),
        reason: url.as_ref().err().copied(),
        url: url.ok(),
    }))
}
