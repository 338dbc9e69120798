//! `/api/v1/login`, `/invitation`, `/session`: how people log in, stay logged in and log out. The tokens are in cookies that scripts cannot read. The
//! cookies are `Secure`, so a browser sends them only over TLS, or to the local machine.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::client_address::ClientAddress;
use super::object::{CREDENTIALS, Object};
use super::openapi::{
    Ended, JsonBody, LogIn, Missing, Refused, SessionCookies, WrongInvitation, WrongLogin, role,
};
use super::problem::Problem;
use super::roles::Person;
use crate::app::App;
use crate::control::people::{Login, LoginError, SESSION_LIFE};
use crate::control::{Attempt, SESSION_TOKEN_LIFE};
use crate::store::control::Actor;

const SESSION: &str = "__Host-unjank";
const REFRESH: &str = "__Secure-unjank-refresh";
/// Identifies a browser that has logged in before. Failed logins of other people do not delay it.
const DEVICE: &str = "__Host-unjank-device";
const DEVICE_LIFE_S: i64 = 365 * 24 * 3_600;
/// The refresh token is only sent to the path that uses it.
const REFRESH_PATH: &str = "/api/v1/session";

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Passwords {
    email: String,
    password: String,
}

/// Logs in with a password and sets the session cookies.
#[utoipa::path(
    post, path = "/api/v1/login", tag = "session",
    request_body = Passwords,
    responses(SessionCookies, Refused<(JsonBody, LogIn, WrongLogin)>),
)]
pub(super) async fn log_in(
    State(app): State<Arc<App>>,
    ClientAddress(address): ClientAddress,
    headers: HeaderMap,
    Object(Passwords { email, password }, ..): Object<Passwords, CREDENTIALS>,
) -> Result<Response, Problem> {
    let attempt = attempt(&app, address, &headers);
    let login = app
        .logins
        .log_in(&app.control, &email, password, attempt)
        .await?;
    Ok(logged_in(&login))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Acceptance {
    token: String,
    #[schema(min_length = 12, max_length = 256)]
    password: String,
}

/// Accepts an invitation, which works once: sets the password and logs in.
#[utoipa::path(
    post, path = "/api/v1/invitation", tag = "session",
    request_body = Acceptance,
    responses(SessionCookies, Refused<(JsonBody, LogIn, WrongInvitation)>),
)]
pub(super) async fn accept_invitation(
    State(app): State<Arc<App>>,
    ClientAddress(address): ClientAddress,
    headers: HeaderMap,
    Object(Acceptance { token, password }, ..): Object<Acceptance, CREDENTIALS>,
) -> Result<Response, Problem> {
    let attempt = attempt(&app, address, &headers);
    let login = app
        .logins
        .accept_invitation(&app.control, &token, password, attempt)
        .await?;
    Ok(logged_in(&login))
}

/// Renews the cookies of a session. A refresh token works once. Using it again ends the session.
#[utoipa::path(
    post, path = "/api/v1/session/refresh", tag = "session",
    responses(SessionCookies, Refused<(LogIn, Ended)>),
)]
pub(super) async fn refresh(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let token = cookie(&headers, REFRESH).ok_or(LoginError::Ended)?;
    let now = app.clock.now();
    let login = app.logins.refresh(&app.control, token, now).await?;
    Ok(logged_in(&login))
}

/// Ends the session.
#[utoipa::path(
    delete, path = "/api/v1/session", tag = "session",
    responses((status = 204), Refused<(Person, Missing)>),
)]
pub(super) async fn log_out(
    State(app): State<Arc<App>>,
    person: Person,
) -> Result<Response, Problem> {
    let actor = Actor::user(person.user.id);
    let now = app.clock.now();
    app.control
        .revoke_session(person.session, &actor, now)
        .await?;
    Ok(with_cookies(
        StatusCode::NO_CONTENT.into_response(),
        "",
        "",
        0,
    ))
}

/// The logged-in person and their rights.
#[derive(Serialize, ToSchema)]
pub(super) struct Me {
    id: Uuid,
    email: String,
    name: String,
    /// Whether the person is an admin of the whole installation.
    is_admin: bool,
    /// False for people who only log in with an identity provider.
    has_password: bool,
    /// The name of the identity provider, if the person logs in with it.
    identity_provider: Option<String>,
    roles: Vec<RoleIn>,
}

#[derive(Serialize, ToSchema)]
struct RoleIn {
    project: String,
    #[schema(schema_with = role)]
    role: &'static str,
}

/// Returns the logged-in person and their rights.
#[utoipa::path(
    get, path = "/api/v1/me", tag = "session",
    responses((status = 200, body = Me), Refused<(Person,)>),
)]
pub(super) async fn me(
    State(app): State<Arc<App>>,
    Person { user, .. }: Person,
) -> Result<Json<Me>, Problem> {
    let roles = app.control.roles_of(user.id).await?;
    let identity_provider = match &app.openid_connect {
        Some(provider) => {
            let issuers = app.control.issuers_of(user.id).await?;
            let is_linked = issuers.iter().any(|issuer| issuer == provider.issuer());
            is_linked.then(|| provider.name().to_owned())
        }
        None => None,
    };
    let roles = roles.into_iter().map(|membership| RoleIn {
        role: membership.role.as_str(),
        project: membership.project,
    });
    Ok(Json(Me {
        roles: roles.collect(),
        has_password: user.password_hash.is_some(),
        identity_provider,
        id: user.id,
        email: user.email,
        name: user.name,
        is_admin: user.is_admin,
    }))
}

#[derive(Serialize, ToSchema)]
pub(super) struct LoggedIn {
    user: Uuid,
    /// After this time, `POST /api/v1/session/refresh` gets the next token.
    expires_in_s: u64,
}

/// Returns the details of an attempt to log in.
pub(super) fn attempt(app: &App, address: IpAddr, headers: &HeaderMap) -> Attempt {
    Attempt {
        address,
        known_device: cookie(headers, DEVICE).map(str::to_owned),
        now: app.clock.now(),
    }
}

pub(super) fn logged_in(login: &Login) -> Response {
    let body = LoggedIn {
        user: login.user,
        expires_in_s: SESSION_TOKEN_LIFE.as_secs(),
    };
    add_session(Json(body).into_response(), login)
}

/// Sets the cookies of a session.
pub(super) fn add_session(response: Response, login: &Login) -> Response {
    let life = SESSION_LIFE.as_secs();
    let mut response = with_cookies(response, &login.session_token, login.refresh.reveal(), life);
    if let Some(device) = &login.known_device {
        let cookie = format!(
            "{DEVICE}={device}; Path=/; Max-Age={DEVICE_LIFE_S}; HttpOnly; Secure; SameSite=Strict"
        );
        set_cookie(&mut response, &cookie);
    }
    response
}

pub(super) fn set_cookie(response: &mut Response, cookie: &str) {
    if let Ok(mut value) = HeaderValue::from_str(cookie) {
        value.set_sensitive(true);
        response.headers_mut().append(SET_COOKIE, value);
    }
}

pub(super) fn with_cookies(
    mut response: Response,
    session: &str,
    refresh: &str,
    life_s: u64,
) -> Response {
    let session_life = life_s.min(SESSION_TOKEN_LIFE.as_secs());
    for cookie in [
        format!(
            "{SESSION}={session}; Path=/; Max-Age={session_life}; HttpOnly; Secure; SameSite=Lax"
        ),
        format!(
            "{REFRESH}={refresh}; Path={REFRESH_PATH}; Max-Age={life_s}; HttpOnly; Secure; SameSite=Strict"
        ),
    ] {
        set_cookie(&mut response, &cookie);
    }
    response
}

/// Returns the session token of a request.
pub(super) fn session_cookie(headers: &HeaderMap) -> Option<&str> {
    cookie(headers, SESSION)
}

pub(super) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let cookies = headers.get_all(COOKIE).iter();
    cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}
