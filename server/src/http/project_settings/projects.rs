//! `/api/v1/projects`: the owners of keys, configurations and events.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use unjank_database::{ControlError, DeviceTokens, Project, ProjectSettings, Quotas, SignalQuotas};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;

use crate::app::App;
use crate::http::api::object::{Object, no_list};
use crate::http::api::openapi::{Exists, Invalid, JsonBody, Refused, sets};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Admin, IsOperator, Operator};

/// The limits of a project or a key. A missing limit means no limit.
#[derive(Clone, Copy, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Quotas)]
pub(super) struct QuotasBody {
    #[serde(default)]
    #[schema(maximum = 9_223_372_036_854_775_807u64)]
    events_per_second: Option<u64>,
    #[serde(default)]
    #[schema(maximum = 9_223_372_036_854_775_807u64)]
    bytes_per_day: Option<u64>,
}

impl From<QuotasBody> for Quotas {
    fn from(body: QuotasBody) -> Self {
        Self {
            events_per_second: body.events_per_second,
            bytes_per_day: body.bytes_per_day,
        }
    }
}

impl From<Quotas> for QuotasBody {
    fn from(quotas: Quotas) -> Self {
        Self {
            events_per_second: quotas.events_per_second,
            bytes_per_day: quotas.bytes_per_day,
        }
    }
}

/// Events per second by signal. 0 blocks a signal; a signal that is missing or `null` has no limit. All signals except `sdk_health`.
type SignalQuotasBody = BTreeMap<String, Option<u64>>;

fn signal_quotas(body: &SignalQuotasBody) -> Result<SignalQuotas, ControlError> {
    SignalQuotas::new(body.iter().map(|(name, most)| (name.as_str(), *most)))
}

#[derive(Serialize, ToSchema)]
#[schema(as = Project)]
pub(super) struct ProjectBody {
    id: String,
    name: String,
    quotas: QuotasBody,
    signal_quotas: BTreeMap<&'static str, u64>,
    /// `optional` or `required`.
    #[schema(schema_with = sets::device_tokens)]
    device_tokens: &'static str,
    created_at: UnixTime,
}

impl From<Project> for ProjectBody {
    fn from(project: Project) -> Self {
        let settings = project.settings;
        let signals = settings.signal_quotas.iter();
        Self {
            id: project.id,
            name: settings.name,
            quotas: settings.quotas.into(),
            signal_quotas: signals
                .map(|(signal, most)| (signal.as_str(), most))
                .collect(),
            device_tokens: settings.device_tokens.as_str(),
            created_at: project.created_at,
        }
    }
}

/// All projects.
#[derive(Serialize, ToSchema)]
pub(super) struct ProjectList {
    projects: Vec<ProjectBody>,
}

/// Lists all projects.
#[utoipa::path(
    get, path = "/api/v1/projects", tag = "projects",
    responses((status = 200, body = ProjectList), Refused<(Operator,)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Operator(_): Operator,
) -> Result<Json<ProjectList>, Problem> {
    let projects = app.control.projects().await?;
    let projects = projects.into_iter().map(ProjectBody::from).collect();
    Ok(Json(ProjectList { projects }))
}

/// Returns a project with its quotas.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}", tag = "projects",
    responses((status = 200, body = ProjectBody), Refused<(Admin,)>),
)]
pub(super) async fn one(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
) -> Result<Json<ProjectBody>, Problem> {
    let project = app.control.project(&member.project).await?;
    Ok(Json(project.into()))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewProject {
    /// 1 to 63 lower-case letters, digits and dashes. Cannot be changed later.
    #[schema(pattern = r"^[a-z0-9][a-z0-9-]{0,62}$")]
    id: String,
    /// 1 to 200 characters. Default: the id.
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
    )]
    name: Option<String>,
    #[serde(default, deserialize_with = "no_list")]
    quotas: QuotasBody,
    #[serde(default)]
    #[schema(schema_with = sets::signal_quotas)]
    signal_quotas: SignalQuotasBody,
}

/// Creates a project.
#[utoipa::path(
    post, path = "/api/v1/projects", tag = "projects",
    request_body = NewProject,
    responses((status = 201, body = ProjectBody), Refused<(Operator, JsonBody, Invalid, Exists)>),
)]
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Operator(actor): Operator,
    Object(new, ..): Object<NewProject>,
) -> Result<(StatusCode, Json<ProjectBody>), Problem> {
    let settings = ProjectSettings {
        name: new.name.unwrap_or_else(|| new.id.clone()),
        quotas: new.quotas.into(),
        signal_quotas: signal_quotas(&new.signal_quotas)?,
        device_tokens: DeviceTokens::Optional,
    };
    let now = app.clock.now();
    let project = app
        .control
        .create_project(&new.id, settings, &actor, now)
        .await?;
    Ok((StatusCode::CREATED, Json(project.into())))
}

/// Missing fields stay unchanged. `quotas` and `signal_quotas` are each replaced as a whole.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProjectPatch {
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
    )]
    name: Option<String>,
    #[serde(default, deserialize_with = "no_list")]
    quotas: Option<QuotasBody>,
    #[schema(schema_with = sets::signal_quotas_or_null)]
    signal_quotas: Option<SignalQuotasBody>,
    /// `required`: an ingest key alone is not accepted if the project has an active device key. `optional`: an ingest key is enough.
    #[schema(schema_with = sets::device_tokens_or_null)]
    device_tokens: Option<String>,
}

/// Changes a project's name, its quotas, or whether its devices must send tokens. Missing fields stay unchanged.
///
/// Only an admin of the whole installation may raise or remove a limit in `quotas`.
#[utoipa::path(
    patch, path = "/api/v1/projects/{project}", tag = "projects",
    request_body = ProjectPatch,
    responses((status = 200, body = ProjectBody), Refused<(Admin, JsonBody, Invalid)>),
)]
pub(super) async fn update(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    IsOperator(is_operator): IsOperator,
    Object(patch, ..): Object<ProjectPatch>,
) -> Result<Json<ProjectBody>, Problem> {
    let signals = patch
        .signal_quotas
        .as_ref()
        .map(signal_quotas)
        .transpose()?;
    let tokens = patch.device_tokens.map(|name| device_tokens(&name));
    let tokens = tokens.transpose()?;
    let change = |known: ProjectSettings| {
        let quotas = patch.quotas.map_or(known.quotas, Quotas::from);
        if quotas.allow_more_than(&known.quotas) && !is_operator {
            return Err(Problem::role("admin of the installation"));
        }
        Ok(ProjectSettings {
            name: patch.name.unwrap_or(known.name),
            quotas,
            signal_quotas: signals.unwrap_or(known.signal_quotas),
            device_tokens: tokens.unwrap_or(known.device_tokens),
        })
    };
    let now = app.clock.now();
    let project = app
        .control
        .update_project(&member.project, change, &member.actor, now)
        .await?;
    Ok(Json(project.into()))
}

fn device_tokens(name: &str) -> Result<DeviceTokens, ControlError> {
    let unknown = "`device_tokens` must be `optional` or `required`";
    name.parse()
        .map_err(|_| ControlError::Invalid(unknown.to_owned()))
}
