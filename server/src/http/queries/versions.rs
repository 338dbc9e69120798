//! `GET /api/v1/projects/{project}/versions`: the versions of the apps, and when each began to reach users.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;

use crate::app::App;
use crate::http::api::openapi::{Overloaded, Refused, Stored};
use crate::http::api::problem::Problem;
use crate::http::api::roles::Viewer;
use crate::http::api::turns::turn;
use crate::query::Release;

/// The versions that sent batches in the last 90 days, by app, newest first. At most 500, those that appeared last.
#[derive(Serialize, ToSchema)]
pub(super) struct AppVersions {
    versions: Vec<AppVersion>,
}

/// A version of an app.
#[derive(Serialize, ToSchema)]
struct AppVersion {
    app_id: String,
    app_version: String,
    /// The hour in which the first batch arrived.
    first_seen: UnixTime,
    /// The hour in which the latest batch arrived.
    last_seen: UnixTime,
    /// The first hour of the first day, of UTC, on which at least 5 % of the app's active installs ran the version. Missing if it never had this
    /// share, or if it already had it on the app's first day.
    #[serde(skip_serializing_if = "Option::is_none")]
    reached_users: Option<UnixTime>,
}

impl From<&Release> for AppVersion {
    fn from(release: &Release) -> Self {
        Self {
            app_id: release.app_id.clone(),
            app_version: release.app_version.clone(),
            first_seen: release.first_seen,
            last_seen: release.last_seen,
            reached_users: release.reached_users,
        }
    }
}

/// Returns the versions of the apps, and when each began to reach users. A version that appeared in the last five minutes may be missing.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/versions", tag = "query",
    operation_id = "versions",
    responses((status = 200, body = AppVersions), Refused<(Viewer, Overloaded, Stored)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<AppVersions>, Problem> {
    let _turn = turn(&app, &member.actor).await?;
    let now = app.clock.now();
    let releases = app.releases.of(&member.project, now).await?;
    Ok(Json(AppVersions {
        versions: releases.iter().map(AppVersion::from).collect(),
    }))
}
