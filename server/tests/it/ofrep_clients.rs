//! The configuration as flags, requested by the official clients of OpenFeature.

use std::path::{Path, PathBuf};

use std::process::Stdio;

use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::Command;

use crate::ofrep::{configuration, install, serving};
use crate::remote_config::save;
use crate::server::{KEY, Server, batch};
use crate::third_party::{installed, succeeds};

/// A command that runs the script of a client against a server.
fn client(program: PathBuf, script: &str, server: &Server) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/openfeature")
        .join(script);
    let mut command = Command::new(program);
    command
        .arg(script)
        .env("SERVER_URL", &server.url)
        .env("SERVER_KEY", KEY)
        .env("CANARY", install(true))
        .env("OTHER", install(false))
        .env("CLIENT_MODULES", installed("openfeature/node_modules"));
    command
}

/// Runs the script of a client against a server with the configuration of the other tests.
async fn run(program: PathBuf, script: &str) {
    let server = serving(configuration()).await;
    succeeds(&mut client(program, script, &server)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_client_reads_the_flags() {
    run("node".into(), "client.mjs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_reads_the_flags() {
    run(installed("openfeature/venv/bin/python"), "client.py").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_client_sees_changes_if_it_polls_and_limits_of_events_do_not_stop_it() {
    let server = serving(configuration()).await;
    let token = server.token("admin").await;
    // No event is accepted any longer.
    let blocked = json!({"signal_quotas": {"spans": 0}});
    let path = "/api/v1/projects/default";
    let blocked = server
        .call(&token, Method::PATCH, path, Some(blocked))
        .await;
    assert_eq!(blocked.status, 200, "{:?}", blocked.body);

    let mut command = client("node".into(), "polling.mjs", &server);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("ready"));
    server.send(&batch()).await;
    let mut changed = configuration();
    changed["base"]["toggles"]["checkout button"] = json!("red");
    save(&server, &token, changed).await;
    let mut input = process.stdin.take().unwrap();
    input.write_all(b"red\n").await.unwrap();
    assert_eq!(lines.next_line().await.unwrap().as_deref(), Some("done"));
}
