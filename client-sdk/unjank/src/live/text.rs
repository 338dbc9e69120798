//! The values as lines of text.

use std::fmt;

use super::{Live, Stall, Warning};

/// A line of text, and how bad its content is for the user.
///
/// ```
/// let is_bad = |line: &unjank::live::Line| line.warning >= unjank::live::Warning::Medium;
/// assert!(!unjank::live::watch().read().lines().iter().any(is_bad));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Line {
    /// The text, without control characters.
    pub text: String,
    /// The level, to colour the line by.
    pub warning: Warning,
}

impl Line {
    fn new(text: &str, warning: Warning) -> Self {
        // Names come from the app, and a terminal would obey control characters.
        let clean = |letter: char| if letter.is_control() { ' ' } else { letter };
        Self {
            text: text.chars().map(clean).collect(),
            warning,
        }
    }
}

impl Live {
    /// Returns the values as lines: frames, CPU, memory and traffic, the last stall with its whole stack, the ten most hazardous
    /// names of spans, and the last 20 lines of the tree.
    ///
    /// ```
    /// let lines = unjank::live::watch().read().lines();
    /// assert_eq!(lines[0].text, "collects nothing");
    /// ```
    #[must_use]
    pub fn lines(&self) -> Vec<Line> {
        let mut lines = Vec::new();
        if !self.collecting {
            lines.push(Line::new("collects nothing", Warning::Low));
        }
        lines.extend(self.measures());
        if let Some(stall) = &self.stall {
            add_stall(&mut lines, stall);
        }
        if !self.spans.is_empty() {
            let head = "     count      max ms     last ms  span";
            lines.push(Line::new(head, Warning::None));
        }
        for total in self.spans.iter().take(10) {
            let (max, last) = (milliseconds(total.max_us), milliseconds(total.last_us));
            let text = format!("{:>10} {max:>11} {last:>11}  {}", total.count, total.name);
            lines.push(Line::new(&text, total.warning));
        }
        let hidden = self.tree.len().saturating_sub(20);
        for span in self.tree.iter().skip(hidden) {
            let indent = "  ".repeat(span.depth.min(20));
            let duration = milliseconds(span.duration_us);
            let text = format!("{indent}{} {duration} ms [{}]", span.name, span.thread);
            lines.push(Line::new(&text, span.warning));
        }
        lines
    }

    /// Returns frames, CPU, memory and traffic.
    pub(super) fn measures(&self) -> [Line; 3] {
        let frames = self.frames;
        let fps = frames.fps.map_or("–".to_owned(), |fps| format!("{fps:.0}"));
        let warning = match frames {
            frames if frames.frozen > 0 => Warning::High,
            frames if frames.slow > 0 => Warning::Low,
            _ => Warning::None,
        };
        let text = format!(
            "FPS {fps}, dropped {}, slow {}, frozen {}",
            frames.dropped, frames.slow, frames.frozen
        );
        let of_frames = Line::new(&text, warning);
        let cpu = self.cpu_percent;
        let cpu = cpu.map_or("–".to_owned(), |percent| format!("{percent:.0} %"));
        let memory = self.memory_bytes.map_or("–".to_owned(), mebibytes);
        let text = format!("CPU {cpu}, memory {memory}, page {}", self.page);
        let of_process = Line::new(&text, Warning::None);
        let traffic = self.traffic;
        let text = format!(
            "traffic: sent {} B, received {} B, {} requests, {} failed",
            traffic.tx_bytes, traffic.rx_bytes, traffic.requests, traffic.failed_requests
        );
        [of_frames, of_process, Line::new(&text, Warning::None)]
    }
}

impl Stall {
    /// Returns the stall in one line, without its stack.
    pub(super) fn headline(&self) -> String {
        let state = if self.under_way { "so far" } else { "in all" };
        let on_page = match self.page.as_str() {
            "" => String::new(),
            page => format!(", page {page}"),
        };
        format!(
            "{} of {} ms {state} on {}{on_page}",
            self.kind, self.duration_ms, self.thread
        )
    }

    pub(super) fn warning(&self) -> Warning {
        Warning::of(self.duration_ms.saturating_mul(1_000), true)
    }
}

fn add_stall(lines: &mut Vec<Line>, stall: &Stall) {
    let warning = stall.warning();
    lines.push(Line::new(&stall.headline(), warning));
    for frame in &stall.stack {
        lines.push(Line::new(&format!("  {frame}"), warning));
    }
    if stall.stack.is_empty() {
        let text = format!("  no stack: {}", stall.stack_missing);
        lines.push(Line::new(&text, warning));
    }
}

impl fmt::Display for Live {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in self.lines() {
            writeln!(f, "{}", line.text)?;
        }
        Ok(())
    }
}

pub(super) fn milliseconds(micros: i64) -> String {
    format!("{}.{:03}", micros / 1_000, micros % 1_000)
}

fn mebibytes(bytes: u64) -> String {
    format!("{} MiB", bytes / (1 << 20))
}
