//! `/api/v1/projects/{project}/janks/…/handling`: what people decided about groups of janks.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use axum::Json;
use axum::extract::{RawQuery, State};
use form_urlencoded::parse;
use serde::{Deserialize, Serialize};
use unjank_database::{Commented, GroupDecision, HandledGroup, NewDecision};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;

use super::comments::{CommentBody, comments_on};
use super::jank_group::{GroupPath, group_id, group_of, title_of};
use crate::app::App;
use crate::http::api::object::Object;
use crate::http::api::openapi::{Conflict, Invalid, JsonBody, Missing, Refused, RunsQuery};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Editor, Member, Viewer};
use crate::http::api::turns::turn;
use crate::query::{GroupFilter, GroupStatus, reopened_groups};

/// The maximum number of groups in one request: as many as a table has.
const MOST_GROUPS: usize = 1_000;

/// What people decided about a group of janks, and whether the group came back.
#[derive(Serialize, ToSchema)]
#[schema(as = JankGroupHandling)]
pub(super) struct HandlingBody {
    /// A 64-bit number as text.
    group_id: String,
    state: GroupDecision,
    /// The app whose versions count. Missing if the group is open.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    app_id: String,
    /// The group comes back if a later version has it. Missing if the group is open.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    app_version: String,
    /// The first later version that has the group. Missing if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    came_back_in: Option<String>,
    /// A change must name the revision that it is based on. 0 if nobody has decided yet.
    revision: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_at: Option<UnixTime>,
}

impl HandlingBody {
    fn new(group: u64, handled: Option<HandledGroup>, came_back_in: Option<String>) -> Self {
        let group_id = group.to_string();
        match handled {
            None => Self {
                group_id,
                state: GroupDecision::Open,
                app_id: String::new(),
                app_version: String::new(),
                came_back_in: None,
                revision: 0,
                changed_by: None,
                changed_at: None,
            },
            Some(handled) => Self {
                group_id,
                state: handled.state,
                app_id: handled.app_id,
                app_version: handled.app_version,
                came_back_in,
                revision: handled.revision,
                changed_by: Some(handled.changed_by),
                changed_at: Some(handled.changed_at),
            },
        }
    }
}

/// The resolved and ignored ones of some groups. All others are open.
#[derive(Serialize, ToSchema)]
#[schema(as = JankGroupHandlings)]
pub(super) struct HandlingList {
    groups: Vec<HandlingBody>,
}

/// A group of janks with the comments on it.
#[derive(Serialize, ToSchema)]
#[schema(as = JankGroupDiscussion)]
pub(super) struct Discussion {
    handling: HandlingBody,
    /// Oldest first, at most 200.
    comments: Vec<CommentBody>,
}

/// Returns the resolved and ignored groups that `wanted` selects, and those of them that came back.
async fn closed_groups(
    app: &App,
    member: &Member,
    wanted: impl Fn(u64) -> bool,
) -> Result<(Vec<HandledGroup>, HashMap<u64, String>), Problem> {
    let mut closed = app.control.closed_groups(&member.project).await?;
    closed.retain(|one| wanted(one.group));
    let back = back_of(app, member, &closed).await?;
    Ok((closed, back))
}

/// Returns the groups that came back. Reads nothing if no group is closed.
async fn back_of(
    app: &App,
    member: &Member,
    closed: &[HandledGroup],
) -> Result<HashMap<u64, String>, Problem> {
    if closed.is_empty() {
        return Ok(HashMap::new());
    }
    let _turn = turn(app, &member.actor).await?;
    let now = app.clock.now();
    let versions = app.versions.latest(&member.project, now).await?;
    Ok(reopened_groups(&app.clickhouse, &member.project, closed, &versions, now).await?)
}

/// Returns the filter of the groups with a status. Groups that came back are open.
pub(crate) async fn groups_with(
    app: &App,
    member: &Member,
    status: GroupStatus,
) -> Result<GroupFilter, Problem> {
    let (closed, back) = closed_groups(app, member, |_| true).await?;
    let still = closed.iter().filter(|one| !back.contains_key(&one.group));
    let of = |state: GroupDecision| {
        let same = still.clone().filter(|one| one.state == state);
        same.map(|one| one.group).collect()
    };
    Ok(match status {
        GroupStatus::Open => GroupFilter::Except(still.map(|one| one.group).collect()),
        GroupStatus::Resolved => GroupFilter::Only(of(GroupDecision::Resolved)),
        GroupStatus::Ignored => GroupFilter::Only(of(GroupDecision::Ignored)),
    })
}

/// Returns what people decided about some groups of janks.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/janks/handling", tag = "janks",
    params(("group_id" = Vec<String>, Query, description = "The groups, at most 1,000.")),
    responses((status = 200, body = HandlingList), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    RawQuery(query): RawQuery,
) -> Result<Json<HandlingList>, Problem> {
    let mut wanted = BTreeSet::new();
    for (name, value) in parse(query.unwrap_or_default().as_bytes()) {
        if name == "group_id" {
            let id = group_id(&value);
            let id = id
                .ok_or_else(|| Problem::invalid_question("`group_id` must be the id of a group"))?;
            wanted.insert(id);
        }
    }
    if wanted.len() > MOST_GROUPS {
        return Err(Problem::invalid_question(format!(
            "`group_id` may appear at most {MOST_GROUPS} times"
        )));
    }
    let (closed, mut back) = closed_groups(&app, &member, |id| wanted.contains(&id)).await?;
    let groups = closed.into_iter().map(|one| {
        let came_back_in = back.remove(&one.group);
        HandlingBody::new(one.group, Some(one), came_back_in)
    });
    Ok(Json(HandlingList {
        groups: groups.collect(),
    }))
}

/// Returns what people decided about a group of janks, with their comments.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/janks/groups/{group}/handling", tag = "janks",
    responses((status = 200, body = Discussion), Refused<(Viewer, Missing, RunsQuery)>),
)]
pub(super) async fn read(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    path: GroupPath,
) -> Result<Json<Discussion>, Problem> {
    let group = group_of(path)?;
    let handled = app.control.handled_group(&member.project, group).await?;
    let on = Commented::JankGroup(group);
    Ok(Json(Discussion {
        handling: with_return(&app, &member, group, handled).await?,
        comments: comments_on(&app, &member.project, on).await?,
    }))
}

/// Adds whether the group came back.
async fn with_return(
    app: &App,
    member: &Member,
    group: u64,
    handled: Option<HandledGroup>,
) -> Result<HandlingBody, Problem> {
    let closed = handled
        .iter()
        .filter(|one| one.state != GroupDecision::Open);
    let closed: Vec<HandledGroup> = closed.cloned().collect();
    let came_back_in = back_of(app, member, &closed).await?.remove(&group);
    Ok(HandlingBody::new(group, handled, came_back_in))
}

/// A decision about a group of janks.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = JankGroupDecision)]
pub(super) struct Decision {
    state: GroupDecision,
    /// The app whose versions count. Required for `resolved` and `ignored`.
    #[serde(default)]
    #[schema(max_length = 200)]
    app_id: String,
    /// The group comes back if a later version has it. Required for `resolved` and `ignored`.
    #[serde(default)]
    #[schema(max_length = 200)]
    app_version: String,
    /// The revision that the decision is based on, 0 if nobody has decided yet.
    expected_revision: i64,
}

/// Resolves, ignores or reopens a group of janks. Fails if another person decided in the meantime.
#[utoipa::path(
    put, path = "/api/v1/projects/{project}/janks/groups/{group}/handling", tag = "janks",
    request_body = Decision,
    responses((status = 200, body = HandlingBody), Refused<(Editor, Missing, JsonBody, Conflict, Invalid, RunsQuery)>),
)]
pub(super) async fn decide(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: GroupPath,
    Object(decision, ..): Object<Decision>,
) -> Result<Json<HandlingBody>, Problem> {
    let group = group_of(path)?;
    let new = NewDecision {
        group,
        title: title_of(&app, &member, group).await?,
        state: decision.state,
        app_id: decision.app_id,
        app_version: decision.app_version,
        expected_revision: decision.expected_revision,
    };
    let now = app.clock.now();
    let decided = app
        .control
        .decide_on_group(&member.project, new, &member.actor, now);
    let decided = Some(decided.await?);
    Ok(Json(with_return(&app, &member, group, decided).await?))
}
