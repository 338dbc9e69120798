//! The configuration as flags, requested by the official clients of OpenFeature.

use std::path::{Path, PathBuf};

use tokio::process::Command;

use crate::ofrep::{configuration, install, serving};
use crate::server::KEY;
use crate::third_party::{installed, succeeds};

/// Runs the script of a client against a server with the configuration of the other tests.
async fn run(program: PathBuf, script: &str) {
    let server = serving(configuration()).await;
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/openfeature")
        .join(script);
    succeeds(
        Command::new(program)
            .arg(script)
            .env("SERVER_URL", &server.url)
            .env("SERVER_KEY", KEY)
            .env("CANARY", install(true))
            .env("OTHER", install(false))
            .env("CLIENT_MODULES", installed("openfeature/node_modules")),
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_client_reads_the_flags() {
    run("node".into(), "client.mjs").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_client_reads_the_flags() {
    run(installed("openfeature/venv/bin/python"), "client.py").await;
}
