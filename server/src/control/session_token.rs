//! What a logged-in browser shows: a JWT good for minutes, renewed from the session it names.
//!
//! It saves a look-up per request, not the check: a session that was revoked is refused by its id at once.

use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::InstanceSecret;

/// How long a token is good for, in seconds; then the refresh token gets a new one.
pub const SESSION_TOKEN_LIFE_S: i64 = 600;
const AUDIENCE: &str = "unjank-session";

/// Who is logged in.
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

/// Signs and checks the tokens of this installation.
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

    /// A token from `now` (microseconds since the epoch) on. None when it cannot be signed.
    pub fn sign(&self, holder: SessionHolder, now: i64) -> Option<String> {
        let claims = Claims {
            aud: AUDIENCE.to_owned(),
            sub: holder.user,
            sid: holder.session,
            exp: now.div_euclid(1_000_000) + SESSION_TOKEN_LIFE_S,
        };
        jsonwebtoken::encode(&Header::new(Algorithm::HS256), &claims, &self.encoding).ok()
    }

    /// The holder of a token that is ours and still good.
    pub fn verify(&self, token: &str, now: i64) -> Option<SessionHolder> {
        let mut validation = Validation::new(Algorithm::HS256);
        validation.set_audience(&[AUDIENCE]);
        validation.set_required_spec_claims(&["exp", "aud", "sub"]);
        // By our clock, below; ours signed it, so there is no leeway.
        validation.validate_exp = false;
        let claims = jsonwebtoken::decode::<Claims>(token, &self.decoding, &validation)
            .ok()?
            .claims;
        (claims.exp > now.div_euclid(1_000_000)).then_some(SessionHolder {
            session: claims.sid,
            user: claims.sub,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_176_000_000_000;

    fn tokens(secret: &str) -> SessionTokens {
        SessionTokens::new(&InstanceSecret::from_text(secret).unwrap())
    }

    #[test]
    fn a_token_is_good_for_ten_minutes_where_it_was_made() {
        let ours = tokens(&"a".repeat(40));
        let holder = SessionHolder {
            session: Uuid::from_u128(1),
            user: Uuid::from_u128(2),
        };
        let token = ours.sign(holder, NOW).unwrap();
        assert_eq!(ours.verify(&token, NOW), Some(holder));
        let life = SESSION_TOKEN_LIFE_S * 1_000_000;
        assert_eq!(ours.verify(&token, NOW + life - 1), Some(holder));
        assert_eq!(ours.verify(&token, NOW + life), None);
        assert_eq!(tokens(&"b".repeat(40)).verify(&token, NOW), None);
        assert_eq!(
            ours.verify(token.trim_end_matches(char::is_alphanumeric), NOW),
            None
        );
        assert_eq!(ours.verify("", NOW), None);
    }

    #[test]
    fn a_token_made_for_something_else_is_no_session() {
        let secret = InstanceSecret::from_text(&"a".repeat(40)).unwrap();
        let claims = serde_json::json!({"aud": "unjank-other", "sub": Uuid::nil(), "sid": Uuid::nil(), "exp": i64::MAX});
        let key = EncodingKey::from_secret(secret.signing());
        for algorithm in [Algorithm::HS256, Algorithm::HS384] {
            let token = jsonwebtoken::encode(&Header::new(algorithm), &claims, &key).unwrap();
            assert_eq!(SessionTokens::new(&secret).verify(&token, NOW), None);
        }
    }
}
