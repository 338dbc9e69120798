//! `/api/v1/me…`: the caller's rights, password and sessions.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use unjank_database::{Actor, ControlError, Session};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;
use uuid::Uuid;

use super::session::{attempt, logged_in};
use crate::app::App;
use crate::http::api::client_address::ClientAddress;
use crate::http::api::cookies::with_cookies;
use crate::http::api::object::{CREDENTIALS, Exact, Object};
use crate::http::api::openapi::{
    JsonBody, LogIn, Missing, Refused, SessionCookies, WrongLogin, WrongPassword, role,
};
use crate::http::api::problem::Problem;
use crate::http::api::roles::Person;

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

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PasswordChange {
    /// The current password.
    password: String,
    #[schema(min_length = 12, max_length = 256)]
    new_password: String,
}

/// Changes the caller's password. Ends all sessions and starts a new one.
#[utoipa::path(
    post, path = "/api/v1/me/password", tag = "session",
    request_body = PasswordChange,
    responses(SessionCookies, Refused<(Person, JsonBody, LogIn, WrongLogin, WrongPassword)>),
)]
pub(super) async fn change_password(
    State(app): State<Arc<App>>,
    Person { user, .. }: Person,
    ClientAddress(address): ClientAddress,
    headers: HeaderMap,
    Object(change, ..): Exact<PasswordChange, CREDENTIALS>,
) -> Result<Response, Problem> {
    let attempt = attempt(&app, address, &headers);
    let passwords = (change.password, change.new_password);
    let login = app
        .logins
        .change_password(&app.control, user, passwords, attempt)
        .await?;
    Ok(logged_in(&login))
}

#[derive(Serialize, ToSchema)]
#[schema(as = Session)]
pub(crate) struct SessionBody {
    id: Uuid,
    /// The session that sent this request.
    is_this: bool,
    created_at: UnixTime,
    last_used_at: UnixTime,
    /// Unless the session is used before this time.
    expires_at: UnixTime,
}

/// Most recently used first.
#[derive(Serialize, ToSchema)]
pub(crate) struct SessionList {
    sessions: Vec<SessionBody>,
}

/// Lists the caller's sessions. Each is a browser that is logged in.
#[utoipa::path(
    get, path = "/api/v1/me/sessions", tag = "session",
    responses((status = 200, body = SessionList), Refused<(Person,)>),
)]
pub(super) async fn sessions(
    State(app): State<Arc<App>>,
    Person { user, session }: Person,
) -> Result<Json<SessionList>, Problem> {
    let sessions = app.control.sessions_of(user.id, app.clock.now()).await?;
    let body = |one: Session| SessionBody {
        id: one.id,
        is_this: one.id == session,
        created_at: one.created_at,
        last_used_at: one.last_used_at,
        expires_at: one.expires_at,
    };
    Ok(Json(SessionList {
        sessions: sessions.into_iter().map(body).collect(),
    }))
}

/// Ends one of the caller's sessions.
#[utoipa::path(
    delete, path = "/api/v1/me/sessions/{session}", tag = "session",
    responses((status = 204), Refused<(Person, Missing)>),
)]
pub(super) async fn end_session(
    State(app): State<Arc<App>>,
    Person { user, .. }: Person,
    path: Result<Path<Uuid>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let Path(id) = path.map_err(|_| Problem::not_found())?;
    let now = app.clock.now();
    let own = app.control.sessions_of(user.id, now).await?;
    if !own.iter().any(|session| session.id == id) {
        return Err(ControlError::NotFound.into());
    }
    let actor = Actor::user(user.id);
    app.control.revoke_session(id, &actor, now).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends all of the caller's sessions, including this one.
#[utoipa::path(
    delete, path = "/api/v1/me/sessions", tag = "session",
    responses((status = 204), Refused<(Person,)>),
)]
pub(super) async fn end_all_sessions(
    State(app): State<Arc<App>>,
    Person { user, .. }: Person,
) -> Result<Response, Problem> {
    let (actor, now) = (Actor::user(user.id), app.clock.now());
    app.control.revoke_sessions_of(user.id, &actor, now).await?;
    let ended = StatusCode::NO_CONTENT.into_response();
    Ok(with_cookies(ended, "", "", 0))
}
