//! What the device watches, and how it sends what it saw.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::JankStrategy;

settings! {
    /// When a stall counts, and what is caught of it.
    Janks {
        /// The rules; a stall counts when any of them holds. Thresholds 16 to 60,000 ms, counts 1 to 1,000, periods to
        /// 3,600,000 ms and long enough for as many stalls. At most 16.
        strategies: Vec<JankStrategy> = strategies(),
        /// A stall at least this long is an ANR, in milliseconds: 1,000 to 60,000.
        anr_ms: u32 = 5_000,
        /// Frames caught of a stack, innermost first: 1 to 128.
        stack_depth: u32 = 64,
        /// Stacks caught in one session: 0 to 1,000.
        max_stacks_per_session: u32 = 20,
    }
}

/// One stall of two seconds, or five of 300 ms in a minute.
fn strategies() -> Vec<JankStrategy> {
    let strategy = |threshold_ms, count, period_ms| JankStrategy {
        threshold_ms,
        count,
        period_ms,
    };
    vec![strategy(2_000, 1, 0), strategy(300, 5, 60_000)]
}

settings! {
    /// When a window of frames is worth sending.
    Frames {
        /// How long a window is, in milliseconds: 1,000 to 60,000.
        window_ms: u32 = 10_000,
        /// Frames dropped in a row that begin a window: 1 to 1,000.
        enter_dropped: u32 = 3,
        /// Frames drawn in a row that end it: 1 to 1,000.
        leave_drawn: u32 = 10,
    }
}

settings! {
    /// A monitor that runs.
    Monitor {
        /// Time between two values, in milliseconds: 100 to 3,600,000.
        interval_ms: u32 = 5_000,
    }
}

/// The monitors of a device without a configuration.
pub(super) fn monitors() -> BTreeMap<String, Monitor> {
    let monitor = |(name, interval_ms): (&str, u32)| (name.to_owned(), Monitor { interval_ms });
    [("fps", 1_000), ("cpu", 5_000), ("memory", 5_000)]
        .map(monitor)
        .into()
}

settings! {
    /// The requests that a screen needs to be complete.
    PageApis {
        /// The screen.
        page: String = String::new(),
        /// Paths of its requests, as `/home/head`. At most 100.
        api: Vec<String> = Vec::new(),
    }
}

settings! {
    /// How traffic is grouped by source.
    Traffic {
        /// Kinds of traffic by host; the first that matches holds. At most 100, each source once.
        sources: Vec<TrafficSource> = Vec::new(),
        /// Responses with these MIME types count as web pages, whichever host they come from. At most 100.
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
    /// One kind of traffic.
    TrafficSource {
        /// Its name, such as `api`.
        source: String = String::new(),
        /// Globs over the whole host name, as `*.example.com`; case does not matter. At most 100.
        hosts: Vec<String> = Vec::new(),
    }
}

settings! {
    /// When and how much is uploaded.
    Upload {
        /// Time between two uploads, in seconds: 5 to 86,400.
        interval_s: u32 = 60,
        /// Events in one batch: 1 to 10,000.
        max_batch_events: u32 = 500,
        /// Bytes kept on the device while there is no network: 65,536 to 1,073,741,824. The oldest go first.
        max_queue_bytes: u64 = 5 * 1024 * 1024,
        /// Whether to wait for a network that costs nothing.
        wifi_only: bool = false,
    }
}
