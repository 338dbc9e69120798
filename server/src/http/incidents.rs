//! `/api/v1/projects/{project}/incidents`: the incidents of a project.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::alert_rules::{IdPath, id_of};
use super::openapi::{Missing, QueryString, Refused, incident_state};
use super::problem::Problem;
use super::roles::{Editor, Member, Viewer};
use crate::alerts::{ActionOutcome, Evidence};
use crate::app::App;
use crate::clock::UnixTime;
use crate::store::control::{
    ControlError, Incident, IncidentFilter, IncidentKind, IncidentState, Severity,
};

const PAGE: u32 = 50;

/// An incident of an alert rule.
#[derive(Serialize, ToSchema)]
#[schema(as = Incident)]
pub(super) struct IncidentBody {
    id: Uuid,
    rule: Uuid,
    /// `alert`, or `mix_shift`: only the mix of devices changed. A mix shift is recorded without notifications.
    kind: IncidentKind,
    /// The values of the rule's dimensions.
    #[schema(value_type = BTreeMap<String, String>)]
    group: Value,
    title: String,
    severity: Severity,
    owner: String,
    labels: BTreeMap<String, String>,
    /// One line with the numbers.
    summary: String,
    /// Path and query of the screen with the same numbers.
    link: String,
    #[schema(value_type = Evidence)]
    evidence: Value,
    state: IncidentState,
    started_at: UnixTime,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved_at: Option<UnixTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved_because: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged_at: Option<UnixTime>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged_by: Option<String>,
    /// The change that the incident made to the remote configuration, if its rule has an action.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ActionOutcome>)]
    action: Option<Value>,
}

impl TryFrom<Incident> for IncidentBody {
    type Error = ControlError;

    fn try_from(incident: Incident) -> Result<Self, ControlError> {
        Ok(Self {
            id: incident.id,
            rule: incident.rule,
            kind: incident.kind,
            group: incident.group_key.read()?,
            title: incident.title,
            severity: incident.severity,
            owner: incident.owner,
            labels: incident.labels,
            summary: incident.summary,
            link: incident.link,
            evidence: incident.evidence.read()?,
            state: incident.state,
            started_at: incident.started_at,
            resolved_at: incident.resolved_at,
            resolved_because: incident.resolved_because,
            acknowledged_at: incident.acknowledged_at,
            acknowledged_by: incident.acknowledged_by,
            action: incident.action.map(|text| text.read()).transpose()?,
        })
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PageOfIncidents {
    /// Only incidents of this rule.
    rule: Option<Uuid>,
    /// Only incidents in this state.
    #[param(schema_with = incident_state)]
    state: Option<String>,
    /// Only incidents of this owner.
    owner: Option<String>,
    /// The start of the last incident on the previous page. Requires `before_id`.
    before_at: Option<UnixTime>,
    /// The id of the last incident on the previous page. Requires `before_at`.
    before_id: Option<Uuid>,
}

/// A page of at most 50 incidents, latest first.
#[derive(Serialize, ToSchema)]
pub(super) struct IncidentList {
    incidents: Vec<IncidentBody>,
}

/// Lists incidents, latest first.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/incidents", tag = "incidents",
    params(PageOfIncidents),
    responses((status = 200, body = IncidentList), Refused<(Viewer, QueryString)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    query: Result<Query<PageOfIncidents>, QueryRejection>,
) -> Result<Json<IncidentList>, Problem> {
    let Query(page) = query.map_err(|error| Problem::bad_query(error.body_text()))?;
    let state = page.state.map(|name| name.parse()).transpose();
    let filter = IncidentFilter {
        rule: page.rule,
        state: state.map_err(|_| Problem::bad_query("`state` must be `firing` or `resolved`"))?,
        owner: page.owner,
        before: page.before_at.zip(page.before_id),
    };
    let incidents = app
        .control
        .incidents(&member.project, &filter, PAGE)
        .await?;
    let incidents = incidents
        .into_iter()
        .map(IncidentBody::try_from)
        .collect::<Result<_, _>>()?;
    Ok(Json(IncidentList { incidents }))
}

/// Returns an incident.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/incidents/{incident}", tag = "incidents",
    responses((status = 200, body = IncidentBody), Refused<(Viewer, Missing)>),
)]
pub(super) async fn read(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    path: IdPath,
) -> Result<Json<IncidentBody>, Problem> {
    let incident = app.control.incident(&member.project, id_of(path)?);
    Ok(Json(incident.await?.try_into()?))
}

/// Acknowledges an incident. The first acknowledgement is kept.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/incidents/{incident}/acknowledge", tag = "incidents",
    responses((status = 200, body = IncidentBody), Refused<(Editor, Missing)>),
)]
pub(super) async fn acknowledge(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: IdPath,
) -> Result<Json<IncidentBody>, Problem> {
    set_acknowledged(&app, &member, path, true).await
}

/// Withdraws the acknowledgement of an incident. Changes nothing if there is none.
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}/incidents/{incident}/acknowledge", tag = "incidents",
    responses((status = 200, body = IncidentBody), Refused<(Editor, Missing)>),
)]
pub(super) async fn withdraw_acknowledgement(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: IdPath,
) -> Result<Json<IncidentBody>, Problem> {
    set_acknowledged(&app, &member, path, false).await
}

async fn set_acknowledged(
    app: &App,
    member: &Member,
    path: IdPath,
    is_acknowledged: bool,
) -> Result<Json<IncidentBody>, Problem> {
    let (incident, now) = ((member.project.as_str(), id_of(path)?), app.clock.now());
    let incident = app
        .control
        .set_acknowledged(incident, is_acknowledged, &member.actor, now);
    Ok(Json(incident.await?.try_into()?))
}
