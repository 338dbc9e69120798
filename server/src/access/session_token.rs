//! Session tokens of browsers: JWTs that are valid for minutes and renewed from their session.
//!
//! A token replaces only the lookup of its holder. Every request still checks that the session has not ended. The session itself lasts
//! [`SESSION_LIFE`](super::logins::SESSION_LIFE).

use std::time::Duration;

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use unjank_foundation::clock::UnixTime;
use uuid::Uuid;

use super::InstanceSecret;

/// The lifetime of a token. After that, the refresh token gets a new one.
pub const SESSION_TOKEN_LIFE: Duration = Duration::from_secs(600);
const AUDIENCE: &str = "unjank-session";

/// The session and user that a token identifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionHolder {
    pub session: Uuid,
    pub user: Uuid,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    aud: String,
    sub: Uuid,
    sid: Uuid,
    exp: i64,
}

/// Signs and verifies the tokens of this installation.
pub struct SessionTokens {
    encoding: EncodingKey,
    decoding: DecodingKey,
}

impl std::fmt::Debug for SessionTokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SessionTokens(***)")
    }
}

impl SessionTokens {
    pub fn new(secret: &InstanceSecret) -> Self {
        Self {
            encoding: EncodingKey::from_secret(secret.signing()),
            decoding: DecodingKey::from_secret(secret.signing()),
        }
    }

    /// Signs a token that is valid from `now`. Returns `None` if signing fails.
    pub fn sign(&self, holder: SessionHolder, now: UnixTime) -> Option<String> {
        let claims = Claims {
            aud: AUDIENCE.to_owned(),
            sub: holder.user,
            sid: holder.session,
            exp: (now + SESSION_TOKEN_LIFE).as_secs(),
        };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.encoding).ok()
    }

    /// Returns the holder of a token if this installation signed it and it has not expired.
    pub fn verify(&self, token: &str, now: UnixTime) -> Option<SessionHolder> {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_audience(&[AUDIENCE]);
        validation.set_required_spec_claims(&["exp", "aud", "sub"]);
        // Checked below with our clock. There is no leeway, because our clock also set the expiry.
        validation.validate_exp = false;
        let claims = jsonwebtoken::decode::<Claims>(token, &self.decoding, &validation)
            .ok()?
            .claims;
        (claims.exp > now.as_secs()).then_some(SessionHolder {
            session: claims.sid,
            user: claims.sub,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixTime = UnixTime::from_micros(1_795_176_000_000_000);

    fn tokens(secret: &str) -> SessionTokens {
        SessionTokens::new(&InstanceSecret::from_text(secret).unwrap())
    }

    #[test]
    fn a_token_is_valid_for_ten_minutes_on_its_own_installation() {
        let ours = tokens(&"a".repeat(40));
        let holder = SessionHolder {
            session: Uuid::from_u128(1),
            user: Uuid::from_u128(2),
        };
        let token = ours.sign(holder, NOW).unwrap();
        assert_eq!(ours.verify(&token, NOW), Some(holder));
        let life = SESSION_TOKEN_LIFE;
        assert_eq!(
            ours.verify(&token, NOW + life - Duration::from_micros(1)),
            Some(holder)
        );
        assert_eq!(ours.verify(&token, NOW + life), None);
        assert_eq!(tokens(&"b".repeat(40)).verify(&token, NOW), None);
        assert_eq!(
            ours.verify(token.trim_end_matches(char::is_alphanumeric), NOW),
            None
        );
        assert_eq!(ours.verify("", NOW), None);
    }

    #[test]
    fn a_token_for_another_purpose_is_not_a_session_token() {
        let secret = InstanceSecret::from_text(&"a".repeat(40)).unwrap();
        let claims = serde_json::json!({"aud": "unjank-other", "sub": Uuid::nil(), "sid": Uuid::nil(), "exp": i64::MAX});
        let key = EncodingKey::from_secret(secret.signing());
        for algorithm in [Algorithm::HS256, Algorithm::HS384] {
            let token = jsonwebtoken::encode(&Header::new(algorithm), &claims, &key).unwrap();
            assert_eq!(SessionTokens::new(&secret).verify(&token, NOW), None);
        }
    }
}
