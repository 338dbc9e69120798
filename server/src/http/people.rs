//! `/api/v1/users` and `/api/v1/projects/{project}/members`: who there is, and who may do what.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::member::{Admin, Operator};
use super::object::Object;
use super::openapi::{
    Exists, Invalid, JsonBody, Missing, Outlived, Overloaded, QueryString, Refused, role,
};
use super::problem::Problem;
use crate::app::App;
use crate::control::people;
use crate::store::control::{Membership, NewUser, Role, TokensOfUser, User};

const PAGE: u32 = 100;

#[derive(Serialize, ToSchema)]
#[schema(as = User)]
pub(super) struct UserBody {
    id: Uuid,
    email: String,
    name: String,
    is_admin: bool,
    /// False until the invitation is taken.
    has_password: bool,
    /// Logs in with an identity provider.
    has_identity: bool,
    /// Microseconds since the epoch, as all times here.
    created_at: i64,
    disabled_at: Option<i64>,
    /// The secret part of the link to set a password with: answered once, when it is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    invitation: Option<String>,
}

impl From<User> for UserBody {
    fn from(user: User) -> Self {
        Self {
            id: user.id,
            email: user.email,
            name: user.name,
            is_admin: user.is_admin,
            has_password: user.password_hash.is_some(),
            has_identity: false,
            created_at: user.created_at,
            disabled_at: user.disabled_at,
            invitation: None,
        }
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct UserList {
    users: Vec<UserBody>,
    /// For the next page; missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PageOfUsers {
    /// Those whose address comes after this one.
    after: Option<String>,
}

/// A page of all people, by address.
#[utoipa::path(
    get, path = "/api/v1/users", tag = "people",
    params(PageOfUsers),
    responses((status = 200, body = UserList), Refused<(Operator, QueryString, Invalid)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Operator(_): Operator,
    query: Result<Query<PageOfUsers>, QueryRejection>,
) -> Result<Json<UserList>, Problem> {
    let Query(page) = query.map_err(|error| Problem::bad_query(error.body_text()))?;
    let users = app.control.users(page.after.as_deref(), PAGE).await?;
    let full = users.len() == PAGE as usize;
    let after = users.last().filter(|_| full).map(|user| user.email.clone());
    let linked = app.control.linked_users(page.after.as_deref(), PAGE);
    let linked = linked.await?;
    let users = users.into_iter().map(|user| UserBody {
        has_identity: linked.contains(&user.id),
        ..user.into()
    });
    let users = users.collect();
    Ok(Json(UserList { users, after }))
}

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewPerson {
    #[schema(min_length = 3, max_length = 254, pattern = r"^\S+@\S+$")]
    email: String,
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
    )]
    name: String,
    /// Admin of the whole installation.
    #[serde(default)]
    is_admin: bool,
}

/// Makes a person and an invitation for them.
#[utoipa::path(
    post, path = "/api/v1/users", tag = "people",
    request_body = NewPerson,
    responses((status = 201, body = UserBody), Refused<(Operator, JsonBody, Invalid, Exists, Outlived, Overloaded)>),
)]
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Operator(actor): Operator,
    Object(new, ..): Object<NewPerson>,
) -> Result<(StatusCode, Json<UserBody>), Problem> {
    let new = NewUser {
        email: new.email,
        name: new.name,
        password_hash: None,
        is_admin: new.is_admin,
    };
    let now = app.clock.now();
    let user = app.control.create_user(new, &actor, now).await?;
    let invitation = people::invite(&*app.control, user.id, &actor, now).await?;
    let body = UserBody {
        invitation: Some(invitation.reveal().to_owned()),
        ..user.into()
    };
    Ok((StatusCode::CREATED, Json(body)))
}

/// What becomes of the API tokens that a disabled person made.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Tokens {
    /// They end at once.
    #[default]
    Revoke,
    /// They work on, as if the caller had made them.
    TakeOver,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Disabling {
    /// What becomes of the API tokens that the person made. Left out: they are revoked.
    #[serde(default)]
    #[param(inline)]
    tokens: Tokens,
}

/// Disables a person: their sessions and invitations end at once, and so do the API tokens they made, unless they are taken over.
#[utoipa::path(
    delete, path = "/api/v1/users/{user}", tag = "people",
    params(Disabling),
    responses((status = 204), Refused<(Operator, Missing, QueryString)>),
)]
pub(super) async fn disable(
    State(app): State<Arc<App>>,
    Operator(actor): Operator,
    path: Result<Path<Uuid>, PathRejection>,
    query: Result<Query<Disabling>, QueryRejection>,
) -> Result<StatusCode, Problem> {
    let Path(user) = path.map_err(|_| Problem::not_found())?;
    let Query(Disabling { tokens }) =
        query.map_err(|error| Problem::bad_query(error.body_text()))?;
    let tokens = match tokens {
        Tokens::Revoke => TokensOfUser::Revoke,
        Tokens::TakeOver => TokensOfUser::TakeOver,
    };
    let now = app.clock.now();
    app.control.disable_user(user, tokens, &actor, now).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lets a disabled person log in again.
#[utoipa::path(
    post, path = "/api/v1/users/{user}/enable", tag = "people",
    responses((status = 204), Refused<(Operator, Missing, Outlived)>),
)]
pub(super) async fn enable(
    State(app): State<Arc<App>>,
    Operator(actor): Operator,
    path: Result<Path<Uuid>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let Path(user) = path.map_err(|_| Problem::not_found())?;
    app.control
        .enable_user(user, &actor, app.clock.now())
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Invites a person again: makes a link to set a password with. Earlier links end; the password stays until the new one is taken.
#[utoipa::path(
    post, path = "/api/v1/users/{user}/invitation", tag = "people",
    responses((status = 201, body = UserBody), Refused<(Operator, Missing, Outlived, Overloaded)>),
)]
pub(super) async fn invite(
    State(app): State<Arc<App>>,
    Operator(actor): Operator,
    path: Result<Path<Uuid>, PathRejection>,
) -> Result<(StatusCode, Json<UserBody>), Problem> {
    let Path(user) = path.map_err(|_| Problem::not_found())?;
    let now = app.clock.now();
    let invitation = people::invite(&*app.control, user, &actor, now).await?;
    let issuers = app.control.issuers_of(user).await?;
    let user = app.control.user(user).await?;
    let body = UserBody {
        has_identity: !issuers.is_empty(),
        invitation: Some(invitation.reveal().to_owned()),
        ..user.into()
    };
    Ok((StatusCode::CREATED, Json(body)))
}

#[derive(Serialize, ToSchema)]
#[schema(as = Member)]
pub(super) struct MemberBody {
    user: Uuid,
    #[schema(schema_with = role)]
    role: &'static str,
}

#[derive(Serialize, ToSchema)]
pub(super) struct MemberList {
    members: Vec<MemberBody>,
}

/// Who has a role in the project.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/members", tag = "people",
    responses((status = 200, body = MemberList), Refused<(Admin,)>),
)]
pub(super) async fn members(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
) -> Result<Json<MemberList>, Problem> {
    let members = app.control.members_of(&member.project).await?;
    let members = members.into_iter().map(|member| MemberBody {
        user: member.user,
        role: member.role.as_str(),
    });
    Ok(Json(MemberList {
        members: members.collect(),
    }))
}

type MemberPath = Result<Path<(String, Uuid)>, PathRejection>;

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewRole)]
pub(super) struct RoleBody {
    /// `viewer`, `editor` or `admin`.
    #[schema(schema_with = role)]
    role: String,
}

/// Gives somebody a role in the project, instead of the one they have.
#[utoipa::path(
    put, path = "/api/v1/projects/{project}/members/{user}", tag = "people",
    request_body = RoleBody,
    responses((status = 204), Refused<(Admin, Missing, JsonBody, Invalid, Outlived)>),
)]
pub(super) async fn set_role(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    path: MemberPath,
    Object(body, ..): Object<RoleBody>,
) -> Result<StatusCode, Problem> {
    let Path((_, user)) = path.map_err(|_| Problem::not_found())?;
    let role: Role = body.role.parse()?;
    let membership = Membership {
        user,
        project: member.project,
        role,
    };
    let now = app.clock.now();
    app.control
        .set_membership(&membership, &member.actor, now)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes somebody's role in the project.
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}/members/{user}", tag = "people",
    responses((status = 204), Refused<(Admin, Missing)>),
)]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    path: MemberPath,
) -> Result<StatusCode, Problem> {
    let Path((_, user)) = path.map_err(|_| Problem::not_found())?;
    let now = app.clock.now();
    app.control
        .remove_membership(user, &member.project, &member.actor, now)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
