//! Error responses: `application/problem+json` (RFC 9457) with a stable code.

mod alerts;
mod devices;
mod rules;

use std::time::Duration;

use axum::http::header::{ACCEPT_ENCODING, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use unjank_database::ControlError;

use super::problem_codes::is_documented;
use crate::access::TokenError;
use crate::access::api_tokens::IssueError;
use crate::access::configurations::SaveError;
use crate::access::logins::LoginError;
use crate::store::Failure;
use crate::symbols::{AssembleError, LookupError, StoreError};

/// The text of a problem, for layers that write responses in another form.
#[derive(Clone)]
pub(crate) struct Detail(pub(crate) String);

/// An error that a client sees.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    detail: String,
    header: Option<Box<(HeaderName, HeaderValue)>>,
    /// An additional member, such as the faults of a configuration.
    more: Option<Box<(&'static str, serde_json::Value)>>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self {
            status,
            code,
            detail: detail.into(),
            header: None,
            more: None,
        }
    }

    fn and(mut self, name: &'static str, value: impl Into<serde_json::Value>) -> Self {
        self.more = Some(Box::new((name, value.into())));
        self
    }

    fn with(mut self, name: HeaderName, value: &'static str) -> Self {
        self.header = Some(Box::new((name, HeaderValue::from_static(value))));
        self
    }

    pub(crate) fn not_found() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "not_found",
            "there is no resource at this path",
        )
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            "this path does not support this method",
        )
    }

    pub(crate) fn no_key() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "key_missing",
            "send `Authorization: Bearer <ingest key>`",
        )
        .with(WWW_AUTHENTICATE, "Bearer")
    }

    pub(crate) fn unknown_key() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "key_unknown",
            "this ingest key is unknown or revoked",
        )
        .with(WWW_AUTHENTICATE, "Bearer")
    }

    pub(crate) fn bad_token(error: TokenError) -> Self {
        let code = match error {
            TokenError::Expired => "token_expired",
            _ => "token_invalid",
        };
        Self::new(StatusCode::UNAUTHORIZED, code, error.to_string())
            .with(WWW_AUTHENTICATE, "Bearer error=\"invalid_token\"")
    }

    pub(crate) fn bad_query(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_query", detail)
    }

    pub(crate) fn invalid_question(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "question_unfit", detail)
    }

    pub(crate) fn days_out_of_range(most_days: u16) -> Self {
        let detail = format!("`days` must be 1 to {most_days}");
        Self::new(
            StatusCode::UNPROCESSABLE_ENTITY,
            "days_out_of_range",
            detail,
        )
    }

    pub(super) fn no_token() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "token_missing",
            "log in, or send `Authorization: Bearer <API token>`",
        )
        .with(WWW_AUTHENTICATE, "Bearer")
    }

    pub(super) fn no_session() -> Self {
        let detail = "log in: this path is for users with a session, and takes no API token";
        Self::new(StatusCode::UNAUTHORIZED, "token_missing", detail)
            .with(WWW_AUTHENTICATE, "Bearer")
    }

    pub(super) fn unknown_token() -> Self {
        Self::new(
            StatusCode::UNAUTHORIZED,
            "token_unknown",
            "this API token is unknown, expired or revoked: `unjank token create` makes a new one, with the server's --config or --data-dir",
        )
        .with(WWW_AUTHENTICATE, "Bearer")
    }

    pub(crate) fn no_project() -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "project_unknown",
            "there is no such project, or you have no access to it",
        )
    }

    pub(crate) fn no_project_for_symbols(project: &str) -> Self {
        let project: String = project.chars().take(100).collect();
        Self::new(
            StatusCode::NOT_FOUND,
            "project_unknown",
            format!(
                "there is no project `{project}`, or this token may not upload to it: check SENTRY_PROJECT"
            ),
        )
    }

    pub(crate) fn erased_project(project: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            "project_unknown",
            format!("the project `{project}` is being erased: it accepts no symbol files"),
        )
    }

    pub(crate) fn cross_site() -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "cross_site",
            "this request comes from another site: a proxy must forward `Host` and `Origin` unchanged",
        )
    }

    pub(crate) fn role(needed: &str) -> Self {
        Self::new(
            StatusCode::FORBIDDEN,
            "role",
            format!("this requires the role {needed}"),
        )
    }

    pub(crate) fn unfit_body(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid_body", detail)
    }

    pub(crate) fn unfit_key(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "device_key_unfit", detail)
    }

    pub(crate) fn unfit_channel(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "channel_unfit", detail)
    }

    pub(crate) fn content_type() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "content_type",
            "send `Content-Type: application/json`",
        )
    }

    pub(crate) fn content_encoding() -> Self {
        Self::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "content_encoding",
            "send the body as identity, gzip, zstd or deflate",
        )
        .with(ACCEPT_ENCODING, "gzip, zstd, deflate")
    }

    pub(super) fn unfit_json(error: &serde_json::Error) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "invalid_body",
            format!("the body is not JSON: {error}"),
        )
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!("the body is larger than {limit} bytes as sent: send less at a time"),
        )
    }

    pub(super) fn expands_too_far(limit: usize) -> Self {
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body_too_large",
            format!("the values in the body take more than {limit} bytes of memory: send fewer"),
        )
    }

    pub(super) fn inflates_too_far(limit: usize) -> Self {
        let detail =
            format!("the body is larger than {limit} bytes after decompression: split the batch");
        Self::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "decompressed_too_large",
            detail,
        )
    }

    pub(crate) fn corrupt_encoding(encoding: &str) -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "corrupt_encoding",
            format!("the body is not valid {encoding}"),
        )
    }

    pub(crate) fn truncated() -> Self {
        Self::new(
            StatusCode::BAD_REQUEST,
            "body_truncated",
            "the body ended before its declared length",
        )
    }

    pub(crate) fn stalled() -> Self {
        Self::new(
            StatusCode::REQUEST_TIMEOUT,
            "body_stalled",
            "the body took too long to arrive: retry",
        )
    }

    pub(crate) fn overloaded() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "overloaded",
            "the server is overloaded: retry later",
        )
        .with(RETRY_AFTER, "5")
    }

    pub(crate) fn too_many_tests(wait: Duration) -> Self {
        let seconds = wait.as_secs().saturating_add(1);
        let problem = Self::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too_many_tests",
            format!("the channels of this project were tested too often: retry in {seconds} s"),
        );
        Self {
            header: Some(Box::new((RETRY_AFTER, HeaderValue::from(seconds)))),
            ..problem
        }
    }

    /// Whether a retry of the same request cannot succeed, if it arrived as it was sent.
    pub(crate) fn is_final(&self) -> bool {
        !self.status.is_server_error()
            && self.status != StatusCode::TOO_MANY_REQUESTS
            && self.status != StatusCode::REQUEST_TIMEOUT
    }

    pub(super) fn in_flight() -> Self {
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "batch_in_flight",
            "another request is storing the same batch: retry later",
        )
        .with(RETRY_AFTER, "1")
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        tracing::error!(%error, "cannot use the symbol store");
        let detail = match error {
            StoreError::Denied(_) => {
                "the symbol store rejects the credentials of the server: its log has the reason"
            }
            _ => "the server cannot use its symbol store now: retry later. Its log has the reason",
        };
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "symbols_unavailable",
            detail,
        )
        .with(RETRY_AFTER, "30")
    }
}

impl From<AssembleError> for Problem {
    fn from(error: AssembleError) -> Self {
        let detail = error.to_string();
        match error {
            AssembleError::Control(error) | AssembleError::Lookup(LookupError::Control(error)) => {
                error.into()
            }
            AssembleError::Store(error) | AssembleError::Lookup(LookupError::Store(error)) => {
                error.into()
            }
            AssembleError::Lookup(_) => Self::overloaded(),
            AssembleError::Busy => Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", detail)
                .with(RETRY_AFTER, "30"),
            AssembleError::DiskFull(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "disk_full", detail)
                    .with(RETRY_AFTER, "30")
            }
            AssembleError::TooManyChunks(..) => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
            }
        }
    }
}

impl From<ControlError> for Problem {
    fn from(error: ControlError) -> Self {
        let detail = error.to_string();
        match error {
            ControlError::NotFound => Self::new(StatusCode::NOT_FOUND, "not_found", detail),
            ControlError::AlreadyExists => Self::new(StatusCode::CONFLICT, "exists", detail),
            ControlError::Conflict { current } => Self::new(
                StatusCode::CONFLICT,
                "conflict",
                format!("revision {current} was saved in the meantime: review it, then save again"),
            )
            .and("current_revision", current),
            ControlError::ExceedsOwnRights => Self::new(StatusCode::FORBIDDEN, "role", detail),
            ControlError::OutlivesActor => {
                Self::new(StatusCode::FORBIDDEN, "token_outlives_its_maker", detail)
            }
            ControlError::Invalid(_) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail)
            }
            ControlError::Damaged(_) | ControlError::Unavailable(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "control_unavailable",
                detail,
            )
            .with(RETRY_AFTER, "5"),
        }
    }
}

impl From<IssueError> for Problem {
    fn from(error: IssueError) -> Self {
        let detail = error.to_string();
        match error {
            IssueError::Control(error) => error.into(),
            IssueError::NoRandomness(_) => Self::overloaded(),
            IssueError::AlreadyOver => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid", detail)
            }
        }
    }
}

impl From<SaveError> for Problem {
    fn from(error: SaveError) -> Self {
        match error {
            SaveError::Control(error) => error.into(),
            SaveError::Busy(_) => Self::overloaded(),
            SaveError::Faults(faults) => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "configuration_invalid",
                format!(
                    "the configuration has {} faults: see `faults`",
                    faults.len()
                ),
            )
            .and("faults", serde_json::to_value(faults).unwrap_or_default()),
        }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        if let Failure::TooMuch(_) = failure {
            return Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "question_too_big",
                "this query takes too long: choose a shorter period, or add filters",
            );
        }
        tracing::warn!(%failure, "ClickHouse did not answer a query");
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "store_unavailable",
            "stored data cannot be queried right now: retry later",
        )
        .with(RETRY_AFTER, "15")
    }
}

impl From<LoginError> for Problem {
    fn from(error: LoginError) -> Self {
        let detail = error.to_string();
        let (status, code) = match error {
            LoginError::Refused => (StatusCode::UNAUTHORIZED, "login_refused"),
            LoginError::TooMany { retry_after_s } => {
                let wait = HeaderValue::from(retry_after_s);
                let problem = Self {
                    header: Some(Box::new((RETRY_AFTER, wait))),
                    ..Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_logins", detail)
                };
                return problem.and("retry_after_s", retry_after_s);
            }
            LoginError::Ended => (StatusCode::UNAUTHORIZED, "session_ended"),
            LoginError::NoInvitation => (StatusCode::NOT_FOUND, "invitation_unknown"),
            LoginError::WrongSetUpCode => (StatusCode::FORBIDDEN, "setup_code_wrong"),
            LoginError::AlreadySetUp => (StatusCode::CONFLICT, "already_set_up"),
            LoginError::Password(_) => (StatusCode::UNPROCESSABLE_ENTITY, "password_unfit"),
            LoginError::NoRandomness => return Self::overloaded(),
            LoginError::Control(error) => return error.into(),
        };
        Self::new(status, code, detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        debug_assert!(
            is_documented(self.code, self.status.as_u16()),
            "{} {} is not a documented problem",
            self.status,
            self.code
        );
        let body = unjank_protocol::Problem {
            kind: "about:blank".to_owned(),
            title: self.status.canonical_reason().unwrap_or("Error").to_owned(),
            status: self.status.as_u16(),
            detail: self.detail.clone(),
            code: self.code.to_owned(),
        };
        let mut json = serde_json::to_value(&body).unwrap_or_default();
        if let Some((name, value)) = self.more.map(|more| *more) {
            json[name] = value;
        }
        let mut response = (
            self.status,
            [(CONTENT_TYPE, "application/problem+json")],
            json.to_string(),
        )
            .into_response();
        if let Some((name, value)) = self.header.map(|header| *header) {
            response.headers_mut().insert(name, value);
        }
        response.extensions_mut().insert(Detail(self.detail));
        response
    }
}

/// Returns the answer to a request whose handler panicked.
pub(crate) fn internal() -> Response {
    tracing::error!("a request handler panicked");
    Problem::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "internal",
        "the server failed to handle the request: retry later",
    )
    .into_response()
}
