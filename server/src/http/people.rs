//! People: their logins and sessions, API tokens, members of projects, and the audit log.

mod account;
mod api_tokens;
mod audit;
mod openid_connect;
mod session;
mod set_up;
mod users;

use std::sync::Arc;

use axum::Router;
use axum::routing::{delete, get, post, put};
use utoipa::OpenApi;

use crate::app::App;

/// These routes in the OpenAPI document.
#[derive(OpenApi)]
#[openapi(
    paths(
        session::log_in,
        set_up::set_up,
        session::accept_invitation,
        session::log_out,
        session::refresh,
        openid_connect::methods,
        openid_connect::start_oidc,
        openid_connect::finish_oidc,
        account::me,
        account::change_password,
        account::sessions,
        account::end_session,
        account::end_all_sessions,
        users::list,
        users::create,
        users::disable,
        users::enable,
        users::invite,
        users::cancel_invitation,
        users::members,
        users::set_role,
        users::remove,
        audit::list,
        audit::list_of_all,
        api_tokens::list,
        api_tokens::create,
        api_tokens::revoke,
        api_tokens::list_of_all,
        api_tokens::create_for_all,
        api_tokens::revoke_of_all,
    ),
    components(schemas(session::LoggedIn))
)]
pub(super) struct Documented;

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/projects/{project}/audit", get(audit::list))
        .route(
            "/projects/{project}/tokens",
            get(api_tokens::list).post(api_tokens::create),
        )
        .route(
            "/projects/{project}/tokens/{token}",
            delete(api_tokens::revoke),
        )
        .route(
            "/tokens",
            get(api_tokens::list_of_all).post(api_tokens::create_for_all),
        )
        .route("/tokens/{token}", delete(api_tokens::revoke_of_all))
        .route("/login", post(session::log_in))
        .route("/setup", post(set_up::set_up))
        .route("/invitation", post(session::accept_invitation))
        .route("/session", delete(session::log_out))
        .route("/session/refresh", post(session::refresh))
        .route("/session/methods", get(openid_connect::methods))
        .route("/session/oidc", get(openid_connect::start_oidc))
        .route("/session/oidc/callback", get(openid_connect::finish_oidc))
        .route("/me", get(account::me))
        .route("/me/password", post(account::change_password))
        .route(
            "/me/sessions",
            get(account::sessions).delete(account::end_all_sessions),
        )
        .route("/me/sessions/{session}", delete(account::end_session))
        .route("/audit", get(audit::list_of_all))
        .route("/users", get(users::list).post(users::create))
        .route("/users/{user}", delete(users::disable))
        .route("/users/{user}/enable", post(users::enable))
        .route(
            "/users/{user}/invitation",
            post(users::invite).delete(users::cancel_invitation),
        )
        .route("/projects/{project}/members", get(users::members))
        .route(
            "/projects/{project}/members/{user}",
            put(users::set_role).delete(users::remove),
        )
}
