//! `/api/v1/projects/{project}/forward`: what the project forwards to another collector. Header values are write-only.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use unjank_database::{ControlError, SavedForward};
use unjank_foundation::forward_document::{Compression, ForwardDocument, SpanRule};
use utoipa::ToSchema;

use crate::app::App;
use crate::forward::{Forward, ForwardError, ForwardState, Kind, secret_context};
use crate::http::api::object::{Exact, Object};
use crate::http::api::openapi::{Invalid, JsonBody, Refused};
use crate::http::api::problem::Problem;
use crate::http::api::roles::Admin;

impl From<ForwardError> for Problem {
    fn from(error: ForwardError) -> Self {
        invalid(error.to_string())
    }
}

fn invalid(error: String) -> Problem {
    ControlError::Invalid(error).into()
}

/// What a project forwards, and what became of it.
#[derive(Serialize, ToSchema)]
#[schema(as = Forward)]
pub(super) struct ForwardBody {
    endpoint: String,
    spans: Vec<SpanRule>,
    incidents: bool,
    compression: Compression,
    /// The names of the headers that requests to the collector have.
    header_names: Vec<String>,
    /// The numbers of this server.
    state: ForwardState,
}

/// Returns what the project forwards to another collector, and what became of it since this server started.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/forward", tag = "projects",
    operation_id = "forward",
    responses((status = 200, body = ForwardBody), Refused<(Admin,)>),
)]
pub(super) async fn read(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
) -> Result<Json<ForwardBody>, Problem> {
    let saved = app.control.forward(&member.project).await?;
    let ForwardDocument {
        endpoint,
        spans,
        incidents,
        compression,
    } = saved.document;
    Ok(Json(ForwardBody {
        endpoint,
        spans,
        incidents,
        compression,
        header_names: saved.header_names,
        state: app.intake.forward.state(&member.project),
    }))
}

/// What to forward. A missing field has its default, except for `headers`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = ForwardChange)]
pub(crate) struct Change {
    /// The address of the collector, as in `OTEL_EXPORTER_OTLP_ENDPOINT`: the server adds `/v1/traces` and `/v1/logs`. Empty: nothing is
    /// forwarded.
    #[serde(default)]
    #[schema(max_length = 500, example = "https://collector.example.com")]
    endpoint: String,
    /// A span is forwarded if one of the rules matches it. At most 20.
    #[serde(default)]
    #[schema(max_items = 20)]
    spans: Vec<SpanRule>,
    /// Whether the beginnings and ends of incidents are forwarded, as log records.
    #[serde(default)]
    incidents: bool,
    /// How the requests are compressed. `gzip` by default.
    #[serde(default)]
    compression: Compression,
    /// Headers of the requests, such as `authorization`: at most 10. Stored encrypted. Missing: the saved ones stay.
    headers: Option<BTreeMap<String, String>>,
}

/// Sets what the project forwards to another collector. The change takes effect within a second, for events that arrive from then on.
#[utoipa::path(
    put, path = "/api/v1/projects/{project}/forward", tag = "projects",
    operation_id = "set_forward",
    request_body = Change,
    responses((status = 204), Refused<(Admin, JsonBody, Invalid)>),
)]
pub(super) async fn save(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    Object(change, ..): Exact<Change>,
) -> Result<StatusCode, Problem> {
    let project = &member.project;
    let known = app.control.forward(project).await?;
    let context = secret_context(project);
    let open = |sealed: &str| app.secret.open(&context, sealed);
    let document = ForwardDocument {
        endpoint: change.endpoint.trim().to_owned(),
        spans: change.spans,
        incidents: change.incidents,
        compression: change.compression,
    };
    let headers = match change.headers {
        Some(headers) => headers,
        None if document.endpoint.is_empty() => BTreeMap::new(),
        None if !known.sealed.is_empty()
            && changes_origin(&known.document.endpoint, &document.endpoint) =>
        {
            return Err(invalid(
                "the saved headers belong to the server of the old `endpoint`: send `headers` again, or {}"
                    .to_owned(),
            ));
        }
        None => known.headers(open).map_err(invalid)?,
    };
    if let Some(forward) = Forward::new(document.clone(), &headers)? {
        for kind in [Kind::Spans, Kind::Incidents] {
            app.notifier
                .outbound
                .target(&forward.url(kind))
                .map_err(invalid)?;
        }
    }
    let sealed = if headers.is_empty() {
        String::new()
    } else {
        let text = serde_json::to_string(&headers).map_err(|error| invalid(error.to_string()))?;
        let sealed = app.secret.seal(&context, &text);
        sealed.map_err(|error| ControlError::Unavailable(error.to_string()))?
    };
    let saved = SavedForward {
        document,
        header_names: headers.into_keys().collect(),
        sealed,
    };
    if saved.document.endpoint != known.document.endpoint {
        app.intake.forward.forget_messages(project);
    }
    let now = app.clock.now();
    app.control
        .set_forward(project, &saved, &member.actor, now)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

fn changes_origin(one: &str, other: &str) -> bool {
    let origin = |url: &str| Url::parse(url).map(|url| url.origin()).ok();
    origin(one) != origin(other)
}
