//! The tables of the report: starts, spans, traffic, recompositions, metrics and the SDK.

use maud::{Markup, html};

use super::numbers::{bytes, count, micros, millis, percent, value};
use super::sparkline::sparkline;
use crate::test_run::{Start, TestRun};

/// Maximum number of rows per table.
const MOST: usize = 50;

/// The class of a column's cells, which aligns them.
const TEXT: &str = "";
const NUMBER: &str = "n";

/// Renders the first rows of a table with its column names.
fn table<T>(columns: &[(&str, &str)], all: &[T], row: impl Fn(&T) -> Markup) -> Option<Markup> {
    (!all.is_empty()).then(|| {
        html! {
            div.scroll { table {
                thead { tr { @for (column, kind) in columns { th class=(kind) scope="col" { (column) } } } }
                tbody { @for one in all.iter().take(MOST) { tr { (row(one)) } } }
            } }
            @if all.len() > MOST { p.note { (all.len() - MOST) " more are not listed." } }
        }
    })
}

pub(super) fn starts(run: &TestRun) -> Option<Markup> {
    let columns = [
        ("Start", TEXT),
        ("Took", NUMBER),
        ("Ended on", TEXT),
        ("Phases", TEXT),
    ];
    table(&columns, &run.starts, |start: &Start| {
        let phases: Vec<String> = start
            .phases
            .iter()
            .map(|(name, ms)| format!("{name} {}", millis(f64::from(*ms))))
            .collect();
        html! {
            th scope="row" { (start.kind) }
            td.n { (millis(whole(start.duration_ms))) }
            td { (start.page) }
            td.long { (phases.join(", ")) }
        }
    })
}

pub(super) fn spans(run: &TestRun) -> Option<Markup> {
    let columns = [
        ("Name", TEXT),
        ("Count", NUMBER),
        ("p50", NUMBER),
        ("p95", NUMBER),
        ("Max", NUMBER),
        ("Total", NUMBER),
        ("Main thread", NUMBER),
    ];
    table(&columns, &run.spans, |span| {
        let times = &span.durations_us;
        html! {
            th scope="row" {
                code { (span.name) }
                @if span.errors > 0.0 { " " span.badge.anr { (count(span.errors)) " failed" } }
            }
            td.n { (count(times.count)) }
            td.n { (micros(times.p50)) }
            td.n { (micros(times.p95)) }
            td.n { (micros(times.max)) }
            td.n { (micros(times.sum)) }
            td.n { (percent(span.main_thread_share)) }
        }
    })
}

pub(super) fn traffic(run: &TestRun) -> Option<Markup> {
    let columns = [
        ("Source", TEXT),
        ("Network", TEXT),
        ("Sent", NUMBER),
        ("Received", NUMBER),
        ("Requests", NUMBER),
        ("Unanswered", NUMBER),
    ];
    table(&columns, &run.traffic, |one| {
        html! {
            th scope="row" { (one.source) }
            td { (one.network) }
            td.n { (bytes(large(one.tx_bytes))) }
            td.n { (bytes(large(one.rx_bytes))) }
            td.n { (count(large(one.requests))) }
            td.n { (count(large(one.failed_requests))) }
        }
    })
}

pub(super) fn redrawn(run: &TestRun) -> Option<Markup> {
    let columns = [
        ("Function", TEXT),
        ("Redrawn", NUMBER),
        ("Page", TEXT),
        ("Cause", TEXT),
    ];
    table(&columns, &run.redrawn, |one| {
        html! {
            th scope="row" { code { (one.function) } }
            td.n { (count(one.count)) }
            td { (one.page) }
            td { (one.cause) }
        }
    })
}

pub(super) fn metrics(run: &TestRun) -> Option<Markup> {
    let columns = [
        ("Monitor", TEXT),
        ("Mean", NUMBER),
        ("Min", NUMBER),
        ("Max", NUMBER),
        ("Samples", NUMBER),
        ("Over time", TEXT),
    ];
    table(&columns, &run.metrics, |(name, level)| {
        html! {
            th scope="row" { code { (name) } }
            td.n { (value(level.mean)) }
            td.n { (value(level.min)) }
            td.n { (value(level.max)) }
            td.n { (count(level.count)) }
            td.line { @if let Some(line) = sparkline(&level.over_time, level.min, level.max, "Over time") { (line) } }
        }
    })
}

pub(super) fn sdk(run: &TestRun) -> Option<Markup> {
    let losses = &run.losses;
    if losses.reports == 0 {
        return None;
    }
    let dropped: Vec<_> = losses.dropped.iter().collect();
    Some(html! {
        dl {
            div { dt { "CPU time" } dd { (micros(large(losses.overhead_us))) } }
            div { dt { "Uploaded" } dd { (bytes(large(losses.upload_bytes))) } }
            div { dt { "Largest queue" } dd { (bytes(large(losses.queue_bytes))) } }
        }
        @if let Some(table) = table(&[("Lost", TEXT), ("Reason", TEXT), ("Events", NUMBER)], &dropped, |((signal, reason), events)| html! {
            th scope="row" { (signal) }
            td { (reason) }
            td.n { (count(large(**events))) }
        }) { (table) } @else { p { "No events were lost." } }
    })
}

#[expect(clippy::cast_precision_loss, reason = "a number for people")]
fn large(number: u64) -> f64 {
    number as f64
}

#[expect(clippy::cast_precision_loss, reason = "a number for people")]
fn whole(number: i64) -> f64 {
    number as f64
}
