//! The app under valgrind, where code that calls the vDSO by itself crashes.

use std::path::Path;
use std::process::Command;

use crate::app::{App, LONGEST_CALL};
use crate::collecting::Collecting;
use crate::truth::Stored;

/// A call that takes so many times longer hangs. Memcheck makes programs ten to thirty times slower, as its manual says.
const SLOWER: u32 = 30;

/// Returns the valgrind of this machine, or the one that `make setup` unpacked, if one of them runs.
fn valgrind() -> Option<Command> {
    let unpacked = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.cache/valgrind/usr");
    let unpacked = Path::new(unpacked);
    let command = |program: &Path| {
        let mut command = Command::new(program);
        if program.is_absolute() {
            command.env("VALGRIND_LIB", unpacked.join("libexec/valgrind"));
        }
        command.arg("-q");
        command
    };
    let own = unpacked.join("bin/valgrind");
    let mut programs = [Path::new("valgrind"), own.as_path()].into_iter();
    let runs = |program: &&Path| {
        let output = command(program).arg("true").output();
        output.is_ok_and(|output| output.status.success())
    };
    programs.find(runs).map(command)
}

#[test]
#[expect(
    clippy::print_stderr,
    reason = "a skipped test prints that it is skipped"
)]
fn the_sdk_runs_under_valgrind() {
    let Some(mut valgrind) = valgrind() else {
        eprintln!("skipped: valgrind does not run on this machine");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let server = Collecting::start(&serde_json::json!({"interval_s": 1}));
    valgrind.arg(std::env::current_exe().unwrap());
    let mut app = App::start_by(valgrind, &server.url(), folder.path());
    let longest = app.completes("spans 0 10 0");
    assert!(longest < LONGEST_CALL * SLOWER, "a call hung: {longest:?}");
    app.does("flush");
    app.ends();
    let stored = Stored::new(server.taken());
    assert_eq!(stored.numbers().len(), 10);
}
