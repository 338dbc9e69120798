//! The run log.

use unjank_monitors::RunLog;
use unjank_protocol::Timestamp;

#[test]
fn the_last_lines_and_screens_are_kept_in_order() {
    let mut log = RunLog::default();
    log.screen(Timestamp::from_micros(0), "HomeActivity");
    for number in 0..1_000 {
        log.line(Timestamp::from_micros(number), &format!("line {number}"));
    }
    log.screen(Timestamp::from_micros(-5), "CartActivity");
    let lines = log.lines();
    assert_eq!(lines.len(), 58, "56 lines, 2 screens");
    assert_eq!(lines[0].message.as_str(), "HomeActivity");
    assert_eq!(lines[1].message.as_str(), "line 944");
    assert_eq!(
        lines[57].message.as_str(),
        "CartActivity",
        "order should not depend on the clock"
    );
    (0..100).for_each(|number| log.screen(Timestamp::from_micros(number), "Screen"));
    assert_eq!(log.lines().len(), 64, "the limit of an event");
    log.clear();
    assert_eq!(log.lines(), []);
}

#[test]
fn a_long_line_is_cut_between_characters() {
    let mut log = RunLog::default();
    log.line(Timestamp::default(), &"ä".repeat(5_000));
    let line = &log.lines()[0].message;
    assert!(line.len() <= 1_024 && line.ends_with('…'));
}
