//! A table of the names that took the most time.

use std::collections::HashMap;
use std::fmt::Write;

use super::tree::{Node, nodes, spans};
use crate::event::Event;

/// All spans of one name.
#[derive(Debug, Default)]
struct Sum {
    durations: Vec<i64>,
    total_us: i64,
    self_us: i64,
    main_us: i64,
}

impl Sum {
    fn add(&mut self, node: &Node<'_>) {
        let duration = node.span.duration_us;
        self.durations.push(duration);
        self.total_us = self.total_us.saturating_add(duration);
        self.self_us = self.self_us.saturating_add(node.self_us);
        if node.span.on_main_thread {
            self.main_us = self.main_us.saturating_add(duration);
        }
    }

    /// The 95th percentile, by nearest rank.
    fn p95(&mut self) -> i64 {
        self.durations.sort_unstable();
        let rank = self.durations.len().saturating_mul(95).div_ceil(100);
        let at = rank.saturating_sub(1);
        self.durations.get(at).copied().unwrap_or_default()
    }

    fn max(&self) -> i64 {
        self.durations.iter().copied().max().unwrap_or_default()
    }

    /// The percentage of the time that was spent on the main thread.
    fn main_share(&self) -> i64 {
        let share = self.main_us.saturating_mul(100).checked_div(self.total_us);
        share.unwrap_or_default()
    }
}

/// Returns a table of the names whose spans took the most time in total, longest first. The columns are the number of spans,
/// their total and self time, the longest and the 95th percentile (nearest rank), all in milliseconds, and the percentage of the
/// total on the main thread. Nested calls of a recursive function each add to its total.
///
/// ```
/// assert!(unjank::export::slowest(&[], 10).starts_with("     count"));
/// ```
#[must_use]
pub fn slowest<'e>(events: impl IntoIterator<Item = &'e Event>, names: usize) -> String {
    let nodes = nodes(spans(events));
    let mut sums: HashMap<&str, Sum> = HashMap::new();
    for node in &nodes {
        sums.entry(node.span.name.as_str()).or_default().add(node);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_by(|(name, sum), (other_name, other)| {
        (other.total_us, name).cmp(&(sum.total_us, other_name))
    });
    let mut table = format!(
        "{:>10} {:>12} {:>12} {:>12} {:>12} {:>6}  name\n",
        "count", "total ms", "self ms", "max ms", "p95 ms", "main"
    );
    for (name, mut sum) in sums.into_iter().take(names) {
        let [total, own, max, p95] =
            [sum.total_us, sum.self_us, sum.max(), sum.p95()].map(milliseconds);
        let (count, main) = (sum.durations.len(), sum.main_share());
        let line = writeln!(
            table,
            "{count:>10} {total:>12} {own:>12} {max:>12} {p95:>12} {main:>5}%  {name}"
        );
        // Writing into a string does not fail.
        line.unwrap_or_default();
    }
    table
}

fn milliseconds(micros: i64) -> String {
    format!("{}.{:03}", micros / 1_000, micros % 1_000)
}
