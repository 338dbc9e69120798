//! Device tokens: short-lived JWTs that a project's own back end signs for its installs, instead of an ingest key in
//! the app.
//!
//! `aud` names the project, alone or in a list with other audiences, `kid` one of its registered keys, `sub` the install.
//! The algorithm of each key is fixed at registration: the token's header never chooses how the token is verified.

use std::collections::HashMap;
use std::sync::Arc;

use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::{Deserialize, Deserializer};
use unjank_database::DeviceKeyAlgorithm;
use unjank_foundation::clock::UnixTime;
use unjank_foundation::ids::id_of;
use uuid::Uuid;

/// The tolerated clock difference between a signing back end and this server, in seconds.
const LEEWAY_S: i64 = 60;
/// The maximum lifetime in seconds. A token valid for more than a day would in effect be a key.
const LONGEST_LIFE_S: i64 = 24 * 3_600;
/// The minimum size of an HS256 secret. A secret shorter than its hash can be guessed offline from a single token.
const SHORTEST_SECRET: usize = 32;
/// The maximum number of audiences of a token.
const MOST_AUDIENCES: usize = 16;

/// Why a token is rejected. Reveals nothing that helps to forge one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("the device token is not a JWT with `alg`, `kid`, `aud`, `exp` and `sub`")]
    Malformed,
    #[error(
        "the device token's `kid` is not a key of the project its `aud` names, or the key is revoked"
    )]
    UnknownKey,
    #[error("the device token's signature does not verify with the key its `kid` names")]
    Signature,
    #[error("the device token has expired; get a new one")]
    Expired,
    #[error("the device token is not valid yet; check whether the signing server's clock is ahead")]
    NotYet,
    #[error("the device token is valid for more than 24 hours; shorten its lifetime")]
    TooLong,
    #[error("the device token's `sub` is blank; set it to the install id")]
    Subject,
}

/// The project and install that a token identifies.
#[derive(Debug, PartialEq, Eq)]
pub struct TokenHolder {
    pub project: Arc<str>,
    pub install_id: Uuid,
}

struct Key {
    algorithm: Algorithm,
    key: DecodingKey,
}

/// The registered keys of all projects, parsed for verification.
#[derive(Default)]
pub struct DeviceKeys {
    projects: HashMap<Arc<str>, HashMap<String, Key>>,
}

impl std::fmt::Debug for DeviceKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "device keys of {} projects", self.projects.len())
    }
}

impl DeviceKeys {
    /// Registers a key. `material` is the secret of HS256, a public key in PEM, or a JSON Web Key Set, whose keys have
    /// their own `kid`s.
    ///
    /// # Errors
    /// If the material does not fit the algorithm. The message does not quote it.
    pub fn add(
        &mut self,
        project: &Arc<str>,
        kid: &str,
        algorithm: DeviceKeyAlgorithm,
        material: &str,
    ) -> Result<(), String> {
        let (algorithm, key) = match algorithm {
            DeviceKeyAlgorithm::Jwks => return self.add_jwks(project, material),
            DeviceKeyAlgorithm::Hs256 if material.len() < SHORTEST_SECRET => {
                return Err(format!(
                    "the secret of an HS256 key must have at least {SHORTEST_SECRET} bytes"
                ));
            }
            DeviceKeyAlgorithm::Hs256 => (
                Algorithm::HS256,
                Ok(DecodingKey::from_secret(material.as_bytes())),
            ),
            DeviceKeyAlgorithm::Es256 => (
                Algorithm::ES256,
                DecodingKey::from_ec_pem(material.as_bytes()),
            ),
            DeviceKeyAlgorithm::EdDsa => (
                Algorithm::EdDSA,
                DecodingKey::from_ed_pem(material.as_bytes()),
            ),
        };
        let key =
            key.map_err(|_| format!("the material is not a public key in PEM for {algorithm:?}"))?;
        self.insert(project, kid.to_owned(), Key { algorithm, key });
        Ok(())
    }

    /// Registers those keys of a JSON Web Key Set that are for ES256 (P-256) or `EdDSA` (Ed25519) and have a `kid`.
    ///
    /// # Errors
    /// If the text is not a key set, or none of its keys is usable.
    fn add_jwks(&mut self, project: &Arc<str>, json: &str) -> Result<(), String> {
        let set: JwkSet = serde_json::from_str(json)
            .map_err(|error| format!("the material is not a JSON Web Key Set: {error}"))?;
        let mut added = 0;
        for jwk in &set.keys {
            let algorithm = match &jwk.algorithm {
                AlgorithmParameters::EllipticCurve(curve) if curve.curve == EllipticCurve::P256 => {
                    Algorithm::ES256
                }
                AlgorithmParameters::OctetKeyPair(_) => Algorithm::EdDSA,
                // Secrets do not belong in a published set, and RSA is not supported.
                _ => continue,
            };
            let (Some(kid), Ok(key)) = (&jwk.common.key_id, DecodingKey::from_jwk(jwk)) else {
                continue;
            };
            self.insert(project, kid.clone(), Key { algorithm, key });
            added += 1;
        }
        if added == 0 {
            return Err(
                "the key set has no usable key: a key needs a `kid` and must be for ES256 (P-256) or EdDSA (Ed25519)"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn insert(&mut self, project: &Arc<str>, kid: String, key: Key) {
        self.projects
            .entry(Arc::clone(project))
            .or_default()
            .insert(kid, key);
    }

    pub fn is_empty(&self) -> bool {
        self.projects.is_empty()
    }

    /// Whether a credential looks like a JWT. Ingest keys contain no dots.
    pub fn looks_like_token(credential: &str) -> bool {
        credential.bytes().filter(|byte| *byte == b'.').count() == 2
    }

    /// Finds the key in the projects among the audiences. A key set may be registered for several projects: a token that names two of them
    /// is for neither, because its events belong to one.
    fn key(&self, audiences: &[String], kid: &str) -> Result<(&Arc<str>, &Key), TokenError> {
        let mut found = audiences.iter().filter_map(|audience| {
            let (project, keys) = self.projects.get_key_value(audience.as_str())?;
            Some((project, keys.get(kid)?))
        });
        let (project, key) = found.next().ok_or(TokenError::UnknownKey)?;
        match found.all(|(other, _)| other == project) {
            true => Ok((project, key)),
            false => Err(TokenError::UnknownKey),
        }
    }

    /// Verifies a token and returns its holder.
    pub fn verify(&self, token: &str, now: UnixTime) -> Result<TokenHolder, TokenError> {
        let header = jsonwebtoken::decode_header(token).map_err(|_| TokenError::Malformed)?;
        let kid = header.kid.ok_or(TokenError::Malformed)?;
        // Unverified: used only to find the key for verification.
        let claimed: Audience = jsonwebtoken::dangerous::insecure_decode_claims(token)
            .map_err(|_| TokenError::Malformed)?;
        let (project, key) = self.key(claimed.aud.names()?, &kid)?;
        let claims = jsonwebtoken::decode::<Claims>(token, &key.key, &validation(key, project))
            .map_err(|error| match error.kind() {
                ErrorKind::InvalidSignature | ErrorKind::InvalidAlgorithm => TokenError::Signature,
                _ => TokenError::Malformed,
            })?
            .claims;
        let now = now.as_secs();
        let NumericDate(expires) = claims.exp;
        if expires.saturating_add(LEEWAY_S) <= now {
            return Err(TokenError::Expired);
        }
        if claims
            .nbf
            .is_some_and(|NumericDate(from)| from.saturating_sub(LEEWAY_S) > now)
        {
            return Err(TokenError::NotYet);
        }
        if expires.saturating_sub(now) > LONGEST_LIFE_S + LEEWAY_S {
            return Err(TokenError::TooLong);
        }
        let install_id = id_of(&claims.sub).ok_or(TokenError::Subject)?;
        Ok(TokenHolder {
            project: Arc::clone(project),
            install_id,
        })
    }
}

/// Allows exactly one algorithm, and requires the project among the audiences. Expiry is checked with our clock, not the library's.
fn validation(key: &Key, project: &str) -> Validation {
    let mut validation = Validation::new(key.algorithm);
    validation.set_audience(&[project]);
    validation.set_required_spec_claims(&["exp", "aud", "sub"]);
    validation.validate_exp = false;
    validation
}

#[derive(Deserialize)]
struct Audience {
    aud: OneOrMany,
}

/// A list, or the single text that RFC 7519 allows in its place.
#[derive(Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl OneOrMany {
    fn names(&self) -> Result<&[String], TokenError> {
        match self {
            Self::One(name) => Ok(std::slice::from_ref(name)),
            Self::Many(names) if names.len() <= MOST_AUDIENCES => Ok(names),
            Self::Many(_) => Err(TokenError::Malformed),
        }
    }
}

#[derive(Deserialize)]
struct Claims {
    exp: NumericDate,
    nbf: Option<NumericDate>,
    sub: String,
}

/// Seconds since 1970. In a token, they may have a fraction, which is dropped.
struct NumericDate(i64);

impl<'de> Deserialize<'de> for NumericDate {
    #[expect(clippy::cast_possible_truncation, reason = "a float is saturated")]
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        f64::deserialize(deserializer).map(|seconds| Self(seconds.floor() as i64))
    }
}

#[cfg(test)]
#[path = "device_token_tests.rs"]
mod tests;
