//! What the device measures, and how it sends it.

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
        /// The interval between values, in milliseconds: 100 to 3,600,000.
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
        /// Responses with these MIME types count as `web`, regardless of the host. At most 100.
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
    /// When and how much the device uploads.
    Upload {
        /// The interval between uploads, in seconds: 5 to 86,400.
        interval_s: u32 = 60,
        /// The maximum number of events in a batch: 1 to 10,000.
        max_batch_events: u32 = 500,
        /// The maximum number of bytes kept on the device while it is offline: 65,536 to 1,073,741,824. The oldest batches are dropped first.
        max_queue_bytes: u64 = 5 * 1024 * 1024,
        /// Whether to upload only over unmetered networks.
        wifi_only: bool = false,
    }
}
