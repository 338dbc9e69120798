//! `/api/v1/projects/{project}/views`: pages with their filters, saved under a name.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use unjank_database::{SavedView, SavedViewChange};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::http::api::ids::{IdPath, id_of};
use crate::http::api::object::Object;
use crate::http::api::openapi::{Exists, Invalid, JsonBody, Missing, Refused};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Editor, Viewer};

/// A page of the web interface with its filters, under a name.
#[derive(Serialize, ToSchema)]
#[schema(as = SavedView)]
pub(super) struct ViewBody {
    id: Uuid,
    name: String,
    /// The path and query of the page.
    #[schema(example = "/jank?app_version=4.12.0&range=7d")]
    address: String,
    created_by: String,
    created_at: UnixTime,
    updated_at: UnixTime,
}

impl From<SavedView> for ViewBody {
    fn from(view: SavedView) -> Self {
        Self {
            id: view.id,
            name: view.name,
            address: view.address,
            created_by: view.created_by,
            created_at: view.created_at,
            updated_at: view.updated_at,
        }
    }
}

/// The saved views of a project, by name.
#[derive(Serialize, ToSchema)]
pub(super) struct SavedViewList {
    views: Vec<ViewBody>,
}

/// Lists the saved views of a project.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/views", tag = "saved_views",
    responses((status = 200, body = SavedViewList), Refused<(Viewer,)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<SavedViewList>, Problem> {
    let views = app.control.saved_views(&member.project).await?;
    let views = views.into_iter().map(ViewBody::from).collect();
    Ok(Json(SavedViewList { views }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewSavedView {
    /// 1 to 80 characters. Unique in the project.
    #[schema(min_length = 1, max_length = 80)]
    name: String,
    /// The path and query of a page of the web interface, at most 2,000 characters.
    #[schema(
        min_length = 1,
        max_length = 2_000,
        example = "/jank?app_version=4.12.0&range=7d"
    )]
    address: String,
}

/// Saves a view. A project can have at most 100.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/views", tag = "saved_views",
    request_body = NewSavedView,
    responses((status = 201, body = ViewBody), Refused<(Editor, JsonBody, Exists, Invalid)>),
)]
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    Object(new, ..): Object<NewSavedView>,
) -> Result<(StatusCode, Json<ViewBody>), Problem> {
    let now = app.clock.now();
    let view = (
        member.project.as_str(),
        new.name.as_str(),
        new.address.as_str(),
    );
    let view = app
        .control
        .create_saved_view(view, &member.actor, now)
        .await?;
    Ok((StatusCode::CREATED, Json(view.into())))
}

/// Changes of a saved view. A missing field stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SavedViewChange)]
pub(super) struct ChangeBody {
    /// 1 to 80 characters. Unique in the project.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 80)]
    name: Option<String>,
    /// The path and query of a page of the web interface, at most 2,000 characters.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 2_000)]
    address: Option<String>,
}

/// Renames a saved view, or replaces its address.
#[utoipa::path(
    patch, path = "/api/v1/projects/{project}/views/{view}", tag = "saved_views",
    request_body = ChangeBody,
    responses((status = 200, body = ViewBody), Refused<(Editor, Missing, JsonBody, Exists, Invalid)>),
)]
pub(super) async fn update(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: IdPath,
    Object(new, ..): Object<ChangeBody>,
) -> Result<Json<ViewBody>, Problem> {
    let change = SavedViewChange {
        name: new.name.as_deref(),
        address: new.address.as_deref(),
    };
    let (view, now) = ((member.project.as_str(), id_of(path)?), app.clock.now());
    let view = app
        .control
        .update_saved_view(view, change, &member.actor, now)
        .await?;
    Ok(Json(view.into()))
}

/// Deletes a saved view.
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}/views/{view}", tag = "saved_views",
    responses((status = 204), Refused<(Editor, Missing)>),
)]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: IdPath,
) -> Result<StatusCode, Problem> {
    let view = (member.project.as_str(), id_of(path)?);
    app.control
        .delete_saved_view(view, &member.actor, app.clock.now())
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
