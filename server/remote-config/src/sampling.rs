//! The share of events that a device keeps and sends, as far as its document determines it.

use unjank_protocol::config::Document;
use unjank_protocol::{Glob, Signal};

/// The sampling rates of a document, prepared for lookups.
#[derive(Debug)]
pub(super) struct Kept {
    /// 1 if anything is collected, otherwise 0.
    enabled: f64,
    /// The share of sessions that send more than their traffic and losses.
    sessions: f64,
    spans: Vec<(Glob, f64)>,
    other_spans: f64,
    frame_windows: f64,
    janks: f64,
    page_loads: f64,
    metrics: f64,
    recompositions: f64,
}

impl Kept {
    pub(super) fn new(document: &Document) -> Self {
        let sampling = &document.sampling;
        let traced = if document.tracing.enabled { 1.0 } else { 0.0 };
        let named = sampling.spans.overrides.iter();
        Self {
            enabled: if document.enabled { 1.0 } else { 0.0 },
            sessions: sampling.session_rate,
            spans: named
                .map(|span| (Glob::new(&span.name), span.rate * traced))
                .collect(),
            other_spans: sampling.spans.default * traced,
            frame_windows: sampling.frame_windows,
            janks: sampling.janks,
            page_loads: sampling.page_loads,
            metrics: sampling.metrics,
            recompositions: sampling.recompositions,
        }
    }

    /// Returns the share of events kept, from 0 to 1. Only spans have a `name`.
    pub(super) fn share(&self, signal: Signal, name: &str) -> f64 {
        let kept = match signal {
            Signal::Spans => self.span(name),
            Signal::FrameWindows => self.frame_windows,
            Signal::Janks => self.janks,
            Signal::PageLoads => self.page_loads,
            Signal::Metrics => self.metrics,
            Signal::Recompositions => self.recompositions,
            Signal::AppStarts | Signal::Other => 1.0,
            // Sessions that are sampled out still send these.
            Signal::Traffic | Signal::SdkHealth => return self.enabled,
        };
        kept * self.sessions * self.enabled
    }

    fn span(&self, name: &str) -> f64 {
        let named = self.spans.iter().find(|(glob, _)| glob.matches(name));
        named.map_or(self.other_spans, |(_, rate)| *rate)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kept(document: serde_json::Value) -> Kept {
        Kept::new(&serde_json::from_value(document).unwrap())
    }

    #[test]
    fn session_and_signal_rates_multiply() {
        let kept = kept(json!({"sampling": {"session_rate": 0.5, "janks": 0.5,
            "spans": {"default": 0.1, "overrides": [{"name": "check*", "rate": 1.0}]}}}));
        assert_eq!(kept.share(Signal::Janks, ""), 0.25);
        assert_eq!(kept.share(Signal::Spans, "checkout"), 0.5);
        assert_eq!(kept.share(Signal::Spans, "search"), 0.05);
        assert_eq!(kept.share(Signal::AppStarts, ""), 0.5);
        assert_eq!(kept.share(Signal::Traffic, ""), 1.0);
    }

    #[test]
    fn a_disabled_device_keeps_nothing_and_disabled_tracing_keeps_no_spans() {
        let off = kept(json!({"enabled": false}));
        for signal in Signal::ALL {
            assert_eq!(off.share(*signal, ""), 0.0, "{signal}");
        }
        let untraced = kept(json!({"tracing": {"enabled": false}, "sampling": {"janks": 1.0}}));
        assert_eq!(untraced.share(Signal::Spans, "checkout"), 0.0);
        assert_eq!(untraced.share(Signal::Janks, ""), 1.0);
    }
}
