//! People: how they get in, stay in and are kept out. A login is a session in the database; browsers carry a token good for
//! minutes and another, used once, that gets the next.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use uuid::Uuid;

use super::credential::{Credential, CredentialKind};
use super::instance_secret::InstanceSecret;
use super::password::{self, PasswordError};
use super::session_token::{SessionHolder, SessionTokens};
use super::throttle::{Attempt, Counted, Throttle};
use crate::fingerprint::fingerprint;
use crate::shares::{Holder, Share, Shares};
use crate::store::control::{
    Actor, Control, ControlError, Hidden, Invitation, NewSession, Purpose, Rotation, SecretHash,
    TokenExchange, User,
};

/// A session that is not used for this long ends, in microseconds.
pub const SESSION_LIFE: i64 = 14 * DAY;
/// An invitation that is not taken for this long ends, in microseconds.
const INVITATION_LIFE: i64 = 7 * DAY;
const DAY: i64 = 24 * 3_600 * 1_000_000;

/// Passwords hashed at once: each takes 19 MiB and a core.
const MOST_HASHES: usize = 2;
/// Logins that are delayed or wait for their hash; and of them, those from one address.
const MOST_WAITING: usize = 256;
const MOST_WAITING_FROM_ONE_ADDRESS: usize = 32;

#[derive(Debug, thiserror::Error)]
pub enum LoginError {
    /// The same for an unknown user, a wrong password and a disabled account.
    #[error("the e-mail address or the password is wrong")]
    Refused,
    /// For one account, or from one address.
    #[error("too many tries: try again in {} s", .retry_after_s)]
    TooMany { retry_after_s: i64 },
    /// The refresh token was used before, has expired, or its session was ended.
    #[error("the session has ended: log in again")]
    Ended,
    #[error("the link was used before, has expired, or was never made: ask for a new one")]
    NoInvitation,
    #[error(transparent)]
    Password(#[from] PasswordError),
    #[error("the system gives no random numbers")]
    NoRandomness,
    #[error(transparent)]
    Control(#[from] ControlError),
}

/// What a browser is given.
pub struct Login {
    /// For each request, for minutes.
    pub session_token: String,
    /// For the next session token, once.
    pub refresh: Credential,
    pub user: Uuid,
    /// What the browser is known by when it logs in again.
    pub known_device: Option<String>,
}

/// The door.
pub struct Logins {
    tokens: SessionTokens,
    secret: Arc<InstanceSecret>,
    hashing: Arc<Semaphore>,
    waiting: Arc<Shares>,
    throttle: Throttle,
}

impl Logins {
    pub fn new(secret: Arc<InstanceSecret>) -> Self {
        Self {
            tokens: SessionTokens::new(&secret),
            secret,
            hashing: Arc::new(Semaphore::new(MOST_HASHES)),
            waiting: Shares::new(MOST_WAITING, MOST_WAITING_FROM_ONE_ADDRESS),
            throttle: Throttle::default(),
        }
    }

    pub async fn log_in(
        &self,
        control: &dyn Control,
        (email, password): (&str, String),
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
            None => Counted::stranger(account, attempt.address).to_vec(),
        };
        let _waiting = self.delay(&counted, &attempt).await?;
        let user = self.verified(user, password).await?;
        self.throttle.give_back(&counted);
        self.start_session(control, &user, None, now).await
    }

    /// Logs in a person whom an identity provider confirmed. The session ends at `ends_at`, so that the provider is asked again.
    pub async fn log_in_federated(
        &self,
        control: &dyn Control,
        user: &User,
        (ends_at, now): (i64, i64),
    ) -> Result<Login, LoginError> {
        self.start_session(control, user, Some(ends_at), now).await
    }

    /// The user, if that is the password.
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

    /// Changes the password of a person who knows the present one. All sessions end, and a new one begins.
    pub async fn change_password(
        &self,
        control: &dyn Control,
        user: User,
        (present, wanted): (String, String),
        attempt: Attempt,
    ) -> Result<Login, LoginError> {
        let (id, now) = (user.id, attempt.now);
        let counted = Counted::stranger(fingerprint(&[id.as_bytes()]), attempt.address);
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

    /// Sets the password an invitation is for, and logs in.
    pub async fn accept_invitation(
        &self,
        control: &dyn Control,
        (token, password): (&str, String),
        attempt: Attempt,
    ) -> Result<Login, LoginError> {
        let now = attempt.now;
        let counted = Counted::nameless(attempt.address);
        let _waiting = self.delay(&counted, &attempt).await?;
        // First, so that a password that will not do does not cost the link.
        let hash = self.hash(move || password::hash(&password)).await;
        let hash = hash.ok_or(LoginError::NoRandomness)??;
        let actor = Actor::system("invitation");
        let taken = control
            .take_invitation(SecretHash::of(token), Purpose::Invite, &actor, now)
            .await;
        let user = match taken {
            Ok(invitation) => invitation.user.ok_or(LoginError::NoInvitation)?,
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
        control: &dyn Control,
        user: &User,
        ends_at: Option<i64>,
        now: i64,
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

    /// The next pair of tokens. A refresh token that comes again after a while was stolen from somebody: it ends the session. One
    /// that comes again at once is another tab's, or the answer was lost: what follows it is the same token as before, so that
    /// the session has one token still, and a thief and an owner who both have it will be found out when they use it.
    pub async fn refresh(
        &self,
        control: &dyn Control,
        refresh_token: &str,
        now: i64,
    ) -> Result<Login, LoginError> {
        let next = Credential::of(
            CredentialKind::Refresh,
            self.secret.successor(refresh_token),
        );
        let exchange = TokenExchange {
            old: SecretHash::of(refresh_token),
            new: next.hash(),
            expires_at: now + SESSION_LIFE,
        };
        match control.rotate_session(exchange, now).await {
            Ok(Rotation::Rotated(session)) => self.login(session.id, session.user, next, now),
            Ok(Rotation::Reused { session, user }) => {
                tracing::warn!(%session, %user, "a refresh token came twice: its session is ended");
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
        now: i64,
    ) -> Result<Login, LoginError> {
        let token = self.tokens.sign(SessionHolder { session, user }, now);
        Ok(Login {
            session_token: token.ok_or(LoginError::NoRandomness)?,
            refresh,
            user,
            known_device: None,
        })
    }

    /// Who a session token speaks for, if its session was not ended and its user not disabled.
    pub async fn holder(
        &self,
        control: &dyn Control,
        token: &str,
        now: i64,
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

    /// Hashing blocks and is slow: few at once, and not where requests are served. Work that began goes on, and keeps its permit, when
    /// nobody waits for it any more.
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

    /// Waits until it may be tried. Few wait at a time.
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

    /// What a browser is counted by that logged in to this account before.
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

/// A link for a user to set a password with, once. Answers its secret part.
pub async fn invite(
    control: &dyn Control,
    user: Uuid,
    actor: &Actor,
    now: i64,
) -> Result<Credential, LoginError> {
    let token =
        Credential::new(CredentialKind::Invitation).map_err(|_| LoginError::NoRandomness)?;
    let invitation = Invitation {
        token_hash: token.hash(),
        purpose: Purpose::Invite,
        user: Some(user),
        expires_at: now + INVITATION_LIFE,
    };
    control.create_invitation(&invitation, actor, now).await?;
    Ok(token)
}
