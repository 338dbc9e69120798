//! Reporters: those who see every event that is sent, beside the server.

use crate::event::Event;

/// Sees every event that is sent. Runs on the background thread: what takes long here delays uploads, never the app.
pub trait Reporter: Send + Sync {
    /// An event, as it is sent.
    fn report(&self, event: &Event);
}

/// One line on standard error for each event: the reporter of [`crate::Mode::Development`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Console;

impl Reporter for Console {
    #[expect(clippy::print_stderr, reason = "a console is what it is")]
    fn report(&self, event: &Event) {
        match event {
            Event::Span(span) => eprintln!(
                "unjank: span {} {:.3} ms on {}",
                span.name,
                milliseconds(span.duration_us),
                span.thread
            ),
            Event::Jank(jank) => {
                let innermost = jank.stack.first();
                eprintln!(
                    "unjank: {} of {} ms on {}: {}",
                    jank.kind,
                    jank.duration_ms,
                    jank.page,
                    innermost.map_or("no stack", |frame| &frame.function)
                );
            }
            Event::FrameWindow(window) => eprintln!(
                "unjank: {} drew {} frames and dropped {}, {} ms of jank",
                window.page, window.frames_drawn, window.frames_dropped, window.jank_ms
            ),
            Event::PageLoad(load) => {
                eprintln!(
                    "unjank: {} {} after {} ms",
                    load.page, load.outcome, load.total_ms
                );
            }
            Event::Metric(metric) => eprintln!("unjank: {} = {}", metric.name, metric.value),
            Event::AppStart(start) => {
                eprintln!("unjank: {} start in {} ms", start.kind, start.duration_ms);
            }
            Event::Traffic(traffic) => eprintln!(
                "unjank: {} {} sent {} B, received {} B",
                traffic.source, traffic.network, traffic.tx_bytes, traffic.rx_bytes
            ),
            Event::Recomposition(redrawn) => {
                eprintln!(
                    "unjank: {} redrawn {} times by {}",
                    redrawn.function, redrawn.count, redrawn.cause
                );
            }
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "for people, to a thousandth of a millisecond"
)]
fn milliseconds(micros: i64) -> f64 {
    micros as f64 / 1_000.0
}
