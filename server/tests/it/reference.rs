//! The pages of docs/reference are those that the program prints.

use std::path::Path;
use std::process::Command;

use crate::engine::UNJANK;

const PAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/reference");

fn check(page: &str) {
    let output = Command::new(UNJANK)
        .args(["reference", page])
        .output()
        .unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    let printed = String::from_utf8(output.stdout).unwrap();
    let file = Path::new(PAGES).join(page).with_extension("md");
    let kept = std::fs::read_to_string(file).unwrap_or_default();
    assert!(
        kept == printed,
        "docs/reference/{page}.md is outdated: run `make reference` and commit it"
    );
}

#[test]
fn the_page_of_the_settings_is_current() {
    check("settings");
}

#[test]
fn the_page_of_the_metrics_is_current() {
    check("metrics");
}

#[test]
fn the_page_of_the_remote_configuration_is_current() {
    check("remote-configuration");
}
