//! The run log.

use unjank_monitors::{LoggedAt, RunLog, Uptime};
use unjank_protocol::Timestamp;

const END: Uptime = Uptime::from_millis(u64::MAX);

/// A time outside of any message.
fn idle(millis: u64) -> LoggedAt {
    LoggedAt {
        uptime: Uptime::from_millis(millis),
        ..LoggedAt::default()
    }
}

/// A time during the message that began at 10 s.
fn during(millis: u64) -> LoggedAt {
    LoggedAt {
        uptime: Uptime::from_millis(10_000 + millis),
        message_began: Some(Uptime::from_millis(10_000)),
        ..LoggedAt::default()
    }
}

fn until(log: &RunLog, began: Uptime) -> Vec<String> {
    let lines = log.lines_until(began).into_iter();
    lines.map(|line| line.message.to_string()).collect()
}

#[test]
fn the_last_lines_and_screens_are_kept_in_order() {
    let mut log = RunLog::default();
    log.screen(idle(0), "HomeActivity");
    for number in 0..1_000 {
        log.line(idle(number), &format!("line {number}"));
    }
    // The wall clock was set back meanwhile.
    let wall = Timestamp::from_micros(-5);
    log.screen(
        LoggedAt {
            wall,
            ..idle(1_000)
        },
        "CartActivity",
    );
    let lines = until(&log, END);
    assert_eq!(lines.len(), 58, "56 lines, 2 screens");
    assert_eq!(lines[0], "HomeActivity");
    assert_eq!(lines[1], "line 944");
    assert_eq!(
        lines[57], "CartActivity",
        "order should not depend on the clock"
    );
    (1_000..1_100).for_each(|millis| log.screen(idle(millis), "Screen"));
    assert_eq!(until(&log, END).len(), 64, "the limit of an event");
    log.clear();
    assert_eq!(log.lines_until(END), []);
}

#[test]
fn what_is_logged_during_a_message_leaves_half_of_the_space_to_what_was_logged_before() {
    let mut log = RunLog::default();
    let began = Uptime::from_millis(10_000);
    for number in 0..100 {
        log.line(idle(number), &format!("before {number}"));
        log.screen(idle(number), &format!("Before {number}"));
    }
    for number in 1..=1_000 {
        log.line(during(number), &format!("during {number}"));
        log.screen(during(number), &format!("During {number}"));
    }
    let before = until(&log, began);
    assert_eq!(before.len(), 28 + 4, "{before:?}");
    assert_eq!(before[0], "before 72");
    assert_eq!(before[30..], ["before 99", "Before 99"]);
    let all = until(&log, END);
    assert_eq!(all.len(), 64);
    assert_eq!(all[62..], ["during 1000", "During 1000"]);
    // The message is over. The next one began later, so all these lines were logged before it.
    for number in 0..56 {
        log.line(idle(20_000 + number), "after");
    }
    let after = until(&log, END);
    assert_eq!(after.iter().filter(|line| *line == "after").count(), 56);
}

#[test]
fn a_message_displaces_nothing_while_there_is_space() {
    let mut log = RunLog::default();
    (0..10).for_each(|millis| log.line(idle(millis), "before"));
    (1..=1_000).for_each(|millis| log.line(during(millis), "during"));
    let all = until(&log, END);
    assert_eq!(all.len(), 56);
    assert!(all[..10].iter().all(|line| line == "before"), "{all:?}");
}

#[test]
fn a_long_line_is_cut_between_characters() {
    let mut log = RunLog::default();
    log.line(idle(0), &"ä".repeat(5_000));
    let line = &until(&log, END)[0];
    assert!(line.len() <= 1_024 && line.ends_with('…'));
}
