//! The configuration as flags, asked for by OpenFeature's own clients, which know the protocol better than anyone.

use std::path::{Path, PathBuf};
use std::process::Output;

use crate::ofrep::{configuration, install, serving};
use crate::server::KEY;

fn installed(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../.cache/openfeature")
        .join(path);
    assert!(
        path.exists(),
        "{} is missing: run `make clients`, which installs the clients that flags are tested with",
        path.display()
    );
    path
}

/// Runs a script of a client's against a server with the configuration of the other tests.
async fn run(program: PathBuf, script: &str) {
    let server = serving(configuration()).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/openfeature")
        .join(script);
    let Output {
        status,
        stdout,
        stderr,
    } = tokio::process::Command::new(program)
        .arg(script)
        .env("SERVER_URL", &server.url)
        .env("SERVER_KEY", KEY)
        .env("CANARY", install(true))
        .env("OTHER", install(false))
        .env("CLIENT_MODULES", installed("node_modules"))
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    let (stdout, stderr) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    assert!(status.success(), "{stdout}\n{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_client_finds_what_it_expects() {
    run("node".into(), "client.mjs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_finds_what_it_expects() {
    run(installed("venv/bin/python"), "client.py").await;
}
