//! The report in Markdown, for the terminal, pull requests and the docs.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result};

use super::{Chaos, LoadReport, Phase, Report};
use crate::idle::Idle;
use crate::lone::Freshness;
use crate::outcomes::OutcomeCheck;
use crate::polls::Polls;
use crate::processes::Machine;
use crate::server_and_store::Verification;
use crate::stages::Stage;
use crate::store::{ColumnSize, TableSize};
use crate::tally::Latencies;

pub(crate) fn write(report: &Report, path: &Path) -> Result<()> {
    std::fs::write(path, text(report)).with_context(|| format!("writing {}", path.display()))
}

pub(crate) fn text(report: &Report) -> String {
    let mut out = Paper(String::new());
    out.line(&format!("# unjank load test: {}", report.kind));
    out.line("");
    out.machine(&report.machine);
    if let Some(version) = &report.server_version {
        out.line(&format!(
            "Server: {version}. Started {}.",
            report.started_at
        ));
    } else {
        out.line(&format!("Started {}.", report.started_at));
    }
    out.line("");
    let settings: Vec<String> = report
        .settings
        .iter()
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    out.line(&format!("Settings: {}.", settings.join(", ")));
    for warning in &report.warnings {
        out.line(&format!("\n**Warning:** {warning}."));
    }
    for phase in &report.phases {
        out.phase(phase);
    }
    out.cpu(&report.phases);
    if let Some(lone) = &report.lone {
        out.lone(lone);
    }
    if let Some(polls) = &report.polls {
        out.polls(polls);
    }
    for line in report.idle.iter().flat_map(Idle::lines) {
        out.line(&line);
    }
    if let Some(chaos) = &report.chaos {
        out.chaos(chaos);
    }
    if !report.storage.is_empty() {
        out.storage(&report.storage);
    }
    if !report.span_columns.is_empty() {
        out.span_columns(&report.span_columns);
    }
    if let Some(verification) = &report.verification {
        out.verification(verification);
    }
    out.0
}

struct Paper(String);

impl Paper {
    fn line(&mut self, text: &str) {
        writeln!(self.0, "{text}").expect("writing to a string");
    }

    fn table<const N: usize>(
        &mut self,
        head: [&str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) {
        self.line("");
        self.line(&format!("| {} |", head.join(" | ")));
        let rules = head.map(|_| "---");
        self.line(&format!("| {} |", rules.join(" | ")));
        for row in rows {
            self.line(&format!("| {} |", row.join(" | ")));
        }
    }

    fn machine(&mut self, machine: &Machine) {
        self.line(&format!(
            "Machine: {}, {} cores, {:.1} GiB memory, Linux {}.",
            machine.cpu,
            machine.cores,
            machine.memory_bytes as f64 / f64::from(1 << 30),
            machine.kernel
        ));
    }

    fn phase(&mut self, phase: &Phase) {
        self.line(&format!("\n## {}", phase.name));
        let load = &phase.load;
        self.table(["", ""], rates(load));
        self.line("\nLatency in milliseconds:");
        let row = |name: &str, l: &Latencies| {
            [
                name.to_owned(),
                milliseconds(l.p50_ms),
                milliseconds(l.p90_ms),
                milliseconds(l.p99_ms),
                milliseconds(l.p999_ms),
                milliseconds(l.max_ms),
            ]
        };
        self.table(
            ["", "p50", "p90", "p99", "p99.9", "max"],
            [
                row("scheduled start → acknowledged", &load.latency),
                row("one attempt", &load.service),
            ],
        );
        let answers = load
            .counts
            .statuses
            .iter()
            .map(|(status, count)| [status.clone(), count.to_string()]);
        self.table(["response", "attempts"], answers);
        for (name, counts) in [
            ("rejected events", &load.counts.rejections),
            ("batches not stored", &load.counts.reasons),
        ] {
            if !counts.is_empty() {
                let rows = counts
                    .iter()
                    .map(|(why, count)| [why.clone(), count.to_string()]);
                self.table([name, "count"], rows);
            }
        }
        if !phase.costs.is_empty() {
            let rows = phase.costs.iter().map(|(name, cost)| {
                [
                    (*name).to_owned(),
                    format!("{:.2}", cost.cpu_s),
                    format!("{:.2}", cost.cpu_us_per_event),
                    mebibytes(cost.peak_rss_bytes),
                ]
            });
            self.table(
                ["process", "CPU s", "CPU µs per event", "peak memory MiB"],
                rows,
            );
        }
        if !phase.stages.is_empty() {
            self.table(Stage::HEAD, phase.stages.iter().map(Stage::cells));
        }
        if let (Some(drain), Some(stored)) = (phase.drain_s, phase.stored_events_per_s) {
            self.line(&format!(
                "\nLog drained {drain:.1} s after the last acknowledgment: {stored:.0} events/s from the start until all \
                 were in ClickHouse."
            ));
        }
    }

    /// Compares the phases: the same events in several formats, with and without the engine.
    fn cpu(&mut self, phases: &[Phase]) {
        let per_event = |phase: &Phase, process: &str| {
            let cost = phase.costs.get(process);
            cost.map(|cost| cost.cpu_us_per_event)
        };
        let rows: Vec<_> = phases
            .iter()
            .filter_map(|phase| {
                let server = per_event(phase, "server")?;
                let engine = per_event(phase, "engine")?;
                let costs = [server, engine, server + engine].map(|cost| format!("{cost:.2}"));
                let [server, engine, both] = costs;
                Some([phase.name.to_owned(), server, engine, both])
            })
            .collect();
        if rows.len() > 1 {
            self.line("\n## CPU µs per event");
            self.table(["load", "server", "engine", "server and engine"], rows);
        }
    }

    fn lone(&mut self, lone: &Freshness) {
        self.line(&format!(
            "\n## Single batches\n\nMilliseconds from the acknowledgment until the rows can be queried, over {} batches:",
            lone.batches
        ));
        let row = |name: &str, took: &Latencies| {
            [
                name.to_owned(),
                milliseconds(took.p50_ms),
                milliseconds(took.max_ms),
            ]
        };
        self.table(
            ["rows in", "p50", "max"],
            [
                row("the raw table", &lone.raw),
                row("the daily roll-up", &lone.rolled_up),
            ],
        );
    }

    fn polls(&mut self, polls: &Polls) {
        self.line("\n## Polls of the configuration (closed loop)");
        let rows = polls.phases.iter().map(|phase| {
            [
                phase.name.to_owned(),
                format!("{:.0}", phase.polls_per_s),
                format!("{:.1}", phase.server_cpu_us),
                format!("{:.0}", phase.polls_per_s_and_core),
                milliseconds(phase.latency.p50_ms),
                milliseconds(phase.latency.p99_ms),
            ]
        });
        self.table(
            [
                "response",
                "polls/s",
                "server CPU µs per poll",
                "polls/s of one core",
                "p50 ms",
                "p99 ms",
            ],
            rows,
        );
        let seen = &polls.until_first_device;
        self.line(&format!(
            "\nFrom sending a change until the first device has it: p50 {} ms, p90 {} ms, longest {} ms.",
            milliseconds(seen.p50_ms),
            milliseconds(seen.p90_ms),
            milliseconds(seen.max_ms)
        ));
    }

    fn chaos(&mut self, chaos: &Chaos) {
        self.line("\n## Chaos");
        self.table(
            [
                "server kills",
                "engine kills",
                "mean restart s",
                "longest restart s",
            ],
            [[
                chaos.server_kills.to_string(),
                chaos.engine_kills.to_string(),
                format!("{:.2}", chaos.mean_restart_s),
                format!("{:.2}", chaos.longest_restart_s),
            ]],
        );
    }

    fn storage(&mut self, tables: &[TableSize]) {
        self.line("\n## On disk");
        let rows = tables.iter().map(|size| {
            [
                size.table.clone(),
                size.rows.to_string(),
                mebibytes(size.bytes_on_disk),
                format!("{:.1}", size.bytes_per_row),
            ]
        });
        self.table(["table", "rows", "MiB", "bytes per row"], rows);
    }

    fn span_columns(&mut self, columns: &[ColumnSize]) {
        const SHOWN: usize = 12;
        self.line("\nBytes of `spans` by column, the largest first:");
        let rows = columns.iter().take(SHOWN).map(|size| {
            [
                format!("`{}`", size.column),
                format!("{:.2}", size.bytes_per_row),
            ]
        });
        self.table(["column", "bytes per row"], rows);
    }

    fn verification(&mut self, verification: &Verification) {
        self.line("\n## Exactly once");
        let rows = verification.tables.iter().map(|check| {
            [
                check.table.clone(),
                check.expected.to_string(),
                check.found.to_string(),
                check.lost.to_string(),
                check.doubled.to_string(),
                check.unexpected.to_string(),
                check.rejected.to_string(),
                check.unanswered.to_string(),
            ]
        });
        self.table(
            [
                "table",
                "acknowledged",
                "found",
                "lost",
                "doubled",
                "unexpected",
                "rejected",
                "of unanswered batches",
            ],
            rows,
        );
        if let Some(outcomes) = &verification.outcomes {
            self.outcomes(outcomes);
        }
        if verification.rejected_though_valid + verification.accepted_though_invalid > 0 {
            self.line(&format!(
                "\n{} valid events were rejected, {} invalid ones accepted.",
                verification.rejected_though_valid, verification.accepted_though_invalid
            ));
        }
        for rollup in &verification.rollups {
            self.line(&format!("\nA roll-up differs: {rollup}."));
        }
        self.line(if verification.holds {
            "\nEvery acknowledged event is stored exactly once."
        } else {
            "\n**Not every acknowledged event is stored exactly once.**"
        });
    }

    fn outcomes(&mut self, outcomes: &[OutcomeCheck]) {
        self.line("\nThe server's own books (expected in parentheses; *as (other)*: stored without a name above the bound of distinct names):");
        let rows = outcomes.iter().map(|check| {
            let balanced = if check.balanced { "yes" } else { "**no**" };
            [
                check.signal.clone(),
                format!("{} ({})", check.stored, check.expected_stored),
                format!("{} ({})", check.rejected, check.expected_rejected),
                format!("{} ({})", check.duplicate, check.expected_duplicate),
                check.limited.to_string(),
                check.other.to_string(),
                balanced.to_owned(),
            ]
        });
        self.table(
            [
                "signal",
                "stored",
                "rejected",
                "duplicate",
                "as (other)",
                "other",
                "balanced",
            ],
            rows,
        );
    }
}

fn rates(load: &LoadReport) -> Vec<[String; 2]> {
    let row = |name: &str, value: String| [name.to_owned(), value];
    let offered = load
        .offered_batches_per_s
        .map_or("as fast as possible".to_owned(), |rate| {
            format!("{rate:.1}")
        });
    vec![
        row("offered, batches/s", offered),
        row(
            "acknowledged, batches/s",
            format!("{:.1}", load.achieved_batches_per_s),
        ),
        row(
            "acknowledged, events/s",
            format!("{:.0}", load.acknowledged_events_per_s),
        ),
        row("took, s", format!("{:.1}", load.took_s)),
        row(
            "batches: acknowledged, rejected, unknown",
            format!(
                "{}, {}, {}",
                load.counts.acknowledged, load.counts.refused, load.counts.unknown
            ),
        ),
        row(
            "events: accepted, rejected, truncated",
            format!(
                "{}, {}, {}",
                load.counts.events_accepted,
                load.counts.events_rejected,
                load.counts.events_truncated
            ),
        ),
        row(
            "retries, duplicate receipts",
            format!("{}, {}", load.counts.retries, load.counts.duplicates),
        ),
        row(
            "batches not built in time (longest delay, ms)",
            format!(
                "{} ({:.0})",
                load.generator_late, load.generator_late_most_ms
            ),
        ),
        row(
            "sent, MiB (uncompressed JSON, MiB)",
            format!(
                "{} ({})",
                mebibytes(load.counts.bytes_sent),
                mebibytes(load.counts.plain_bytes)
            ),
        ),
    ]
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

fn milliseconds(value: f64) -> String {
    format!("{value:.2}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::processes::Cost;
    use crate::tally::Counts;

    fn phase(name: &'static str, costs: &[(&'static str, f64)]) -> Phase {
        let costs = costs.iter().map(|(process, cpu_us_per_event)| {
            let cost = Cost {
                cpu_us_per_event: *cpu_us_per_event,
                ..Cost::default()
            };
            (*process, cost)
        });
        let load = LoadReport {
            offered_batches_per_s: None,
            achieved_batches_per_s: 0.,
            acknowledged_events_per_s: 0.,
            took_s: 0.,
            counts: Counts::default(),
            latency: Latencies::default(),
            service: Latencies::default(),
            generator_late: 0,
            generator_late_most_ms: 0.,
        };
        Phase {
            name,
            load,
            costs: costs.collect(),
            stages: Vec::new(),
            drain_s: None,
            stored_events_per_s: None,
        }
    }

    #[test]
    fn formats_are_compared_with_and_without_the_engine() {
        let mut report = Report::new("bench", BTreeMap::new());
        report.phases = vec![
            phase("OTLP, protobuf", &[("server", 1.25), ("engine", 1.5)]),
            phase("OTLP, JSON", &[("server", 4.), ("engine", 1.5)]),
            phase("of an unknown server", &[]),
        ];
        let text = text(&report);
        let table = "| load | server | engine | server and engine |\n| --- | --- | --- | --- |\n\
            | OTLP, protobuf | 1.25 | 1.50 | 2.75 |\n| OTLP, JSON | 4.00 | 1.50 | 5.50 |\n";
        assert!(text.contains(table), "{text}");
    }
}
