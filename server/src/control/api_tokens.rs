//! How an API token is made: the same rules for the command line and for the API.

use super::credential::{Credential, CredentialKind, NoRandomness};
use crate::store::control::{Actor, ApiToken, Control, ControlError, NewApiToken, Role};

/// What somebody wants a token for.
#[derive(Clone, Debug)]
pub struct TokenRequest {
    /// `None` is every project.
    pub project: Option<String>,
    pub name: String,
    pub role: Role,
    /// Microseconds since the epoch; `None` is until it is revoked.
    pub expires_at: Option<i64>,
}

#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    #[error("a token ends in the future")]
    AlreadyOver,
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    #[error(transparent)]
    Control(#[from] ControlError),
}

/// Makes a token. Its text is answered once, here.
///
/// `until` is when the maker's own right ends, if it is a token that does: what it makes ends then too, unless it is to end before.
pub async fn issue(
    control: &dyn Control,
    request: TokenRequest,
    until: Option<i64>,
    (actor, now): (&Actor, i64),
) -> Result<(ApiToken, Credential), IssueError> {
    if request.expires_at.is_some_and(|end| end <= now) {
        return Err(IssueError::AlreadyOver);
    }
    let credential = Credential::new(CredentialKind::ApiToken)?;
    let new = NewApiToken {
        project: request.project,
        name: request.name,
        prefix: credential.shown().to_owned(),
        hash: credential.hash(),
        role: request.role,
        expires_at: request.expires_at.or(until),
    };
    let token = control.create_api_token(new, actor, now).await?;
    Ok((token, credential))
}
