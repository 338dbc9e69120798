//! The cookies of people who are logged in. Scripts cannot read them. They are `Secure`, so a browser sends them only over TLS, or to the local machine.

use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;

use crate::access::SESSION_TOKEN_LIFE;
use crate::access::logins::{Login, SESSION_LIFE};

const SESSION: &str = "__Host-unjank";
pub(crate) const REFRESH: &str = "__Secure-unjank-refresh";
/// Identifies a browser that has logged in before. Failed logins of other people do not delay it.
pub(crate) const DEVICE: &str = "__Host-unjank-device";
const DEVICE_LIFE_S: i64 = 365 * 24 * 3_600;
/// The refresh token is only sent to the path that uses it.
const REFRESH_PATH: &str = "/api/v1/session";

/// Sets the cookies of a session.
pub(crate) fn add_session(response: Response, login: &Login) -> Response {
    let life = SESSION_LIFE.as_secs();
    let mut response = with_cookies(response, &login.session_token, login.refresh.reveal(), life);
    if let Some(device) = &login.known_device {
        let cookie = format!(
            "{DEVICE}={device}; Path=/; Max-Age={DEVICE_LIFE_S}; HttpOnly; Secure; SameSite=Strict"
        );
        set_cookie(&mut response, &cookie);
    }
    response
}

pub(crate) fn set_cookie(response: &mut Response, cookie: &str) {
    if let Ok(mut value) = HeaderValue::from_str(cookie) {
        value.set_sensitive(true);
        response.headers_mut().append(SET_COOKIE, value);
    }
}

pub(crate) fn with_cookies(
    mut response: Response,
    session: &str,
    refresh: &str,
    life_s: u64,
) -> Response {
    let session_life = life_s.min(SESSION_TOKEN_LIFE.as_secs());
    for cookie in [
        format!(
            "{SESSION}={session}; Path=/; Max-Age={session_life}; HttpOnly; Secure; SameSite=Lax"
        ),
        format!(
            "{REFRESH}={refresh}; Path={REFRESH_PATH}; Max-Age={life_s}; HttpOnly; Secure; SameSite=Strict"
        ),
    ] {
        set_cookie(&mut response, &cookie);
    }
    response
}

/// Returns the session token of a request.
pub(super) fn session_cookie(headers: &HeaderMap) -> Option<&str> {
    cookie(headers, SESSION)
}

pub(crate) fn cookie<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    let cookies = headers.get_all(COOKIE).iter();
    cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(';'))
        .find_map(|pair| pair.trim().strip_prefix(name)?.strip_prefix('='))
}
