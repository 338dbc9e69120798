//! ClickHouse's own clients of other languages, which know its HTTP interface better than anyone.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Engine, PASSWORD, Setup};

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

fn run(command: &mut Command) {
    let engine = Engine::start(&Setup::default()).unwrap();
    let output = command
        .env("ENGINE_URL", &engine.url)
        .env("ENGINE_PASSWORD", PASSWORD)
        .env("ENGINE_PID", engine.pid().to_string())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{}\n{}",
        text(&output.stdout),
        text(&output.stderr)
    );
    assert!(engine.end());
}

#[test]
fn the_python_client_finds_what_it_expects() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/connect.py");
    run(Command::new(installed("venv/bin/python")).arg(script));
}

#[test]
fn the_javascript_client_finds_what_it_expects() {
    let modules = installed("node_modules/@clickhouse/client");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients/client.mjs");
    run(Command::new("node")
        .arg(script)
        .env("CLIENT_MODULE", modules));
}
