//! `/api/v1/projects/{project}/mutes`: periods in which no incidents are opened.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use unjank_database::{ControlError, JsonText, Mute, NewMute};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::http::api::ids::{IdPath, id_of};
use crate::http::api::object::Object;
use crate::http::api::openapi::{Invalid, JsonBody, Missing, Refused};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Editor, Viewer};

/// A period in which no incidents are opened. Open incidents still end.
#[derive(Serialize, ToSchema)]
#[schema(as = Mute)]
pub(super) struct MuteBody {
    id: Uuid,
    /// Missing if the mute covers all rules of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<Uuid>,
    /// Missing if the mute covers all groups.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<BTreeMap<String, String>>)]
    group: Option<Value>,
    starts_at: UnixTime,
    ends_at: UnixTime,
    reason: String,
    created_by: String,
    created_at: UnixTime,
}

impl TryFrom<Mute> for MuteBody {
    type Error = ControlError;

    fn try_from(mute: Mute) -> Result<Self, ControlError> {
        Ok(Self {
            id: mute.id,
            rule: mute.rule,
            group: mute.group_key.map(|key| key.read()).transpose()?,
            starts_at: mute.starts_at,
            ends_at: mute.ends_at,
            reason: mute.reason,
            created_by: mute.created_by,
            created_at: mute.created_at,
        })
    }
}

/// Mutes that have not ended, earliest first.
#[derive(Serialize, ToSchema)]
pub(super) struct MuteList {
    mutes: Vec<MuteBody>,
}

/// Lists the mutes of a project that have not ended.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/mutes", tag = "mutes",
    responses((status = 200, body = MuteList), Refused<(Viewer,)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<MuteList>, Problem> {
    let mutes = app.control.mutes(&member.project, app.clock.now()).await?;
    let mutes = mutes
        .into_iter()
        .map(MuteBody::try_from)
        .collect::<Result<_, _>>()?;
    Ok(Json(MuteList { mutes }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewMute)]
pub(super) struct NewMuteBody {
    /// The rule to mute. Default: all rules of the project.
    #[serde(default)]
    rule: Option<Uuid>,
    /// The group to mute, as in an incident. Default: all groups.
    #[serde(default)]
    group: Option<BTreeMap<String, String>>,
    /// Default: now.
    #[serde(default)]
    starts_at: Option<UnixTime>,
    /// At most a year after the start.
    ends_at: UnixTime,
    /// 1 to 200 characters.
    #[schema(min_length = 1, max_length = 200)]
    reason: String,
}

/// Mutes a project, a rule or a group of a rule.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/mutes", tag = "mutes",
    request_body = NewMuteBody,
    responses((status = 201, body = MuteBody), Refused<(Editor, JsonBody, Missing, Invalid)>),
)]
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    Object(new, ..): Object<NewMuteBody>,
) -> Result<(StatusCode, Json<MuteBody>), Problem> {
    let now = app.clock.now();
    let mute = NewMute {
        project: member.project,
        rule: new.rule,
        group_key: new.group.as_ref().map(JsonText::new),
        starts_at: new.starts_at.unwrap_or(now),
        ends_at: new.ends_at,
        reason: new.reason,
    };
    let made = app.control.create_mute(mute, &member.actor, now).await?;
    Ok((StatusCode::CREATED, Json(made.try_into()?)))
}

/// Ends a mute now.
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}/mutes/{mute}", tag = "mutes",
    responses((status = 204), Refused<(Editor, Missing)>),
)]
pub(super) async fn end(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: IdPath,
) -> Result<StatusCode, Problem> {
    let now = app.clock.now();
    app.control
        .end_mute(&member.project, id_of(path)?, &member.actor, now)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
