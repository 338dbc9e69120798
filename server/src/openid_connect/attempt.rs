//! A login attempt, which the browser carries to the provider and back. It is sealed, so it cannot be read or modified.

use std::time::Duration;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use serde::{Deserialize, Serialize};
use unjank_foundation::clock::UnixTime;

use super::{ATTEMPT_LIFE, Callback, OidcError, ProviderSettings};
use crate::access::InstanceSecret;

/// The tolerated clock difference between servers: one may finish an attempt that another started.
const CLOCK_SKEW: Duration = Duration::from_secs(60);

#[derive(Serialize, Deserialize)]
pub(super) struct Attempt {
    /// Binds the callback to the browser that started the login.
    pub(super) state: String,
    /// Binds the ID token to this login.
    pub(super) nonce: String,
    /// The PKCE verifier, without which the code cannot be exchanged.
    pub(super) verifier: String,
    /// The page to open after the login.
    pub(super) wanted: String,
    pub(super) started_at: UnixTime,
}

impl Attempt {
    pub(super) fn seal(
        &self,
        secret: &InstanceSecret,
        settings: &ProviderSettings,
    ) -> Result<String, OidcError> {
        let text = serde_json::to_string(self).map_err(|error| invalid(&error))?;
        let sealed = secret.seal(&context(settings), &text);
        sealed.map_err(|error| invalid(&error))
    }

    /// Returns the attempt that a callback belongs to.
    pub(super) fn open(
        secret: &InstanceSecret,
        settings: &ProviderSettings,
        callback: Callback<'_>,
        now: UnixTime,
    ) -> Result<Self, OidcError> {
        let (Some(cookie), Some(state)) = (callback.cookie, callback.state) else {
            return Err(OidcError::NotStarted);
        };
        let text = secret.open(&context(settings), cookie);
        let text = text.map_err(|_| OidcError::NotStarted)?;
        let attempt: Self = serde_json::from_str(&text).map_err(|_| OidcError::NotStarted)?;
        let is_same = verify_slices_are_equal(attempt.state.as_bytes(), state.as_bytes()).is_ok();
        let is_recent =
            attempt.started_at <= now + CLOCK_SKEW && now.since(attempt.started_at) < ATTEMPT_LIFE;
        if is_same && is_recent {
            Ok(attempt)
        } else {
            Err(OidcError::NotStarted)
        }
    }
}

fn invalid(error: &dyn std::error::Error) -> OidcError {
    OidcError::Invalid(error.to_string())
}

/// Returns the context of the seal, which makes an attempt invalid for any other provider.
fn context(settings: &ProviderSettings) -> String {
    format!("login at {} as {}", settings.issuer, settings.client_id)
}
