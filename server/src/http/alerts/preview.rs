//! `POST /api/v1/projects/{project}/alert-rules/preview`: when a rule would have fired.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use unjank_foundation::clock::{DAY, UnixTime};
use utoipa::ToSchema;

use crate::alerts::{
    Judge, Line, Preview, PreviewedPeriod, Rule, SkippedGroup, Transition, preview,
};
use crate::app::App;
use crate::http::api::object::Object;
use crate::http::api::openapi::{FaultyAlertRule, JsonBody, Refused, RunsAlertPreview};
use crate::http::api::problem::Problem;
use crate::http::api::roles::Viewer;
use crate::http::api::turns::slow_turn;

const MOST_DAYS: u16 = 30;
/// The maximum number of steps. Times between steps are not evaluated.
const MOST_STEPS: u32 = 720;
const LEAST_STEP: Duration = Duration::from_secs(900);
/// A preview ends after this time, because a user waits for it.
const PATIENCE: Duration = Duration::from_secs(30);

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
    /// The time of the earliest evaluation.
    from: UnixTime,
    /// The time of the last evaluation.
    until: UnixTime,
    /// The minimum time between two evaluations, in seconds. Longer if time did not suffice for that many evaluations. Live rules are evaluated
    /// every minute.
    step_s: u64,
    evaluations: usize,
    /// `false` if time ran out before the start of the period. The latest days are always covered.
    complete: bool,
    /// How many times the rule would have fired.
    fired: usize,
    /// The transitions that would have happened, earliest first. Only the last 1,000.
    transitions: Vec<Transition>,
    /// The number of groups in the last evaluation.
    groups: usize,
    /// Groups that were not judged in some evaluations. Only the first 50.
    skipped: Vec<SkippedGroup>,
    /// The number of groups that were not judged in some evaluations.
    skipped_groups: usize,
    /// The number of evaluations within a mute window of the rule.
    muted_evaluations: usize,
    /// The times of the evaluations, earliest first.
    times: Vec<UnixTime>,
    /// The numbers of at most 6 groups over these times. Groups that fired come first.
    lines: Vec<Line>,
}

const MOST_TRANSITIONS: usize = 1_000;
const MOST_SKIPPED: usize = 50;

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
    let _turn = slow_turn(&app, &member.actor).await?;
    let to = app.clock.now();
    let length = DAY * asked.days.into();
    let period = PreviewedPeriod {
        project: &member.project,
        rule: &rule,
        from: to - length,
        to,
        step: LEAST_STEP.max(length / MOST_STEPS),
        patience: PATIENCE,
    };
    let found = preview(&Judge::for_past(app.clickhouse.clone()), &period).await?;
    Ok(Json(body(&period, found)))
}

fn body(period: &PreviewedPeriod<'_>, found: Preview) -> AlertPreview {
    let mut transitions = found.transitions;
    let fired = transitions.iter().filter(|one| one.what == "fired").count();
    transitions.drain(..transitions.len().saturating_sub(MOST_TRANSITIONS));
    let skipped_groups = found.skipped.len();
    AlertPreview {
        from: found.times.first().copied().unwrap_or(period.to),
        until: period.to,
        step_s: period.step.as_secs(),
        evaluations: found.times.len(),
        complete: found.complete,
        fired,
        transitions,
        groups: found.groups,
        skipped: found.skipped.into_iter().take(MOST_SKIPPED).collect(),
        skipped_groups,
        muted_evaluations: found.muted_evaluations,
        times: found.times,
        lines: found.lines,
    }
}
