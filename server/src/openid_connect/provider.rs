//! The provider's metadata: its endpoints and keys, fetched on demand and cached for an hour.
//!
//! Only one fetch runs at a time. After a failure, the server backs off for some seconds. An unknown key triggers a
//! fetch of new keys, at most once a minute.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use openidconnect::core::CoreProviderMetadata;
use openidconnect::{DiscoveryError, IssuerUrl};
use reqwest::Url;
use tokio::sync::Mutex;
use unjank_foundation::clock::UnixTime;

use super::attempt::Attempt;
use super::client::{self, Confirmed, IdTokenFault};
use super::http_client::{HttpClient, unreachable};
use super::{OidcError, ProviderSettings};

/// Metadata older than this is fetched again.
const FRESH: Duration = Duration::from_secs(3_600);
/// The minimum time between fetches for new keys.
const KEYS_EVERY: Duration = Duration::from_secs(60);
/// The pause after a failure.
const RETRY: Duration = Duration::from_secs(5);

pub(super) struct Provider {
    settings: Arc<ProviderSettings>,
    http: HttpClient,
    known: ArcSwapOption<Known>,
    /// When the provider last failed. The lock is held during a fetch.
    failed_at: Mutex<Option<UnixTime>>,
}

struct Known {
    metadata: CoreProviderMetadata,
    fetched_at: UnixTime,
}

impl Provider {
    pub(super) fn new(settings: Arc<ProviderSettings>) -> anyhow::Result<Self> {
        Ok(Self {
            settings,
            http: HttpClient::new()?,
            known: ArcSwapOption::empty(),
            failed_at: Mutex::default(),
        })
    }

    /// Whether a login can start without calling the provider.
    pub(super) fn is_known(&self, now: UnixTime) -> bool {
        self.fresh(now, FRESH).is_some()
    }

    pub(super) async fn authorize(
        &self,
        wanted: String,
        now: UnixTime,
    ) -> Result<(Url, Attempt), OidcError> {
        let known = self.fetched(now, FRESH).await?;
        client::authorize(&known.metadata, &self.settings, wanted, now)
    }

    /// Exchanges the code and verifies the identity of the person.
    pub(super) async fn confirm(
        &self,
        attempt: &Attempt,
        code: &str,
        now: UnixTime,
    ) -> Result<Confirmed, OidcError> {
        let settings = &*self.settings;
        let mut known = self.fetched(now, FRESH).await?;
        let tokens = client::exchange(&known.metadata, settings, &self.http, attempt, code).await?;
        let mut verified = client::verify(&known.metadata, settings, &tokens, attempt, now);
        if let Err(IdTokenFault::UnknownKey) = verified {
            known = self.fetched(now, KEYS_EVERY).await?;
            verified = client::verify(&known.metadata, settings, &tokens, attempt, now);
        }
        let verified = verified.map_err(|fault| match fault {
            IdTokenFault::Invalid(error) => error,
            IdTokenFault::UnknownKey => {
                OidcError::Invalid("the ID token is signed with an unknown key".to_owned())
            }
        })?;
        client::complete((&known.metadata, settings), &self.http, &tokens, verified).await
    }

    fn fresh(&self, now: UnixTime, most_age: Duration) -> Option<Arc<Known>> {
        let known = self.known.load_full();
        known.filter(|known| now.since(known.fetched_at) < most_age)
    }

    /// Returns metadata no older than `most_age`, or older metadata if the provider cannot be reached.
    async fn fetched(&self, now: UnixTime, most_age: Duration) -> Result<Arc<Known>, OidcError> {
        if let Some(known) = self.fresh(now, most_age) {
            return Ok(known);
        }
        let mut failed_at = self.failed_at.lock().await;
        // Another login may have fetched it while this one waited for the lock.
        if let Some(known) = self.fresh(now, most_age) {
            return Ok(known);
        }
        let failed = if failed_at.is_some_and(|at| now.since(at) < RETRY) {
            OidcError::Unreachable("the last call failed a moment ago".to_owned())
        } else {
            match self.discover(now).await {
                Ok(known) => {
                    *failed_at = None;
                    self.known.store(Some(Arc::clone(&known)));
                    return Ok(known);
                }
                Err(error) => {
                    *failed_at = Some(now);
                    error
                }
            }
        };
        // Stale endpoints and keys are better than none.
        self.known.load_full().ok_or(failed)
    }

    async fn discover(&self, now: UnixTime) -> Result<Arc<Known>, OidcError> {
        let issuer = IssuerUrl::new(self.settings.issuer.clone())
            .map_err(|error| OidcError::Invalid(error.to_string()))?;
        let metadata = CoreProviderMetadata::discover_async(issuer, &self.http).await;
        let metadata = metadata.map_err(|error| match error {
            DiscoveryError::Request(error) => unreachable(&error),
            DiscoveryError::Parse(error) => OidcError::Invalid(format!("discovery: {error}")),
            DiscoveryError::Response(_, _, text) | DiscoveryError::Validation(text) => {
                OidcError::Invalid(format!("discovery: {text}"))
            }
            other => OidcError::Invalid(format!("discovery: {other}")),
        })?;
        Ok(Arc::new(Known {
            metadata,
            fetched_at: now,
        }))
    }
}
