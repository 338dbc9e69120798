//! The configuration, as a document and as flags, requested with a device token, which is valid for one install.

use std::path::Path;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use unjank_database::{Control, DeviceKeyAlgorithm, Hidden, NewDeviceKey};
use unjank_foundation::clock::UnixTime;
use unjank_foundation::task::Tasks;

use crate::control::ANN;
use crate::ofrep::{FLAGS, serving};
use crate::server::{Answer, NOW, Server};
use crate::wait;

const INSTALL: &str = "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11";

/// Registers a device key. Returns a token for [`INSTALL`] that is signed with it.
async fn token(data_dir: &Path) -> String {
    let pair = Ed25519KeyPair::generate().unwrap();
    let public: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
    let public = STANDARD.encode(public.as_ref());
    let url = format!("sqlite:{}", data_dir.join("control.sqlite").display());
    let control = Control::open(&url, &Tasks::default()).await.unwrap();
    let new = NewDeviceKey {
        project: "default".to_owned(),
        algorithm: DeviceKeyAlgorithm::EdDsa,
        material: Hidden(format!(
            "-----BEGIN PUBLIC KEY-----\n{public}\n-----END PUBLIC KEY-----\n"
        )),
        audience: "default".to_owned(),
    };
    let key = control
        .create_device_key(new, &ANN, UnixTime::from_micros(NOW))
        .await
        .unwrap();
    control.close().await;
    let mut header = Header::new(Algorithm::EdDSA);
    header.kid = Some(key.id.to_string());
    let claims = json!({"aud": "default", "sub": INSTALL, "exp": NOW / 1_000_000 + 3_600});
    let private = EncodingKey::from_ed_der(pair.to_pkcs8v1().unwrap().as_ref());
    encode(&header, &claims, &private).unwrap()
}

async fn evaluate(server: &Server, token: &str, context: &Value) -> Answer {
    let url = format!("{}{FLAGS}/poll_interval_s", server.url);
    let request = server.client.post(url).bearer_auth(token);
    let body = json!({"context": context});
    Answer::of(request.json(&body).send().await.unwrap()).await
}

async fn configuration(server: &Server, token: &str, query: &str) -> Answer {
    let url = format!("{}/v1/config{query}", server.url);
    let request = server.client.get(url).bearer_auth(token);
    Answer::of(request.send().await.unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_sets_the_install_and_refuses_any_other() {
    let mine =
        json!({"id": "mine", "when": {"install_id": [INSTALL]}, "patch": {"poll_interval_s": 60}});
    let server = serving(json!({"base": {}, "overrides": [mine]})).await;
    let token = token(server.data_dir()).await;
    wait::until("the key is accepted", async || {
        evaluate(&server, &token, &json!({})).await.status != 401
    })
    .await;
    for context in [
        json!({}),
        json!({"targetingKey": ""}),
        json!({"targetingKey": INSTALL}),
    ] {
        let answer = evaluate(&server, &token, &context).await;
        assert_eq!(
            (answer.status.as_u16(), &answer.body["value"]),
            (200, &json!(60))
        );
    }
    for other in ["5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a12", "me"] {
        let answer = evaluate(&server, &token, &json!({"targetingKey": other})).await;
        assert_eq!(answer.outcome(), (403, "token_not_for_install".to_owned()));
    }
    for own in ["", "?install_id=", &format!("?install_id={INSTALL}")] {
        let answer = configuration(&server, &token, own).await;
        let interval = &answer.body["poll_interval_s"];
        assert_eq!((answer.status.as_u16(), interval), (200, &json!(60)));
    }
    for other in ["5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a12", "me"] {
        let answer = configuration(&server, &token, &format!("?install_id={other}")).await;
        assert_eq!(answer.outcome(), (403, "token_not_for_install".to_owned()));
    }
    // `X-API-Key` accepts keys only, not tokens.
    let request = server.client.post(format!("{}{FLAGS}", server.url));
    let request = request.header("x-api-key", &token).json(&json!({}));
    let answer = Answer::of(request.send().await.unwrap()).await;
    assert_eq!(answer.outcome(), (401, "key_unknown".to_owned()));
}
