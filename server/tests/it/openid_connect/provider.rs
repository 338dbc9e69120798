//! A fake identity provider on loopback whose responses a test can falsify.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use reqwest::Url;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

use crate::server::NOW;

pub(crate) const CLIENT: &str = "unjank";
pub(crate) const SECRET: &str = "the client's secret, long enough for HMAC";

/// The response to a discovery request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Discovery {
    Right,
    /// The body never ends.
    Huge,
    /// The response never begins.
    Hangs,
    Fails,
    /// Names another issuer.
    OfAnotherIssuer,
}

/// How an ID token is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signed {
    Right,
    NotAtAll,
    WithTheClientSecret,
    WithAnotherKey,
}

/// The provider's behaviour, which a test can change.
pub(crate) struct Manners {
    pub(crate) discovery: Discovery,
    pub(crate) signed: Signed,
    /// Replace claims of the ID token. `null` removes a claim.
    pub(crate) claims: Value,
    /// The response of the user info endpoint. `None` if the provider has no such endpoint.
    pub(crate) user_info: Option<Value>,
    /// Replaces members of the token response. `null` removes a member.
    pub(crate) answer: Value,
    pub(crate) token_hangs: bool,
    key: Key,
    /// The logins that the issued codes belong to.
    codes: HashMap<String, Code>,
    /// Requests by path.
    calls: HashMap<&'static str, usize>,
}

struct Code {
    nonce: String,
    challenge: String,
    redirect: String,
}

struct Key {
    id: String,
    private: Vec<u8>,
    public: Vec<u8>,
}

impl Key {
    fn new() -> Self {
        let random = SystemRandom::new();
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random);
        let private = pkcs8.unwrap().as_ref().to_vec();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &private).unwrap();
        Self {
            id: Uuid::new_v4().to_string(),
            public: pair.public_key().as_ref().to_vec(),
            private,
        }
    }

    fn jwk(&self) -> Value {
        // An uncompressed point: 4, x, y.
        let part = |range| {
            URL_SAFE_NO_PAD.encode(self.public.get::<std::ops::Range<usize>>(range).unwrap())
        };
        json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": self.id, "x": part(1..33), "y": part(33..65)})
    }
}

#[derive(Clone)]
struct Shared {
    issuer: String,
    manners: Arc<Mutex<Manners>>,
}

pub(crate) struct Provider {
    shared: Shared,
    _end: DropGuard,
}

impl Provider {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let manners = Manners {
            discovery: Discovery::Right,
            signed: Signed::Right,
            claims: json!({}),
            user_info: None,
            answer: json!({}),
            token_hangs: false,
            key: Key::new(),
            codes: HashMap::new(),
            calls: HashMap::new(),
        };
        let shared = Shared {
            issuer: format!("http://{}", listener.local_addr().unwrap()),
            manners: Arc::new(Mutex::new(manners)),
        };
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(discover))
            .route("/jwks", get(jwks))
            .route("/token", post(token))
            .route("/userinfo", get(user_info))
            .with_state(shared.clone());
        let end = CancellationToken::new();
        let ended = end.clone();
        let serving = axum::serve(listener, routes);
        #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
        tokio::spawn(async move {
            tokio::select! {
                served = async { serving.await } => served.unwrap(),
                () = ended.cancelled() => {}
            }
        });
        Self {
            shared,
            _end: end.drop_guard(),
        }
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.shared.issuer
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Manners)) {
        change(&mut self.shared.manners.lock().unwrap());
    }

    /// Replaces the key that ID tokens are signed with.
    pub(crate) fn rotate(&self) {
        self.change(|manners| manners.key = Key::new());
    }

    pub(crate) fn calls(&self, path: &'static str) -> usize {
        let manners = self.shared.manners.lock().unwrap();
        manners.calls.get(path).copied().unwrap_or_default()
    }

    /// Logs a user in at the address that unjank redirected the browser to. Returns the authorization code.
    pub(crate) fn code(&self, address: &Url) -> String {
        let parameters: HashMap<String, String> = address.query_pairs().into_owned().collect();
        assert_eq!(parameters["response_type"], "code");
        assert_eq!(parameters["client_id"], CLIENT);
        assert_eq!(parameters["code_challenge_method"], "S256");
        assert_eq!(parameters["scope"], "openid email profile");
        let code = Uuid::new_v4().to_string();
        let login = Code {
            nonce: parameters["nonce"].clone(),
            challenge: parameters["code_challenge"].clone(),
            redirect: parameters["redirect_uri"].clone(),
        };
        self.change(|manners| {
            manners.codes.insert(code.clone(), login);
        });
        code
    }
}

impl Shared {
    /// Counts a call and reads the configured behaviour.
    fn called<T>(&self, path: &'static str, read: impl FnOnce(&mut Manners) -> T) -> T {
        let mut manners = self.manners.lock().unwrap();
        *manners.calls.entry(path).or_default() += 1;
        read(&mut manners)
    }
}

async fn discover(State(shared): State<Shared>) -> Response {
    let (discovery, has_user_info) = shared.called("discovery", |manners| {
        (manners.discovery, manners.user_info.is_some())
    });
    match discovery {
        Discovery::Hangs => std::future::pending().await,
        Discovery::Fails => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Discovery::Huge => {
            let chunk = || Some((Ok::<_, std::io::Error>(" ".repeat(64 << 10)), ()));
            let endless = futures_util::stream::unfold((), move |()| async move { chunk() });
            let body = axum::body::Body::from_stream(endless);
            ([("content-type", "application/json")], body).into_response()
        }
        Discovery::Right | Discovery::OfAnotherIssuer => {
            let own = &shared.issuer;
            let issuer = match discovery {
                Discovery::OfAnotherIssuer => "http://127.0.0.1:1",
                _ => own,
            };
            let mut document = json!({
                "issuer": issuer, "authorization_endpoint": format!("{own}/authorize"),
                "token_endpoint": format!("{own}/token"), "jwks_uri": format!("{own}/jwks"),
                "response_types_supported": ["code"], "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["ES256", "HS256", "none"],
            });
            if has_user_info {
                document["userinfo_endpoint"] = json!(format!("{own}/userinfo"));
            }
            Json(document).into_response()
        }
    }
}

async fn jwks(State(shared): State<Shared>) -> Response {
    let jwk = shared.called("jwks", |manners| manners.key.jwk());
    Json(json!({"keys": [jwk]})).into_response()
}

async fn user_info(State(shared): State<Shared>) -> Response {
    match shared.called("userinfo", |manners| manners.user_info.clone()) {
        Some(claims) => Json(claims).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn token(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let form: HashMap<_, _> = form_urlencoded::parse(&body).into_owned().collect();
    let (code, hangs) = shared.called("token", |manners| {
        (manners.codes.remove(&form["code"]), manners.token_hangs)
    });
    if hangs {
        tokio::time::sleep(Duration::from_secs(3_600)).await;
    }
    let credentials = STANDARD.encode(format!("{CLIENT}:{}", encoded(SECRET)));
    let is_client = headers["authorization"] == format!("Basic {credentials}");
    let verifier = digest(&SHA256, form["code_verifier"].as_bytes());
    let verifier = URL_SAFE_NO_PAD.encode(verifier.as_ref());
    // A code works once, and only for its login.
    let Some(code) = code.filter(|code| {
        is_client && code.challenge == verifier && code.redirect == form["redirect_uri"]
    }) else {
        let refusal = Json(json!({"error": "invalid_grant"}));
        return (StatusCode::BAD_REQUEST, refusal).into_response();
    };
    let (id_token, answer) = shared.called("token answered", |manners| {
        let token = id_token(&shared.issuer, manners, &code);
        (token, manners.answer.clone())
    });
    let right =
        json!({"access_token": "an-access-token", "token_type": "Bearer", "id_token": id_token});
    Json(with_changes(right, &answer)).into_response()
}

fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn id_token(issuer: &str, manners: &Manners, code: &Code) -> String {
    let now = NOW / 1_000_000;
    let right = json!({
        "iss": issuer, "aud": CLIENT, "sub": "subject-1", "nonce": code.nonce, "iat": now, "exp": now + 300,
        "email": "ann@example.com", "email_verified": true, "name": "Ann",
    });
    let claims = with_changes(right, &manners.claims);
    let signed = |algorithm, key: &EncodingKey, id: &str| {
        let header = Header {
            kid: Some(id.to_owned()),
            ..Header::new(algorithm)
        };
        jsonwebtoken::encode(&header, &claims, key).unwrap()
    };
    let own = &manners.key;
    match manners.signed {
        Signed::Right => signed(
            Algorithm::ES256,
            &EncodingKey::from_ec_der(&own.private),
            &own.id,
        ),
        Signed::WithAnotherKey => {
            let key = EncodingKey::from_ec_der(&Key::new().private);
            signed(Algorithm::ES256, &key, &own.id)
        }
        Signed::WithTheClientSecret => {
            let key = EncodingKey::from_secret(SECRET.as_bytes());
            signed(Algorithm::HS256, &key, &own.id)
        }
        Signed::NotAtAll => {
            let part = |json: Value| URL_SAFE_NO_PAD.encode(json.to_string());
            format!("{}.{}.", part(json!({"alg": "none"})), part(claims))
        }
    }
}

/// Replaces members of `right` with those of `changes`. `null` removes a member.
fn with_changes(mut right: Value, changes: &Value) -> Value {
    let members = right.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap() {
        if value.is_null() {
            members.remove(name);
        } else {
            members.insert(name.clone(), value.clone());
        }
    }
    right
}
