//! `POST /api/v1/projects/{project}/alert-rules/preview`: when a rule would have fired.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::object::Object;
use super::openapi::{FaultyAlertRule, JsonBody, Refused, RunsAlertPreview};
use super::problem::Problem;
use super::roles::Viewer;
use crate::alerts::{Judge, Replay, Rule, Transition, replay};
use crate::app::App;
use crate::clock::{DAY, UnixTime};

const MOST_DAYS: u16 = 30;
/// The maximum number of steps. Times between steps are not evaluated.
const MOST_STEPS: u32 = 720;
const LEAST_STEP: Duration = Duration::from_secs(900);
/// A preview ends after this time, because a user waits for it.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a request waits for its turn.
const TURN: Duration = Duration::from_secs(10);

/// A rule to preview, and the period.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AlertPreviewRequest {
    #[schema(value_type = Rule)]
    rule: Value,
    /// How many days to look back: 1 to 30.
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
    from: UnixTime,
    /// The time of the last evaluation.
    until: UnixTime,
    /// The minimum time between two evaluations, in seconds. It was longer if there was no time for so many. Live rules are evaluated
    /// every minute.
    step_s: u64,
    evaluations: u64,
    /// `false` if time ran out before the end of the period.
    complete: bool,
    /// How many times the rule would have fired.
    fired: usize,
    /// The transitions that would have happened, earliest first. Only the first 1,000.
    transitions: Vec<Transition>,
}

const MOST_TRANSITIONS: usize = 1_000;

/// Evaluates a rule on the last days in steps, with the same queries as live evaluation. Mutes of the project are ignored.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/alert-rules/preview", tag = "alert_rules",
    request_body = AlertPreviewRequest,
    responses((status = 200, body = AlertPreview), Refused<(Viewer, JsonBody, FaultyAlertRule, RunsAlertPreview)>),
)]
pub(super) async fn run(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Object(asked, ..): Object<AlertPreviewRequest>,
) -> Result<Json<AlertPreview>, Problem> {
    if !(1..=MOST_DAYS).contains(&asked.days) {
        return Err(Problem::days_out_of_range(MOST_DAYS));
    }
    let rule = Rule::from_value(asked.rule)?;
    let turn = app.previews.take(member.actor.holder(), TURN).await;
    let _turn = turn.ok_or_else(Problem::overloaded)?;
    let to = app.clock.now();
    let length = DAY * asked.days.into();
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
        &Judge::for_past(app.clickhouse.clone()),
        &past,
        |transition| transitions.push(transition),
    )
    .await?;
    let fired = transitions.iter().filter(|one| one.what == "fired").count();
    transitions.truncate(MOST_TRANSITIONS);
    Ok(Json(AlertPreview {
        from: to - length,
        until: tried.until,
        step_s: step.as_secs(),
        evaluations: tried.evaluations,
        complete: tried.complete,
        fired,
        transitions,
    }))
}
