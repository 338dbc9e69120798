//! `POST /api/v1/projects/{project}/alert-rules/preview`: when a rule would have fired.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::member::Viewer;
use super::object::Object;
use super::openapi::{FaultyAlertRule, JsonBody, OnPast, Refused};
use super::problem::Problem;
use crate::alerts::{Judge, Replay, Rule, Transition, replay};
use crate::app::App;

const MOST_DAYS: u16 = 30;
/// Steps of a preview: what lies between is not looked at.
const MOST_STEPS: i64 = 720;
const LEAST_STEP: i64 = 15 * 60_000_000;
const DAY: i64 = 86_400_000_000;
/// Somebody waits for it.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long it waits for its turn.
const TURN: Duration = Duration::from_secs(10);

/// What is tried, on what.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AlertPreviewRequest {
    #[schema(value_type = Rule)]
    rule: Value,
    /// How far back: 1 to 30.
    #[serde(default = "a_week")]
    #[schema(minimum = 1, maximum = 30)]
    days: u16,
}

fn a_week() -> u16 {
    7
}

/// When a rule would have fired.
#[derive(Serialize, ToSchema)]
pub(super) struct AlertPreview {
    /// Microseconds since the epoch.
    from: i64,
    /// The last time that was tried.
    until: i64,
    /// How much time lies between two evaluations at least, in seconds; more when there was no time for so many. A server evaluates each
    /// minute.
    step_s: i64,
    evaluations: u64,
    /// Not: it took too long, and the rest was not tried.
    complete: bool,
    /// How often it would have fired.
    fired: usize,
    /// What would have happened, the earliest first; the first 1,000.
    transitions: Vec<Transition>,
}

const MOST_TRANSITIONS: usize = 1_000;

/// Tries a rule on the last days: it is evaluated in steps, by the same questions as ever. Mutes are not looked at.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/alert-rules/preview", tag = "alert_rules",
    request_body = AlertPreviewRequest,
    responses((status = 200, body = AlertPreview), Refused<(Viewer, JsonBody, FaultyAlertRule, OnPast)>),
)]
pub(super) async fn run(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Object(asked, ..): Object<AlertPreviewRequest>,
) -> Result<Json<AlertPreview>, Problem> {
    if !(1..=MOST_DAYS).contains(&asked.days) {
        return Err(Problem::look_back(MOST_DAYS));
    }
    let rule = Rule::from_value(asked.rule)?;
    let turn = app.previews.take(member.actor.holder(), TURN).await;
    let _turn = turn.ok_or_else(Problem::overloaded)?;
    let to = app.clock.now();
    let length = i64::from(asked.days) * DAY;
    let step = LEAST_STEP.max(length / MOST_STEPS);
    let mut transitions = Vec::new();
    let past = Replay {
        project: &member.project,
        rule: &rule,
        from: to - length,
        to,
        step,
        patience: PATIENCE,
    };
    let tried = replay(
        &Judge::of_the_past(app.clickhouse.clone()),
        &past,
        |transition| transitions.push(transition),
    )
    .await?;
    let fired = transitions.iter().filter(|one| one.what == "fired").count();
    transitions.truncate(MOST_TRANSITIONS);
    Ok(Json(AlertPreview {
        from: to - length,
        until: tried.until,
        step_s: step / 1_000_000,
        evaluations: tried.evaluations,
        complete: tried.complete,
        fired,
        transitions,
    }))
}
