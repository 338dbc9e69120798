//! Issues API tokens, under the same rules for the command line and the API.

use unjank_database::{Actor, ApiToken, Control, ControlError, NewApiToken, Role, TokenScope};
use unjank_foundation::clock::UnixTime;

use super::credential::{Credential, CredentialKind, NoRandomness};

/// A request for a token.
#[derive(Clone, Debug)]
pub struct TokenRequest {
    /// `None` means every project.
    pub project: Option<String>,
    pub name: String,
    pub role: Role,
    pub scope: TokenScope,
    /// `None` means until the token is revoked.
    pub expires_at: Option<UnixTime>,
}

#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    #[error("the expiry of a token must be in the future")]
    AlreadyOver,
    #[error(transparent)]
    NoRandomness(#[from] NoRandomness),
    #[error(transparent)]
    Control(#[from] ControlError),
}

/// Issues a token. Its text is returned here and never again.
///
/// `until` is the expiry of the token that the caller uses, if any. It is the default expiry of the new token; the
/// control database rejects a later one.
pub async fn issue(
    control: &Control,
    request: TokenRequest,
    until: Option<UnixTime>,
    actor: &Actor,
    now: UnixTime,
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
        scope: request.scope,
        expires_at: request.expires_at.or(until),
    };
    let token = control.create_api_token(new, actor, now).await?;
    Ok((token, credential))
}
