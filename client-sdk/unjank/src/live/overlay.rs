//! A window over an app of egui.

use std::time::{Duration, Instant};

use egui::{Color32, Context, Grid, Id, RichText, ScrollArea, Ui, Window};

use super::text::milliseconds;
use super::{Live, Stall, Warning, Watch, watch};

/// How long values stay on the screen.
const REFRESH: Duration = Duration::from_millis(500);
/// Rows of the list of spans, and of the tree.
const ROWS: usize = 50;

/// What the windows show, kept by egui until the context is dropped.
#[derive(Clone)]
struct Shown {
    watch: Watch,
    live: Live,
    read: Instant,
    /// The number of stalls up to the one whose window was closed.
    closed: u64,
}

/// Draws a window `unjank` with the current values: frames, CPU, memory, traffic, spans by hazard, and the tree of the last
/// spans. After a stall, a second window shows its whole stack until the user closes it. Call it in each frame.
///
/// The windows ask egui for a frame twice a second, which an app that draws only on input would not draw otherwise. They begin to
/// cost something with the first call, and until the context is dropped.
///
/// ```
/// let context = egui::Context::default();
/// let output = context.run_ui(egui::RawInput::default(), |ui| {
///     // … the app …
///     unjank::live::show(ui.ctx());
/// });
/// # output.drop_without_applying_deltas();
/// ```
pub fn show(context: &Context) {
    let id = Id::unique("unjank::live");
    let kept = context.data(|data| data.get_temp::<Shown>(id));
    let mut shown = match kept {
        Some(shown) if shown.read.elapsed() < REFRESH => shown,
        Some(shown) => Shown {
            live: shown.watch.read(),
            read: Instant::now(),
            ..shown
        },
        None => first(watch()),
    };
    Window::new("unjank")
        .id(id)
        .show(context, |ui| draw(ui, &shown.live));
    let stall = shown.live.stall.as_ref().filter(|stall| !stall.under_way);
    if let Some(stall) = stall
        && shown.live.stalls > shown.closed
    {
        let mut is_open = true;
        Window::new("unjank: stall")
            .id(id.with("stall"))
            .open(&mut is_open)
            .show(context, |ui| draw_stall(ui, stall));
        if !is_open {
            shown.closed = shown.live.stalls;
        }
    }
    context.data_mut(|data| data.insert_temp(id, shown));
    context.request_repaint_after(REFRESH);
}

fn first(watch: Watch) -> Shown {
    Shown {
        live: watch.read(),
        watch,
        read: Instant::now(),
        closed: 0,
    }
}

fn draw(ui: &mut Ui, live: &Live) {
    for line in live.measures() {
        coloured(ui, &line.text, line.warning);
    }
    if let Some(stall) = &live.stall {
        coloured(ui, &stall.headline(), stall.warning());
    }
    ScrollArea::vertical().max_height(400.0).show(ui, |ui| {
        ui.collapsing("Spans by hazard", |ui| spans(ui, live));
        ui.collapsing("Last spans", |ui| tree(ui, live));
    });
}

fn spans(ui: &mut Ui, live: &Live) {
    Grid::new("unjank::live::spans")
        .striped(true)
        .show(ui, |ui| {
            for head in ["span", "count", "max ms", "last ms"] {
                ui.strong(head);
            }
            ui.end_row();
            for total in live.spans.iter().take(ROWS) {
                coloured(ui, &total.name, total.warning);
                ui.label(total.count.to_string());
                ui.label(milliseconds(total.max_us));
                ui.label(milliseconds(total.last_us));
                ui.end_row();
            }
        });
}

fn tree(ui: &mut Ui, live: &Live) {
    let hidden = live.tree.len().saturating_sub(ROWS);
    for span in live.tree.iter().skip(hidden) {
        let indent = "    ".repeat(span.depth.min(20));
        let duration = milliseconds(span.duration_us);
        let text = format!("{indent}{} {duration} ms [{}]", span.name, span.thread);
        coloured(ui, &text, span.warning);
    }
}

fn draw_stall(ui: &mut Ui, stall: &Stall) {
    coloured(ui, &stall.headline(), stall.warning());
    ScrollArea::both().max_height(400.0).show(ui, |ui| {
        for frame in &stall.stack {
            ui.monospace(frame);
        }
        if stall.stack.is_empty() {
            ui.label(format!("no stack: {}", stall.stack_missing));
        }
    });
}

fn coloured(ui: &mut Ui, text: &str, warning: Warning) {
    let text = RichText::new(text);
    ui.label(match warning {
        Warning::None => text,
        Warning::Low => text.color(Color32::YELLOW),
        Warning::Medium => text.color(Color32::ORANGE),
        Warning::High => text.color(Color32::RED),
    });
}
