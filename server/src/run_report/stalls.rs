//! The stalls with cause, stack and the log before them.

use maud::{Markup, html};
use unjank_protocol::Timestamp;

use super::numbers::{millis, plural};
use crate::store::reads::StoredFrame;
use crate::test_run::{Stall, TestRun};

/// Maximum number of stalls with details. The rest is only part of the totals.
const MOST: usize = 100;

pub(super) fn stalls(run: &TestRun) -> Option<Markup> {
    let stalls = &run.stalls;
    if stalls.longest.is_empty() {
        return None;
    }
    let shown = &stalls.longest[..stalls.longest.len().min(MOST)];
    let left_out = stalls.left_out + (stalls.longest.len() - shown.len()) as u64;
    Some(html! {
        p.sum { (plural(stalls.janks, "jank")) " and " (plural(stalls.anrs, "ANR")) " blocked it for " (millis(stalls.sum_ms)) "." }
        (groups(&stalls.longest))
        h3 { "Longest stalls" }
        @for stall in shown { (one(stall)) }
        @if left_out > 0 { p.note { (left_out) " shorter stalls are not listed." } }
    })
}

struct Group<'s> {
    title: &'s str,
    owner: &'s str,
    stalls: u64,
    sum_ms: i64,
    max_ms: i64,
}

/// Groups stalls by cause, by total time, most first.
fn groups(stalls: &[Stall]) -> Markup {
    let mut ids: Vec<u64> = Vec::new();
    let mut groups: Vec<Group<'_>> = Vec::new();
    for stall in stalls {
        let id = stall.class.group_id;
        let place = ids.iter().position(|known| *known == id);
        let place = place.unwrap_or_else(|| {
            ids.push(id);
            groups.push(Group {
                title: &stall.class.title,
                owner: &stall.class.owner,
                stalls: 0,
                sum_ms: 0,
                max_ms: 0,
            });
            groups.len() - 1
        });
        let group = &mut groups[place];
        group.stalls += 1;
        group.sum_ms += stall.duration_ms;
        group.max_ms = group.max_ms.max(stall.duration_ms);
    }
    groups.sort_by_key(|group| -group.sum_ms);
    html! {
        div.scroll { table {
            thead { tr { th scope="col" { "Cause" } th.n scope="col" { "Stalls" } th.n scope="col" { "Total" } th.n scope="col" { "Longest" } } }
            tbody {
                @for group in &groups {
                    tr {
                        th scope="row" { (group.title) @if !group.owner.is_empty() { " " span.of { (group.owner) } } }
                        td.n { (group.stalls) }
                        td.n { (time(group.sum_ms)) }
                        td.n { (time(group.max_ms)) }
                    }
                }
            }
        } }
    }
}

fn one(stall: &Stall) -> Markup {
    html! {
        details {
            summary {
                span.badge.anr[stall.kind == "anr"] { (stall.kind) }
                strong { (time(stall.duration_ms)) } " "
                span.title { (stall.class.title) }
                @if !stall.page.is_empty() { span.of { " on " (stall.page) } }
                @if stall.class.not_a_cause { span.of { " (idle when the stack was captured)" } }
            }
            dl {
                div { dt { "At" } dd { (clock(stall.start)) } }
                div { dt { "After start" } dd { (millis(uptime(stall.uptime_ms))) } }
                div { dt { "Thread" } dd { (or_dash(&stall.thread)) } }
                div { dt { "Category" } dd { (or_dash(&stall.class.category)) } }
                div { dt { "Culprit" } dd { (or_dash(&stall.class.culprit)) } }
                @if !stall.class.owner.is_empty() { div { dt { "Owner" } dd { (stall.class.owner) } } }
                @if !stall.foreground { div { dt { "App" } dd { "in the background" } } }
            }
            (stack("Stack", &stall.stack))
            @for (offset, frames) in &stall.samples { (stack(&format!("After {offset} ms"), frames)) }
            @if !stall.run_log.is_empty() {
                h4 { "Log before the stall" }
                ul.log { @for (at, message) in &stall.run_log { li { time { (clock(*at)) } " " (message) } } }
            }
        }
    }
}

fn stack(title: &str, frames: &[StoredFrame]) -> Markup {
    html! {
        h4 { (title) }
        @if frames.is_empty() { p.note { "No stack." } }
        ol.stack {
            @for frame in frames {
                li {
                    code { (frame.label()) }
                    @if !frame.file.is_empty() {
                        " " span.of { (frame.file) @if frame.line > 0 { ":" (frame.line) } }
                    }
                }
            }
        }
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "–" } else { text }
}

/// Returns the time of day in UTC, to the millisecond.
fn clock(at: Timestamp) -> String {
    let text = at.to_string();
    let time = text.split_once('T').map_or("", |(_, time)| time);
    let time = time.trim_end_matches('Z');
    time.chars().take("12:34:56.789".len()).collect()
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds for people")]
fn time(ms: i64) -> String {
    millis(ms as f64)
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds for people")]
fn uptime(ms: u64) -> f64 {
    ms as f64
}
