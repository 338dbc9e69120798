//! Sampling rates, and which code is traced.

use serde::Serialize;

settings! {
    /// The share of each signal that is kept, 0 to 1. Devices send the rate with the events, so that counts can be
    /// extrapolated.
    Sampling {
        /// The share of sessions in which anything but traffic is collected, 0 to 1. Decided once per session. Traffic is never sampled.
        session_rate: f64 = 1.0,
        /// The shares of spans.
        spans: SpanSampling = SpanSampling::default(),
        /// The share of frame windows, 0 to 1.
        frame_windows: f64 = 1.0,
        /// The share of stalls, 0 to 1.
        janks: f64 = 1.0,
        /// The share of page loads, 0 to 1.
        page_loads: f64 = 0.2,
        /// The share of monitor values, 0 to 1.
        metrics: f64 = 0.1,
        /// The share of recompositions, 0 to 1.
        recompositions: f64 = 0.0,
    }
}

settings! {
    /// The shares of spans that are kept.
    SpanSampling {
        /// The share of spans whose names match no entry of the list below, 0 to 1.
        default: f64 = 0.01,
        /// Shares for names. The first match applies. At most 1,000.
        overrides: Vec<SpanRate> = Vec::new(),
    }
}

settings! {
    /// The share of spans whose name matches.
    SpanRate {
        /// A glob that matches the span's whole name: `*` matches any characters, `?` one character.
        name: String = String::new(),
        /// The share that is kept, 0 to 1.
        rate: f64 = 0.0,
    }
}

settings! {
    /// Selects the code to trace: functions that `allow` matches or that have one of the `tags`, except those that `deny`
    /// matches. Without `allow` and `tags`, all instrumented functions are traced.
    Tracing {
        /// Whether spans are recorded.
        enabled: bool = true,
        /// Regular expressions that match the whole qualified name, such as `com\.example\..*`. At most 1,000.
        allow: Vec<String> = Vec::new(),
        /// Regular expressions that match the whole qualified name of functions that are never traced. At most 1,000.
        deny: Vec<String> = Vec::new(),
        /// Tags that were set in the code of the app. At most 1,000.
        tags: Vec<String> = Vec::new(),
    }
}
