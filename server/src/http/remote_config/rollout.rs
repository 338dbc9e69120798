//! `GET /api/v1/projects/{project}/config/rollout`: which installs run the current revision.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;

use crate::access::rollout::{Revisions, rollout};
use crate::app::App;
use crate::http::api::openapi::{Faulty, Overloaded, Refused, Stored};
use crate::http::api::problem::Problem;
use crate::http::api::roles::Viewer;
use crate::http::api::turns::slow_turn;

/// The installs of the last 24 hours by the revision that they run. Devices report it with every batch.
#[derive(Default, Serialize, ToSchema)]
pub(super) struct Rollout {
    /// The current revision. 0 if nothing has been saved; then there is nothing to roll out.
    revision: i64,
    saved_at: UnixTime,
    /// Installs that sent a batch in the last 24 hours.
    installs: u64,
    /// The number of these installs that were evaluated: all of them, or a sample of at least 10,000.
    sampled: u64,
    /// Installs that run the current revision.
    running: u64,
    /// Installs that sent a batch after the revision was saved, and still run an earlier one.
    waiting: u64,
    /// Installs whose document the revision changes.
    concerned: u64,
    /// Installs that the revision changes and that run it.
    concerned_running: u64,
    /// The interval between polls of a device without overrides, in seconds.
    poll_interval_s: u32,
    /// The interval between uploads of a device without overrides, in seconds.
    upload_interval_s: u32,
    /// Whether receipts announce a new revision to devices. If a condition depends on the network, they do not: devices get the revision with
    /// their next poll.
    announced: bool,
    /// The latest revisions that installs run, latest first. At most 20.
    revisions: Vec<RevisionInstalls>,
}

/// The installs that run a revision.
#[derive(Serialize, ToSchema)]
struct RevisionInstalls {
    /// 0: the defaults, or an SDK that does not report its revision.
    revision: u64,
    installs: u64,
}

/// Returns how many installs of the last 24 hours run the current revision of the configuration.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/config/rollout", tag = "configurations",
    operation_id = "rollout",
    responses((status = 200, body = Rollout), Refused<(Viewer, Faulty, Overloaded, Stored)>),
)]
pub(super) async fn state(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<Rollout>, Problem> {
    let now = app.clock.now();
    let _turn = slow_turn(&app, &member.actor).await?;
    let read = Revisions::read(&app.control, &member.project, &member.actor).await?;
    let Some(revisions) = read else {
        return Ok(Json(Rollout::default()));
    };
    let found = rollout(&app.clickhouse, &member.project, &revisions, now).await?;
    let (poll_interval_s, upload_interval_s) = revisions.intervals(now);
    let by_revision = found.revisions.into_iter();
    let by_revision =
        by_revision.map(|(revision, installs)| RevisionInstalls { revision, installs });
    Ok(Json(Rollout {
        revision: revisions.latest.revision,
        saved_at: revisions.latest.created_at,
        installs: found.installs,
        sampled: found.sampled,
        running: found.running,
        waiting: found.waiting,
        concerned: found.concerned,
        concerned_running: found.concerned_running,
        poll_interval_s,
        upload_interval_s,
        announced: revisions.is_announced(),
        revisions: by_revision.collect(),
    }))
}
