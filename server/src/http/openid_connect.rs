//! `/api/v1/session/oidc` and `/api/v1/session/methods`: logins with an identity provider. A browser comes and goes here, so every
//! outcome is a redirect to a page, and what went wrong is a code in its address.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::client_address::ClientAddress;
use super::openapi::{Missing, QueryString, Redirect, Refused};
use super::problem::Problem;
use super::session::{add_session, cookie, set_cookie};
use crate::app::App;
use crate::openid_connect::{ATTEMPT_LIFE, Callback, Caller, OidcError, OpenIdConnect, Started};

/// The sealed attempt, while a person is at the provider. `Lax`, since the way back begins on the provider's site.
const ATTEMPT: &str = "__Host-unjank-oidc";

/// The most characters of an error that are logged.
const LONGEST_REASON: usize = 500;

/// How people can log in.
#[derive(Serialize, ToSchema)]
pub(super) struct LoginMethods {
    /// What the identity provider is called, if people can log in with one.
    openid_connect: Option<String>,
}

/// How people can log in, besides with a password.
#[utoipa::path(
    get, path = "/api/v1/session/methods", tag = "session",
    responses((status = 200, body = LoginMethods)),
)]
pub(super) async fn methods(State(app): State<Arc<App>>) -> Json<LoginMethods> {
    let provider = app.openid_connect.as_ref();
    Json(LoginMethods {
        openid_connect: provider.map(|provider| provider.name().to_owned()),
    })
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Wanted {
    /// The page to open after the login: a path of this server. Others are ignored.
    to: Option<String>,
}

/// Begins a login with the identity provider: sends the browser there.
#[utoipa::path(
    get, path = "/api/v1/session/oidc", tag = "session",
    params(Wanted),
    responses(Redirect, Refused<(Missing, QueryString)>),
)]
pub(super) async fn start_oidc(
    State(app): State<Arc<App>>,
    ClientAddress(address): ClientAddress,
    query: Result<Query<Wanted>, QueryRejection>,
) -> Result<Response, Problem> {
    let provider = provider(&app)?;
    let Query(Wanted { to }) = query.map_err(|error| Problem::bad_query(error.body_text()))?;
    let now = app.clock.now();
    let started = provider.start(to.as_deref(), Caller { address, now }).await;
    let Started { url, cookie } = match started {
        Ok(started) => started,
        Err(error) => return Ok(refused(&provider.wanted_path(to.as_deref()), &error)),
    };
    let mut response = redirect(url.as_str());
    set_cookie(&mut response, &attempt(&cookie, ATTEMPT_LIFE / 1_000_000));
    Ok(response)
}

/// What the provider adds to the address it sends the browser back to.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Answer {
    /// Names the login, as it was started.
    state: Option<String>,
    /// What is exchanged for the person's identity.
    code: Option<String>,
    /// Why there is no code.
    error: Option<String>,
    /// The same for a person.
    error_description: Option<String>,
    /// The issuer, if the provider names it.
    iss: Option<String>,
}

/// Ends a login with the identity provider: answers the cookies of a session, and opens the page that was wanted.
#[utoipa::path(
    get, path = "/api/v1/session/oidc/callback", tag = "session",
    params(Answer),
    responses(Redirect, Refused<(Missing, QueryString)>),
)]
pub(super) async fn finish_oidc(
    State(app): State<Arc<App>>,
    ClientAddress(address): ClientAddress,
    headers: HeaderMap,
    query: Result<Query<Answer>, QueryRejection>,
) -> Result<Response, Problem> {
    let provider = provider(&app)?;
    let Query(answer) = query.map_err(|error| Problem::bad_query(error.body_text()))?;
    let callback = Callback {
        cookie: cookie(&headers, ATTEMPT),
        state: answer.state.as_deref(),
        code: answer.code.as_deref(),
        error: answer.error.as_deref(),
        description: answer.error_description.as_deref(),
        issuer: answer.iss.as_deref(),
    };
    let now = app.clock.now();
    let place = (&*app.control, &app.logins);
    let finished = provider
        .finish(place, callback, Caller { address, now })
        .await;
    let mut response = match &finished.login {
        Ok(login) => add_session(redirect(&finished.wanted), login),
        Err(error) => refused(&finished.wanted, error),
    };
    // An attempt is over, however it went. One of another tab stays.
    if !matches!(finished.login, Err(OidcError::NotStarted)) {
        set_cookie(&mut response, &attempt("", 0));
    }
    Ok(response)
}

fn provider(app: &App) -> Result<&OpenIdConnect, Problem> {
    app.openid_connect.as_ref().ok_or_else(Problem::not_found)
}

fn attempt(sealed: &str, life_s: i64) -> String {
    format!("{ATTEMPT}={sealed}; Path=/; Max-Age={life_s}; HttpOnly; Secure; SameSite=Lax")
}

fn redirect(to: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    // Parsed URLs have only characters that a header can hold.
    if let Ok(location) = HeaderValue::from_str(to) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// The provider and the browser choose parts of the text, and anonymous callers how often there is one.
fn log(error: &OidcError) {
    let text = error.to_string();
    let plain = text.chars().filter(|char| !char.is_control());
    let reason: String = plain.take(LONGEST_REASON).collect();
    match error {
        OidcError::NotStarted | OidcError::Busy => {
            tracing::debug!(reason, "a login with the identity provider was refused");
        }
        OidcError::Denied(_) | OidcError::NotAdmitted(_) => {
            tracing::info!(reason, "a login with the identity provider was refused");
        }
        _ => tracing::warn!(reason, "a login with the identity provider failed"),
    }
}

/// Opens the page, which shows the login again, and says there what is wrong.
fn refused(wanted: &str, error: &OidcError) -> Response {
    log(error);
    let (page, fragment) = match wanted.split_once('#') {
        Some((page, fragment)) => (page, format!("#{fragment}")),
        None => (wanted, String::new()),
    };
    let mark = if page.contains('?') { '&' } else { '?' };
    let code = error.code();
    redirect(&format!("{page}{mark}login_error={code}{fragment}"))
}
