//! The last log lines and screens, which are sent with a jank.

use std::collections::VecDeque;

use unjank_protocol::{LogLine, Text, Timestamp};

/// Maximum number of lines; an event holds 64 entries in total.
const LINES: usize = 56;
const SCREENS: usize = 8;

/// Maximum length of a line in an event, in bytes.
const LONGEST: usize = 1_024;

/// Keeps the last 56 log lines and the last 8 screens, 64 KiB at most, and drops the oldest. A longer line is cut and ends in
/// `…`. Screens have their own space, so that a verbose log does not displace where the user was.
///
/// ```
/// use unjank_monitors::RunLog;
/// use unjank_protocol::Timestamp;
///
/// let mut log = RunLog::default();
/// log.screen(Timestamp::from_micros(1), "CartActivity");
/// log.line(Timestamp::from_micros(2), "loaded 3 items");
/// let lines: Vec<_> = log.lines().into_iter().map(|line| line.message.to_string()).collect();
/// assert_eq!(lines, ["CartActivity", "loaded 3 items"]);
/// ```
#[derive(Debug, Default)]
pub struct RunLog {
    lines: VecDeque<(u64, LogLine<'static>)>,
    screens: VecDeque<(u64, LogLine<'static>)>,
    written: u64,
}

impl RunLog {
    /// Adds a line that the app logged.
    pub fn line(&mut self, time: Timestamp, message: &str) {
        let line = self.entry(time, message);
        keep(&mut self.lines, line, LINES);
    }

    /// Adds a screen that the app opened.
    pub fn screen(&mut self, time: Timestamp, page: &str) {
        let line = self.entry(time, page);
        keep(&mut self.screens, line, SCREENS);
    }

    /// Returns the lines and screens in the order they were added, oldest first: the `run_log` of a jank. Call it when the first
    /// stack is captured, so that the log ends with the stall.
    #[must_use]
    pub fn lines(&self) -> Vec<LogLine<'static>> {
        let mut all: Vec<_> = self.lines.iter().chain(&self.screens).collect();
        all.sort_by_key(|(number, _)| *number);
        all.into_iter().map(|(_, line)| line.clone()).collect()
    }

    /// Deletes everything, for example because another person uses the app now.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.screens.clear();
    }

    fn entry(&mut self, time: Timestamp, message: &str) -> (u64, LogLine<'static>) {
        self.written = self.written.wrapping_add(1);
        let mut text = Text::from(message);
        text.truncate(LONGEST);
        let message = Text::from(text.into_cow().into_owned());
        (self.written, LogLine { time, message })
    }
}

fn keep<T>(ring: &mut VecDeque<T>, entry: T, room: usize) {
    if ring.len() >= room {
        ring.pop_front();
    }
    ring.push_back(entry);
}
