//! `/api/v1/projects/{project}/alert-rules`: the alert rules of a project.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use unjank_database::{AlertRule, ControlError, JsonText, RuleText};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::alerts::{Rule, RuleFault, templates};
use crate::app::App;
use crate::http::api::ids::{IdPath, id_of};
use crate::http::api::object::{AnyJson, Object};
use crate::http::api::openapi::{Conflict, FaultyAlertRule, Invalid, JsonBody, Missing, Refused};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Editor, Viewer};

/// An alert rule, and the result of its latest evaluation.
#[derive(Serialize, ToSchema)]
#[schema(as = AlertRule)]
pub(super) struct RuleBody {
    id: Uuid,
    /// The number of saves. A change must name the revision that it is based on.
    revision: i64,
    #[schema(value_type = Rule)]
    rule: Value,
    created_at: UnixTime,
    updated_at: UnixTime,
    updated_by: String,
    /// When the rule was last evaluated. Missing before its first evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_evaluated_at: Option<UnixTime>,
    /// `ok`, `pending`, `firing`, `no_data` or `failed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<String>,
    /// Why the last evaluation failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
}

impl TryFrom<AlertRule> for RuleBody {
    type Error = ControlError;

    fn try_from(row: AlertRule) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id,
            revision: row.revision,
            rule: row.document.read()?,
            created_at: row.created_at,
            updated_at: row.updated_at,
            updated_by: row.updated_by,
            last_evaluated_at: row.evaluated_at,
            outcome: row.outcome,
            last_error: row.last_error,
        })
    }
}

/// The alert rules of a project, oldest first.
#[derive(Serialize, ToSchema)]
pub(super) struct AlertRuleList {
    rules: Vec<RuleBody>,
}

/// Lists the alert rules of a project.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/alert-rules", tag = "alert_rules",
    responses((status = 200, body = AlertRuleList), Refused<(Viewer,)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<AlertRuleList>, Problem> {
    let rules = app.control.alert_rules(&member.project).await?;
    let rules = rules.into_iter().map(RuleBody::try_from);
    Ok(Json(AlertRuleList {
        rules: rules.collect::<Result<_, _>>()?,
    }))
}

/// Returns an alert rule.
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
    Ok(Json(rule.await?.try_into()?))
}

/// Creates an alert rule.
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
    Ok((StatusCode::CREATED, Json(made.try_into()?)))
}

/// The new content of an alert rule.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewAlertRule {
    /// The revision that the change is based on, as `GET` returned it.
    expected_revision: i64,
    #[schema(value_type = Rule)]
    rule: Value,
}

/// Saves an alert rule if it still has the expected revision. Disabling it or changing what it watches ends its incidents.
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
    let same =
        Rule::from_text(before.document.as_str()).is_ok_and(|one| one.watches_the_same(&rule));
    let ends = match (rule.enabled, same) {
        (false, _) => Some("the rule was disabled"),
        (true, false) => Some("the rule was changed"),
        (true, true) => None,
    };
    let place = (member.project.as_str(), id, new.expected_revision);
    let now = app.clock.now();
    let saved = app
        .control
        .save_alert_rule(place, text(&rule, ends), &member.actor, now)
        .await?;
    Ok(Json(saved.try_into()?))
}

/// Deletes an alert rule. Its incidents end and stay in the history.
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

/// The faults of an alert rule, if any.
#[derive(Serialize, ToSchema)]
pub(super) struct AlertRuleVerdict {
    valid: bool,
    faults: Vec<RuleFault>,
}

/// Checks an alert rule without saving it.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/alert-rules/check", tag = "alert_rules",
    request_body(content = Value, description = "Any JSON. The response lists its faults."),
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

/// Templates of alert rules. None of them is saved.
#[derive(Serialize, ToSchema)]
pub(super) struct AlertRuleTemplates {
    templates: Vec<Rule>,
}

/// Returns templates of alert rules.
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
        document: JsonText::new(rule),
        name: rule.name.clone(),
        enabled: rule.enabled,
        ends,
    }
}
