//! Third-party programs that tests run. `make setup` installs them.

use std::path::{Path, PathBuf};
use std::process::Output;

use tokio::process::Command;

/// Returns an installed file or folder, by its path below `.cache`.
pub(crate) fn installed(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../.cache")
        .join(path);
    assert!(
        path.exists(),
        "{} is missing: run `make setup`, which installs it",
        path.display()
    );
    path
}

/// Runs a command that must succeed.
pub(crate) async fn succeeds(command: &mut Command) {
    let output = command.kill_on_drop(true).output().await.unwrap();
    let Output {
        status,
        stdout,
        stderr,
    } = output;
    let (stdout, stderr) = (
        String::from_utf8_lossy(&stdout),
        String::from_utf8_lossy(&stderr),
    );
    assert!(status.success(), "{stdout}\n{stderr}");
}
