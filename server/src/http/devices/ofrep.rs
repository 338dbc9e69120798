//! OFREP 0.3, `POST /ofrep/v1/evaluate/flags[/{key}]`: the configuration of a device as flags, for OpenFeature clients.

use std::borrow::Cow;
use std::sync::Arc;

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_TYPE, ETAG};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};
use unjank_foundation::shares::Memory;
use unjank_protocol::whole_number;
use unjank_remote_config::{Attributes, Reason, Resolved, etag};
use utoipa::openapi::schema::SchemaType;
use utoipa::openapi::{RefOr, Schema, Type};
use utoipa::{Number, ToSchema};

use super::device::{Device, own_attributes};
use super::remote_config::is_known;
use crate::access::Caller;
use crate::app::App;
use crate::http::api::body::{Content, receive};
use crate::http::api::openapi::{
    ContentEncoding, Failures, IfNoneMatch, NotModified, OwnApp, Refused as Problems, UploadedBody,
};
use crate::http::api::problem::Problem;
use crate::ingest;
use crate::intake::Upload;

/// The largest body, as sent and decompressed: a context is a few hundred bytes.
const BODY: usize = 64 << 10;

/// Clients of OpenFeature write names as their languages do, so both forms are read.
const OTHER_NAMES: [(&str, &str); 8] = [
    ("appId", "app_id"),
    ("appVersion", "app_version"),
    ("osName", "os_name"),
    ("osVersion", "os_version"),
    ("deviceModel", "device_model"),
    ("deviceClass", "device_class"),
    ("sdkVersion", "sdk_version"),
    ("userId", "user_id"),
];

/// The attributes of a device, with the install id as `targetingKey`. Other members are ignored, because they belong to other flags.
#[derive(Debug, Default)]
struct Context(Attributes);

impl utoipa::PartialSchema for Context {
    fn schema() -> RefOr<Schema> {
        let RefOr::T(Schema::Object(mut context)) = Attributes::schema() else {
            return Attributes::schema();
        };
        let doc = "The attributes of a device. A whole number is read as its text, and the text of one as `build`. \
                   Other members are ignored, because they belong to other flags.";
        context.description = Some(doc.to_owned());
        let install_id = context.properties.remove("install_id");
        // `Context::of` and `Attributes` read both.
        for property in context.properties.values_mut() {
            if let RefOr::T(Schema::Object(property)) = property {
                let types = [Type::String, Type::Integer, Type::Null];
                property.schema_type = SchemaType::from_iter(types);
                property.minimum = Some(Number::Int(0));
                property.format = None;
            }
        }
        if let Some(RefOr::T(Schema::Object(mut key))) = install_id {
            key.description = Some("The install id.".to_owned());
            let key = RefOr::T(Schema::Object(key));
            context.properties.insert("targetingKey".to_owned(), key);
        }
        RefOr::T(Schema::Object(context))
    }
}

impl ToSchema for Context {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("EvaluationContext")
    }
}

impl Context {
    /// Reads a request's body.
    fn read(bytes: &[u8]) -> Result<Self, Failure> {
        let body = json(&ingest::Body::new(bytes))
            .map_err(|error| Failure::new(ErrorCode::ParseError, format!("not JSON: {error}")))?;
        let Value::Object(mut body) = body else {
            let detail = "the body is not a JSON object";
            return Err(Failure::new(ErrorCode::ParseError, detail));
        };
        match body.remove("context") {
            None | Some(Value::Null) => Ok(Self::default()),
            Some(Value::Object(context)) => Self::of(context),
            Some(_) => {
                let detail = "`context` is not a JSON object";
                Err(Failure::new(ErrorCode::InvalidContext, detail))
            }
        }
    }

    fn of(mut context: Map<String, Value>) -> Result<Self, Failure> {
        let invalid = |detail: String| Failure::new(ErrorCode::InvalidContext, detail);
        let install_id = match context.remove("targetingKey") {
            None | Some(Value::Null) => None,
            Some(Value::String(key)) => Some(key),
            Some(_) => return Err(invalid("`targetingKey` is not a string".to_owned())),
        };
        // The protocol has its own name for the install id, so this one belongs to other flags.
        context.remove("install_id");
        for (written, name) in OTHER_NAMES {
            let Some(value) = context.remove(written) else {
                continue;
            };
            match context.get(name).filter(|known| !is_missing(known)) {
                Some(known) if is_missing(&value) || *known == value => {}
                Some(_) => return Err(invalid(format!("duplicate field `{name}`"))),
                None => {
                    context.insert(name.to_owned(), value);
                }
            }
        }
        for (_, value) in context.iter_mut().filter(|(name, _)| *name != "build") {
            whole_number_to_text(value);
        }
        let read = serde_path_to_error::deserialize(Value::Object(context));
        let attributes: Attributes = read.map_err(|error| invalid(error.to_string()))?;
        Ok(Self(Attributes {
            install_id,
            ..attributes
        }))
    }
}

/// Whether a client has written that it does not know an attribute.
fn is_missing(value: &Value) -> bool {
    value.is_null() || value.as_str() == Some("")
}

/// Versions and ids may be whole numbers. A number with a fraction stays and is refused, because a version `4.10` is read as `4.1`.
fn whole_number_to_text(value: &mut Value) {
    if let Value::Number(number) = value
        && let Some(digits) = whole_number(&number.to_string())
    {
        *value = Value::String(digits.to_string());
    }
}

/// Reads a body, repaired if it cannot be read as it is: other flags put texts into the context that unjank does not need.
fn json(body: &ingest::Body<'_>) -> Result<Value, serde_json::Error> {
    serde_json::from_slice(body.bytes()).or_else(|error| match body.repaired() {
        Some(text) => serde_json::from_str(text),
        None => Err(error),
    })
}

#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[schema(as = FlagErrorCode)]
pub(super) enum ErrorCode {
    ParseError,
    TargetingKeyMissing,
    InvalidContext,
    FlagNotFound,
    General,
}

/// The body of a request.
#[derive(ToSchema)]
#[expect(
    dead_code,
    reason = "the body is read as JSON first, to distinguish the protocol's errors"
)]
struct Evaluation {
    /// The attributes of the device.
    context: Option<Context>,
}

/// Why there is no flag, in the format of the protocol.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = FlagFailure)]
pub(crate) struct Failure {
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    error_code: ErrorCode,
    error_details: String,
    #[serde(skip)]
    status: StatusCode,
}

impl Failure {
    fn new(error_code: ErrorCode, error_details: impl Into<String>) -> Self {
        Self {
            key: None,
            error_code,
            error_details: error_details.into(),
            status: match error_code {
                ErrorCode::FlagNotFound => StatusCode::NOT_FOUND,
                _ => StatusCode::BAD_REQUEST,
            },
        }
    }
}

/// An answer without flags: an error of the protocol, or a problem if the protocol leaves the error to HTTP.
pub(crate) enum Refused {
    Failure(Failure),
    Problem(Problem),
}

impl Refused {
    fn about(self, key: &str) -> Self {
        match self {
            Self::Failure(failure) => Self::Failure(Failure {
                key: Some(key.to_owned()),
                ..failure
            }),
            problem @ Self::Problem(_) => problem,
        }
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self::Failure(failure)
    }
}

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        let failure = match problem.status {
            StatusCode::BAD_REQUEST => Failure::new(ErrorCode::ParseError, "cannot read the body"),
            StatusCode::PAYLOAD_TOO_LARGE => Failure {
                status: StatusCode::PAYLOAD_TOO_LARGE,
                ..Failure::new(
                    ErrorCode::General,
                    format!("the body is larger than {BODY} bytes"),
                )
            },
            _ => return Self::Problem(problem),
        };
        Self::Failure(failure)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self {
            Self::Failure(failure) => (failure.status, Json(failure)).into_response(),
            Self::Problem(problem) => problem.into_response(),
        }
    }
}

#[derive(Serialize, ToSchema)]
struct Flags<'a> {
    flags: Vec<Flag<'a>>,
    metadata: Metadata,
}

#[derive(Serialize, ToSchema)]
struct Flag<'a> {
    key: String,
    value: Value,
    reason: Reason,
    variant: &'a str,
    metadata: Metadata,
}

#[derive(Clone, Copy, Serialize, ToSchema)]
#[schema(as = FlagMetadata)]
struct Metadata {
    revision: u64,
}

/// Evaluates all flags at once. Clients on devices keep the result.
#[utoipa::path(
    post, path = "/ofrep/v1/evaluate/flags", tag = "flags", operation_id = "evaluate_all",
    params(ContentEncoding, IfNoneMatch),
    request_body(content = Evaluation, description = "At most 64 KiB."),
    responses(
        (status = 200, description = "All flags.", body = Flags<'_>, headers(("ETag" = String, description = "The version of these flags."))),
        NotModified,
        Failures,
        Problems<(Device, UploadedBody, OwnApp)>,
    ),
)]
pub(super) async fn all(
    State(app): State<Arc<App>>,
    Device(device): Device,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let resolved = resolve(&app, &device, &headers, body).await?;
    let (reason, variant) = (resolved.reason(), resolved.variant());
    let metadata = Metadata {
        revision: resolved.document.revision,
    };
    let flags = resolved.flags().into_iter().map(|(key, value)| Flag {
        key,
        value,
        reason,
        variant: &variant,
        metadata,
    });
    let answer = Flags {
        flags: flags.collect(),
        metadata,
    };
    // The tag identifies these bytes, not the document: devices that match different overrides may get the same document, but not the same
    // variant.
    let body = serde_json::to_vec(&answer).unwrap_or_default();
    let etag = etag(&body);
    let tag = HeaderValue::from_str(&etag).unwrap_or(HeaderValue::from_static("\"\""));
    if is_known(&headers, &etag) {
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, tag)]).into_response());
    }
    let json = HeaderValue::from_static("application/json");
    Ok(([(ETAG, tag), (CONTENT_TYPE, json)], body).into_response())
}

/// Evaluates one flag. Clients on servers call this for each evaluation.
#[utoipa::path(
    post, path = "/ofrep/v1/evaluate/flags/{key}", tag = "flags", operation_id = "evaluate_one",
    params(
        ("key" = String, Path, description = "The name of a flag, such as `sampling.janks`.", min_length = 1),
        ContentEncoding,
    ),
    request_body(content = Evaluation, description = "At most 64 KiB."),
    responses(
        (status = 200, description = "The flag.", body = Flag<'_>),
        (status = 404, description = "`FLAG_NOT_FOUND`", body = Failure),
        Failures,
        Problems<(Device, UploadedBody, OwnApp)>,
    ),
)]
pub(super) async fn one(
    State(app): State<Arc<App>>,
    Device(device): Device,
    key: Result<Path<String>, PathRejection>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let Path(key) = key.map_err(|error| Failure::new(ErrorCode::ParseError, error.body_text()))?;
    let resolved = resolve(&app, &device, &headers, body).await;
    let resolved = resolved.map_err(|refused| refused.about(&key))?;
    let Some(value) = resolved.flag(&key) else {
        let failure = Failure::new(ErrorCode::FlagNotFound, "there is no flag with this name");
        return Err(Refused::from(failure).about(&key));
    };
    let flag = Flag {
        key,
        value,
        reason: resolved.reason(),
        variant: &resolved.variant(),
        metadata: Metadata {
            revision: resolved.document.revision,
        },
    };
    Ok(Json(flag).into_response())
}

/// Returns the configuration of the device that sent the request.
async fn resolve(
    app: &App,
    Caller {
        device, project, ..
    }: &Caller,
    headers: &HeaderMap,
    body: Body,
) -> Result<Arc<Resolved>, Refused> {
    let mut memory = Memory::new(app.intake.bodies.begin(*project));
    let patience = app.body_timeout;
    let received = receive(headers, body, Content::Json, BODY, patience, &mut memory).await;
    let (bytes, encoding) = received?;
    let Context(attributes) = Upload::new(bytes, encoding, memory)
        .inflate(BODY, Context::read)
        .map_err(Problem::from)??;
    let attributes = own_attributes(attributes, device)?;
    let project = app.access.project(&device.project);
    let project = project.ok_or_else(Problem::unknown_key)?;
    let now = app.clock.now();
    if attributes.install_id.is_none() && project.configuration.asks_for_install(now) {
        let detail = "send the install's id as `targetingKey`: it decides which overrides apply";
        return Err(Failure::new(ErrorCode::TargetingKeyMissing, detail).into());
    }
    Ok(project.configuration.resolve(&attributes.device(), now))
}
