//! Login with OpenID Connect: the authorization code flow with PKCE, and the mapping of claims to accounts and roles.
//!
//! The whole state of an attempt travels in a sealed cookie, so anonymous callers use no memory on the server. Calls to
//! the provider are limited in number, time and size, and do not delay other work.

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

use unjank_database::{Actor, Admission, Control, ControlError, FederatedLogin, Refusal, User};
use unjank_foundation::clock::UnixTime;
use unjank_foundation::secret::Secret;
use unjank_foundation::shares::{Holder, Share, Shares};

use self::attempt::Attempt;
use self::client::Confirmed;
use self::provider::Provider;
use self::return_path::local_path;
use crate::access::logins::{Login, LoginError, Logins};
use crate::access::{Counted, InstanceSecret, Throttle};

/// The path below the public URL to which the provider redirects browsers.
pub const CALLBACK: &str = "/api/v1/session/oidc/callback";
/// The time limit for a person to log in at the provider.
pub const ATTEMPT_LIFE: Duration = Duration::from_secs(600);

/// The maximum number of logins that wait for the provider: in all, and per address.
const MOST_WAITING: usize = 64;
const MOST_WAITING_FROM_ONE_ADDRESS: usize = 16;
/// The time limit for all calls of a login. Each call has a shorter limit of its own.
const LONGEST: Duration = Duration::from_secs(20);

/// The settings for the provider.
#[derive(Clone, Debug)]
pub struct ProviderSettings {
    /// The issuer, exactly as the provider writes it.
    pub issuer: String,
    pub client_id: String,
    /// `None`: a public client, which relies on PKCE alone.
    pub client_secret: Option<Secret>,
    /// The label of the login button.
    pub name: String,
    pub scopes: Vec<String>,
    pub roles_claim: String,
    /// Empty: roles are managed in unjank.
    pub roles: RoleMap,
    pub creates_people: bool,
    /// How long a session lasts.
    pub session_life: Duration,
    pub public_url: Url,
}

/// Why a login with the provider failed.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// The cookie of the attempt is missing, expired, or belongs to another login.
    #[error("the login was not started in this browser, or was started too long ago")]
    NotStarted,
    #[error("the identity provider refused the login: {0}")]
    Denied(String),
    #[error("cannot reach the identity provider: {0}")]
    Unreachable(String),
    #[error("invalid response from the identity provider: {0}")]
    Invalid(String),
    #[error("too many logins are in progress")]
    Busy,
    #[error("the person is not allowed to log in: {0:?}")]
    NotAdmitted(Refusal),
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Login(#[from] LoginError),
}

impl OidcError {
    /// Returns a stable code, for which the login page has a message.
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

/// A started login.
pub struct Started {
    /// The URL to send the browser to.
    pub url: Url,
    /// The sealed attempt, which the browser must send back.
    pub cookie: String,
}

/// The parameters with which the browser returns from the provider, and the cookie.
#[derive(Clone, Copy, Debug)]
pub struct Callback<'a> {
    pub cookie: Option<&'a str>,
    pub state: Option<&'a str>,
    pub code: Option<&'a str>,
    pub error: Option<&'a str>,
    /// A description of the error.
    pub description: Option<&'a str>,
    /// The issuer (RFC 9207), if the provider sends it.
    pub issuer: Option<&'a str>,
}

/// The source and time of a request.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    pub address: IpAddr,
    pub now: UnixTime,
}

/// The outcome of a login, and the page that the person requested before it.
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

    /// Returns the label of the login button.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.settings.name
    }

    #[must_use]
    pub fn issuer(&self) -> &str {
        &self.settings.issuer
    }

    /// Returns the page to open after the login: a path of this server, by default the first page.
    #[must_use]
    pub fn wanted_path(&self, wanted: Option<&str>) -> String {
        let path = wanted.and_then(|wanted| local_path(&self.settings.public_url, wanted));
        path.unwrap_or_else(|| "/".to_owned())
    }

    /// Starts a login. Calls the provider only if its metadata is not cached.
    pub async fn start(&self, wanted: Option<&str>, caller: Caller) -> Result<Started, OidcError> {
        let counted = Counted::without_account(caller.address);
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

    /// Finishes a login: verifies the person with the provider, and starts a session.
    pub async fn finish(
        &self,
        (control, logins): (&Control, &Logins),
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
        // Checked again, because the settings may have changed since the login was started.
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
        // Limits the rate first, because anyone can cause the errors below, which are logged.
        let counted = Counted::without_account(caller.address);
        let _waiting = self.admit_call(&counted, caller).await?;
        if callback
            .issuer
            .is_some_and(|issuer| issuer != self.settings.issuer)
        {
            return Err(OidcError::Invalid(
                "it comes from another issuer".to_owned(),
            ));
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

    /// Limits the calls to the provider, in all and per address.
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
        control: &Control,
        confirmed: Confirmed,
        now: UnixTime,
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
            // A concurrent login of the same new person was faster.
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
    let late = |_| OidcError::Unreachable(format!("no response within {LONGEST:?}"));
    timeout(LONGEST, work).await.map_err(late)?
}
