//! Which events a session keeps: the remote configuration in force, compiled for a lookup on every span.

use regex_lite::Regex;
use unjank_protocol::config::Document;
use unjank_protocol::{Glob, Limits, Signal};

use super::switched_off::Off;

/// A document with its patterns compiled.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) document: Document,
    /// The signals that the app has switched off.
    pub(crate) off: Off,
    /// Whether this session is sampled. Otherwise it sends only its traffic and its losses.
    session_sampled: bool,
    rates: Vec<(Glob, f64)>,
    allow: Vec<Regex>,
    deny: Vec<Regex>,
}

/// The share of events that is kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share(f64);

impl Share {
    pub(crate) const NOTHING: Self = Self(0.0);
    pub(crate) const ALL: Self = Self(1.0);

    /// Returns whether an event is kept, given its draw from 0 to below 1.
    pub(crate) fn keeps(self, draw: f64) -> bool {
        draw < self.0
    }
}

impl Settings {
    /// `session_draw` is from 0 to below 1, drawn once per session.
    pub(crate) fn new(document: Document, session_draw: f64) -> Self {
        let named = document.sampling.spans.overrides.iter();
        let rates = named.map(|span| (Glob::new(&span.name), span.rate));
        Self {
            session_sampled: session_draw < document.sampling.session_rate,
            rates: rates.collect(),
            allow: patterns(&document.tracing.allow),
            deny: patterns(&document.tracing.deny),
            off: Off::default(),
            document,
        }
    }

    /// Returns whether traffic is counted. It is not sampled: its sums have no sample rate.
    pub(crate) fn counts_traffic(&self) -> bool {
        self.document.enabled && !self.off.has(Signal::Traffic)
    }

    /// Returns whether anything but traffic is collected in this session.
    pub(crate) fn collects(&self) -> bool {
        self.document.enabled && self.session_sampled
    }

    /// Returns whether errors are collected in this session. They are spans that no rate thins out.
    pub(crate) fn collects_errors(&self) -> bool {
        self.collects() && !self.off.has(Signal::Spans)
    }

    /// Returns the share of a signal's events, other than spans, that a session keeps.
    pub(crate) fn share(&self, signal: Signal) -> Share {
        let sampling = &self.document.sampling;
        if signal == Signal::Traffic {
            return Share(f64::from(u8::from(self.counts_traffic())));
        }
        if !self.collects() || self.off.has(signal) {
            return Share::NOTHING;
        }
        Share(match signal {
            Signal::Spans => sampling.spans.default,
            Signal::FrameWindows => sampling.frame_windows,
            Signal::Janks => sampling.janks,
            Signal::PageLoads => sampling.page_loads,
            Signal::Metrics => sampling.metrics,
            Signal::Recompositions => sampling.recompositions,
            Signal::Traffic | Signal::AppStarts | Signal::SdkHealth | Signal::Other => 1.0,
        })
    }

    /// Returns the share of spans of this name that is kept; none if the name is not traced.
    pub(crate) fn span_share(&self, name: &str, tags: &[&str]) -> Share {
        let is_off = self.off.has(Signal::Spans);
        if is_off || !self.collects() || !self.traces(name, tags) {
            return Share::NOTHING;
        }
        let named = self.rates.iter().find(|(glob, _)| glob.matches(name));
        Share(named.map_or(self.document.sampling.spans.default, |(_, rate)| *rate))
    }

    fn traces(&self, name: &str, tags: &[&str]) -> bool {
        let tracing = &self.document.tracing;
        if !tracing.enabled || self.deny.iter().any(|pattern| pattern.is_match(name)) {
            return false;
        }
        if tracing.allow.is_empty() && tracing.tags.is_empty() {
            return true;
        }
        let tagged = tags
            .iter()
            .any(|tag| tracing.tags.iter().any(|one| one == tag));
        tagged || self.allow.iter().any(|pattern| pattern.is_match(name))
    }

    /// Returns the sample rate that events carry: the share of such events that is sent over all sessions.
    pub(crate) fn sample_rate(&self, share: Share) -> f64 {
        let rate = share.0 * self.document.sampling.session_rate;
        rate.clamp(Limits::SMALLEST_RATE, 1.0)
    }
}

/// Compiles patterns that match whole names. The server validates patterns with another engine; one that does not compile here
/// matches nothing.
fn patterns(texts: &[String]) -> Vec<Regex> {
    let compiled = texts
        .iter()
        .map(|text| Regex::new(&format!("^(?:{text})$")));
    compiled.filter_map(Result::ok).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings(document: serde_json::Value, draw: f64) -> Settings {
        Settings::new(serde_json::from_value(document).unwrap(), draw)
    }

    #[test]
    fn the_first_matching_override_sets_the_rate_of_a_span() {
        let settings = settings(
            json!({"sampling": {"spans": {"default": 0.1, "overrides": [
                {"name": "checkout.pay", "rate": 1.0}, {"name": "checkout*", "rate": 0.5}]}}}),
            0.0,
        );
        assert_eq!(settings.span_share("checkout.pay", &[]), Share(1.0));
        assert_eq!(settings.span_share("checkout", &[]), Share(0.5));
        assert_eq!(settings.span_share("search", &[]), Share(0.1));
    }

    #[test]
    fn patterns_match_whole_names_and_deny_wins() {
        let settings = settings(
            json!({"tracing": {"allow": ["com\\.example\\..*"], "deny": [".*View\\..*"], "tags": ["startup"]},
                   "sampling": {"spans": {"default": 1.0}}}),
            0.0,
        );
        let traced = |name: &str, tags: &[&str]| settings.span_share(name, tags) != Share::NOTHING;
        assert!(traced("com.example.Cart.pay", &[]));
        assert!(!traced("org.com.example.Cart.pay", &[]));
        assert!(!traced("com.example.CartView.draw", &[]));
        assert!(traced("boot", &["startup"]));
        assert!(!traced("boot", &["other"]));
    }

    #[test]
    fn an_unsampled_session_sends_only_traffic_and_rates_include_the_session_rate() {
        let document = json!({"sampling": {"session_rate": 0.25, "janks": 0.5}});
        let (inside, outside) = (settings(document.clone(), 0.2), settings(document, 0.3));
        assert_eq!(outside.share(Signal::Janks), Share::NOTHING);
        assert_eq!(outside.share(Signal::Traffic), Share(1.0));
        assert_eq!(inside.sample_rate(inside.share(Signal::Janks)), 0.125);
    }
}
