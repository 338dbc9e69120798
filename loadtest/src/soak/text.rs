//! The printed report of the soak: a line for each interval and a summary.

use std::fmt::Write;

use super::Soak;
use super::sample::Sample;
use crate::stages::Stage;

pub(super) fn head() -> String {
    let names = [
        "time",
        "events",
        "server µs",
        "engine µs",
        "load µs",
        "p50 ms",
        "p99 ms",
        "p99.9 ms",
        "waiting",
        "unfolded",
        "rows in",
        "rows merged",
        "parts",
        "server MiB",
        "engine MiB",
        "fresh p99 s",
        "query p95 ms",
        "query max ms",
    ];
    format!("| {} |\n|{}", names.join(" | "), "---|".repeat(names.len()))
}

pub(super) fn line(sample: &Sample) -> String {
    let whole = unjank_random::whole(sample.at_s);
    let cells = [
        format!("{}:{:02}", whole / 60, whole % 60),
        sample.events.to_string(),
        format!("{:.2}", sample.server_us),
        format!("{:.2}", sample.engine_us),
        format!("{:.2}", sample.load_us),
        format!("{:.1}", sample.latency.p50_ms),
        format!("{:.1}", sample.latency.p99_ms),
        format!("{:.1}", sample.latency.p999_ms),
        format!("{:.0}", sample.waiting),
        format!("{:.0}", sample.unfolded),
        sample.inserted.to_string(),
        sample.merged.to_string(),
        sample.parts.to_string(),
        mebibytes(sample.server_bytes),
        mebibytes(sample.engine_bytes),
        sample
            .fresh_p99_s
            .map_or("-".to_owned(), |seconds| format!("{seconds:.1}")),
        format!("{:.0}", sample.question_p95_ms),
        format!("{:.0}", sample.slowest_question_ms),
    ];
    format!("| {} |", cells.join(" | "))
}

pub(super) fn summary(soak: &Soak) -> String {
    let mut out = String::from(
        "\n| table | INSERTs | rows in | CPU s | merges | rows merged | CPU s | µs per event |\n|---|---|---|---|---|---|---|---|\n",
    );
    let events = soak
        .samples
        .iter()
        .map(|one| one.events)
        .sum::<u64>()
        .max(1) as f64;
    for table in &soak.tables {
        let row = format!(
            "| {} | {} | {} | {:.1} | {} | {} | {:.1} | {:.3} |",
            table.table,
            table.inserts,
            table.inserted_rows,
            table.insert_cpu_s,
            table.merges,
            table.merged_rows,
            table.merge_cpu_s,
            table.cpu_s() * 1e6 / events
        );
        out = out + &row + "\n";
    }
    out = out + "\n| " + &Stage::HEAD.join(" | ") + " |\n|---|---|---|---|\n";
    for stage in &soak.stages {
        out = out + "| " + &stage.cells().join(" | ") + " |\n";
    }
    let verdict = &soak.verdict;
    let (growth, is_small) = verdict.growth();
    let latency = &soak.latency;
    let written = write!(
        out,
        "\n{} at {:.0} events/s: a backlog of at most {:.1} s of load (limit: 10 s), {} batches lost{}.\n\
         Server and engine: {:.2} µs per event, including the work after the load; an event of the last third costs {growth:.2} times one of the first{}.\n\
         Latency: p50 {:.1} ms, p99 {:.1} ms, p99.9 {:.1} ms, max {:.0} ms. The log was drained {:.1} s after the load.",
        if verdict.kept_up() {
            "Kept up"
        } else {
            "Did NOT keep up"
        },
        soak.batches_per_s * soak.events_per_batch as f64,
        verdict.waiting_s,
        verdict.lost,
        if verdict.generator_late {
            ", and the load test itself was too slow for this rate"
        } else {
            ""
        },
        verdict.total_us,
        if is_small {
            ""
        } else {
            ", which is more than 1.10"
        },
        latency.p50_ms,
        latency.p99_ms,
        latency.p999_ms,
        latency.max_ms,
        soak.drain_s,
    );
    written.expect("writing to a string");
    let failed: u64 = soak.samples.iter().map(|one| one.failed_questions).sum();
    if failed > 0 {
        out += &format!("\n{failed} queries of the probe failed.");
    }
    out
}

fn mebibytes(bytes: u64) -> String {
    (bytes >> 20).to_string()
}
