//! Stalls of the main loop: number, total time, and the longest ones in full.

use unjank_protocol::{Jank, JankKind, Timestamp};
use unjank_stacks::{Class, Rules};

use super::weight;
use crate::store::reads::StoredFrame;

/// Maximum number of stalls kept in full.
const MOST: usize = 200;

#[derive(Debug, Default)]
pub struct Stalls {
    pub janks: f64,
    pub anrs: f64,
    pub sum_ms: f64,
    /// The longest stalls, longest first.
    pub longest: Vec<Stall>,
    /// The number of stalls that are not in `longest`.
    pub left_out: u64,
}

/// A stall and its cause.
#[derive(Clone, Debug)]
pub struct Stall {
    pub kind: &'static str,
    pub start: Timestamp,
    pub duration_ms: i64,
    pub page: String,
    pub thread: String,
    pub foreground: bool,
    pub uptime_ms: u64,
    /// The class of the stack by the rules.
    pub class: Class,
    /// Innermost first.
    pub stack: Vec<StoredFrame>,
    /// Stacks that were captured later, with milliseconds since the start.
    pub samples: Vec<(u32, Vec<StoredFrame>)>,
    pub run_log: Vec<(Timestamp, String)>,
}

impl Stalls {
    pub(super) fn add(&mut self, jank: &Jank<'_>, rules: &Rules) {
        let weight = weight(jank.sample_rate);
        #[expect(clippy::cast_precision_loss, reason = "a day at most")]
        let duration = jank.duration_ms as f64;
        self.sum_ms += duration * weight;
        match jank.kind {
            JankKind::Anr => self.anrs += weight,
            JankKind::Jank | JankKind::Other => self.janks += weight,
        }
        self.longest.push(Stall::new(jank, rules));
        if self.longest.len() >= 2 * MOST {
            self.shorten();
        }
    }

    /// Keeps the longest stalls only.
    pub(super) fn shorten(&mut self) {
        self.longest
            .sort_by_key(|stall| (-stall.duration_ms, stall.start));
        let beyond = self.longest.len().saturating_sub(MOST);
        self.longest.truncate(MOST);
        self.left_out += beyond as u64;
    }
}

impl Stall {
    fn new(jank: &Jank<'_>, rules: &Rules) -> Self {
        let frames =
            |stack: &[unjank_protocol::Frame<'_>]| stack.iter().map(StoredFrame::from).collect();
        let samples = jank.samples.iter();
        let lines = jank.run_log.iter();
        Self {
            kind: jank.kind.as_str(),
            start: jank.start,
            duration_ms: jank.duration_ms,
            page: jank.page.to_string(),
            thread: jank.thread.to_string(),
            foreground: jank.foreground,
            uptime_ms: jank.uptime_ms,
            class: rules.classify(&jank.stack),
            stack: frames(&jank.stack),
            samples: samples
                .map(|sample| (sample.offset_ms, frames(&sample.stack)))
                .collect(),
            run_log: lines
                .map(|line| (line.time, line.message.to_string()))
                .collect(),
        }
    }
}
