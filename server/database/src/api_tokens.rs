//! API tokens: credentials of scripts and CI, for one project or for the whole installation.

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Notice, Row, values};
use super::change::{Change, Entry, new_id};
use super::checks;
use super::error::ControlError;
use super::grant::Grant;
use super::role::Role;
use super::secrets::SecretHash;
use super::text_enum::text_enum;

text_enum! {
    /// Where a token is valid: everywhere, or only for symbol files.
    TokenScope { All = "all", Symbols = "symbols" }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiToken {
    pub id: Uuid,
    /// `None` means every project.
    pub project: Option<String>,
    pub name: String,
    /// The first eight characters, by which people identify their tokens.
    pub prefix: String,
    pub hash: SecretHash,
    pub role: Role,
    pub scope: TokenScope,
    pub created_by: String,
    pub created_at: UnixTime,
    pub expires_at: Option<UnixTime>,
    pub last_used_at: Option<UnixTime>,
    pub revoked_at: Option<UnixTime>,
}

impl ApiToken {
    fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id("id")?,
            project: row.get("project")?,
            name: row.get("name")?,
            prefix: row.get("prefix")?,
            hash: SecretHash::read(row, "hash")?,
            role: row.parsed("role")?,
            scope: row.parsed("scope")?,
            created_by: row.get("created_by")?,
            created_at: row.get("created_at")?,
            expires_at: row.get("expires_at")?,
            last_used_at: row.get("last_used_at")?,
            revoked_at: row.get("revoked_at")?,
        })
    }

    /// Whether the token is valid at `now`.
    #[must_use]
    pub fn is_active(&self, now: UnixTime) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| end > now)
    }
}

#[derive(Clone, Debug)]
pub struct NewApiToken {
    pub project: Option<String>,
    pub name: String,
    pub prefix: String,
    pub hash: SecretHash,
    pub role: Role,
    pub scope: TokenScope,
    pub expires_at: Option<UnixTime>,
}

macro_rules! columns {
    () => {
        "id, project, name, prefix, hash, role, scope, created_by, created_at, expires_at, last_used_at, revoked_at"
    };
}

const INSERT: &str = concat!(
    "
    INSERT INTO api_tokens (id, project, name, prefix, hash, role, scope, created_by, created_at, expires_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
    RETURNING ",
    columns!()
);
const BY_HASH: &str = concat!("SELECT ", columns!(), " FROM api_tokens WHERE hash = $1");
const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM api_tokens WHERE COALESCE(project, '') = COALESCE($1, '') ORDER BY created_at DESC, id DESC"
);
const REVOKE: &str = "
    UPDATE api_tokens
    SET revoked_at = $3
    WHERE id = $1
      AND COALESCE(project, '') = COALESCE($2, '')
      AND revoked_at IS NULL";
/// Never moves the time backwards, whichever of two servers writes first.
const TOUCH: &str =
    "UPDATE api_tokens SET last_used_at = $2 WHERE id = $1 AND COALESCE(last_used_at, 0) < $2";

impl Control {
    pub async fn create_api_token(
        &self,
        new: NewApiToken,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<ApiToken, ControlError> {
        checks::name(&new.name)?;
        checks::name(&new.prefix)?;
        let mut change = Change::begin(self, actor, at).await?;
        let grant = Grant {
            project: new.project.as_deref(),
            role: new.role,
            until: new.expires_at,
        };
        change.grants(grant).await?;
        let values = values![
            new_id(at),
            new.project,
            new.name,
            new.prefix,
            new.hash,
            new.role.as_str(),
            new.scope.as_str(),
            actor.to_string(),
            at,
            new.expires_at,
        ];
        let inserted = change.row(INSERT, values).await?;
        let token = ApiToken::read(&inserted.ok_or(ControlError::NotFound)?)?;
        change
            .commit(Entry {
                action: Action::ApiTokenCreated,
                project: token.project.as_deref(),
                subject: &token.id.to_string(),
                detail: json!({
                    "name": token.name, "prefix": token.prefix, "role": token.role.as_str(),
                    "scope": token.scope.as_str(), "expires_at": token.expires_at,
                }),
            })
            .await?;
        Ok(token)
    }

    /// Returns a token even if it is revoked or expired. See [`ApiToken::is_active`].
    pub async fn api_token_by_hash(&self, hash: SecretHash) -> Result<ApiToken, ControlError> {
        ApiToken::read(&self.row(BY_HASH, values![hash]).await?)
    }

    /// Returns the tokens of a project or of the whole installation, latest first, including revoked and expired ones.
    pub async fn api_tokens(&self, project: Option<&str>) -> Result<Vec<ApiToken>, ControlError> {
        self.records(LIST, values![project], ApiToken::read).await
    }

    /// Revokes a token permanently, together with the tokens created with it.
    pub async fn revoke_api_token(
        &self,
        id: Uuid,
        project: Option<&str>,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        change
            .execute_found(REVOKE, values![id, project, at])
            .await?;
        let made = change.revoke_tokens_of(&Actor::token(id), None).await?;
        change
            .commit(Entry {
                action: Action::ApiTokenRevoked,
                project,
                subject: &id.to_string(),
                detail: json!({"tokens_made_with_it": made}),
            })
            .await
    }

    /// Records a use of a token, without an audit entry. Call it occasionally, not at each use.
    pub async fn touch_api_token(&self, id: Uuid, at: UnixTime) -> Result<(), ControlError> {
        let actor = Actor::system("api");
        let mut change = Change::begin(self, &actor, at).await?;
        change.execute(TOUCH, values![id, at]).await?;
        change.commit_unrecorded(Notice::Silent).await
    }
}
