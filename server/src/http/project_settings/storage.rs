//! `/api/v1/projects/{project}/storage`: how long rows are kept, the disk quota of a project, and the space that its rows take.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use unjank_database::{KeepDays, Storage};
use utoipa::ToSchema;

use crate::app::App;
use crate::http::api::object::{Object, no_list};
use crate::http::api::openapi::{Invalid, JsonBody, Refused, RunsQuery};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Admin, IsOperator, Viewer};
use crate::http::api::turns::turn;
use crate::store::TableUse;

/// How long rows are kept, and how much space they take.
#[derive(Serialize, ToSchema)]
#[schema(as = Storage)]
pub(super) struct StorageBody {
    keep: KeepDays,
    /// The retention of the installation, which replaces `null` in `keep`.
    default_keep: KeepDays,
    /// The disk quota of the rows, in bytes. `null`: no limit.
    disk_bytes: Option<u64>,
    /// The space that the rows take, in bytes. An estimate: the project's share of each table by number of rows, weighted by the size of its events
    /// on the wire in the last 30 days.
    used_bytes: u64,
    /// Whether batches are rejected with `quota_disk`, because the events of the last two days alone exceed the quota.
    is_over_quota: bool,
    /// Largest first.
    tables: Vec<TableUse>,
}

/// Returns how long rows are kept, and how much space they take.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/storage", tag = "storage",
    responses((status = 200, body = StorageBody), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn read(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<StorageBody>, Problem> {
    let storage = app.control.storage(&member.project).await?;
    let _turn = turn(&app, &member.actor).await?;
    let tables = app
        .clickhouse
        .usage(&member.project, app.clock.now())
        .await?;
    Ok(Json(body(&app, &storage, tables)))
}

fn body(app: &App, storage: &Storage, tables: Vec<TableUse>) -> StorageBody {
    let days = |days: u64| u32::try_from(days).ok();
    StorageBody {
        keep: storage.keep,
        default_keep: KeepDays {
            raw_days: days(app.retention.raw_days),
            hourly_days: days(app.retention.hourly_days),
            daily_days: days(app.retention.daily_days),
        },
        disk_bytes: storage.disk_bytes,
        used_bytes: tables.iter().map(|table| table.bytes).sum(),
        is_over_quota: storage.is_over_quota,
        tables,
    }
}

/// A missing or `null` value means the default of the installation.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewStorage)]
pub(super) struct NewStorage {
    #[serde(default, deserialize_with = "no_list")]
    keep: KeepDays,
    /// The disk quota of the rows, in bytes. If they take more, the oldest events are dropped.
    #[serde(default)]
    #[schema(maximum = 9_223_372_036_854_775_807u64)]
    disk_bytes: Option<u64>,
}

/// Sets how long rows are kept, and how much space they may take.
///
/// Only an admin of the whole installation may keep rows for longer than the installation does, or change `disk_bytes`. Rows are deleted within an
/// hour after their whole week (for roll-ups: their month) has expired.
#[utoipa::path(
    put, path = "/api/v1/projects/{project}/storage", tag = "storage",
    request_body = NewStorage,
    responses((status = 204), Refused<(Admin, JsonBody, Invalid)>),
)]
pub(super) async fn set(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    IsOperator(is_operator): IsOperator,
    Object(new, ..): Object<NewStorage>,
) -> Result<axum::http::StatusCode, Problem> {
    let known = app.control.storage(&member.project).await?;
    let default = app.retention;
    // A longer retention that an operator has set may stay.
    let is_more = |days: fn(&KeepDays) -> Option<u32>, default: u64| {
        let (own, before) = (days(&new.keep), days(&known.keep));
        own.is_some_and(|own| default != 0 && (own == 0 || u64::from(own) > default))
            && own != before
    };
    let is_more = new.disk_bytes != known.disk_bytes
        || is_more(|keep| keep.raw_days, default.raw_days)
        || is_more(|keep| keep.hourly_days, default.hourly_days)
        || is_more(|keep| keep.daily_days, default.daily_days);
    if is_more && !is_operator {
        return Err(Problem::role("admin of the installation"));
    }
    let storage = Storage {
        project: member.project,
        keep: new.keep,
        disk_bytes: new.disk_bytes,
        is_over_quota: known.is_over_quota,
    };
    let now = app.clock.now();
    app.control
        .set_storage(&storage, known.disk_bytes, &member.actor, now)
        .await?;
    Ok(axum::http::StatusCode::NO_CONTENT)
}
