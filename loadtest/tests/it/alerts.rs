//! Alert rules on small simulated fleets. Needs the server's binary, which `cargo build --workspace` builds.

use std::path::Path;
use std::process::Command;

#[test]
fn only_a_slow_down_fires_and_not_a_mix_shift_or_a_quiet_day() {
    let loadtest = Path::new(env!("CARGO_BIN_EXE_unjank-loadtest"));
    let server = loadtest.with_file_name("unjank");
    assert!(
        server.exists(),
        "{} is missing: run `cargo build --workspace`",
        server.display()
    );
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(loadtest)
        .args(["alerts", "--trials", "1", "--trial-step", "5"])
        .args([
            "--kind",
            "20 % slower",
            "--kind",
            "twice as many weak devices",
        ])
        .args([
            "--days",
            "1",
            "--step",
            "240",
            "--sessions",
            "2000",
            "--rules",
            "4",
        ])
        .arg("--server-bin")
        .arg(server)
        .arg("--data-dir")
        .arg(folder.path().join("data"))
        .output()
        .unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stdout}\n{errors}");
    assert!(stdout.contains("| 20 % slower | 1 | 1 | 1 |"), "{stdout}");
    assert!(
        stdout.contains("| twice as many weak devices | 1 | 0 | 0 | - | - | - | 1 | 0 |"),
        "{stdout}"
    );
    assert!(stdout.contains("fired 0 times"), "{stdout}");
}
