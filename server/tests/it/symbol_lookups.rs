//! Lookup files: made from symbol files, bounded on disk, made again when they are gone, and no reason for other projects to wait.

use std::fs::OpenOptions;
use std::path::PathBuf;
use std::process::Command;

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::Server;
use crate::symbol_uploads::files_below;
use crate::symbols::{CULPRITS, MAP_ID, janks, mapping, obfuscated, upload_to};
use crate::wait;

const CULPRIT: &str = "com.example.shop.Prices.sum";

async fn started(arguments: &[&str]) -> (Server, String) {
    let server = Server::with(arguments).await;
    server.ready().await;
    let token = server.token("admin").await;
    (server, token)
}

fn lookups(server: &Server) -> Vec<PathBuf> {
    files_below(&server.data_dir().join("symbol-lookups"))
}

/// Whether a lookup file is being made.
fn works_on_a_file(server: &Server) -> bool {
    let folder = server.data_dir().join("symbol-lookups");
    let version = std::fs::read_dir(folder).unwrap().next().unwrap().unwrap();
    let mut entries = std::fs::read_dir(version.path()).unwrap();
    entries.any(|entry| entry.unwrap().path().is_dir())
}

/// A mapping like [`mapping()`] of another build, and a stack that needs it.
fn other_build(number: u8) -> (Vec<u8>, Value) {
    let id = format!("{number:02x}{}", MAP_ID.get(2..).unwrap());
    let mapping = String::from_utf8(mapping()).unwrap().replace(MAP_ID, &id);
    let stack =
        json!([{"class": "a.b", "function": "a", "file": format!("r8-map-id-{id}"), "line": 1}]);
    (mapping.into_bytes(), stack)
}

/// Creates a project with a key.
async fn add_project(server: &Server, token: &str, id: &str) -> String {
    let made = json!({ "id": id });
    server
        .call(token, Method::POST, "/api/v1/projects", Some(made))
        .await;
    let key = json!({"name": "all", "app_ids": ["com.example.shop"]});
    let path = format!("/api/v1/projects/{id}/keys");
    let key = server.call(token, Method::POST, &path, Some(key)).await;
    key.body["key"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_symbol_file_that_hangs_holds_up_no_other_project() {
    let (server, token) = started(&[]).await;
    let key = add_project(&server, &token, "bank").await;
    for project in ["default", "bank"] {
        let state = upload_to(&server, (&token, project), &mapping()).await;
        assert_eq!(state["state"], "ok", "{state}");
    }
    // Reading this file does not end before something is written to it.
    let file = files_below(&server.data_dir().join("symbols/files/default")).remove(0);
    std::fs::remove_file(&file).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&file)
            .status()
            .unwrap()
            .success()
    );
    for lookup in lookups(&server) {
        std::fs::remove_file(lookup).unwrap();
    }

    server.send(&janks(&obfuscated())).await;
    wait::until("the server reads the file", async || {
        works_on_a_file(&server)
    })
    .await;
    let batch = janks(&obfuscated()).to_string();
    wait::until("the new key works", async || {
        let request = server.request_with(&key).body(batch.clone());
        request.send().await.unwrap().status() == 202
    })
    .await;
    let culprits = "SELECT project, culprit FROM stack_class_current ORDER BY project";
    server.answers(culprits, &format!("bank\t{CULPRIT}")).await;
    // The read ends, and the next one finds the mapping.
    let writer = OpenOptions::new().write(true).open(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, mapping()).unwrap();
    drop(writer);
    let both = format!("bank\t{CULPRIT}\ndefault\t{CULPRIT}");
    server.answers(culprits, &both).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lookup_files_are_bounded_and_made_again() {
    let (server, token) = started(&["--symbols-cache-bytes", "1"]).await;
    let builds: Vec<_> = (1..=3).map(other_build).collect();
    for (mapping, _) in &builds {
        let state = upload_to(&server, (&token, "default"), mapping).await;
        assert_eq!(state["state"], "ok", "{state}");
        // The latest one stays, whatever its size.
        assert_eq!(lookups(&server).len(), 1);
    }
    for (_, stack) in &builds {
        server.send(&janks(stack)).await;
    }
    let readable = format!("SELECT count() FROM stack_class_current WHERE culprit = '{CULPRIT}'");
    server.answers(&readable, "3").await;
    assert_eq!(lookups(&server).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn lookup_files_of_other_versions_and_damaged_ones_are_made_again() {
    let (mut server, token) = started(&[]).await;
    let state = upload_to(&server, (&token, "default"), &mapping()).await;
    assert_eq!(state["state"], "ok", "{state}");
    let whole = lookups(&server).remove(0);
    let made = std::fs::read(&whole).unwrap();
    server.end().await;
    let folder = server.data_dir().join("symbol-lookups");
    let name = whole.file_name().unwrap();
    std::fs::create_dir(folder.join("v0")).unwrap();
    std::fs::write(folder.join("v0").join(name), &made).unwrap();
    // As if the machine had stopped while the file was written.
    std::fs::write(&whole, &made[..made.len() / 2]).unwrap();

    server.start_again().await;
    server.ready().await;
    assert!(!folder.join("v0").exists());
    server.send(&janks(&obfuscated())).await;
    server.answers(CULPRITS, CULPRIT).await;
    assert_eq!(std::fs::read(&whole).unwrap(), made);
}
