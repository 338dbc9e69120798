//! `/api/v1/login`, `/invitation`, `/session`: how people log in, stay logged in and log out.

use std::net::IpAddr;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use unjank_database::Actor;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::access::logins::{Login, LoginError};
use crate::access::{Attempt, SESSION_TOKEN_LIFE};
use crate::app::App;
use crate::http::api::client_address::ClientAddress;
use crate::http::api::cookies::{DEVICE, REFRESH, add_session, cookie, with_cookies};
use crate::http::api::object::{CREDENTIALS, Exact, Object};
use crate::http::api::openapi::{
    Ended, JsonBody, LogIn, Missing, Refused, SessionCookies, WrongInvitation, WrongLogin,
};
use crate::http::api::problem::Problem;
use crate::http::api::roles::Person;

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
    Object(Passwords { email, password }, ..): Exact<Passwords, CREDENTIALS>,
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
    Object(Acceptance { token, password }, ..): Exact<Acceptance, CREDENTIALS>,
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

#[derive(Serialize, ToSchema)]
pub(crate) struct LoggedIn {
    user: Uuid,
    /// After this time, `POST /api/v1/session/refresh` gets the next token.
    expires_in_s: u64,
}

/// Returns the details of an attempt to log in.
pub(crate) fn attempt(app: &App, address: IpAddr, headers: &HeaderMap) -> Attempt {
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
