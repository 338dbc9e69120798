//! A card for each page of the app.

use maud::{Markup, html};

use super::numbers::{bytes, count, growth, millis, percent, plural};
use super::sparkline::sparkline;
use crate::test_run::{Frames, Level, Loads, Page, TestRun};

/// Maximum number of shown pages. Pages with the least lost time are omitted.
const MOST: usize = 60;

pub(super) fn pages(run: &TestRun) -> Option<Markup> {
    (!run.pages.is_empty()).then(|| {
        let left_out = run.pages.len().saturating_sub(MOST);
        html! {
            div.cards { @for page in run.pages.iter().take(MOST) { (card(page)) } }
            @if left_out > 0 { p.note { (left_out) " more pages lost less time." } }
        }
    })
}

fn card(page: &Page) -> Markup {
    let name = if page.name.is_empty() {
        "(no page)"
    } else {
        &page.name
    };
    html! {
        article {
            h3 { (name) }
            @if let Some(frames) = &page.frames { (frames_of(frames)) }
            @if page.stalls > 0.0 {
                dl {
                    (fact("Stalls", count(page.stalls)))
                    (fact("Blocked", millis(page.stalled_ms)))
                }
            }
            @if let Some(memory) = &page.memory { (memory_of(memory)) }
            @if let Some(cpu) = &page.cpu { (cpu_of(cpu)) }
            @if let Some(loads) = &page.loads { (loads_of(loads)) }
        }
    }
}

fn fact(name: &str, value: impl std::fmt::Display) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

fn maybe(name: &str, value: Option<String>) -> Markup {
    html! { @if let Some(value) = value { (fact(name, value)) } }
}

fn frames_of(frames: &Frames) -> Markup {
    let fps = frames.fps().map(|fps| format!("{fps:.1}"));
    html! {
        @if let Some(line) = sparkline(&frames.over_time, 0.0, 60.0, "Frames per second over time") {
            figure.fps { (line) figcaption { "frames per second" } }
        }
        dl {
            (maybe("FPS", fps))
            (maybe("Slow", frames.slow_share().map(percent)))
            (maybe("Frozen", frames.frozen_share().map(percent)))
            (fact("Dropped", count(frames.dropped)))
            (fact("Longest drop", format!("{} frames", frames.longest_drop)))
            (fact("Monitored", millis(frames.shown_ms)))
            (fact("Jank time", millis(frames.jank_ms)))
            (maybe("Jank share", frames.jank_share().map(percent)))
            (fact("Over budget", millis(frames.delay_ms)))
        }
    }
}

fn memory_of(memory: &Level) -> Markup {
    html! {
        @if let Some(line) = sparkline(&memory.over_time, memory.min, memory.max, "Memory over time") {
            figure.memory { (line) figcaption { "memory, " (bytes(memory.min)) " to " (bytes(memory.max)) } }
        }
        dl {
            (fact("Memory", bytes(memory.mean)))
            (fact("Max memory", bytes(memory.max)))
            (fact("Growth", growth(memory.growth)))
        }
    }
}

fn cpu_of(cpu: &Level) -> Markup {
    html! {
        dl {
            (fact("CPU", format!("{:.0} %", cpu.mean)))
            (fact("Max CPU", format!("{:.0} %", cpu.max)))
        }
    }
}

fn loads_of(loads: &Loads) -> Markup {
    let parts = [
        ("T1 shown", loads.t1_ms),
        ("T2 requests", loads.t2_ms),
        ("T3 drawn", loads.t3_ms),
        ("Total", loads.total_ms),
    ];
    let outcomes: Vec<String> = loads
        .outcomes
        .iter()
        .map(|(outcome, loads)| format!("{} {outcome}", count(*loads)))
        .collect();
    html! {
        div.scroll { table {
            caption { (plural(loads.count, "load")) ": " (outcomes.join(", ")) }
            thead { tr { th scope="col" { "Part" } th.n scope="col" { "p50" } th.n scope="col" { "p95" } th.n scope="col" { "Max" } } }
            tbody {
                @for (name, part) in parts {
                    @if let Some(part) = part {
                        tr { th scope="row" { (name) } td.n { (millis(part.p50)) } td.n { (millis(part.p95)) } td.n { (millis(part.max)) } }
                    }
                }
            }
        } }
    }
}
