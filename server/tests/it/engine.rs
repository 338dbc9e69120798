//! The engine that all tests of a run share: `unjank engine` in a separate process, which ends with the tests.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

pub(crate) const UNJANK: &str = env!("CARGO_BIN_EXE_unjank");

pub(crate) struct Engine {
    pub(crate) url: String,
    /// Keeps the process's standard input open. The engine ends when it is closed.
    _child: Child,
    _folder: tempfile::TempDir,
}

/// Tests connect as the administrator, since each creates its own database. `processes` tests the rights that a server needs, with
/// separate users.
pub(crate) const USER: &str = "admin";
pub(crate) const PASSWORD: &str = "test";

pub(crate) fn engine() -> &'static Engine {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    ENGINE.get_or_init(start)
}

fn start() -> Engine {
    let folder = tempfile::tempdir().unwrap();
    let mut child = Command::new(UNJANK)
        .args([
            "engine",
            "--listen",
            "127.0.0.1:0",
            "--until-stdin-ends",
            "--log",
            "warn",
            // Hundreds of tests each have a database in this engine, and each table keeps a buffer for its deduplication log. The engine
            // counts 40 MiB for each database, although hardly any of it is ever touched.
            "--max-memory-bytes",
            "17179869184",
            "--data-dir",
        ])
        .arg(folder.path())
        .env("UNJANK_ENGINE_PASSWORD", PASSWORD)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let ready: serde_json::Value =
        serde_json::from_str(&line).expect("the engine prints its address");
    Engine {
        url: ready["url"].as_str().unwrap().to_owned(),
        _child: child,
        _folder: folder,
    }
}
