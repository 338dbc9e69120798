//! The access rules of people and machines: a handler that takes a [`Viewer`], [`Editor`] or [`Admin`] runs only for somebody
//! with that role in the project of the path; one that takes an [`Operator`] only for an admin of the whole installation.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{FromRequestParts, Path};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::problem::Problem;
use crate::app::App;
use crate::store::control::{Actor, ControlError, Role, SecretHash};

/// Somebody who may look, in the project.
pub(super) struct Viewer(pub(super) Member);
/// Somebody who may change configurations.
pub(super) struct Editor(pub(super) Member);
/// Somebody who may change keys and people.
pub(super) struct Admin(pub(super) Member);
/// Somebody who may make projects.
pub(super) struct Operator(pub(super) Actor);

/// Who it is and where.
pub(super) struct Member {
    pub(super) project: String,
    pub(super) actor: Actor,
}

/// Who presented a valid credential, and what it is good for.
struct Principal {
    actor: Actor,
    /// The one project it is for; `None` is all.
    project: Option<String>,
    role: Role,
}

impl Principal {
    async fn of(parts: &Parts, app: &App) -> Result<Self, Problem> {
        let header = parts
            .headers
            .get(AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .ok_or_else(Problem::no_token)?;
        let token = header
            .split_once(' ')
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, token)| token.trim())
            .ok_or_else(Problem::no_token)?;
        let found = app.control.api_token_by_hash(SecretHash::of(token)).await;
        let token = match found {
            Ok(token) if token.is_active(app.clock.now()) => token,
            Ok(_) | Err(ControlError::NotFound) => return Err(Problem::unknown_token()),
            Err(error) => return Err(error.into()),
        };
        Ok(Self {
            actor: Actor::token(token.id),
            project: token.project,
            role: token.role,
        })
    }

    /// Somebody without any access to a project does not learn whether it exists.
    async fn member(self, parts: &mut Parts, app: &App, needed: Role) -> Result<Member, Problem> {
        let Path(path): Path<HashMap<String, String>> = Path::from_request_parts(parts, &())
            .await
            .map_err(|_| Problem::not_found())?;
        let project = path.get("project").ok_or_else(Problem::not_found)?;
        if self.project.as_ref().is_some_and(|only| only != project)
            || app.access.project(project).is_none()
        {
            return Err(Problem::no_project());
        }
        if self.role < needed {
            return Err(Problem::role(needed.as_str()));
        }
        Ok(Member {
            project: project.clone(),
            actor: self.actor,
        })
    }
}

async fn member(parts: &mut Parts, app: &App, needed: Role) -> Result<Member, Problem> {
    let principal = Principal::of(parts, app).await?;
    principal.member(parts, app, needed).await
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

impl FromRequestParts<Arc<App>> for Operator {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let principal = Principal::of(parts, app).await?;
        if principal.project.is_some() || principal.role < Role::Admin {
            return Err(Problem::role("admin of the installation"));
        }
        Ok(Self(principal.actor))
    }
}
