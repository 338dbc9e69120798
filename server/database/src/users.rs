//! Users: people who log in.

use serde_json::json;
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::Control;
use super::audit::{Action, Actor};
use super::backend::{Row, values};
use super::change::{Change, Entry, new_id};
use super::checks;
use super::error::ControlError;
use super::grant::Grant;
use super::invitations::END_INVITATIONS;
use super::secrets::Hidden;
use super::sessions::REVOKE_ALL_OF_USER;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    pub id: Uuid,
    /// In lower case.
    pub email: String,
    pub name: String,
    /// A PHC string. `None` until the user has set a password.
    pub password_hash: Option<Hidden>,
    /// Whether the user is admin of the whole installation, which outranks all roles.
    pub is_admin: bool,
    pub created_at: UnixTime,
    pub disabled_at: Option<UnixTime>,
}

impl User {
    pub(super) fn read(row: &Row) -> Result<Self, ControlError> {
        Ok(Self {
            id: row.id("id")?,
            email: row.get("email")?,
            name: row.get("name")?,
            password_hash: row.get::<Option<String>>("password_hash")?.map(Hidden),
            is_admin: row.get("is_admin")?,
            created_at: row.get("created_at")?,
            disabled_at: row.get("disabled_at")?,
        })
    }
}

#[derive(Clone, Debug)]
pub struct NewUser {
    pub email: String,
    pub name: String,
    pub password_hash: Option<Hidden>,
    pub is_admin: bool,
}

const INSERT: &str = "
    INSERT INTO users (id, email, name, password_hash, is_admin, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    RETURNING id, email, name, password_hash, is_admin, created_at, disabled_at";
pub(super) const GET: &str = "
    SELECT id, email, name, password_hash, is_admin, created_at, disabled_at
    FROM users
    WHERE id = $1";
pub(super) const BY_EMAIL: &str = "
    SELECT id, email, name, password_hash, is_admin, created_at, disabled_at
    FROM users
    WHERE email = $1";
const LIST: &str = "
    SELECT id, email, name, password_hash, is_admin, created_at, disabled_at
    FROM users
    WHERE email > $1
    ORDER BY email
    LIMIT $2";
const SET_PASSWORD: &str = "UPDATE users SET password_hash = $2 WHERE id = $1";
const DISABLE: &str = "UPDATE users SET disabled_at = $2 WHERE id = $1 AND disabled_at IS NULL";
const ENABLE: &str = "
    UPDATE users
    SET disabled_at = NULL
    WHERE id = $1
      AND disabled_at IS NOT NULL
    RETURNING is_admin";

/// How to treat the API tokens that a user created when the user is disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokensOfUser {
    Revoke,
    /// The tokens stay valid, as if the actor had created them.
    TakeOver,
}

impl Control {
    pub async fn create_user(
        &self,
        new: NewUser,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<User, ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        change.grants(Grant::of_a_person(new.is_admin)).await?;
        let user = change.add_user(new).await?;
        change.commit_recorded().await?;
        Ok(user)
    }

    pub async fn user(&self, id: Uuid) -> Result<User, ControlError> {
        User::read(&self.row(GET, values![id]).await?)
    }

    /// Returns the user with an e-mail address, ignoring case.
    pub async fn user_by_email(&self, email: &str) -> Result<User, ControlError> {
        let email = checks::email(email).map_err(|_| ControlError::NotFound)?;
        User::read(&self.row(BY_EMAIL, values![email]).await?)
    }

    /// Returns the users whose e-mail address follows `after`, in its order, at most 1000.
    pub async fn users(&self, after: Option<&str>, limit: u32) -> Result<Vec<User>, ControlError> {
        let values = values![after.unwrap_or_default(), checks::page(limit)];
        self.records(LIST, values, User::read).await
    }

    /// Sets a user's password. Ends all sessions of the user and all links to set a password, so that an intruder who
    /// knew the old password is locked out.
    pub async fn set_password(
        &self,
        id: Uuid,
        password_hash: Hidden,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        let values = values![id, password_hash.0];
        change.execute_found(SET_PASSWORD, values).await?;
        change.execute(REVOKE_ALL_OF_USER, values![id, at]).await?;
        change.execute(END_INVITATIONS, values![id, at]).await?;
        let subject = id.to_string();
        change
            .commit(Entry::of_installation(
                Action::PasswordSet,
                &subject,
                json!({}),
            ))
            .await
    }

    /// Disables a user. Ends the user's sessions and invitations, and revokes the user's tokens or transfers them to
    /// the actor. The user cannot log in until enabled again.
    pub async fn disable_user(
        &self,
        id: Uuid,
        tokens: TokensOfUser,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        change.execute_found(DISABLE, values![id, at]).await?;
        change.execute(REVOKE_ALL_OF_USER, values![id, at]).await?;
        change.execute(END_INVITATIONS, values![id, at]).await?;
        let maker = Actor::user(id);
        let detail = match tokens {
            TokensOfUser::Revoke => {
                json!({"tokens_revoked": change.revoke_tokens_of(&maker, None).await?})
            }
            TokensOfUser::TakeOver => {
                json!({"tokens_taken_over": change.transfer_tokens_of(&maker).await?})
            }
        };
        let subject = id.to_string();
        change
            .commit(Entry::of_installation(
                Action::UserDisabled,
                &subject,
                detail,
            ))
            .await
    }

    pub async fn enable_user(
        &self,
        id: Uuid,
        actor: &Actor,
        at: UnixTime,
    ) -> Result<(), ControlError> {
        let mut change = Change::begin(self, actor, at).await?;
        let enabled = change.row(ENABLE, values![id]).await?;
        let enabled = enabled.ok_or(ControlError::NotFound)?;
        change
            .grants(Grant::of_a_person(enabled.get("is_admin")?))
            .await?;
        let subject = id.to_string();
        change
            .commit(Entry::of_installation(
                Action::UserEnabled,
                &subject,
                json!({}),
            ))
            .await
    }
}

impl Change<'_> {
    /// Adds a user, with an audit entry.
    pub(super) async fn add_user(&mut self, new: NewUser) -> Result<User, ControlError> {
        checks::name(&new.name)?;
        let values = values![
            new_id(self.at()),
            checks::email(&new.email)?,
            new.name,
            new.password_hash.map(|hash| hash.0),
            new.is_admin,
            self.at(),
        ];
        let inserted = self.row(INSERT, values).await?;
        let user = User::read(&inserted.ok_or(ControlError::NotFound)?)?;
        let detail = json!({"email": user.email, "name": user.name, "is_admin": user.is_admin});
        let subject = user.id.to_string();
        self.record(Entry::of_installation(
            Action::UserCreated,
            &subject,
            detail,
        ))
        .await?;
        Ok(user)
    }
}
