//! The app under valgrind, where code that calls the vDSO by itself crashes.

use std::process::Command;

use crate::app::{App, LONGEST_CALL};
use crate::collecting::Collecting;
use crate::truth::Stored;

/// A call that takes so many times longer hangs. Memcheck makes programs ten to thirty times slower, as its manual says.
const SLOWER: u32 = 30;

#[test]
fn the_sdk_runs_under_valgrind() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        // Not installed.
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let server = Collecting::start(&serde_json::json!({"interval_s": 1}));
    let mut valgrind = Command::new("valgrind");
    valgrind.arg("-q").arg(std::env::current_exe().unwrap());
    let mut app = App::start_by(valgrind, &server.url(), folder.path());
    let longest = app.completes("spans 0 10 0");
    assert!(longest < LONGEST_CALL * SLOWER, "a call hung: {longest:?}");
    app.does("flush");
    app.ends();
    let stored = Stored::new(server.taken());
    assert_eq!(stored.numbers().len(), 10);
}
