//! An operator's day with the real program, from an empty folder to the kill switch. The program is killed in between.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};

use crate::engine::UNJANK;
use crate::processes::Program;
use crate::server::Answer;
use crate::wait;

const CONFIG: &str = "/projects/shop/config";

/// An operator at a browser.
struct Operator {
    cookie: String,
}

impl Operator {
    /// Accepts the invitation that the command line printed.
    async fn arrive(program: &Program, invitation: &str) -> Self {
        let body = json!({"token": invitation, "password": "correct horse battery"});
        let url = format!("{}/api/v1/invitation", program.listen);
        let response = program.client.post(url).json(&body).send().await.unwrap();
        assert_eq!(response.status(), 200);
        let cookie = response.headers().get("set-cookie").unwrap();
        let cookie = cookie.to_str().unwrap().split(';').next().unwrap();
        Self {
            cookie: cookie.to_owned(),
        }
    }

    async fn call(&self, program: &Program, method: Method, path: &str, body: Value) -> Value {
        let url = format!("{}/api/v1{path}", program.listen);
        let request = program.client.request(method, url);
        let request = request.header("cookie", &self.cookie).json(&body);
        let answer = Answer::of(request.send().await.unwrap()).await;
        assert!(answer.status.is_success(), "{path}: {:?}", answer.body);
        answer.body
    }

    /// Previews a change, then saves it. Returns the revision and the number of installs in the preview.
    async fn save(&self, program: &Program, from: i64, percent: f64) -> (i64, Value) {
        let configuration = json!({
            "base": {"sampling": {"janks": 0.1}},
            "overrides": [{
                "id": "closer-look", "note": "4.12 janks on Android",
                "when": {"all": [{"os_name": ["android"]}, {"app_version": ">=4.12"}, {"percentage": {"percent": percent}}]},
                "patch": {"sampling": {"janks": 1.0}}
            }]
        });
        let preview = format!("{CONFIG}/preview");
        let preview = self.call(program, Method::POST, &preview, configuration.clone());
        let previewed = preview.await["overrides"][0]["installs"].clone();
        let body = json!({"expected_revision": from, "configuration": configuration, "note": format!("{percent} %")});
        let saved = self.call(program, Method::PUT, CONFIG, body).await;
        (saved["revision"].as_i64().unwrap(), previewed)
    }
}

/// Sends a batch from each of the first 200 Android devices.
async fn devices_report(program: &Program, key: &str) {
    for install in 0..200 {
        let batch = json!({
            "batch_id": uuid::Uuid::new_v4(), "sent_at": null, "session_id": uuid::Uuid::new_v4(),
            "resource": {"app_id": "com.example.shop", "app_version": "4.12.1", "os_name": "android",
                         "install_id": format!("00000000-0000-4000-8000-{install:012}")},
        });
        let url = format!("{}/v1/ingest", program.listen);
        let request = program.client.post(url).bearer_auth(key).json(&batch);
        let answer = Answer::of(request.send().await.unwrap()).await;
        assert_eq!(answer.status, 202, "{:?}", answer.body);
    }
    program.drained().await;
}

/// Polls the configuration as a device.
async fn answer(program: &Program, key: &str, install: u32, os: &str) -> Answer {
    let url = format!(
        "{}/v1/config?app_id=com.example.shop&app_version=4.12.1&os_name={os}\
         &install_id=00000000-0000-4000-8000-{install:012}",
        program.listen
    );
    Answer::of(
        program
            .client
            .get(url)
            .bearer_auth(key)
            .send()
            .await
            .unwrap(),
    )
    .await
}

/// Returns the configuration that a device receives.
async fn poll(program: &Program, key: &str, install: u32, os: &str) -> Value {
    let answer = answer(program, key, install, os).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    answer.body
}

/// Of the first 200 devices, returns the ones that receive the override.
async fn chosen(program: &Program, key: &str, os: &str) -> BTreeSet<u32> {
    let mut chosen = BTreeSet::new();
    for install in 0..200 {
        if poll(program, key, install, os).await["sampling"]["janks"] == 1.0 {
            chosen.insert(install);
        }
    }
    chosen
}

async fn served(program: &Program, key: &str, revision: i64) {
    // A new key takes effect with the same delay.
    wait::until("the change is served", async || {
        answer(program, key, 0, "ios").await.body["revision"] == revision
    })
    .await;
}

fn invitation(folder: &Path) -> String {
    let output = Command::new(UNJANK)
        .args([
            "user",
            "add",
            "--email",
            "ann@example.com",
            "--name",
            "Ann",
            "--admin",
        ])
        .arg("--data-dir")
        .arg(folder)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operators_changes_reach_devices_and_survive_a_killed_server() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start(folder.path()).await;
    let invitation = invitation(folder.path());
    let ann = Operator::arrive(&program, &invitation).await;
    ann.call(&program, Method::POST, "/projects", json!({"id": "shop"}))
        .await;
    let key = json!({"name": "release", "app_ids": ["com.example.shop"]});
    let key = ann
        .call(&program, Method::POST, "/projects/shop/keys", key)
        .await;
    let key = key["key"].as_str().unwrap().to_owned();
    served(&program, &key, 0).await;
    devices_report(&program, &key).await;
    let (revision, previewed) = ann.save(&program, 0, 10.0).await;
    served(&program, &key, revision).await;
    let tenth = chosen(&program, &key, "android").await;
    assert!((8..40).contains(&tenth.len()), "{tenth:?}");
    assert_eq!(previewed, tenth.len());
    assert!(chosen(&program, &key, "ios").await.is_empty());

    program.kill();
    let mut program = Program::start(folder.path()).await;
    assert_eq!(chosen(&program, &key, "android").await, tenth);
    program.drained().await;
    let (revision, previewed) = ann.save(&program, revision, 20.0).await;
    served(&program, &key, revision).await;
    let fifth = chosen(&program, &key, "android").await;
    assert!(fifth.is_superset(&tenth) && fifth.len() > tenth.len());
    assert_eq!(previewed, fifth.len());

    let back = json!({"revision": 1, "expected_revision": revision});
    ann.call(&program, Method::POST, &format!("{CONFIG}/rollback"), back)
        .await;
    program.kill();
    let program = Program::start(folder.path()).await;
    served(&program, &key, revision + 1).await;
    assert_eq!(chosen(&program, &key, "android").await, tenth);
    let kill = json!({"note": "it drains batteries"});
    ann.call(&program, Method::POST, &format!("{CONFIG}/kill"), kill)
        .await;
    served(&program, &key, revision + 2).await;
    assert_eq!(poll(&program, &key, 1, "android").await["enabled"], false);
}
