//! Shows the progress of a load.

use std::io::{IsTerminal, stderr};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::console::say;
use crate::tally::Tally;

/// A progress bar on a terminal; a plain line every few seconds otherwise.
pub(crate) struct Progress {
    bar: Option<ProgressBar>,
    last_line: Instant,
}

const LINE_EVERY: Duration = Duration::from_secs(5);

impl Progress {
    /// `expected` is the planned duration of the load, if known.
    pub(crate) fn new(expected: Option<Duration>) -> Self {
        let bar = stderr().is_terminal().then(|| {
            let millis = expected.map(|expected| u64::try_from(expected.as_millis()).unwrap_or(0));
            let bar = ProgressBar::new(millis.unwrap_or_default());
            let template = if expected.is_some() {
                "{elapsed_precise} [{bar:32}] {msg}"
            } else {
                "{elapsed_precise} {spinner} {msg}"
            };
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar
        });
        Self {
            bar,
            last_line: Instant::now(),
        }
    }

    pub(crate) fn show(&mut self, tally: &Tally, elapsed: Duration, under_way: usize) {
        let seconds = elapsed.as_secs_f64().max(0.001);
        let line = format!(
            "{} batches acknowledged, {:.0} events/s, {under_way} in flight, {} retries, p99 {:.1} ms",
            tally.counts.acknowledged,
            tally.counts.events_accepted as f64 / seconds,
            tally.counts.retries,
            tally.latency().p99_ms,
        );
        if let Some(bar) = &self.bar {
            bar.set_position(u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX));
            bar.set_message(line);
        } else if self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            say(&format!("{seconds:6.1} s  {line}"));
        }
    }

    pub(crate) fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
