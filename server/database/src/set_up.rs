//! The first user of an installation.

use unjank_foundation::clock::UnixTime;

use super::Control;
use super::audit::Actor;
use super::backend::values;
use super::change::Change;
use super::error::ControlError;
use super::secrets::Hidden;
use super::users::{NewUser, User};

/// The admin who sets up the installation.
#[derive(Clone, Debug)]
pub struct FirstAdmin {
    pub email: String,
    pub name: String,
    pub password_hash: Hidden,
}

/// Locks a row, so that set-ups run one after the other: on PostgreSQL, the second one waits for the first and then sees
/// its user. The lease itself has always expired.
const LOCK: &str = "
    INSERT INTO leases (name, holder, until)
    VALUES ('set-up', 'set-up', 0)
    ON CONFLICT (name) DO UPDATE SET until = 0";
const ANY: &str = "SELECT id FROM users LIMIT 1";

impl Control {
    /// Whether the installation has a user. Users are disabled, never deleted.
    pub async fn has_users(&self) -> Result<bool, ControlError> {
        Ok(!self.rows(ANY, values![]).await?.is_empty())
    }

    /// Creates the first user, who is admin of the installation. Returns [`ControlError::AlreadyExists`] if there is a user.
    pub async fn create_first_admin(
        &self,
        first: FirstAdmin,
        at: UnixTime,
    ) -> Result<User, ControlError> {
        let actor = Actor::system("set-up");
        let mut change = Change::begin(self, &actor, at).await?;
        change.execute(LOCK, values![]).await?;
        if change.row(ANY, values![]).await?.is_some() {
            return Err(ControlError::AlreadyExists);
        }
        let new = NewUser {
            email: first.email,
            name: first.name,
            password_hash: Some(first.password_hash),
            is_admin: true,
        };
        let user = change.add_user(new).await?;
        change.commit_recorded().await?;
        Ok(user)
    }
}
