//! The set-up of an installation. Until a user exists, the holder of the code that the server printed at its start can
//! create the first admin.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use unjank_database::{Control, ControlError, FirstAdmin, Hidden, SecretHash};

use super::{Login, LoginError, Logins};
use crate::access::credential::{Credential, CredentialKind};
use crate::access::password;
use crate::access::throttle::{Attempt, Counted};

/// The state of the set-up. The code itself is not kept.
#[derive(Default)]
pub(super) struct SetUp {
    /// `None`: no code was made, so none is valid.
    code: Mutex<Option<SecretHash>>,
    /// Whether a user is known to exist. Users are never deleted, so this never becomes false again.
    is_done: AtomicBool,
}

impl SetUp {
    fn offered(&self) -> MutexGuard<'_, Option<SecretHash>> {
        self.code.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn accepts(&self, code: &str) -> bool {
        let offered = *self.offered();
        let given = SecretHash::new(code);
        offered.is_some_and(|offered| {
            aws_lc_rs::constant_time::verify_slices_are_equal(&offered.0, &given.0).is_ok()
        })
    }
}

/// The first admin, as entered in the browser.
pub struct NewAdmin {
    pub email: String,
    pub name: String,
    pub password: String,
}

impl Logins {
    /// Makes the set-up code, which replaces an earlier one. Returns `None` if the installation has a user.
    pub async fn offer_set_up(&self, control: &Control) -> Result<Option<Credential>, LoginError> {
        if !self.needs_set_up(control).await? {
            return Ok(None);
        }
        let code = Credential::new(CredentialKind::SetUp).map_err(|_| LoginError::NoRandomness)?;
        *self.set_up.offered() = Some(code.hash());
        Ok(Some(code))
    }

    /// Whether the installation has no user yet.
    pub async fn needs_set_up(&self, control: &Control) -> Result<bool, ControlError> {
        if self.set_up.is_done.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let has_users = control.has_users().await?;
        if has_users {
            self.set_up.is_done.store(true, Ordering::Relaxed);
        }
        Ok(!has_users)
    }

    /// Creates the first admin and logs the admin in. Servers that share a control database have one code each. If
    /// several set-ups race, the database lets one succeed.
    pub async fn set_up(
        &self,
        control: &Control,
        code: &str,
        admin: NewAdmin,
        attempt: Attempt,
    ) -> Result<Login, LoginError> {
        if !self.needs_set_up(control).await? {
            return Err(LoginError::AlreadySetUp);
        }
        let [address] = Counted::without_account(attempt.address);
        let counted = [address, Counted::SetUp];
        // Only wrong codes are throttled: other people's guesses must not lock out the holder of the code.
        if !self.set_up.accepts(code) {
            let _waiting = self.delay(&counted, &attempt).await?;
            return Err(LoginError::WrongSetUpCode);
        }
        let NewAdmin {
            email,
            name,
            password,
        } = admin;
        let hash = self.hash(move || password::hash(&password)).await;
        let first = FirstAdmin {
            email,
            name,
            password_hash: Hidden(hash.ok_or(LoginError::NoRandomness)??),
        };
        let user = match control.create_first_admin(first, attempt.now).await {
            Err(ControlError::AlreadyExists) => return Err(LoginError::AlreadySetUp),
            created => created?,
        };
        self.start_session(control, &user, None, attempt.now).await
    }
}
