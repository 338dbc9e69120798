//! `/api/v1/session/oidc` and `/api/v1/session/methods`: logins with an identity provider. The client is a browser, so every outcome is a redirect to
//! a page. If the login failed, the address of the page has an error code.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::app::App;
use crate::http::api::client_address::ClientAddress;
use crate::http::api::cookies::{add_session, cookie, set_cookie};
use crate::http::api::openapi::{ControlDatabase, Missing, QueryString, Redirect, Refused};
use crate::http::api::problem::Problem;
use crate::openid_connect::{ATTEMPT_LIFE, Callback, Caller, OidcError, OpenIdConnect, Started};

/// The sealed attempt, while a person is at the provider. `Lax`, because the way back begins on the provider's site.
const ATTEMPT: &str = "__Host-unjank-oidc";

/// Maximum number of characters of an error in the log.
const LONGEST_REASON: usize = 500;

/// The ways to log in.
#[derive(Serialize, ToSchema)]
pub(super) struct LoginMethods {
    /// The name of the identity provider, if people can log in with one.
    openid_connect: Option<String>,
    /// Whether the installation has no user yet: `POST /api/v1/setup` creates the first one.
    needs_setup: bool,
}

/// Returns the ways to log in, besides a password, and whether the installation must be set up first.
#[utoipa::path(
    get, path = "/api/v1/session/methods", tag = "session",
    responses((status = 200, body = LoginMethods), Refused<(ControlDatabase,)>),
)]
pub(super) async fn methods(State(app): State<Arc<App>>) -> Result<Json<LoginMethods>, Problem> {
    let provider = app.openid_connect.as_ref();
    Ok(Json(LoginMethods {
        openid_connect: provider.map(|provider| provider.name().to_owned()),
        needs_setup: app.logins.needs_set_up(&app.control).await?,
    }))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Wanted {
    /// The page to open after the login: a path on this server. Other values are ignored.
    to: Option<String>,
}

/// Begins a login with the identity provider: redirects the browser to it.
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
    set_cookie(&mut response, &attempt(&cookie, ATTEMPT_LIFE.as_secs()));
    Ok(response)
}

/// The parameters that the provider adds to the callback address.
#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Answer {
    /// Identifies the login that was started.
    state: Option<String>,
    /// Exchanged for the person's identity.
    code: Option<String>,
    /// Why there is no code.
    error: Option<String>,
    /// The error as a sentence.
    error_description: Option<String>,
    /// The issuer, if the provider names it.
    iss: Option<String>,
}

/// Finishes a login with the identity provider: sets the session cookies, and redirects to the requested page.
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
    let place = (&app.control, &app.logins);
    let finished = provider
        .finish(place, callback, Caller { address, now })
        .await;
    let mut response = match &finished.login {
        Ok(login) => add_session(redirect(&finished.wanted), login),
        Err(error) => refused(&finished.wanted, error),
    };
    // This attempt is over, whether it succeeded or failed. The attempt of another tab is kept.
    if !matches!(finished.login, Err(OidcError::NotStarted)) {
        set_cookie(&mut response, &attempt("", 0));
    }
    Ok(response)
}

fn provider(app: &App) -> Result<&OpenIdConnect, Problem> {
    app.openid_connect.as_ref().ok_or_else(Problem::not_found)
}

fn attempt(sealed: &str, life_s: u64) -> String {
    format!("{ATTEMPT}={sealed}; Path=/; Max-Age={life_s}; HttpOnly; Secure; SameSite=Lax")
}

fn redirect(to: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    // Parsed URLs only have characters that are valid in a header.
    if let Ok(location) = HeaderValue::from_str(to) {
        response.headers_mut().insert(LOCATION, location);
    }
    response
}

/// The log level depends on the error, because anonymous callers can cause some errors at will. The text is filtered and shortened, because the
/// provider and the browser choose parts of it.
fn log(error: &OidcError) {
    let text = error.to_string();
    let plain = text.chars().filter(|char| !char.is_control());
    let reason: String = plain.take(LONGEST_REASON).collect();
    match error {
        OidcError::NotStarted | OidcError::Busy => {
            tracing::debug!(reason, "a login with the identity provider was rejected");
        }
        OidcError::Denied(_) | OidcError::NotAdmitted(_) => {
            tracing::info!(reason, "a login with the identity provider was rejected");
        }
        _ => tracing::warn!(reason, "a login with the identity provider failed"),
    }
}

/// Redirects to the page, which shows the login again with the error.
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
