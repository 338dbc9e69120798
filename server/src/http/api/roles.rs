//! The access rules for people and tools. A handler with a [`Viewer`], [`Editor`] or [`Admin`] parameter runs only for a caller with that role in the
//! project of the path. A handler with an [`Operator`] parameter runs only for an admin of the whole installation.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Path};
use axum::http::HeaderValue;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use unjank_database::{Actor, ControlError, Role, SecretHash, TokenScope, User};
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::cookies::session_cookie;
use super::openapi::Refuses;
use super::problem::Problem;
use crate::app::App;

/// Minimum time between two saves of a token's last use.
const TOUCH_EVERY: Duration = Duration::from_secs(60);

/// A caller who may read the project.
pub(crate) struct Viewer(pub(crate) Member);
/// A caller who may change configurations.
pub(crate) struct Editor(pub(crate) Member);
/// A caller who may change keys and members.
pub(crate) struct Admin(pub(crate) Member);
/// A caller who may read the project, or a token that is only for its symbol files.
pub(crate) struct SymbolReader(pub(crate) Member);
/// A token that may upload symbol files, whatever its scope.
pub(crate) struct Uploader {
    pub(crate) actor: Actor,
    /// `None`: to every project.
    pub(crate) project: Option<String>,
}
/// A caller who may create projects.
pub(crate) struct Operator(pub(crate) Actor);

/// Whether the caller is an admin of the whole installation.
pub(crate) struct IsOperator(pub(crate) bool);

/// When the caller's rights expire: with its token, if the token expires.
pub(crate) struct CredentialExpiry(pub(crate) Option<UnixTime>);

/// A caller with a role in a project.
pub(crate) struct Member {
    pub(crate) project: String,
    pub(crate) actor: Actor,
    pub(crate) role: Role,
}

/// A person who is logged in.
pub(crate) struct Person {
    pub(crate) user: User,
    pub(crate) session: Uuid,
}

/// The owner of a valid credential, and its rights.
enum Principal {
    /// An API token, for one project or for all.
    Token {
        actor: Actor,
        project: Option<String>,
        role: Role,
        scope: TokenScope,
        expires_at: Option<UnixTime>,
    },
    Person(User),
}

impl Principal {
    /// A token in the header takes precedence over a cookie, because a client sends it on purpose.
    async fn from_request(parts: &Parts, app: &App) -> Result<Self, Problem> {
        match parts.headers.get(AUTHORIZATION) {
            Some(header) => match Self::of_token(header, app).await? {
                Self::Token {
                    scope: TokenScope::Symbols,
                    ..
                } => Err(Problem::role(
                    "viewer, and a token that is not limited to symbol files",
                )),
                principal => Ok(principal),
            },
            None => Ok(Self::Person(person(parts, app).await?.user)),
        }
    }

    async fn of_token(header: &HeaderValue, app: &App) -> Result<Self, Problem> {
        let token = header
            .to_str()
            .ok()
            .and_then(|header| header.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim())
            .ok_or_else(Problem::no_token)?;
        let now = app.clock.now();
        let found = app.control.api_token_by_hash(SecretHash::new(token)).await;
        let token = match found {
            Ok(token) if token.is_active(now) => token,
            Ok(_) | Err(ControlError::NotFound) => return Err(Problem::unknown_token()),
            Err(error) => return Err(error.into()),
        };
        if token
            .last_used_at
            .is_none_or(|at| now.since(at) >= TOUCH_EVERY)
        {
            // The request continues: only the time of the last use is not saved.
            let _shown_later = app.control.touch_api_token(token.id, now).await.is_err();
        }
        Ok(Self::Token {
            actor: Actor::token(token.id),
            project: token.project,
            role: token.role,
            scope: token.scope,
            expires_at: token.expires_at,
        })
    }

    fn into_actor(self) -> Actor {
        match self {
            Self::Token { actor, .. } => actor,
            Self::Person(user) => Actor::user(user.id),
        }
    }

    /// Returns the role in a project, if there is one.
    async fn role_in(&self, project: &str, app: &App) -> Result<Option<Role>, Problem> {
        match self {
            Self::Token {
                project: only,
                role,
                ..
            } => Ok(only
                .as_ref()
                .is_none_or(|only| only == project)
                .then_some(*role)),
            Self::Person(user) if user.is_admin => Ok(Some(Role::Admin)),
            Self::Person(user) => {
                let roles = app.control.roles_of(user.id).await?;
                let mine = roles.iter().find(|one| one.project == project);
                Ok(mine.map(|one| one.role))
            }
        }
    }

    fn is_operator(&self) -> bool {
        match self {
            Self::Token { project, role, .. } => project.is_none() && *role == Role::Admin,
            Self::Person(user) => user.is_admin,
        }
    }
}

async fn person(parts: &Parts, app: &App) -> Result<Person, Problem> {
    let token = session_cookie(&parts.headers);
    let token = token.ok_or_else(|| match parts.headers.contains_key(AUTHORIZATION) {
        true => Problem::no_session(),
        false => Problem::no_token(),
    })?;
    let now = app.clock.now();
    let (holder, user) = app.logins.holder(&app.control, token, now).await?;
    Ok(Person {
        user,
        session: holder.session,
    })
}

/// Checks the role of the caller. A caller without access to a project does not learn whether the project exists.
async fn member(parts: &mut Parts, app: &App, needed: Role) -> Result<Member, Problem> {
    let principal = Principal::from_request(parts, app).await?;
    member_as(principal, parts, app, needed).await
}

async fn member_as(
    principal: Principal,
    parts: &mut Parts,
    app: &App,
    needed: Role,
) -> Result<Member, Problem> {
    let Path(path): Path<HashMap<String, String>> = Path::from_request_parts(parts, &())
        .await
        .map_err(|_| Problem::not_found())?;
    let project = path.get("project").ok_or_else(Problem::not_found)?;
    let role = principal.role_in(project, app).await?;
    let role = role.ok_or_else(Problem::no_project)?;
    match app.control.project(project).await {
        Ok(_) => {}
        // A name that the database cannot store does not exist.
        Err(ControlError::NotFound | ControlError::Invalid(_)) => return Err(Problem::no_project()),
        Err(error) => return Err(error.into()),
    }
    if role < needed {
        return Err(Problem::role(needed.as_str()));
    }
    Ok(Member {
        project: project.clone(),
        actor: principal.into_actor(),
        role,
    })
}

impl FromRequestParts<Arc<App>> for Person {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        person(parts, app).await
    }
}

impl FromRequestParts<Arc<App>> for Viewer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        member(parts, app, Role::Viewer).await.map(Self)
    }
}

impl FromRequestParts<Arc<App>> for Editor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        member(parts, app, Role::Editor).await.map(Self)
    }
}

impl FromRequestParts<Arc<App>> for Admin {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        member(parts, app, Role::Admin).await.map(Self)
    }
}

impl FromRequestParts<Arc<App>> for SymbolReader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let principal = match parts.headers.get(AUTHORIZATION) {
            Some(header) => Principal::of_token(header, app).await?,
            None => Principal::from_request(parts, app).await?,
        };
        let member = member_as(principal, parts, app, Role::Viewer).await;
        member.map(Self)
    }
}

impl FromRequestParts<Arc<App>> for Uploader {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let header = parts.headers.get(AUTHORIZATION);
        let header = header.ok_or_else(Problem::no_token)?;
        match Principal::of_token(header, app).await? {
            Principal::Token {
                actor,
                project,
                role,
                ..
            } if role >= Role::Editor => Ok(Self { actor, project }),
            _ => Err(Problem::role(Role::Editor.as_str())),
        }
    }
}

impl FromRequestParts<Arc<App>> for CredentialExpiry {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        Ok(Self(match Principal::from_request(parts, app).await? {
            Principal::Token { expires_at, .. } => expires_at,
            Principal::Person(_) => None,
        }))
    }
}

impl FromRequestParts<Arc<App>> for IsOperator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        Ok(Self(
            Principal::from_request(parts, app).await?.is_operator(),
        ))
    }
}

impl FromRequestParts<Arc<App>> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let principal = Principal::from_request(parts, app).await?;
        if !principal.is_operator() {
            return Err(Problem::role("admin of the installation"));
        }
        Ok(Self(principal.into_actor()))
    }
}

impl Refuses for Viewer {
    const CODES: &'static [&'static str] = &[
        "token_missing",
        "token_unknown",
        "session_ended",
        "project_unknown",
        "control_unavailable",
        "role",
    ];
}

impl Refuses for SymbolReader {
    const CODES: &'static [&'static str] = Viewer::CODES;
}

impl Refuses for Editor {
    const CODES: &'static [&'static str] = &[
        "token_missing",
        "token_unknown",
        "session_ended",
        "project_unknown",
        "control_unavailable",
        "role",
    ];
}

impl Refuses for Admin {
    const CODES: &'static [&'static str] = &[
        "token_missing",
        "token_unknown",
        "session_ended",
        "project_unknown",
        "control_unavailable",
        "role",
    ];
}

impl Refuses for Operator {
    const CODES: &'static [&'static str] = &[
        "token_missing",
        "token_unknown",
        "session_ended",
        "control_unavailable",
        "role",
    ];
}

impl Refuses for Person {
    const CODES: &'static [&'static str] =
        &["token_missing", "session_ended", "control_unavailable"];
}
