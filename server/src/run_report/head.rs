//! The header of the report: app, devices, and the most important numbers.

use std::collections::BTreeSet;

use maud::{Markup, html};
use unjank_protocol::Timestamp;

use super::numbers::{bytes, count, millis, percent, plural};
use crate::test_run::{Frames, TestRun};

/// Maximum number of names in a list; the rest is counted.
const NAMED: usize = 3;

pub(super) fn title(run: &TestRun) -> String {
    match run.app.apps.first() {
        Some(app) if run.app.apps.len() == 1 => format!("Run of {app}"),
        Some(app) => format!("Run of {app} and {} more", run.app.apps.len() - 1),
        None => "Run of an app".to_owned(),
    }
}

pub(super) fn header(run: &TestRun, title: &str) -> Markup {
    let app = &run.app;
    let hertz: BTreeSet<String> = app.refresh_hz.iter().map(|hz| format!("{hz} Hz")).collect();
    // A single app is already in the title.
    let apps = if app.apps.len() > 1 {
        listed(&app.apps)
    } else {
        String::new()
    };
    let facts = [
        ("Apps", apps),
        ("Device", listed(&app.devices)),
        ("System", listed(&app.systems)),
        ("Display", listed(&hertz)),
        ("Language", listed(&app.locales)),
        ("SDK", listed(&app.sdks)),
    ];
    html! {
        h1 { (title) }
        @if let Some(lasted) = run.lasted {
            p.when {
                (Timestamp::from_micros(lasted.from).to_string().split('.').next().unwrap_or_default().trim_end_matches('Z').replace('T', " ")) " UTC, "
                (millis(lasting(lasted.to - lasted.from))) ", " (count(whole(run.events))) " events"
                @if app.sessions.len() > 1 { " of " (app.sessions.len()) " sessions" }
                @if app.installs.len() > 1 { " on " (app.installs.len()) " installs" }
            }
        }
        dl.about {
            @for (name, value) in facts.into_iter().filter(|(_, value)| !value.is_empty()) {
                div { dt { (name) } dd { (value) } }
            }
        }
        @if app.apps.is_empty() {
            p.note { "The file does not name the app or the device." }
        }
        @if run.skipped > 0 {
            p.note { (plural(whole(run.skipped), "line")) " could not be read." }
        }
    }
}

fn listed(values: &BTreeSet<String>) -> String {
    let named: Vec<&str> = values.iter().take(NAMED).map(String::as_str).collect();
    let named = named.join(", ");
    match values.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// The most important numbers.
pub(super) fn overview(run: &TestRun) -> Markup {
    let frames = run.frames();
    let frames = frames.as_ref();
    let slowest_load = run
        .pages
        .iter()
        .filter_map(|page| Some((page.loads.as_ref()?.total_ms?.p95, page.name.as_str())))
        .max_by(|one, other| one.0.total_cmp(&other.0));
    let cold = run
        .starts
        .iter()
        .filter(|start| start.kind == "cold")
        .map(|start| start.duration_ms)
        .max();
    let memory = run
        .pages
        .iter()
        .filter_map(|page| page.memory.as_ref())
        .map(|memory| memory.max)
        .max_by(f64::total_cmp);
    let tiles = [
        tile(
            "Frames per second",
            frames.and_then(Frames::fps).map(|fps| format!("{fps:.1}")),
            "",
        ),
        tile(
            "Slow frames",
            frames.and_then(Frames::slow_share).map(percent),
            "",
        ),
        tile("Frozen frames", frames.map(|all| count(all.frozen)), ""),
        tile(
            "Janks",
            has_stalls(run).then(|| count(run.stalls.janks)),
            "",
        ),
        tile("ANRs", has_stalls(run).then(|| count(run.stalls.anrs)), ""),
        tile(
            "Time blocked",
            (run.stalls.sum_ms > 0.0).then(|| millis(run.stalls.sum_ms)),
            "",
        ),
        tile(
            "Cold start",
            cold.map(|ms| millis(lasting(ms * 1_000))),
            "the slowest",
        ),
        tile(
            "Slowest page",
            slowest_load.map(|(ms, _)| millis(ms)),
            slowest_load.map_or("", |(_, name)| name),
        ),
        tile("Memory", memory.map(bytes), "at most"),
    ];
    html! { div.tiles { @for tile in tiles.into_iter().flatten() { (tile) } } }
}

/// If any page was monitored, zero stalls is a result.
fn has_stalls(run: &TestRun) -> bool {
    !run.pages.is_empty()
}

fn tile(name: &str, value: Option<String>, note: &str) -> Option<Markup> {
    let value = value?;
    Some(html! {
        div.tile {
            span.name { (name) }
            strong { (value) }
            @if !note.is_empty() { span.of title=(note) { (note) } }
        }
    })
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds for people")]
fn lasting(micros: i64) -> f64 {
    micros as f64 / 1_000.0
}

#[expect(clippy::cast_precision_loss, reason = "a count for people")]
fn whole(number: u64) -> f64 {
    number as f64
}
