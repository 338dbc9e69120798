//! What the device measures, and how much of it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::JankStrategy;

settings! {
    /// When a block of the main loop counts as a stall, and how many stacks are captured.
    Janks {
        /// The rules, of which one must match. Thresholds are 16 to 60,000 ms, counts 1 to 1,000, periods up to
        /// 3,600,000 ms and long enough for the count. At most 16.
        strategies: Vec<JankStrategy> = strategies(),
        /// The minimum duration of an ANR, in milliseconds: 1,000 to 60,000.
        anr_ms: u32 = 5_000,
        /// The number of frames captured of a stack, from the innermost: 1 to 128.
        stack_depth: u32 = 64,
        /// The maximum number of stacks captured in a session: 0 to 1,000.
        max_stacks_per_session: u32 = 20,
        /// How long the phase `start` of a run lasts, in milliseconds since the app started: 0 to 600,000.
        start_ms: u32 = 10_000,
        /// Other rules for a phase of the run, for pages, or for both. The first match applies instead of `strategies`. At most 16.
        overrides: Vec<JankOverride> = Vec::new(),
    }
}

settings! {
    /// The rules for the stalls of some pages, or of a phase of the run.
    JankOverride {
        /// A glob that matches the whole name of the page: `*` matches any characters, `?` one character. Without it: every page.
        page: String = String::new(),
        /// `start` for messages that begin in the first `start_ms` of a run, `later` for those after. Without it: both. A device ignores an
        /// entry with a phase that it does not know.
        phase: String = String::new(),
        /// The rules, of which one must match, with the ranges of `jank.strategies`. Without rules, only ANRs are reported.
        strategies: Vec<JankStrategy> = Vec::new(),
    }
}

/// Returns the default: one stall of two seconds, or five of 300 ms in a minute.
fn strategies() -> Vec<JankStrategy> {
    let strategy = |threshold_ms, count, period_ms| JankStrategy {
        threshold_ms,
        count,
        period_ms,
    };
    vec![strategy(2_000, 1, 0), strategy(300, 5, 60_000)]
}

settings! {
    /// When a frame window begins and ends.
    Frames {
        /// The length of a window, in milliseconds: 1,000 to 60,000.
        window_ms: u32 = 10_000,
        /// The number of frames dropped in a row that starts a window: 1 to 1,000.
        enter_dropped: u32 = 3,
        /// The number of frames drawn in a row that ends a window: 1 to 1,000.
        leave_drawn: u32 = 10,
    }
}

settings! {
    /// An enabled monitor.
    Monitor {
        /// The interval between values, in milliseconds: 100 to 3,600,000. 5,000 if missing.
        interval_ms: u32 = 5_000,
    }
}

/// Returns the monitors of a device without a configuration.
pub(super) fn monitors() -> BTreeMap<String, Monitor> {
    let monitor = |(name, interval_ms): (&str, u32)| (name.to_owned(), Monitor { interval_ms });
    [("fps", 1_000), ("cpu", 5_000), ("memory", 5_000)]
        .map(monitor)
        .into()
}

settings! {
    /// The requests that must finish before a screen is complete.
    PageApis {
        /// The name of the screen.
        page: String = String::new(),
        /// The paths of its requests, such as `/home/head`. At most 100.
        api: Vec<String> = Vec::new(),
    }
}

settings! {
    /// How traffic is grouped by source.
    Traffic {
        /// The sources with their hosts. The first match applies. At most 100, each source once.
        sources: Vec<TrafficSource> = Vec::new(),
        /// Responses with these MIME types count as `web`, unless a source matches the host. At most 100.
        web_mime_types: Vec<String> = web_mime_types(),
    }
}

fn web_mime_types() -> Vec<String> {
    [
        "text/css",
        "text/html",
        "application/x-javascript",
        "application/javascript",
    ]
    .map(str::to_owned)
    .into()
}

settings! {
    /// A source of traffic.
    TrafficSource {
        /// The name of the source, such as `api`.
        source: String = String::new(),
        /// Globs that match the whole host name, such as `*.example.com`, regardless of case. At most 100.
        hosts: Vec<String> = Vec::new(),
    }
}

settings! {
    /// The maximum number of events that a device records per minute, with bursts of twice as many: 0 to 1,000,000 each. Over it, events
    /// are sampled, and those that pass carry the rate. `Mode::Development` and `Mode::Test` have no limit.
    Budget {
        /// Spans.
        spans: u32 = 3_000,
        /// Values of monitors and metrics.
        metrics: u32 = 1_000,
        /// Recompositions.
        recompositions: u32 = 500,
        /// Frame windows.
        frame_windows: u32 = 200,
        /// Page loads.
        page_loads: u32 = 200,
        /// Stalls.
        janks: u32 = 60,
    }
}
