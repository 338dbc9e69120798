//! Tests every known way to bypass the verification of a JWT.

use std::sync::LazyLock;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};

use super::*;

const NOW_S: i64 = 1_795_176_000;
const NOW: UnixTime = UnixTime::from_secs(NOW_S);
const INSTALL: &str = "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11";
const SECRET: &str = "a-secret-of-the-shop-that-is-long-enough";
const OTHER_SECRET: &str = "a-secret-of-the-bank-that-is-long-enough";

/// A new key pair: the private key in PKCS#8, the public key in PEM.
struct Pair {
    private: Vec<u8>,
    public: String,
}

static EC: LazyLock<Pair> = LazyLock::new(|| {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let public: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
    Pair {
        private: pair.to_pkcs8v1().unwrap().as_ref().to_vec(),
        public: pem(public.as_ref()),
    }
});

static ED: LazyLock<Pair> = LazyLock::new(|| {
    let pair = Ed25519KeyPair::generate().unwrap();
    let public: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
    Pair {
        private: pair.to_pkcs8v1().unwrap().as_ref().to_vec(),
        public: pem(public.as_ref()),
    }
});

fn pem(der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    format!("-----BEGIN PUBLIC KEY-----\n{text}\n-----END PUBLIC KEY-----\n")
}

fn ec() -> EncodingKey {
    EncodingKey::from_ec_der(&EC.private)
}

fn ed() -> EncodingKey {
    EncodingKey::from_ed_der(&ED.private)
}

fn keys() -> DeviceKeys {
    let (shop, bank) = (Arc::from("shop"), Arc::from("bank"));
    let mut keys = DeviceKeys::default();
    keys.add(&shop, "hs", DeviceKeyAlgorithm::Hs256, SECRET)
        .unwrap();
    keys.add(&shop, "es", DeviceKeyAlgorithm::Es256, &EC.public)
        .unwrap();
    keys.add(&shop, "ed", DeviceKeyAlgorithm::EdDsa, &ED.public)
        .unwrap();
    keys.add(&bank, "bank-hs", DeviceKeyAlgorithm::Hs256, OTHER_SECRET)
        .unwrap();
    keys
}

fn claims() -> Value {
    json!({"aud": "shop", "sub": INSTALL, "exp": NOW_S + 600})
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn sign(algorithm: Algorithm, kid: &str, claims: &Value, key: &EncodingKey) -> String {
    let mut header = Header::new(algorithm);
    header.kid = Some(kid.to_owned());
    encode(&header, claims, key).unwrap()
}

fn hs(claims: &Value) -> String {
    sign(
        Algorithm::HS256,
        "hs",
        claims,
        &EncodingKey::from_secret(SECRET.as_bytes()),
    )
}

fn verdict(token: &str) -> Result<TokenHolder, TokenError> {
    keys().verify(token, NOW)
}

#[test]
fn a_token_of_each_algorithm_identifies_its_project_and_install() {
    for token in [
        hs(&claims()),
        sign(Algorithm::ES256, "es", &claims(), &ec()),
        sign(Algorithm::EdDSA, "ed", &claims(), &ed()),
    ] {
        assert!(DeviceKeys::looks_like_token(&token));
        let holder = verdict(&token).unwrap();
        assert_eq!(&*holder.project, "shop");
        assert_eq!(holder.install_id.to_string(), INSTALL);
    }
}

#[test]
fn unsigned_tokens_are_rejected() {
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    for alg in ["none", "None", "NONE", "nOnE"] {
        let header = part(json!({"alg": alg, "typ": "JWT", "kid": "hs"}));
        let token = format!("{header}.{}.", part(claims()));
        assert_eq!(verdict(&token), Err(TokenError::Malformed));
    }
    // A valid header without the signature it announces.
    let signed = hs(&claims());
    let (unsigned, _) = signed.rsplit_once('.').unwrap();
    assert_eq!(verdict(&format!("{unsigned}.")), Err(TokenError::Signature));
}

#[test]
fn a_public_key_is_not_accepted_as_hmac_secret() {
    let forged = EncodingKey::from_secret(EC.public.as_bytes());
    let token = sign(Algorithm::HS256, "es", &claims(), &forged);
    assert_eq!(verdict(&token), Err(TokenError::Signature));
}

#[test]
fn the_header_does_not_choose_the_algorithm() {
    let token = sign(Algorithm::EdDSA, "es", &claims(), &ed());
    assert_eq!(verdict(&token), Err(TokenError::Signature));
    let stronger = EncodingKey::from_secret(SECRET.as_bytes());
    let token = sign(Algorithm::HS512, "hs", &claims(), &stronger);
    assert_eq!(verdict(&token), Err(TokenError::Signature));
}

#[test]
fn tampered_claims_are_rejected() {
    let token = hs(&claims());
    let mut parts: Vec<_> = token.split('.').map(str::to_owned).collect();
    parts[1] = URL_SAFE_NO_PAD.encode(with("exp", json!(NOW_S + 900)).to_string());
    assert_eq!(verdict(&parts.join(".")), Err(TokenError::Signature));
}

#[test]
fn a_key_is_valid_for_its_own_project_only() {
    let bank = EncodingKey::from_secret(OTHER_SECRET.as_bytes());
    let token = sign(Algorithm::HS256, "bank-hs", &claims(), &bank);
    assert_eq!(verdict(&token), Err(TokenError::UnknownKey));
    let token = sign(Algorithm::HS256, "hs", &claims(), &bank);
    assert_eq!(verdict(&token), Err(TokenError::Signature));
}

#[test]
fn an_audience_must_be_the_project_of_the_key() {
    for aud in [
        json!(["shop"]),
        json!(["other", "shop"]),
        json!(["shop", "shop"]),
        json!(["bank", "shop"]),
    ] {
        let holder = verdict(&hs(&with("aud", aud))).unwrap();
        assert_eq!(&*holder.project, "shop");
    }
    for aud in [
        json!("other"),
        json!(""),
        json!([]),
        json!(["bank"]),
        json!(["other", ""]),
    ] {
        assert_eq!(verdict(&hs(&with("aud", aud))), Err(TokenError::UnknownKey));
    }
    let many = vec!["shop"; MOST_AUDIENCES + 1];
    for aud in [
        json!(null),
        json!(7),
        json!(["shop", 7]),
        json!([["shop"]]),
        json!({"shop": true}),
        json!(many),
    ] {
        assert_eq!(verdict(&hs(&with("aud", aud))), Err(TokenError::Malformed));
    }
}

#[test]
fn a_key_of_two_projects_does_not_choose_between_them() {
    let mut keys = keys();
    for project in ["shop", "bank"] {
        let project = Arc::from(project);
        keys.add(&project, "both", DeviceKeyAlgorithm::Es256, &EC.public)
            .unwrap();
    }
    let verdict = |aud: Value| {
        let token = sign(Algorithm::ES256, "both", &with("aud", aud), &ec());
        keys.verify(&token, NOW).map(|holder| holder.project)
    };
    assert_eq!(verdict(json!(["bank", "other"])), Ok(Arc::from("bank")));
    assert_eq!(
        verdict(json!(["shop", "bank"])),
        Err(TokenError::UnknownKey)
    );
}

#[test]
fn times_are_checked_with_a_minute_of_leeway() {
    let expiring = |exp: i64| verdict(&hs(&with("exp", json!(exp)))).err();
    assert_eq!(expiring(NOW_S - 59), None);
    assert_eq!(expiring(NOW_S - 60), Some(TokenError::Expired));
    assert_eq!(expiring(NOW_S + 24 * 3_600), None);
    assert_eq!(expiring(NOW_S + 25 * 3_600), Some(TokenError::TooLong));
    assert_eq!(expiring(i64::MAX), Some(TokenError::TooLong));
    assert_eq!(expiring(0), Some(TokenError::Expired));
    assert_eq!(expiring(i64::MIN), Some(TokenError::Malformed));
    let from = |nbf: i64| verdict(&hs(&with("nbf", json!(nbf)))).err();
    assert_eq!(from(NOW_S + 30), None);
    assert_eq!(from(NOW_S + 61), Some(TokenError::NotYet));
    // Python and Lua write seconds with a fraction.
    let fractional = |name, time: f64| verdict(&hs(&with(name, json!(time)))).err();
    for (name, time, expected) in [
        ("exp", 1_795_176_600.0, None),
        ("exp", 1_795_175_941.75, None),
        ("exp", 1_795_175_940.5, Some(TokenError::Expired)),
        ("exp", 1e300, Some(TokenError::Malformed)),
        ("nbf", 1_795_176_000.5, None),
        ("nbf", 1_795_176_062.5, Some(TokenError::NotYet)),
    ] {
        assert_eq!(fractional(name, time), expected, "{name} {time}");
    }
}

#[test]
fn every_claim_is_required() {
    for name in ["aud", "exp", "sub"] {
        let mut claims = claims();
        claims.as_object_mut().unwrap().remove(name);
        assert_eq!(verdict(&hs(&claims)), Err(TokenError::Malformed), "{name}");
    }
    assert_eq!(
        verdict(&hs(&with("sub", json!(" ")))),
        Err(TokenError::Subject)
    );
}

#[test]
fn unknown_and_missing_kids_are_rejected() {
    let key = EncodingKey::from_secret(SECRET.as_bytes());
    let token = sign(Algorithm::HS256, "retired", &claims(), &key);
    assert_eq!(verdict(&token), Err(TokenError::UnknownKey));
    let token = encode(&Header::new(Algorithm::HS256), &claims(), &key).unwrap();
    assert_eq!(verdict(&token), Err(TokenError::Malformed));
    for junk in ["", ".", "..", "a.b.c", "x.y.z.w", "éé.ü.ß"] {
        assert_eq!(verdict(junk), Err(TokenError::Malformed), "{junk}");
    }
}

#[test]
fn old_and_new_keys_are_valid_during_rotation() {
    let shop = Arc::from("shop");
    let mut keys = keys();
    let next = "the-next-secret-of-the-shop-long-enough";
    keys.add(&shop, "hs-2", DeviceKeyAlgorithm::Hs256, next)
        .unwrap();
    let old = hs(&claims());
    let new = sign(
        Algorithm::HS256,
        "hs-2",
        &claims(),
        &EncodingKey::from_secret(next.as_bytes()),
    );
    assert!(keys.verify(&old, NOW).is_ok() && keys.verify(&new, NOW).is_ok());
}

#[test]
fn a_key_set_adds_public_keys_but_no_secrets() {
    let add_set = |keys: &mut DeviceKeys, set: &str| {
        keys.add(&Arc::from("shop"), "", DeviceKeyAlgorithm::Jwks, set)
    };
    let mut public = Jwk::from_encoding_key(&ec(), Algorithm::ES256).unwrap();
    public.common.key_id = Some("set-1".to_owned());
    let secret = json!({"kty": "oct", "kid": "oct", "k": URL_SAFE_NO_PAD.encode(SECRET)});
    let set = json!({"keys": [public, secret]}).to_string();
    let mut keys = DeviceKeys::default();
    add_set(&mut keys, &set).unwrap();
    let token = sign(Algorithm::ES256, "set-1", &claims(), &ec());
    assert!(keys.verify(&token, NOW).is_ok());
    let hmac = EncodingKey::from_secret(SECRET.as_bytes());
    let token = sign(Algorithm::HS256, "oct", &claims(), &hmac);
    assert_eq!(keys.verify(&token, NOW), Err(TokenError::UnknownKey));
    assert!(add_set(&mut keys, "{\"keys\": []}").is_err());
    assert!(add_set(&mut keys, "no").is_err());
}

#[test]
fn weak_or_wrong_material_is_rejected_and_not_quoted() {
    let shop = Arc::from("shop");
    let mut keys = DeviceKeys::default();
    for (algorithm, material) in [
        (DeviceKeyAlgorithm::Hs256, "short"),
        (DeviceKeyAlgorithm::Es256, &ED.public),
        (DeviceKeyAlgorithm::EdDsa, &EC.public),
        (DeviceKeyAlgorithm::EdDsa, SECRET),
    ] {
        let error = keys.add(&shop, "k", algorithm, material).unwrap_err();
        assert!(!error.contains(material));
    }
    assert!(!format!("{:?}", self::keys()).contains("secret"));
}
