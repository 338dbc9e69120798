//! `/api/v1/projects/{project}/config/kill` and `…/switch-on`: the kill switch, whether it was used, and the way back.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::configurations::Revision;
use crate::access::kill_switch;
use crate::app::App;
use crate::http::api::object::Object;
use crate::http::api::openapi::{Conflict, Faulty, Invalid, JsonBody, Refused};
use crate::http::api::problem::Problem;
use crate::http::api::revisions::Signature;
use crate::http::api::roles::{Editor, Viewer};

/// How many people are named who may switch a project on.
const MOST_NAMES: u32 = 5;

/// Whether a project is off.
#[derive(Serialize, ToSchema)]
pub(super) struct KillSwitch {
    /// `null` if the project is on.
    switched_off: Option<SwitchedOff>,
}

/// A project that is off: its devices collect and send nothing.
#[derive(Serialize, ToSchema)]
struct SwitchedOff {
    /// The revision that switched the project off.
    #[serde(flatten)]
    signature: Signature,
    /// The name of the author. `null` if it is not known.
    author_name: Option<String>,
    /// The overrides that enable collection for some devices nevertheless.
    except: Vec<String>,
    /// Some of the people who may switch the project on again.
    editors: Vec<String>,
}

/// Returns whether the project is off, since when, and by whom.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/config/kill", tag = "configurations",
    operation_id = "kill_switch",
    responses((status = 200, body = KillSwitch), Refused<(Viewer,)>),
)]
pub(super) async fn state(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<KillSwitch>, Problem> {
    let now = app.clock.now();
    let found = kill_switch::switched_off(&app.control, &member.project, now).await?;
    let Some(off) = found else {
        return Ok(Json(KillSwitch { switched_off: None }));
    };
    let author = off.since.author.clone();
    let id = author.split_once(':').map_or("", |(_, id)| id);
    let author_name = app.control.names_of([id]).await?.remove(id);
    let editors = app.control.editors_of(&member.project, MOST_NAMES).await?;
    Ok(Json(KillSwitch {
        switched_off: Some(SwitchedOff {
            signature: off.since.into(),
            author_name,
            except: off.except,
            editors,
        }),
    }))
}

/// The reason for switching a project off or on.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SwitchReason {
    /// Only the first 1,000 characters are kept.
    #[serde(default)]
    note: String,
}

/// Disables collection on every device of the project, even while another person saves a revision. Overrides that set `enabled` are disabled;
/// all other overrides stay.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/config/kill", tag = "configurations",
    request_body = SwitchReason,
    responses((status = 201, body = Revision), Refused<(Editor, JsonBody, Faulty, Conflict, Invalid)>),
)]
pub(super) async fn kill(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    Object(SwitchReason { note }, ..): Object<SwitchReason>,
) -> Result<(StatusCode, Json<Revision>), Problem> {
    let now = app.clock.now();
    let saved = kill_switch::kill(&app.control, &member.project, &note, &member.actor, now).await?;
    Ok((StatusCode::CREATED, Json(Revision::saved(saved))))
}

/// Enables collection again, with the overrides that were disabled together with it. Keeps changes that were saved since.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/config/switch-on", tag = "configurations",
    request_body = SwitchReason,
    responses((status = 201, body = Revision), Refused<(Editor, JsonBody, Faulty, Conflict, Invalid)>),
)]
pub(super) async fn switch_on(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    Object(SwitchReason { note }, ..): Object<SwitchReason>,
) -> Result<(StatusCode, Json<Revision>), Problem> {
    let now = app.clock.now();
    let saved =
        kill_switch::switch_on(&app.control, &member.project, &note, &member.actor, now).await?;
    Ok((StatusCode::CREATED, Json(Revision::saved(saved))))
}
