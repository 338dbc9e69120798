//! The last log lines and screens, to go with a jank.

use std::collections::VecDeque;

use unjank_protocol::{LogLine, Text, Timestamp};

/// What an event may hold, of both kinds together.
const LINES: usize = 56;
const SCREENS: usize = 8;

/// The longest line an event may hold, in bytes.
const LONGEST: usize = 1_024;

/// A memory of the last 56 log lines and the last 8 screens, 64 KiB at most. The oldest go; a longer line is cut and ends
/// in `…`. Screens have room of their own, so that a talkative log does not push out where the user was.
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
    /// The app wrote a line to its log.
    pub fn line(&mut self, time: Timestamp, message: &str) {
        let line = self.entry(time, message);
        keep(&mut self.lines, line, LINES);
    }

    /// The app went to a screen.
    pub fn screen(&mut self, time: Timestamp, page: &str) {
        let line = self.entry(time, page);
        keep(&mut self.screens, line, SCREENS);
    }

    /// Lines and screens in the order in which they were written, oldest first: the `run_log` of a jank. Take it when the
    /// first stack is taken, so that it ends with the stall.
    #[must_use]
    pub fn lines(&self) -> Vec<LogLine<'static>> {
        let mut all: Vec<_> = self.lines.iter().chain(&self.screens).collect();
        all.sort_by_key(|(number, _)| *number);
        all.into_iter().map(|(_, line)| line.clone()).collect()
    }

    /// Forgets everything: another person uses the app now.
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
