//! `POST /api/v1/projects/{project}/config/device`: the configuration of one device, and the reasons for it.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use unjank_foundation::clock::UnixTime;
use unjank_protocol::config::Document;
use unjank_remote_config::{Attributes, Configuration, ExplainedKey, ExplainedOverride};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::access::one_device::{Choice, LastReport, Question, explained, fill, searched_periods};
use crate::app::App;
use crate::http::api::object::{DOCUMENT, Object};
use crate::http::api::openapi::{Faulty, JsonBody, Missing, Overloaded, Refused, Stored};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Member, Viewer};
use crate::http::api::turns::{slow_turn, turn};
use crate::store::SeenInstall;

/// A device, and the configuration to resolve for it.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeviceQuestion {
    /// The attributes of the device, as in `GET /v1/config`. If the install sent a batch in the last 7 days, missing attributes are those that
    /// it last reported, except the network. An empty text means that the attribute is unknown; leave out an unknown `build`.
    #[serde(default, deserialize_with = "known_only")]
    attributes: Attributes,
    /// A saved revision; 0: the defaults. If it is missing, the configuration is the one that devices get now.
    #[serde(default)]
    #[schema(minimum = 0)]
    revision: Option<i64>,
    /// A configuration that is not saved, in place of a revision.
    #[serde(default)]
    #[schema(value_type = Option<Configuration>)]
    configuration: Option<Value>,
}

/// Reads attributes. A misspelt name is refused, because the answer would be that of another device.
fn known_only<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Attributes, D::Error> {
    let given: Map<String, Value> = Map::deserialize(deserializer)?;
    let known = serde_json::to_value(Attributes::default()).map_err(D::Error::custom)?;
    if let Some(name) = given.keys().find(|name| known.get(name.as_str()).is_none()) {
        let name: String = name.chars().take(128).collect();
        return Err(D::Error::custom(format!("unknown attribute `{name}`")));
    }
    // An empty text would be read as a missing build, which the last report fills in.
    if given.get("build").is_some_and(|build| build == "") {
        return Err(D::Error::custom(
            "`build` is empty: leave out an unknown one",
        ));
    }
    Attributes::deserialize(Value::Object(given)).map_err(D::Error::custom)
}

/// The configuration of one device, and the reasons for it.
#[derive(Serialize, ToSchema)]
pub(super) struct DeviceConfiguration {
    /// The revision of the answer. For a draft, the current one.
    revision: u64,
    /// The revision that devices get now.
    current_revision: u64,
    /// The attributes that the conditions were evaluated with.
    attributes: Attributes,
    /// What the install last reported. `null` if it sent no batch in the last 7 days.
    last_report: Option<InstallReport>,
    /// The document that the device gets from `GET /v1/config`.
    document: Document,
    /// The `ETag` of the document.
    etag: String,
    /// When the first of the applied overrides expires. `null` if none does.
    changes_at: Option<UnixTime>,
    /// Every value of the document, in its order. Each entry of `monitors` and `toggles` is one value.
    keys: Vec<ExplainedKey>,
    /// In the order of the configuration, including overrides that are disabled.
    overrides: Vec<ExplainedOverride>,
}

/// What an install last reported.
#[derive(Serialize, ToSchema)]
struct InstallReport {
    /// When its latest batch arrived.
    received_at: UnixTime,
    /// The latest revision that it ran. 0: the defaults, or an SDK that does not report its revision.
    revision: u64,
    /// The names of the attributes that come from its batches.
    filled: Vec<String>,
}

impl From<LastReport> for InstallReport {
    fn from(report: LastReport) -> Self {
        Self {
            received_at: report.received_at,
            revision: report.revision,
            filled: report.filled,
        }
    }
}

/// Returns the configuration of one device, where each of its values comes from, and why each override applies or not. Saves nothing.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/config/device", tag = "configurations",
    operation_id = "device",
    request_body = DeviceQuestion,
    responses((status = 200, body = DeviceConfiguration), Refused<(Viewer, JsonBody, Missing, Faulty, Overloaded, Stored)>),
)]
pub(super) async fn ask(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Object(question, ..): Object<DeviceQuestion, DOCUMENT>,
) -> Result<Json<DeviceConfiguration>, Problem> {
    let choice = match (question.revision, question.configuration) {
        (None, None) => Choice::Served,
        (Some(revision), None) => Choice::Revision(revision),
        (None, Some(draft)) => Choice::Draft(draft),
        (Some(_), Some(_)) => {
            let detail = "send `revision` or `configuration`, not both";
            return Err(Problem::unfit_body(detail));
        }
    };
    let served = app.access.project(&member.project);
    let served = served.ok_or_else(Problem::no_project)?;
    let current_revision = served.configuration.revision();
    let now = app.clock.now();
    let mut attributes = question.attributes.canonical();
    let install = attributes.install_id.as_deref();
    let install = install.and_then(|id| Uuid::try_parse(id).ok());
    let seen = match install {
        Some(install) => last_seen(&app, &member, install, now).await?,
        None => None,
    };
    let last_report = seen.map(|seen| fill(&mut attributes, seen));
    let question = Question {
        project: member.project,
        choice,
        attributes: attributes.clone(),
        now,
    };
    let found = explained(&app.control, served, question, &member.actor).await?;
    let resolved = found.resolved;
    Ok(Json(DeviceConfiguration {
        revision: resolved.document.revision,
        current_revision,
        attributes,
        last_report: last_report.map(InstallReport::from),
        document: resolved.document.clone(),
        etag: resolved.etag.to_string(),
        changes_at: resolved.changes_at,
        keys: found.keys,
        overrides: found.overrides,
    }))
}

/// Returns what an install last reported, if it sent a batch in the last 7 days.
async fn last_seen(
    app: &App,
    member: &Member,
    install: Uuid,
    now: UnixTime,
) -> Result<Option<SeenInstall>, Problem> {
    let [last_day, other_days] = searched_periods(now);
    let (clickhouse, project) = (&app.clickhouse, &member.project);
    let turn_of_query = turn(app, &member.actor).await?;
    let seen = clickhouse.seen_install(project, install, last_day).await?;
    if seen.is_some() {
        return Ok(seen);
    }
    // Reads as much as a preview, because ClickHouse has no index of installs.
    drop(turn_of_query);
    let _turn = slow_turn(app, &member.actor).await?;
    let seen = clickhouse.seen_install(project, install, other_days);
    Ok(seen.await?)
}
