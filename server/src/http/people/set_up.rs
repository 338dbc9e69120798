//! `/api/v1/setup`: creates the first admin, with the code that the server printed at its start. The status of the set-up is
//! in `/api/v1/session/methods`.

use std::sync::Arc;

use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use utoipa::ToSchema;

use super::session::{attempt, logged_in};
use crate::access::logins::NewAdmin;
use crate::app::App;
use crate::http::api::client_address::ClientAddress;
use crate::http::api::object::{CREDENTIALS, Exact, Object};
use crate::http::api::openapi::{Invalid, JsonBody, LogIn, Refused, SessionCookies, WrongSetUp};
use crate::http::api::problem::Problem;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = SetUp)]
pub(super) struct SetUpBody {
    /// The code that the server printed at its start.
    code: String,
    #[schema(min_length = 3, max_length = 254, pattern = r"^\S+@\S+$")]
    email: String,
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
    )]
    name: String,
    #[schema(min_length = 12, max_length = 256)]
    password: String,
}

/// Creates the first admin of the installation, and logs the admin in. Refused if the installation has a user.
#[utoipa::path(
    post, path = "/api/v1/setup", tag = "session",
    request_body = SetUpBody,
    responses(SessionCookies, Refused<(JsonBody, LogIn, Invalid, WrongSetUp)>),
)]
pub(super) async fn set_up(
    State(app): State<Arc<App>>,
    ClientAddress(address): ClientAddress,
    headers: HeaderMap,
    Object(body, ..): Exact<SetUpBody, CREDENTIALS>,
) -> Result<Response, Problem> {
    let admin = NewAdmin {
        email: body.email,
        name: body.name,
        password: body.password,
    };
    let attempt = attempt(&app, address, &headers);
    let set_up = app.logins.set_up(&app.control, &body.code, admin, attempt);
    Ok(logged_in(&set_up.await?))
}
