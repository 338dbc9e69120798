//! Login with OpenID Connect: the authorization code flow with PKCE, and what an identity provider may decide about a person.
//!
//! Everything about an attempt travels in a sealed cookie, so anonymous callers hold no memory here. Calls to the provider are
//! bounded in number, time and size, and nothing else waits for them.

mod attempt;
mod claims;
mod client;
mod http_client;
mod provider;
mod return_path;
mod role_map;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use tokio::time::timeout;

pub(crate) use self::http_client::is_safe;
pub use self::role_map::{RoleMap, RoleMapping};

use self::attempt::Attempt;
use self::client::Confirmed;
use self::provider::Provider;
use self::return_path::local_path;
use crate::config::Secret;
use crate::control::people::{Login, LoginError, Logins};
use crate::control::{Counted, InstanceSecret, Throttle};
use crate::shares::{Holder, Share, Shares};
use crate::store::control::{
    Actor, Admission, Control, ControlError, FederatedLogin, Refusal, User,
};

/// Where the provider sends browsers back to, below the public URL.
pub const CALLBACK: &str = "/api/v1/session/oidc/callback";
/// How long a person may take at the provider, in microseconds.
pub const ATTEMPT_LIFE: i64 = 600 * 1_000_000;

/// Logins that wait for the provider, and those of them from one address.
const MOST_WAITING: usize = 64;
const MOST_WAITING_FROM_ONE_ADDRESS: usize = 16;
/// A login makes a few calls, each with a shorter limit of its own.
const LONGEST: Duration = Duration::from_secs(20);

/// The provider and what it decides, as the settings say.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// Exactly as the provider writes it.
    pub issuer: String,
    pub client_id: String,
    /// `None`: a public client, which proves itself with PKCE alone.
    pub client_secret: Option<Secret>,
    /// The label of the button.
    pub name: String,
    pub scopes: Vec<String>,
    pub roles_claim: String,
    /// Empty: roles are given in unjank.
    pub roles: RoleMap,
    pub creates_people: bool,
    /// How long a session lasts, in microseconds.
    pub session_life: i64,
    pub public_url: Url,
}

/// Why a login with the provider failed.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// There is no attempt of this browser, or it is of another login.
    #[error("the login was not started in this browser, or too long ago")]
    NotStarted,
    #[error("the identity provider refused the login: {0}")]
    Denied(String),
    #[error("the identity provider cannot be used: {0}")]
    Unreachable(String),
    #[error("the identity provider's answer is not valid: {0}")]
    Invalid(String),
    #[error("too many people are logging in")]
    Busy,
    #[error("the person is not admitted: {0:?}")]
    NotAdmitted(Refusal),
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Login(#[from] LoginError),
}

impl OidcError {
    /// A stable code for the login page, which has a sentence for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotStarted => "not_started",
            Self::Denied(_) => "denied",
            Self::Unreachable(_) => "unreachable",
            Self::Invalid(_) => "invalid",
            Self::Busy => "busy",
            Self::NotAdmitted(Refusal::NoEmail) => "no_email",
            Self::NotAdmitted(Refusal::UnverifiedEmail) => "unverified_email",
            Self::NotAdmitted(Refusal::LinkedElsewhere) => "linked_elsewhere",
            Self::NotAdmitted(Refusal::NoAccount) => "no_account",
            Self::NotAdmitted(Refusal::NoRole) => "no_role",
            Self::NotAdmitted(Refusal::Disabled) | Self::Login(LoginError::Refused) => "disabled",
            Self::Control(_) | Self::Login(_) => "unavailable",
        }
    }
}

/// A login that begins.
pub struct Started {
    /// Where to send the browser.
    pub url: Url,
    /// What the browser must bring back.
    pub cookie: String,
}

/// What the browser brings back from the provider.
#[derive(Clone, Copy, Debug)]
pub struct Callback<'a> {
    pub cookie: Option<&'a str>,
    pub state: Option<&'a str>,
    pub code: Option<&'a str>,
    pub error: Option<&'a str>,
    /// Explains the error.
    pub description: Option<&'a str>,
    /// Names the provider (RFC 9207), if it supports that.
    pub issuer: Option<&'a str>,
}

/// Where a callback comes from, and when.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    pub address: IpAddr,
    /// Microseconds since the epoch.
    pub now: i64,
}

/// A login that came to its end, well or badly, and the page that was wanted before.
pub struct Finished {
    pub login: Result<Login, OidcError>,
    pub wanted: String,
}

pub struct OpenIdConnect {
    settings: Arc<ProviderSettings>,
    provider: Provider,
    secret: Arc<InstanceSecret>,
    waiting: Arc<Shares>,
    throttle: Throttle,
}

impl OpenIdConnect {
    pub fn new(settings: ProviderSettings, secret: Arc<InstanceSecret>) -> anyhow::Result<Self> {
        let settings = Arc::new(settings);
        Ok(Self {
            provider: Provider::new(Arc::clone(&settings))?,
            settings,
            secret,
            waiting: Shares::new(MOST_WAITING, MOST_WAITING_FROM_ONE_ADDRESS),
            throttle: Throttle::default(),
        })
    }

    /// The label of the button.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    /// The page that is opened after the login: a path of this server, or the first page.
    #[must_use]
    pub fn wanted_path(&self, wanted: Option<&str>) -> String {
        let path = wanted.and_then(|wanted| local_path(&self.settings.public_url, wanted));
        path.unwrap_or_else(|| "/".to_owned())
    }

    /// Begins a login. Asks the provider only when nothing is known about it.
    pub async fn start(&self, wanted: Option<&str>, caller: Caller) -> Result<Started, OidcError> {
        let counted = Counted::nameless(caller.address);
        let waiting = if self.provider.is_known(caller.now) {
            None
        } else {
            Some(self.admit_call(&counted, caller).await?)
        };
        let wanted = self.wanted_path(wanted);
        let (url, attempt) = in_time(self.provider.authorize(wanted, caller.now)).await?;
        if waiting.is_some() {
            self.throttle.give_back(&counted);
        }
        let cookie = attempt.seal(&self.secret, &self.settings)?;
        Ok(Started { url, cookie })
    }

    /// Ends a login: asks the provider who it is, and starts a session for that person.
    pub async fn finish(
        &self,
        (control, logins): (&dyn Control, &Logins),
        callback: Callback<'_>,
        caller: Caller,
    ) -> Finished {
        let opened = Attempt::open(&self.secret, &self.settings, callback, caller.now);
        let attempt = match opened {
            Ok(attempt) => attempt,
            Err(error) => {
                return Finished {
                    login: Err(error),
                    wanted: "/".to_owned(),
                };
            }
        };
        // Checked again: settings may have changed since the login was started.
        let wanted = self.wanted_path(Some(&attempt.wanted));
        let login = async {
            let confirmed = self.confirmed(&attempt, callback, caller).await?;
            let user = self.admit(control, confirmed, caller.now).await?;
            let times = (caller.now + self.settings.session_life, caller.now);
            Ok(logins.log_in_federated(control, &user, times).await?)
        };
        Finished {
            login: login.await,
            wanted,
        }
    }

    async fn confirmed(
        &self,
        attempt: &Attempt,
        callback: Callback<'_>,
        caller: Caller,
    ) -> Result<Confirmed, OidcError> {
        // First: what follows is logged, and anyone can bring it about.
        let counted = Counted::nameless(caller.address);
        let _waiting = self.admit_call(&counted, caller).await?;
        if callback
            .issuer
            .is_some_and(|issuer| issuer != self.settings.issuer)
        {
            return Err(OidcError::Invalid("it is of another issuer".to_owned()));
        }
        if let Some(error) = callback.error {
            let description = callback.description.unwrap_or_default();
            return Err(OidcError::Denied(format!("{error} {description}")));
        }
        let code = callback.code.ok_or(OidcError::NotStarted)?;
        let confirmed = in_time(self.provider.confirm(attempt, code, caller.now)).await?;
        self.throttle.give_back(&counted);
        Ok(confirmed)
    }

    /// Bounds how many callers, and how many of one address, make this server call the provider.
    async fn admit_call(&self, counted: &[Counted], caller: Caller) -> Result<Share, OidcError> {
        let holder = Holder::address(caller.address);
        let waiting = self.waiting.try_take(holder, 1).ok_or(OidcError::Busy)?;
        let delay = self.throttle.take(counted, caller.now);
        let delay = delay.map_err(|_| OidcError::Busy)?;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        Ok(waiting)
    }

    async fn admit(
        &self,
        control: &dyn Control,
        confirmed: Confirmed,
        now: i64,
    ) -> Result<User, OidcError> {
        let settings = &self.settings;
        let roles = (!settings.roles.is_empty()).then(|| settings.roles.given(&confirmed.roles));
        let login = FederatedLogin {
            issuer: settings.issuer.clone(),
            subject: confirmed.subject,
            email: confirmed.email,
            name: confirmed.name,
            roles,
            creates_people: settings.creates_people,
        };
        let actor = Actor::system(&format!("openid-connect {}", settings.issuer));
        let admission = match control.admit(&login, &actor, now).await {
            // Another login of the same new person was faster.
            Err(ControlError::AlreadyExists) => control.admit(&login, &actor, now).await?,
            other => other?,
        };
        match admission {
            Admission::Admitted(user) => Ok(user),
            Admission::Refused(refusal) => Err(OidcError::NotAdmitted(refusal)),
        }
    }
}

async fn in_time<T>(work: impl Future<Output = Result<T, OidcError>>) -> Result<T, OidcError> {
    let late = |_| OidcError::Unreachable(format!("no answer within {LONGEST:?}"));
    timeout(LONGEST, work).await.map_err(late)?
}
