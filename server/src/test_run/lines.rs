//! Reads a report file line by line: `{"signal": "span", "event": {…}}`, with wire names.
//!
//! An unreadable line is skipped and counted: a killed app leaves a partial line, and newer SDKs write unknown signals.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read as _};

use serde::Deserialize;
use serde_json::value::RawValue;
use unjank_protocol::{
    AppStart, FrameWindow, Jank, Metric, PageLoad, Recomposition, Resource, SdkHealth, Span, Text,
    Timestamp, Traffic,
};
use unjank_stacks::Rules;

use super::app::Session;
use super::pages::{PagesByName, Samples};
use super::spans::{RedrawnFunctions, SpansByName};
use super::{Lasted, Start, TestRun, traffic};

/// Maximum length of a line. A stall with all its stacks takes some hundred kilobytes.
const LONGEST_LINE: u64 = 8 * 1024 * 1024;
/// Maximum number of distinct metrics.
const MOST_METRICS: usize = 500;
/// Maximum number of kept starts.
const MOST_STARTS: usize = 500;

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    signal: Text<'a>,
    #[serde(borrow)]
    event: &'a RawValue,
}

/// Collects events into a run.
pub struct Collector<'r> {
    rules: &'r Rules,
    run: TestRun,
    pages: PagesByName,
    spans: SpansByName,
    redrawn: RedrawnFunctions,
    metrics: BTreeMap<String, Samples>,
}

impl<'r> Collector<'r> {
    /// Creates a collector that classifies stalls by `rules`.
    #[must_use]
    pub fn new(rules: &'r Rules) -> Self {
        Self {
            rules,
            run: TestRun::default(),
            pages: PagesByName::default(),
            spans: SpansByName::default(),
            redrawn: RedrawnFunctions::default(),
            metrics: BTreeMap::new(),
        }
    }

    /// Reads a report file to its end.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read. Unreadable lines are skipped.
    pub fn read(&mut self, mut file: impl BufRead) -> io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = file
                .by_ref()
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(());
            }
            self.line(&line);
        }
    }

    /// Adds a line.
    pub fn line(&mut self, line: &[u8]) {
        let line = line.trim_ascii();
        if line.is_empty() {
            return;
        }
        if self.read_line(line).is_none() {
            self.run.skipped += 1;
        }
    }

    fn read_line(&mut self, line: &[u8]) -> Option<()> {
        let line: Line<'_> = serde_json::from_slice(line).ok()?;
        self.event(&line.signal, line.event.get())
    }

    /// Adds an event of a signal, as written in a line.
    pub fn event_of(&mut self, signal: &str, event: &[u8]) {
        let event = std::str::from_utf8(event).ok();
        if event.and_then(|event| self.event(signal, event)).is_none() {
            self.run.skipped += 1;
        }
    }

    /// Returns `None` if the event cannot be read.
    fn event(&mut self, signal: &str, event: &str) -> Option<()> {
        match signal {
            "resource" => {
                let session = serde_json::from_str::<Session>(event).ok()?;
                self.run
                    .app
                    .add(&read::<Resource<'_>>(event)?, session.session_id);
                // A resource describes the source of events; it does not count as one.
                return Some(());
            }
            "sdk_health" => self.run.losses.add(&read::<SdkHealth<'_>>(event)?),
            "span" => {
                let span = read::<Span<'_>>(event)?;
                self.lasts(span.start, span.duration_us);
                self.spans.add(&span);
                self.run.measured.add_span(&span);
            }
            "frame_window" => {
                let window = read::<FrameWindow<'_>>(event)?;
                self.lasts(window.start, millis(window.duration_ms));
                self.pages.add_window(&window);
                self.run.measured.add_window(&window);
            }
            "jank" => {
                let jank = read::<Jank<'_>>(event)?;
                self.lasts(jank.start, millis(jank.duration_ms));
                self.pages.add_stall(&jank);
                self.run.measured.add_stall(&jank);
                self.run.stalls.add(&jank, self.rules);
            }
            "traffic" => {
                let bytes = read::<Traffic<'_>>(event)?;
                traffic::add(&mut self.run.traffic, &bytes);
                self.run.measured.add_traffic(&bytes);
            }
            "page_load" => {
                let load = read::<PageLoad<'_>>(event)?;
                self.lasts(load.start, millis(load.total_ms));
                self.pages.add_load(&load);
                self.run.measured.add_load(&load);
            }
            "metric" => {
                let metric = read::<Metric<'_>>(event)?;
                self.lasts(metric.time, 0);
                self.metric(&metric);
                self.run.measured.add_metric(&metric);
            }
            "app_start" => {
                let start = read::<AppStart<'_>>(event)?;
                self.lasts(start.start, millis(start.duration_ms));
                self.run.measured.add_start(&start);
                if self.run.starts.len() < MOST_STARTS {
                    self.run.starts.push(Start::from(&start));
                }
            }
            "recomposition" => {
                let redrawn = read::<Recomposition<'_>>(event)?;
                self.lasts(redrawn.start, millis(redrawn.window_ms));
                self.redrawn.add(&redrawn);
            }
            _ => return None,
        }
        self.run.events += 1;
        Some(())
    }

    fn metric(&mut self, metric: &Metric<'_>) {
        if self.pages.add_metric(metric) {
            return;
        }
        if self.metrics.len() < MOST_METRICS || self.metrics.contains_key(&*metric.name) {
            let samples = self.metrics.entry(metric.name.to_string()).or_default();
            samples.add(metric);
        }
    }

    fn lasts(&mut self, start: Timestamp, micros: i64) {
        let from = start.as_micros();
        let to = from.saturating_add(micros.max(0));
        self.run.lasted = Some(Lasted::wider(self.run.lasted, Lasted { from, to }));
    }

    /// Returns the run.
    #[must_use]
    pub fn finish(self) -> TestRun {
        let mut run = self.run;
        run.stalls.shorten();
        run.starts.sort_by_key(|start| start.start);
        run.traffic = traffic::sorted(run.traffic);
        let levels = self.metrics.into_iter();
        TestRun {
            pages: self.pages.sorted(),
            spans: self.spans.sorted(),
            redrawn: self.redrawn.sorted(),
            metrics: levels
                .filter_map(|(name, samples)| Some((name, samples.level()?)))
                .collect(),
            ..run
        }
    }
}

fn read<'a, T: Deserialize<'a>>(event: &'a str) -> Option<T> {
    serde_json::from_str(event).ok()
}

fn millis(millis: i64) -> i64 {
    millis.saturating_mul(1_000)
}
