//! `/api/v1/projects/{project}/incidents`: the incidents of a project.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use unjank_database::{
    Assignee, Commented, ControlError, Incident, IncidentFilter, IncidentKind, IncidentState,
    Severity,
};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::alerts::{ActionOutcome, Evidence};
use crate::app::App;
use crate::http::api::ids::{IdPath, id_of};
use crate::http::api::object::Object;
use crate::http::api::openapi::{Invalid, JsonBody, Missing, QueryString, Refused, incident_state};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Editor, Member, Viewer};
use crate::http::triage::comments::{CommentBody, comments_on};

const PAGE: u32 = 50;

/// A person who may see the project.
#[derive(Serialize, ToSchema)]
#[schema(as = Assignee)]
pub(super) struct AssigneeBody {
    user: Uuid,
    name: String,
}

impl From<Assignee> for AssigneeBody {
    fn from(assignee: Assignee) -> Self {
        Self {
            user: assignee.user,
            name: assignee.name,
        }
    }
}

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
    /// The person who works on the incident. Missing if there is none, or if the person may no longer see the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    assignee: Option<AssigneeBody>,
    /// The change that the incident made to the remote configuration, if its rule has an action.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ActionOutcome>)]
    action: Option<Value>,
    /// Oldest first, at most 200. Missing in lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    comments: Option<Vec<CommentBody>>,
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
            assignee: incident.assignee.map(AssigneeBody::from),
            action: incident.action.map(|text| text.read()).transpose()?,
            comments: None,
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
    /// Only incidents that are assigned to this person.
    assignee: Option<Uuid>,
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
        assignee: page.assignee,
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

/// Returns an incident with its comments.
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
    with_comments(&app, incident.await?).await
}

async fn with_comments(app: &App, incident: Incident) -> Result<Json<IncidentBody>, Problem> {
    let on = Commented::Incident(incident.id);
    let comments = comments_on(app, &incident.project, on).await?;
    Ok(Json(IncidentBody {
        comments: Some(comments),
        ..IncidentBody::try_from(incident)?
    }))
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
    with_comments(app, incident.await?).await
}

/// The person who works on an incident.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Assignment {
    /// A person who may see the project. `null` for nobody.
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(required = true)]
    user: Option<Uuid>,
}

/// Assigns an incident to a person who may see the project, or to nobody.
#[utoipa::path(
    put, path = "/api/v1/projects/{project}/incidents/{incident}/assignee", tag = "incidents",
    request_body = Assignment,
    responses((status = 200, body = IncidentBody), Refused<(Editor, Missing, JsonBody, Invalid)>),
)]
pub(super) async fn assign(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: IdPath,
    Object(Assignment { user }, ..): Object<Assignment>,
) -> Result<Json<IncidentBody>, Problem> {
    let (incident, now) = ((member.project.as_str(), id_of(path)?), app.clock.now());
    let incident = app
        .control
        .assign_incident(incident, user, &member.actor, now);
    with_comments(&app, incident.await?).await
}

/// The people to whom incidents can be assigned, by name, at most 1,000.
#[derive(Serialize, ToSchema)]
pub(super) struct AssigneeList {
    assignees: Vec<AssigneeBody>,
}

/// Lists the people who may see the project, to whom incidents can be assigned.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/assignees", tag = "incidents",
    responses((status = 200, body = AssigneeList), Refused<(Editor,)>),
)]
pub(super) async fn assignees(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
) -> Result<Json<AssigneeList>, Problem> {
    let assignees = app.control.assignees(&member.project).await?;
    let assignees = assignees.into_iter().map(AssigneeBody::from).collect();
    Ok(Json(AssigneeList { assignees }))
}
