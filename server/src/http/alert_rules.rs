//! `/api/v1/projects/{project}/alert-rules`: what is watched.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::member::{Editor, Viewer};
use super::object::{AnyJson, Object};
use super::openapi::{Conflict, FaultyAlertRule, Invalid, JsonBody, Missing, Refused};
use super::problem::Problem;
use crate::alerts::{Rule, RuleFault, templates};
use crate::app::App;
use crate::store::control::{AlertRule, RuleText};

/// A rule, and how its latest evaluation went.
#[derive(Serialize, ToSchema)]
#[schema(as = AlertRule)]
pub(super) struct RuleBody {
    id: Uuid,
    /// Counts the saves; a change names the one it was made from.
    revision: i64,
    #[schema(value_type = Rule)]
    rule: Value,
    /// Microseconds since the epoch.
    created_at: i64,
    updated_at: i64,
    updated_by: String,
    /// When it was evaluated last; missing when it was not yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_evaluated_at: Option<i64>,
    /// `ok`, `pending`, `firing`, `no_data` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    /// Why the last evaluation failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
}

impl From<AlertRule> for RuleBody {
    fn from(row: AlertRule) -> Self {
        Self {
            id: row.id,
            revision: row.revision,
            rule: serde_json::from_str(&row.document).unwrap_or_default(),
            created_at: row.created_at,
            updated_at: row.updated_at,
            updated_by: row.updated_by,
            last_evaluated_at: row.evaluated_at,
            outcome: row.outcome,
            last_error: row.last_error,
        }
    }
}

/// The alert rules of a project, the oldest first.
#[derive(Serialize, ToSchema)]
pub(super) struct AlertRuleList {
    rules: Vec<RuleBody>,
}

/// The project and the thing of a path.
pub(super) type IdPath = Result<Path<(String, Uuid)>, PathRejection>;

pub(super) fn id_of(path: IdPath) -> Result<Uuid, Problem> {
    path.map(|Path((_, id))| id)
        .map_err(|_| Problem::not_found())
}

/// All alert rules of the project.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/alert-rules", tag = "alert_rules",
    responses((status = 200, body = AlertRuleList), Refused<(Viewer,)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<AlertRuleList>, Problem> {
    let rules = app.control.alert_rules(&member.project).await?;
    let rules = rules.into_iter().map(RuleBody::from).collect();
    Ok(Json(AlertRuleList { rules }))
}

/// An alert rule.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/alert-rules/{rule}", tag = "alert_rules",
    responses((status = 200, body = RuleBody), Refused<(Viewer, Missing)>),
)]
pub(super) async fn read(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    path: IdPath,
) -> Result<Json<RuleBody>, Problem> {
    let rule = app.control.alert_rule(&member.project, id_of(path)?);
    Ok(Json(rule.await?.into()))
}

/// Makes an alert rule.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/alert-rules", tag = "alert_rules",
    request_body = Rule,
    responses((status = 201, body = RuleBody), Refused<(Editor, JsonBody, FaultyAlertRule, Invalid)>),
)]
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    AnyJson(body, ..): AnyJson,
) -> Result<(StatusCode, Json<RuleBody>), Problem> {
    let rule = Rule::from_value(body)?;
    let now = app.clock.now();
    let made = app
        .control
        .create_alert_rule(&member.project, text(&rule, None), &member.actor, now)
        .await?;
    Ok((StatusCode::CREATED, Json(made.into())))
}

/// What an alert rule is to be.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAlertRule {
    /// The revision it was made from, as `GET` answered it.
    expected_revision: i64,
    #[schema(value_type = Rule)]
    rule: Value,
}

/// Saves an alert rule, when nobody saved it meanwhile. Incidents of what is no longer watched end with that.
#[utoipa::path(
    put, path = "/api/v1/projects/{project}/alert-rules/{rule}", tag = "alert_rules",
    request_body = NewAlertRule,
    responses((status = 200, body = RuleBody), Refused<(Editor, Missing, JsonBody, FaultyAlertRule, Conflict, Invalid)>),
)]
pub(super) async fn save(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: IdPath,
    Object(new, ..): Object<NewAlertRule>,
) -> Result<Json<RuleBody>, Problem> {
    let id = id_of(path)?;
    let rule = Rule::from_value(new.rule)?;
    let before = app.control.alert_rule(&member.project, id).await?;
    let same = Rule::from_text(&before.document).is_ok_and(|one| one.watches_the_same(&rule));
    let ends = match (rule.enabled, same) {
        (false, _) => Some("the rule was switched off"),
        (true, false) => Some("the rule was changed"),
        (true, true) => None,
    };
    let place = (member.project.as_str(), id, new.expected_revision);
    let now = app.clock.now();
    let saved = app
        .control
        .save_alert_rule(place, text(&rule, ends), &member.actor, now)
        .await?;
    Ok(Json(saved.into()))
}

/// Deletes an alert rule; its incidents end, and stay in the history.
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}/alert-rules/{rule}", tag = "alert_rules",
    responses((status = 204), Refused<(Editor, Missing)>),
)]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: IdPath,
) -> Result<StatusCode, Problem> {
    let now = app.clock.now();
    app.control
        .delete_alert_rule(&member.project, id_of(path)?, &member.actor, now)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What saving would say.
#[derive(Serialize, ToSchema)]
pub(super) struct AlertRuleVerdict {
    valid: bool,
    faults: Vec<RuleFault>,
}

/// Says what saving an alert rule would say, and saves nothing.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/alert-rules/check", tag = "alert_rules",
    request_body(content = Value, description = "Any JSON: what is wrong with it is answered."),
    responses((status = 200, body = AlertRuleVerdict), Refused<(Viewer, JsonBody)>),
)]
pub(super) async fn check(
    State(_): State<Arc<App>>,
    Viewer(_): Viewer,
    AnyJson(body, ..): AnyJson,
) -> Result<Json<AlertRuleVerdict>, Problem> {
    let faults = Rule::from_value(body).err().unwrap_or_default();
    Ok(Json(AlertRuleVerdict {
        valid: faults.is_empty(),
        faults,
    }))
}

/// Rules to begin with; none of them is saved.
#[derive(Serialize, ToSchema)]
pub(super) struct AlertRuleTemplates {
    templates: Vec<Rule>,
}

/// Rules to begin with.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/alert-rules/templates", tag = "alert_rules",
    responses((status = 200, body = AlertRuleTemplates), Refused<(Viewer,)>),
)]
pub(super) async fn suggestions(
    State(_): State<Arc<App>>,
    Viewer(_): Viewer,
) -> Json<AlertRuleTemplates> {
    Json(AlertRuleTemplates {
        templates: templates(),
    })
}

fn text(rule: &Rule, ends: Option<&'static str>) -> RuleText {
    RuleText {
        document: serde_json::to_string(rule).unwrap_or_default(),
        name: rule.name.clone(),
        enabled: rule.enabled,
        ends,
    }
}
