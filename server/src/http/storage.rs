//! `/api/v1/projects/{project}/storage`: how long rows are kept, how much room they may take, and how much they take.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::member::{Admin, IsOperator, Viewer};
use super::object::{Object, no_list};
use super::openapi::{Invalid, JsonBody, Questioned, Refused};
use super::problem::Problem;
use super::query::turn;
use crate::app::App;
use crate::store::TableUse;
use crate::store::control::{KeepDays, Storage};

/// How long rows are kept, and what they take.
#[derive(Serialize, ToSchema)]
#[schema(as = Storage)]
pub(super) struct StorageBody {
    keep: KeepDays,
    /// What `null` means: the times of the installation.
    default_keep: KeepDays,
    /// How much room the rows may take, in bytes. `null`: no limit.
    disk_bytes: Option<u64>,
    /// What the rows take, in bytes. An estimate: of each table the project's part by its number of rows, weighed by the size of its events on
    /// the wire in the last 30 days.
    used_bytes: u64,
    /// Batches are refused with `quota_disk`, because the events of the last two days alone take too much room.
    is_over_quota: bool,
    /// The largest first.
    tables: Vec<TableUse>,
}

/// How long rows are kept, and what they take.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/storage", tag = "storage",
    responses((status = 200, body = StorageBody), Refused<(Viewer, Questioned)>),
)]
pub(super) async fn read(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<StorageBody>, Problem> {
    let storage = app.control.storage(&member.project).await?;
    let _turn = turn(&app, &member.actor).await?;
    let tables = app.clickhouse.usage(&member.project).await?;
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

/// What is missing or `null` is as the installation says.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewStorage)]
pub(super) struct NewStorage {
    #[serde(default, deserialize_with = "no_list")]
    keep: KeepDays,
    /// How much room the rows may take, in bytes. When they take more, the oldest events are dropped.
    #[serde(default)]
    #[schema(maximum = 9_223_372_036_854_775_807u64)]
    disk_bytes: Option<u64>,
}

/// Sets how long rows are kept, and how much room they may take. To keep rows for longer than the installation does, or to change
/// `disk_bytes`, takes an admin of the whole installation. Rows go within the hour, when all of their week (of roll-ups: their month) is too
/// old.
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
    // What an operator gave the project may stay.
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
