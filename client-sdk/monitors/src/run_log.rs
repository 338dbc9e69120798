//! The last log lines and screens, which are sent with a jank.

use std::collections::VecDeque;

use unjank_protocol::{LogLine, Text, Timestamp};

use crate::Uptime;

/// Maximum number of lines; an event holds 64 entries in total.
const LINES: usize = 56;
const SCREENS: usize = 8;

/// Maximum length of a line in an event, in bytes.
const LONGEST: usize = 1_024;

/// When an entry is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoggedAt {
    /// The time since the app started.
    pub uptime: Uptime,
    /// The time that the wall clock shows.
    pub wall: Timestamp,
    /// When the message began that the main loop is running ([`LoopClock::running`](crate::LoopClock::running)), if any.
    pub message_began: Option<Uptime>,
}

/// Keeps the last 56 log lines and the last 8 screens, 64 KiB at most, and drops the oldest. A longer line is cut and ends in
/// `…`. Screens have their own space, so that a verbose log does not displace where the user was.
///
/// While the main loop runs a message, at least half of the space is kept for the last entries before the message. If the message
/// becomes a stall, they are what led to it, however much is logged during the stall.
///
/// ```
/// use unjank_monitors::{LoggedAt, RunLog, Uptime};
///
/// let at = |millis| LoggedAt { uptime: Uptime::from_millis(millis), ..LoggedAt::default() };
/// let mut log = RunLog::default();
/// log.screen(at(1), "CartActivity");
/// log.line(at(2), "loaded 3 items");
/// log.line(at(9), "during the stall");
/// let lines = log.lines_until(Uptime::from_millis(5));
/// let lines: Vec<_> = lines.into_iter().map(|line| line.message.to_string()).collect();
/// assert_eq!(lines, ["CartActivity", "loaded 3 items"]);
/// ```
#[derive(Debug, Default)]
pub struct RunLog {
    lines: VecDeque<Entry>,
    screens: VecDeque<Entry>,
    written: u64,
}

#[derive(Debug)]
struct Entry {
    number: u64,
    uptime: Uptime,
    line: LogLine<'static>,
}

impl RunLog {
    /// Adds a line that the app logged.
    pub fn line(&mut self, at: LoggedAt, message: &str) {
        let entry = self.entry(at, message);
        keep(&mut self.lines, entry, LINES, at.message_began);
    }

    /// Adds a screen that the app opened.
    pub fn screen(&mut self, at: LoggedAt, page: &str) {
        let entry = self.entry(at, page);
        keep(&mut self.screens, entry, SCREENS, at.message_began);
    }

    /// Returns the lines and screens until the beginning of a stall in the order they were added, oldest first: the `run_log` of a
    /// jank. What was logged during the stall did not lead to it. Call it as soon as the stall is noticed.
    #[must_use]
    pub fn lines_until(&self, began: Uptime) -> Vec<LogLine<'static>> {
        let all = self.lines.iter().chain(&self.screens);
        let mut all: Vec<_> = all.filter(|entry| entry.uptime <= began).collect();
        all.sort_by_key(|entry| entry.number);
        all.into_iter().map(|entry| entry.line.clone()).collect()
    }

    /// Deletes everything, for example because another person uses the app now.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.screens.clear();
    }

    fn entry(&mut self, at: LoggedAt, message: &str) -> Entry {
        self.written = self.written.wrapping_add(1);
        let mut text = Text::from(message);
        text.truncate(LONGEST);
        let message = Text::from(text.into_cow().into_owned());
        Entry {
            number: self.written,
            uptime: at.uptime,
            line: LogLine {
                time: at.wall,
                message,
            },
        }
    }
}

/// Adds an entry. A full ring drops its oldest entry, or the oldest since the message began if those before need their half.
fn keep(ring: &mut VecDeque<Entry>, entry: Entry, room: usize, message_began: Option<Uptime>) {
    if ring.len() >= room {
        let before = match message_began {
            Some(began) => ring.partition_point(|entry| entry.uptime <= began),
            None => ring.len(),
        };
        let oldest = if before > room / 2 { 0 } else { before };
        ring.remove(oldest);
    }
    ring.push_back(entry);
}
