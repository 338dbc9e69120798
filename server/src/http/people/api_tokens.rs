//! `/api/v1/projects/{project}/tokens` and `/api/v1/tokens`: API tokens for a project and for the whole installation.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use unjank_database::{Actor, ApiToken, ControlError, TokenScope};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::access::api_tokens::{TokenRequest, issue};
use crate::app::App;
use crate::http::api::object::Object;
use crate::http::api::openapi::{
    GrantsAccess, Invalid, JsonBody, Missing, Overloaded, QueryString, Refused, role,
};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Admin, CredentialExpiry, Operator};

#[derive(Serialize, ToSchema)]
#[schema(as = ApiToken)]
pub(super) struct TokenBody {
    id: Uuid,
    name: String,
    /// The first characters, to recognize the token.
    prefix: String,
    /// The project of the token. `null`: all projects.
    project: Option<String>,
    /// `viewer`, `editor` or `admin`.
    #[schema(schema_with = role)]
    role: &'static str,
    scope: TokenScope,
    created_by: String,
    created_at: UnixTime,
    /// `null`: never.
    expires_at: Option<UnixTime>,
    revoked_at: Option<UnixTime>,
    /// To within a minute. `null`: never.
    last_used_at: Option<UnixTime>,
    /// The e-mail address of the creator, if the creator is a person.
    made_by: Option<String>,
    /// The token itself. Returned only once, by the request that creates it.
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<String>,
}

impl From<ApiToken> for TokenBody {
    fn from(token: ApiToken) -> Self {
        Self {
            id: token.id,
            name: token.name,
            prefix: token.prefix,
            project: token.project,
            role: token.role.as_str(),
            scope: token.scope,
            created_by: token.created_by,
            created_at: token.created_at,
            expires_at: token.expires_at,
            revoked_at: token.revoked_at,
            last_used_at: token.last_used_at,
            made_by: None,
            token: None,
        }
    }
}

/// Newest first, including tokens that have ended.
#[derive(Serialize, ToSchema)]
#[schema(as = ApiTokenList)]
pub(super) struct TokenList {
    tokens: Vec<TokenBody>,
}

/// The token to create. Its creator must be an admin of its scope, so no token has a higher role than its creator.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewApiToken)]
pub(super) struct NewToken {
    /// 1 to 200 characters.
    #[schema(
        min_length = 1,
        max_length = 200,
        pattern = r"^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$"
    )]
    name: String,
    /// `viewer`, `editor` or `admin`.
    #[schema(schema_with = role)]
    role: String,
    /// `all`, the default, or `symbols`: only for uploads of symbol files, which need the role `editor`.
    #[serde(default = "everywhere")]
    scope: TokenScope,
    /// In the future. If missing or `null`, the token is valid until it is revoked. If a token that expires creates it,
    /// it expires with that token at the latest.
    expires_at: Option<UnixTime>,
}

fn everywhere() -> TokenScope {
    TokenScope::All
}

type Made = Result<(StatusCode, Json<TokenBody>), Problem>;

/// Lists the API tokens of this project, newest first.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/tokens", tag = "api_tokens",
    responses((status = 200, body = TokenList), Refused<(Admin,)>),
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
) -> Result<Json<TokenList>, Problem> {
    let tokens = app.control.api_tokens(Some(&member.project)).await?;
    listed(&app, tokens).await
}

/// Creates an API token for this project. The token itself is returned only once.
#[utoipa::path(
    post, path = "/api/v1/projects/{project}/tokens", tag = "api_tokens",
    request_body = NewToken,
    responses((status = 201, body = TokenBody), Refused<(Admin, JsonBody, Invalid, GrantsAccess, Overloaded)>),
)]
pub(super) async fn create(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    rights: CredentialExpiry,
    Object(new, ..): Object<NewToken>,
) -> Made {
    make(&app, Some(member.project), new, &member.actor, rights).await
}

/// Revokes an API token of this project permanently.
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}/tokens/{token}", tag = "api_tokens",
    responses((status = 204), Refused<(Admin, Missing)>),
)]
pub(super) async fn revoke(
    State(app): State<Arc<App>>,
    Admin(member): Admin,
    path: Result<Path<(String, Uuid)>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let Path((_, id)) = path.map_err(|_| Problem::not_found())?;
    end(&app, id, Some(&member.project), &member.actor).await
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct Scope {
    /// Whether to list the tokens of single projects, too. Default: `false`.
    #[serde(default)]
    of_projects: bool,
}

/// Lists the API tokens for all projects, newest first.
#[utoipa::path(
    get, path = "/api/v1/tokens", tag = "api_tokens",
    params(Scope),
    responses((status = 200, body = TokenList), Refused<(Operator, QueryString)>),
)]
pub(super) async fn list_of_all(
    State(app): State<Arc<App>>,
    Operator(_): Operator,
    query: Result<Query<Scope>, QueryRejection>,
) -> Result<Json<TokenList>, Problem> {
    let Query(scope) = query.map_err(|error| Problem::bad_query(error.body_text()))?;
    let mut tokens = app.control.api_tokens(None).await?;
    if scope.of_projects {
        for project in app.control.projects().await? {
            tokens.extend(app.control.api_tokens(Some(&project.id)).await?);
        }
    }
    listed(&app, tokens).await
}

/// Creates an API token for all projects. The token itself is returned only once.
#[utoipa::path(
    post, path = "/api/v1/tokens", tag = "api_tokens",
    request_body = NewToken,
    responses((status = 201, body = TokenBody), Refused<(Operator, JsonBody, Invalid, GrantsAccess, Overloaded)>),
)]
pub(super) async fn create_for_all(
    State(app): State<Arc<App>>,
    Operator(actor): Operator,
    rights: CredentialExpiry,
    Object(new, ..): Object<NewToken>,
) -> Made {
    make(&app, None, new, &actor, rights).await
}

/// Revokes an API token for all projects permanently.
#[utoipa::path(
    delete, path = "/api/v1/tokens/{token}", tag = "api_tokens",
    responses((status = 204), Refused<(Operator, Missing)>),
)]
pub(super) async fn revoke_of_all(
    State(app): State<Arc<App>>,
    Operator(actor): Operator,
    path: Result<Path<Uuid>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let Path(id) = path.map_err(|_| Problem::not_found())?;
    end(&app, id, None, &actor).await
}

/// Adds the e-mail addresses of the creators.
async fn listed(app: &App, tokens: Vec<ApiToken>) -> Result<Json<TokenList>, Problem> {
    let mut makers: HashMap<Uuid, Option<String>> = HashMap::new();
    let mut bodies = Vec::with_capacity(tokens.len());
    for token in tokens {
        let mut body = TokenBody::from(token);
        let maker = body.created_by.strip_prefix("user:");
        if let Some(id) = maker.and_then(|id| Uuid::try_parse(id).ok()) {
            let maker = match makers.entry(id) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => {
                    new.insert(app.control.user(id).await.ok().map(|user| user.email))
                }
            };
            body.made_by.clone_from(maker);
        }
        bodies.push(body);
    }
    Ok(Json(TokenList { tokens: bodies }))
}

async fn make(
    app: &App,
    project: Option<String>,
    new: NewToken,
    actor: &Actor,
    CredentialExpiry(until): CredentialExpiry,
) -> Made {
    let role = new.role.parse().map_err(|_| {
        ControlError::Invalid("`role` must be `viewer`, `editor` or `admin`".to_owned())
    })?;
    let request = TokenRequest {
        project,
        name: new.name,
        role,
        scope: new.scope,
        expires_at: new.expires_at,
    };
    let now = app.clock.now();
    let (token, credential) = issue(&app.control, request, until, actor, now).await?;
    let body = TokenBody {
        token: Some(credential.reveal().to_owned()),
        ..token.into()
    };
    Ok((StatusCode::CREATED, Json(body)))
}

async fn end(
    app: &App,
    id: Uuid,
    project: Option<&str>,
    actor: &Actor,
) -> Result<StatusCode, Problem> {
    let now = app.clock.now();
    app.control
        .revoke_api_token(id, project, actor, now)
        .await?;
    Ok(StatusCode::NO_CONTENT)
}
