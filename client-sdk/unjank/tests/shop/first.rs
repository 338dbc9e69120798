//! Runs the program of the README. It prints and sends what the README promises.

use std::process::Command;

use crate::server::{Server, program};

const RULES: &str = r#"
version = 2
built_in = true

[[rule]]
match = "first::"
means = "in_app"
"#;

#[test]
fn the_first_example_shows_and_sends_its_span_and_its_stall() {
    let server = Server::start(RULES);
    let run = || {
        let mut first = Command::new(program("examples/first"));
        let output = first.arg(server.url()).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{printed}");
        printed
    };
    // On a busy machine, the watchdog may notice the stall only after its end.
    let mut runs = (0..5).map(|_| run());
    let printed = runs.find(|printed| printed.contains("unjank: main is blocked for "));
    let printed = printed.unwrap();
    for line in [
        "unjank: span checkout ",
        "unjank: jank of ",
        "unjank: sent ",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
    server.wait("draining the log", || server.is_drained());
    let span = "SELECT count() > 0 FROM spans WHERE name = 'checkout' AND thread = 'main' AND duration_us >= 400000";
    assert_eq!(server.sql(span), "1");
    let jank = "SELECT count() > 0 FROM janks WHERE thread = 'main' AND duration_ms >= 400";
    assert_eq!(server.sql(jank), "1");
    let culprit = "SELECT DISTINCT culprit FROM janks INNER JOIN stack_class_current AS class \
        ON class.stack_hash = janks.stack_hash AND class.project = janks.project WHERE culprit != ''";
    assert_eq!(server.sql(culprit), "first::main");
}
