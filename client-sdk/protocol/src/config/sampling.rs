//! How much is kept of what happens, and which code is traced.

use serde::Serialize;

settings! {
    /// The share of each signal that is kept, 0 to 1. A device sends the rate with the events, so that counts can be
    /// extrapolated.
    Sampling {
        /// The share of sessions in which anything is collected, 0 to 1, decided once a session.
        session_rate: f64 = 1.0,
        /// Spans.
        spans: SpanSampling = SpanSampling::default(),
        /// Windows of frames, 0 to 1.
        frame_windows: f64 = 1.0,
        /// Stalls, 0 to 1.
        janks: f64 = 1.0,
        /// Page loads, 0 to 1.
        page_loads: f64 = 0.2,
        /// Values of monitors, 0 to 1.
        metrics: f64 = 0.1,
        /// Redraws of UI functions, 0 to 1.
        recompositions: f64 = 0.0,
    }
}

settings! {
    /// The share of spans that is kept.
    SpanSampling {
        /// The share of those that no override names, 0 to 1.
        default: f64 = 0.01,
        /// Other shares for some names; the first that matches holds. At most 1,000.
        overrides: Vec<SpanRate> = Vec::new(),
    }
}

settings! {
    /// The share of the spans of some name.
    SpanRate {
        /// A glob over the span's whole name: `*` is any run of characters, `?` any one.
        name: String = String::new(),
        /// The share that is kept, 0 to 1.
        rate: f64 = 0.0,
    }
}

settings! {
    /// Which code is traced: what `allow` names or carries one of the `tags`, and `deny` does not name. With neither
    /// `allow` nor `tags`, all that is instrumented.
    Tracing {
        /// Whether spans are made at all.
        enabled: bool = true,
        /// Regular expressions over the whole qualified name, as `com\.example\..*`. At most 1,000.
        allow: Vec<String> = Vec::new(),
        /// Regular expressions over the whole qualified name of what is never traced. At most 1,000.
        deny: Vec<String> = Vec::new(),
        /// Tags given when the app was built. At most 1,000.
        tags: Vec<String> = Vec::new(),
    }
}
