//! Alert rules on small simulated fleets, with the server's binary, which `cargo build --workspace` makes.

use std::path::Path;
use std::process::Command;

#[test]
fn a_slow_down_fires_another_mix_of_devices_does_not_and_quiet_days_are_quiet() {
    let loadtest = Path::new(env!("CARGO_BIN_EXE_unjank-loadtest"));
    let server = loadtest.with_file_name("unjank");
    assert!(
        server.exists(),
        "{} is missing: cargo build --workspace",
        server.display()
    );
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(loadtest)
        .args(["alerts", "--trials", "1"])
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
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}\n{errors}");
    assert!(said.contains("| 20 % slower | 1 | 1 | 1 |"), "{said}");
    assert!(
        said.contains("| twice as many weak devices | 1 | 0 | 0 | - | - | - | 1 | 0 |"),
        "{said}"
    );
    assert!(said.contains("fired 0 times"), "{said}");
}
