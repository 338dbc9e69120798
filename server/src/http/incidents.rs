//! `/api/v1/projects/{project}/incidents`: what was found.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;
use uuid::Uuid;

use super::alert_rules::{IdPath, id_of};
use super::member::{Editor, Viewer};
use super::openapi::{Missing, QueryString, Refused, incident_state};
use super::problem::Problem;
use crate::alerts::{Acted, Evidence};
use crate::app::App;
use crate::store::control::{Incident, IncidentFilter};

const PAGE: u32 = 50;

/// Something that was found.
#[derive(Serialize, ToSchema)]
#[schema(as = Incident)]
pub(super) struct IncidentBody {
    id: Uuid,
    rule: Uuid,
    /// `alert`, or `mix_shift`: only the mix of devices changed, which is taken down and told to nobody.
    kind: &'static str,
    /// The values of the rule's dimensions.
    #[schema(value_type = BTreeMap<String, String>)]
    group: Value,
    title: String,
    /// `info`, `warning` or `critical`.
    severity: String,
    owner: String,
    #[schema(value_type = BTreeMap<String, String>)]
    labels: Value,
    /// One line with the numbers.
    summary: String,
    /// Path and query of the screen that shows the same.
    link: String,
    #[schema(value_type = Evidence)]
    evidence: Value,
    /// `firing` or `resolved`.
    state: &'static str,
    /// Microseconds since the epoch.
    started_at: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolved_because: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    acknowledged_by: Option<String>,
    /// What it did to the remote configuration, when its rule says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Acted>)]
    action: Option<Value>,
}

impl From<Incident> for IncidentBody {
    fn from(incident: Incident) -> Self {
        let json = |text: &str| serde_json::from_str(text).unwrap_or_default();
        Self {
            id: incident.id,
            rule: incident.rule,
            kind: incident.kind.as_str(),
            group: json(&incident.group_key),
            title: incident.title,
            severity: incident.severity,
            owner: incident.owner,
            labels: json(&incident.labels),
            summary: incident.summary,
            link: incident.link,
            evidence: json(&incident.evidence),
            state: incident.state.as_str(),
            started_at: incident.started_at,
            resolved_at: incident.resolved_at,
            resolved_because: incident.resolved_because,
            acknowledged_at: incident.acknowledged_at,
            acknowledged_by: incident.acknowledged_by,
            action: incident.action.as_deref().map(json),
        }
    }
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PageOfIncidents {
    /// Only those of this rule.
    rule: Option<Uuid>,
    /// Only those that are in this state.
    #[param(schema_with = incident_state)]
    state: Option<String>,
    /// Of the last incident of the page before: its start …
    before_at: Option<i64>,
    /// … and its id.
    before_id: Option<Uuid>,
}

/// A page of incidents, the latest first: 50 at most.
#[derive(Serialize, ToSchema)]
pub(super) struct IncidentList {
    incidents: Vec<IncidentBody>,
}

/// A page of incidents, the latest first.
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
        state: state.map_err(|_| Problem::bad_query("`state` is `firing` or `resolved`"))?,
        before: page.before_at.zip(page.before_id),
    };
    let incidents = app
        .control
        .incidents(&member.project, &filter, PAGE)
        .await?;
    let incidents = incidents.into_iter().map(IncidentBody::from).collect();
    Ok(Json(IncidentList { incidents }))
}

/// An incident.
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
    Ok(Json(incident.await?.into()))
}

/// Says that somebody looks after an incident. Who said so first stays.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/incidents/{incident}/acknowledge", tag = "incidents",
    responses((status = 200, body = IncidentBody), Refused<(Editor, Missing)>),
)]
pub(super) async fn acknowledge(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: IdPath,
) -> Result<Json<IncidentBody>, Problem> {
    let (id, now) = (id_of(path)?, app.clock.now());
    let incident = app
        .control
        .acknowledge_incident(&member.project, id, &member.actor, now)
        .await?;
    Ok(Json(incident.into()))
}
