//! `unjank compare --history`: the numbers of builds as a series, and since which commit a number is worse.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::json;

use crate::engine::UNJANK;

/// Writes the report file of a run with 40 spans of about this duration.
fn run(folder: &Path, name: &str, ms: u32) -> String {
    let lines = (0..40).map(|number| {
        let event = json!({
            "trace_id": format!("{:032x}", number + 1), "span_id": format!("{:016x}", number + 1), "name": "pay", "kind": "manual",
            "start": "2026-11-20T12:00:00Z", "duration_us": ms * 1_000 + number, "thread": "main", "on_main_thread": true,
        });
        format!("{}\n", json!({"signal": "span", "event": event}))
    });
    let path = folder.join(name);
    std::fs::write(&path, lines.collect::<String>()).unwrap();
    path.to_str().unwrap().to_owned()
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Ann", "-c", "user.email=ann@example.com"])
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn commit(folder: &Path, subject: &str) -> String {
    git(folder, &["commit", "--allow-empty", "-q", "-m", subject]);
    git(folder, &["rev-parse", "HEAD"])
}

fn compare(folder: &Path, [base, head]: [&str; 2], commit: &str) -> Output {
    Command::new(UNJANK)
        .args(["compare", "--base", base, "--head", head])
        .args(["--history", "history.jsonl", "--commit", commit])
        .env_remove("GITHUB_STEP_SUMMARY")
        .current_dir(folder)
        .output()
        .unwrap()
}

#[test]
fn the_first_commit_of_a_regression_is_named_with_its_author() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    git(folder, &["init", "-q"]);
    let base = run(folder, "base.jsonl", 100);
    let fast = run(folder, "fast.jsonl", 101);
    let slow = run(folder, "slow.jsonl", 200);
    let slower = run(folder, "slower.jsonl", 205);
    let good = commit(folder, "Add a button");
    let bad = commit(folder, "Write orders on the main thread");
    let later = commit(folder, "Change a colour");
    let output = compare(folder, [&base, &fast], &good);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!String::from_utf8_lossy(&output.stdout).contains("Since when"));
    assert_eq!(compare(folder, [&base, &slow], &bad).status.code(), Some(1));
    let output = compare(folder, [&base, &slower], &later);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(
        text.contains(&format!("is worse since commit {bad}")),
        "{text}"
    );
    assert!(text.contains(&format!("the last better one is {good}")));
    assert!(text.contains("101 ms → 200 ms → 205 ms"), "{text}");
    assert!(text.contains("by Ann,"), "{text}");
    assert!(text.contains("Write orders on the main thread"), "{text}");
    assert!(!text.contains("Change a colour") && !text.contains("measure"));
    let kept = std::fs::read_to_string(folder.join("history.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 3);
}

#[test]
fn commits_between_two_measured_builds_are_listed_with_the_one_to_measure_next() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    git(folder, &["init", "-q"]);
    let base = run(folder, "base.jsonl", 100);
    let slow = run(folder, "slow.jsonl", 200);
    let commits = ["One", "Two", "Three", "Four", "Five"].map(|subject| commit(folder, subject));
    compare(folder, [&base, &base], &commits[0]);
    let output = compare(folder, [&base, &slow], &commits[4]);
    let text = String::from_utf8(output.stdout).unwrap();
    for subject in ["Two", "Three", "Four", "Five"] {
        assert!(text.contains(&format!(", {subject}")), "{text}");
    }
    let short = git(folder, &["rev-parse", "--short", &commits[2]]);
    assert!(text.contains(&format!("measure {short} next")), "{text}");
    // The middle build is bad, too, so the range shrinks. Entries are in the order of measurement, so the builds in
    // between are measured against the same base, and the last one is repeated.
    compare(folder, [&base, &base], &commits[2]);
    let output = compare(folder, [&base, &slow], &commits[4]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains(&format!("the last better one is {}", commits[2])));
    assert!(!text.contains(", Three"), "{text}");
}

#[test]
fn a_history_without_git_or_with_a_damaged_line_is_handled() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let base = run(folder, "base.jsonl", 100);
    let slow = run(folder, "slow.jsonl", 200);
    let output = compare(folder, [&base, &slow], "build-7");
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("is worse since commit build-7"), "{text}");
    assert!(text.contains("the history has no better commit before it"));
    let refused = compare(folder, [&base, &slow], "--output=x");
    assert_eq!(refused.status.code(), Some(2));
    std::fs::write(folder.join("history.jsonl"), "{}\n").unwrap();
    let refused = compare(folder, [&base, &slow], "build-8");
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("line 1 of history.jsonl"));
}
