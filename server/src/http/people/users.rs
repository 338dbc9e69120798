//! `/api/v1/users` and `/api/v1/projects/{project}/members`: people and their roles.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use unjank_database::{Membership, NewUser, Role, TokensOfUser, User};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::access::logins::{self, NewInvitation};
use crate::app::App;
use crate::http::api::object::Object;
use crate::http::api::openapi::{
    Exists, GrantsAccess, Invalid, JsonBody, Missing, Overloaded, QueryString, Refused, role,
};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Admin, Operator};

const PAGE: u32 = 100;

#[derive(Serialize, ToSchema)]
#[schema(as = User)]
pub(super) struct UserBody {
    id: Uuid,
    email: String,
    name: String,
    is_admin: bool,
    /// False until the invitation is accepted.
    has_password: bool,
    /// Whether the person can log in with an identity provider.
    has_identity: bool,
    created_at: UnixTime,
    disabled_at: Option<UnixTime>,
    /// When the open invitation expires or expired. `null` if there is none.
    invitation_expires_at: Option<UnixTime>,
    /// The secret part of the link for setting a password. Returned only once, by the request that creates it.
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
            invitation_expires_at: None,
            invitation: None,
        }
    }
}

impl UserBody {
    fn with(self, invitation: &NewInvitation) -> Self {
        Self {
            invitation_expires_at: Some(invitation.expires_at),
            invitation: Some(invitation.secret.reveal().to_owned()),
            ..self
        }
    }
}

#[derive(Serialize, ToSchema)]
pub(super) struct UserList {
    users: Vec<UserBody>,
    /// The cursor of the next page. Missing on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<String>,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct PageOfUsers {
    /// Only users whose e-mail address comes after this one.
    after: Option<String>,
}

/// Returns a page of all users, sorted by e-mail address.
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
    let invitations = app.control.open_invitations(page.after.as_deref(), PAGE);
    let invitations = invitations.await?;
    let expiries = invitations.iter().map(|open| (open.user, open.expires_at));
    let expiries: HashMap<_, _> = expiries.collect();
    let users = users.into_iter().map(|user| UserBody {
        has_identity: linked.contains(&user.id),
        invitation_expires_at: expiries.get(&user.id).copied(),
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
    /// Whether the person is an admin of the whole installation.
    #[serde(default)]
    is_admin: bool,
}

/// Creates a person and an invitation for the person.
#[utoipa::path(
    post, path = "/api/v1/users", tag = "people",
    request_body = NewPerson,
    responses((status = 201, body = UserBody), Refused<(Operator, JsonBody, Invalid, Exists, GrantsAccess, Overloaded)>),
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
    let invitation = logins::invite(&app.control, user.id, &actor, now).await?;
    let body = UserBody::from(user).with(&invitation);
    Ok((StatusCode::CREATED, Json(body)))
}

/// How to treat the API tokens that a disabled person has created.
#[derive(Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Tokens {
    /// They are revoked at once.
    #[default]
    Revoke,
    /// They stay valid, and the caller becomes their creator.
    TakeOver,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Disabling {
    /// How to treat the API tokens that the person has created. Default: they are revoked.
    #[serde(default)]
    #[param(inline)]
    tokens: Tokens,
}

/// Disables a person. Ends their sessions and invitations at once, and revokes the API tokens that they created, unless the caller takes them over.
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

/// Enables a disabled person.
#[utoipa::path(
    post, path = "/api/v1/users/{user}/enable", tag = "people",
    responses((status = 204), Refused<(Operator, Missing, GrantsAccess)>),
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

/// Invites a person again: creates a link for setting a password. Earlier links end. The old password stays valid until a new one is set.
#[utoipa::path(
    post, path = "/api/v1/users/{user}/invitation", tag = "people",
    responses((status = 201, body = UserBody), Refused<(Operator, Missing, GrantsAccess, Overloaded)>),
)]
pub(super) async fn invite(
    State(app): State<Arc<App>>,
    Operator(actor): Operator,
    path: Result<Path<Uuid>, PathRejection>,
) -> Result<(StatusCode, Json<UserBody>), Problem> {
    let Path(user) = path.map_err(|_| Problem::not_found())?;
    let now = app.clock.now();
    let invitation = logins::invite(&app.control, user, &actor, now).await?;
    let issuers = app.control.issuers_of(user).await?;
    let user = app.control.user(user).await?;
    let body = UserBody {
        has_identity: !issuers.is_empty(),
        ..user.into()
    };
    Ok((StatusCode::CREATED, Json(body.with(&invitation))))
}

/// Cancels the open invitation of a person: the link stops working. A password that the person has stays valid.
#[utoipa::path(
    delete, path = "/api/v1/users/{user}/invitation", tag = "people",
    responses((status = 204), Refused<(Operator, Missing)>),
)]
pub(super) async fn cancel_invitation(
    State(app): State<Arc<App>>,
    Operator(actor): Operator,
    path: Result<Path<Uuid>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let Path(user) = path.map_err(|_| Problem::not_found())?;
    let now = app.clock.now();
    app.control.cancel_invitation(user, &actor, now).await?;
    Ok(StatusCode::NO_CONTENT)
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

/// Lists the members of the project with their roles.
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

/// Sets a person's role in the project, and replaces the previous one.
#[utoipa::path(
    put, path = "/api/v1/projects/{project}/members/{user}", tag = "people",
    request_body = RoleBody,
    responses((status = 204), Refused<(Admin, Missing, JsonBody, Invalid, GrantsAccess)>),
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

/// Removes a person's role in the project.
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
