//! Logins of people. A login is a session in the database; the browser holds a session token that is valid for minutes
//! and a single-use refresh token that gets the next one.

mod set_up;

pub use self::set_up::NewAdmin;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use unjank_database::{
    Actor, Control, ControlError, Hidden, Invitation, NewSession, Rotation, SecretHash,
    TokenExchange, User,
};
use unjank_foundation::clock::UnixTime;
use unjank_foundation::fingerprint::fingerprint;
use unjank_foundation::shares::{Holder, Share, Shares};
use uuid::Uuid;

use self::set_up::SetUp;
use super::credential::{Credential, CredentialKind};
use super::instance_secret::InstanceSecret;
use super::password::{self, PasswordError};
use super::session_token::{SessionHolder, SessionTokens};
use super::throttle::{Attempt, Counted, Throttle};

/// How long an unused session is valid.
pub const SESSION_LIFE: Duration = Duration::from_secs(14 * 86_400);
/// How long an invitation is valid.
const INVITATION_LIFE: Duration = Duration::from_secs(7 * 86_400);

/// The maximum number of passwords hashed concurrently. Each takes 19 MiB and a core.
const MOST_HASHES: usize = 2;
/// The maximum number of logins that are delayed or wait for their hash: in all, and per address.
const MOST_WAITING: usize = 256;
const MOST_WAITING_FROM_ONE_ADDRESS: usize = 32;

#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The same error for an unknown user, a wrong password and a disabled account.
    #[error("the e-mail address or the password is wrong")]
    Refused,
    /// Too many attempts on one account or from one address.
    #[error("too many login attempts; retry in {} s", .retry_after_s)]
    TooMany { retry_after_s: i64 },
    /// The refresh token has been used before or has expired, or its session has ended.
    #[error("the session has ended; log in again")]
    Ended,
    #[error("the link is invalid, has expired or has been used before; ask for a new one")]
    NoInvitation,
    #[error("the set-up code is wrong; use the one that the server printed at its last start")]
    WrongSetUpCode,
    #[error("this installation is set up already; log in")]
    AlreadySetUp,
    #[error(transparent)]
    Password(#[from] PasswordError),
    #[error("the system provides no random numbers")]
    NoRandomness,
    #[error(transparent)]
    Control(#[from] ControlError),
}

/// The tokens that a browser receives.
pub struct Login {
    /// Authenticates each request. Valid for minutes.
    pub session_token: String,
    /// Gets the next session token. Single-use.
    pub refresh: Credential,
    pub user: Uuid,
    /// Identifies the browser at its next login.
    pub known_device: Option<String>,
}

/// Logs people in and verifies their sessions.
pub struct Logins {
    tokens: SessionTokens,
    secret: Arc<InstanceSecret>,
    hashing: Arc<Semaphore>,
    waiting: Arc<Shares>,
    throttle: Throttle,
    set_up: SetUp,
}

impl Logins {
    pub fn new(secret: Arc<InstanceSecret>) -> Self {
        Self {
            tokens: SessionTokens::new(&secret),
            secret,
            hashing: Arc::new(Semaphore::new(MOST_HASHES)),
            waiting: Shares::new(MOST_WAITING, MOST_WAITING_FROM_ONE_ADDRESS),
            throttle: Throttle::default(),
            set_up: SetUp::default(),
        }
    }

    pub async fn log_in(
        &self,
        control: &Control,
        email: &str,
        password: String,
        attempt: Attempt,
    ) -> Result<Login, LoginError> {
        let now = attempt.now;
        let user = match control.user_by_email(email).await {
            Ok(user) => Some(user),
            Err(ControlError::NotFound) => None,
            Err(error) => return Err(error.into()),
        };
        let account = fingerprint(&[email.trim().to_lowercase().as_bytes()]);
        let device = user
            .as_ref()
            .and_then(|user| self.known_device(user, attempt.known_device.as_deref()));
        let counted = match device {
            Some(device) => vec![Counted::Device(device)],
            None => Counted::unknown_device(account, attempt.address).to_vec(),
        };
        let _waiting = self.delay(&counted, &attempt).await?;
        let user = self.verified(user, password).await?;
        self.throttle.give_back(&counted);
        self.start_session(control, &user, None, now).await
    }

    /// Logs in a person authenticated by an identity provider. The session ends at `ends_at`, so that the person has to
    /// authenticate there again.
    pub async fn log_in_federated(
        &self,
        control: &Control,
        user: &User,
        (ends_at, now): (UnixTime, UnixTime),
    ) -> Result<Login, LoginError> {
        self.start_session(control, user, Some(ends_at), now).await
    }

    /// Returns the user if the password is correct and the account enabled.
    async fn verified(&self, user: Option<User>, password: String) -> Result<User, LoginError> {
        let stored = user
            .as_ref()
            .and_then(|user| user.password_hash.as_ref())
            .map(|hash| hash.0.clone());
        let matches = self
            .hash(move || password::verify(&password, stored.as_deref()))
            .await;
        user.filter(|user| matches == Some(true) && user.disabled_at.is_none())
            .ok_or(LoginError::Refused)
    }

    /// Changes a password, given the current one. Ends all sessions and starts a new one.
    pub async fn change_password(
        &self,
        control: &Control,
        user: User,
        (present, wanted): (String, String),
        attempt: Attempt,
    ) -> Result<Login, LoginError> {
        let (id, now) = (user.id, attempt.now);
        let counted = Counted::unknown_device(fingerprint(&[id.as_bytes()]), attempt.address);
        let _waiting = self.delay(&counted, &attempt).await?;
        self.verified(Some(user), present).await?;
        self.throttle.give_back(&counted);
        let hash = self.hash(move || password::hash(&wanted)).await;
        let hash = hash.ok_or(LoginError::NoRandomness)??;
        control
            .set_password(id, Hidden(hash), &Actor::user(id), now)
            .await?;
        let user = control.user(id).await?;
        self.start_session(control, &user, None, now).await
    }

    /// Sets the password for an invitation, and logs the person in.
    pub async fn accept_invitation(
        &self,
        control: &Control,
        token: &str,
        password: String,
        attempt: Attempt,
    ) -> Result<Login, LoginError> {
        let now = attempt.now;
        let counted = Counted::without_account(attempt.address);
        let _waiting = self.delay(&counted, &attempt).await?;
        // Hash first, so that an unacceptable password does not use up the link.
        let hash = self.hash(move || password::hash(&password)).await;
        let hash = hash.ok_or(LoginError::NoRandomness)??;
        let actor = Actor::system("invitation");
        let taken = control
            .take_invitation(SecretHash::new(token), &actor, now)
            .await;
        let user = match taken {
            Ok(user) => user,
            Err(ControlError::NotFound) => return Err(LoginError::NoInvitation),
            Err(error) => return Err(error.into()),
        };
        self.throttle.give_back(&counted);
        let actor = Actor::user(user);
        control
            .set_password(user, Hidden(hash), &actor, now)
            .await?;
        let user = control.user(user).await?;
        self.start_session(control, &user, None, now).await
    }

    async fn start_session(
        &self,
        control: &Control,
        user: &User,
        ends_at: Option<UnixTime>,
        now: UnixTime,
    ) -> Result<Login, LoginError> {
        let refresh =
            Credential::new(CredentialKind::Refresh).map_err(|_| LoginError::NoRandomness)?;
        let new = NewSession {
            user: user.id,
            token_hash: refresh.hash(),
            expires_at: now + SESSION_LIFE,
            ends_at,
        };
        let session = match control
            .create_session(new, &Actor::user(user.id), now)
            .await
        {
            Err(ControlError::NotFound) => return Err(LoginError::Refused),
            other => other?,
        };
        let login = self.login(session.id, user.id, refresh, now)?;
        let known_device = self.new_device(user.id);
        Ok(Login {
            known_device,
            ..login
        })
    }

    /// Exchanges a refresh token for the next pair of tokens. A refresh token that is reused after a while has been
    /// stolen, so its session is ended. A refresh token that is reused at once comes from another tab or after a lost
    /// response, and gets the same successor as before. The session thus has a single valid token, and if a thief
    /// shares it with the owner, its later use reveals the theft.
    pub async fn refresh(
        &self,
        control: &Control,
        refresh_token: &str,
        now: UnixTime,
    ) -> Result<Login, LoginError> {
        let next = Credential::of(
            CredentialKind::Refresh,
            self.secret.successor(refresh_token),
        );
        let exchange = TokenExchange {
            old: SecretHash::new(refresh_token),
            new: next.hash(),
            expires_at: now + SESSION_LIFE,
        };
        match control.rotate_session(exchange, now).await {
            Ok(Rotation::Rotated(session)) => self.login(session.id, session.user, next, now),
            Ok(Rotation::Reused { session, user }) => {
                tracing::warn!(%session, %user, "a refresh token was reused; its session has been ended");
                Err(LoginError::Ended)
            }
            Ok(Rotation::Ended) | Err(ControlError::NotFound) => Err(LoginError::Ended),
            Err(error) => Err(error.into()),
        }
    }

    fn login(
        &self,
        session: Uuid,
        user: Uuid,
        refresh: Credential,
        now: UnixTime,
    ) -> Result<Login, LoginError> {
        let token = self.tokens.sign(SessionHolder { session, user }, now);
        Ok(Login {
            session_token: token.ok_or(LoginError::NoRandomness)?,
            refresh,
            user,
            known_device: None,
        })
    }

    /// Returns the holder of a session token, unless the session has ended or the user is disabled.
    pub async fn holder(
        &self,
        control: &Control,
        token: &str,
        now: UnixTime,
    ) -> Result<(SessionHolder, User), LoginError> {
        let holder = self.tokens.verify(token, now).ok_or(LoginError::Ended)?;
        let sessions = control.sessions_of(holder.user, now).await?;
        if !sessions.iter().any(|session| session.id == holder.session) {
            return Err(LoginError::Ended);
        }
        let user = control.user(holder.user).await?;
        if user.disabled_at.is_some() {
            return Err(LoginError::Ended);
        }
        Ok((holder, user))
    }

    /// Runs slow, blocking hash work off the request threads, with limited concurrency. Once started, the work runs to
    /// its end and keeps its permit, even if the future is dropped.
    async fn hash<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let permit = Arc::clone(&self.hashing).acquire_owned().await.ok()?;
        let done = tokio::task::spawn_blocking(move || {
            let done = work();
            drop(permit);
            done
        });
        done.await.ok()
    }

    /// Delays a login attempt as the throttle demands. Limits how many attempts wait at a time.
    async fn delay(&self, counted: &[Counted], attempt: &Attempt) -> Result<Share, LoginError> {
        let too_many = |wait: Duration| {
            let retry_after_s = i64::try_from(wait.as_secs()).unwrap_or(i64::MAX);
            LoginError::TooMany {
                retry_after_s: retry_after_s.saturating_add(1),
            }
        };
        let waiting = self.waiting.try_take(Holder::address(attempt.address), 1);
        let waiting = waiting.ok_or_else(|| too_many(Duration::from_secs(5)))?;
        let delay = self.throttle.take(counted, attempt.now).map_err(too_many)?;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        Ok(waiting)
    }

    /// Returns the throttle id of a browser that has logged in to this account before.
    fn known_device(&self, user: &User, sealed: Option<&str>) -> Option<u64> {
        let device = self.secret.open(&context_of(user.id), sealed?).ok()?;
        Some(fingerprint(&[device.as_bytes()]))
    }

    fn new_device(&self, user: Uuid) -> Option<String> {
        let device = Uuid::new_v4().to_string();
        self.secret.seal(&context_of(user), &device).ok()
    }
}

fn context_of(user: Uuid) -> String {
    format!("known device of {user}")
}

/// A new invitation. Its secret part is shown once.
pub struct NewInvitation {
    pub secret: Credential,
    pub expires_at: UnixTime,
}

/// Creates a single-use link for a user to set a password.
pub async fn invite(
    control: &Control,
    user: Uuid,
    actor: &Actor,
    now: UnixTime,
) -> Result<NewInvitation, LoginError> {
    let secret =
        Credential::new(CredentialKind::Invitation).map_err(|_| LoginError::NoRandomness)?;
    let expires_at = now + INVITATION_LIFE;
    let invitation = Invitation {
        token_hash: secret.hash(),
        user,
        expires_at,
    };
    control.create_invitation(&invitation, actor, now).await?;
    Ok(NewInvitation { secret, expires_at })
}
