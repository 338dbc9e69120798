//! The access rule for devices: a handler with a `Device` parameter runs only for a valid ingest key or device token.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use unjank_foundation::clock::UnixTime;
use unjank_foundation::ids::canonical_id;
use unjank_remote_config::Attributes;

use crate::access::{Caller, DeviceKeys};
use crate::app::App;
use crate::http::api::openapi::Refuses;
use crate::http::api::problem::Problem;
use crate::ingest;

/// The header for the ingest key if a client cannot send `Authorization`.
pub(crate) const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

pub(super) struct Device(pub(crate) Caller);

impl FromRequestParts<Arc<App>> for Device {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let now = app.clock.now();
        let Some(header) = parts.headers.get(AUTHORIZATION) else {
            return by_api_key(parts, app, now);
        };
        let text = header.to_str().map_err(|_| Problem::unknown_key())?;
        let (scheme, key) = text.split_once(' ').ok_or_else(Problem::no_key)?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return Err(Problem::no_key());
        }
        let credential = key.trim();
        if DeviceKeys::looks_like_token(credential) {
            return app
                .access
                .device_by_token(credential, now)
                .map(Self)
                .map_err(Problem::bad_token);
        }
        Ok(Self(app.access.device(credential, now)?))
    }
}

/// Returns the attributes of a request for the configuration, if the key is for their app and the token for their install. A device token
/// sets the install if the request names none.
pub(super) fn own_attributes(
    mut attributes: Attributes,
    device: &ingest::Device,
) -> Result<Attributes, Problem> {
    if let Some(app_id) = attributes.app_id.as_deref()
        && !device.allows(app_id)
    {
        let app_id = app_id.chars().take(128).collect();
        return Err(ingest::Refusal::WrongApp(app_id).into());
    }
    let named = attributes.install_id.as_deref().map(canonical_id);
    let named = named.filter(|id| !id.is_empty());
    let own = device.install_id.map(|id| id.to_string());
    if own.is_some() && named.is_some() && named != own {
        return Err(ingest::Refusal::WrongInstall.into());
    }
    attributes.install_id = own.or(named);
    Ok(attributes)
}

/// Returns the key or token of a refused request, even if the scheme `Bearer` is missing. The text after another scheme may be
/// the password of another system.
pub(super) fn presented_key(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION).or(headers.get(API_KEY))?;
    let text = value.to_str().ok()?;
    let key = match text.split_once(' ') {
        None => text,
        Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim(),
        Some(_) => return None,
    };
    Some(key).filter(|key| !key.is_empty())
}

/// `X-API-Key` is only read if there is no `Authorization`. It contains an ingest key, never a token.
fn by_api_key(parts: &Parts, app: &App, now: UnixTime) -> Result<Device, Problem> {
    let header = parts.headers.get(API_KEY).ok_or_else(Problem::no_key)?;
    let key = header.to_str().map_err(|_| Problem::unknown_key())?;
    let device = app.access.device(key.trim(), now);
    Ok(Device(device?))
}

impl Refuses for Device {
    const CODES: &'static [&'static str] = &[
        "key_missing",
        "key_unknown",
        "token_expired",
        "token_invalid",
        "device_token_required",
    ];
}
