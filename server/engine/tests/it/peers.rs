//! ClickHouse's official clients in other languages.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{PASSWORD, TestEngine};

fn installed(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../.cache/clients")
        .join(path);
    assert!(
        path.exists(),
        "{} is missing: run `make test`, which installs the clients that the engine is tested with",
        path.display()
    );
    path
}

async fn run(mut command: Command) {
    let engine = TestEngine::start_native().await;
    engine
        .ask(&[], "CREATE DATABASE IF NOT EXISTS default")
        .await;
    let tcp = engine.engine.tcp_address().unwrap();
    let pid = engine.pid().to_string();
    let url = engine.url.clone();
    let run = move || {
        command
            .env("ENGINE_URL", url)
            .env("ENGINE_TCP", tcp.to_string())
            .env("ENGINE_PASSWORD", PASSWORD)
            .env("ENGINE_PID", pid)
            .output()
            .unwrap()
    };
    let output = tokio::task::spawn_blocking(run).await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}\n{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    engine.stop().await;
}

#[tokio::test]
async fn the_python_clients_work() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/connect.py");
    let mut command = Command::new(installed("venv/bin/python"));
    // The client returns times of the zone of the machine.
    command.arg(script).env("TZ", "UTC");
    run(command).await;
}

#[tokio::test]
async fn the_javascript_client_works() {
    let modules = installed("node_modules/@clickhouse/client");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/client.mjs");
    let mut command = Command::new("node");
    command.arg(script).env("CLIENT_MODULE", modules);
    run(command).await;
}
