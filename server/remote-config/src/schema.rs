//! Every key of the document and its range, as documented in `unjank_protocol::config`.
//!
//! A test compares these keys with the keys of the type, so that neither changes alone.

use unjank_protocol::Limits;

use super::shape::{Key, Shape, integer, key, list, required, some};

/// The maximum size of the served document, in bytes.
pub(super) const MAX_DOCUMENT_BYTES: usize = 256 * 1024;

/// The document, except `schema` and `revision`, which the server sets.
pub(super) const DOCUMENT: Shape = Shape::Object(&[
    key("poll_interval_s", integer(30, 86_400)),
    key("enabled", Shape::Flag),
    key("sampling", SAMPLING),
    key("tracing", TRACING),
    key("jank", JANK),
    key("frames", FRAMES),
    key(
        "monitors",
        Shape::Map {
            of: &Shape::Object(&[key("interval_ms", integer(100, 3_600_000))]),
            at_most: 64,
        },
    ),
    key("pages", list(&PAGE, 1_000)),
    key("traffic", TRAFFIC),
    key("budget", BUDGET),
    key("upload", UPLOAD),
    key(
        "toggles",
        Shape::Map {
            of: &Shape::Anything,
            at_most: 1_000,
        },
    ),
]);

const SAMPLING: Shape = Shape::Object(&[
    key("session_rate", Shape::Share),
    key("spans", SPANS),
    key("frame_windows", Shape::Share),
    key("janks", Shape::Share),
    key("page_loads", Shape::Share),
    key("metrics", Shape::Share),
    key("recompositions", Shape::Share),
]);

const SPANS: Shape = Shape::Object(&[
    key("default", Shape::Share),
    key("overrides", list(&SPAN_RATE, 1_000)),
]);

const SPAN_RATE: Shape = Shape::Object(&[
    required("name", Shape::Text),
    required("rate", Shape::Share),
]);

const TRACING: Shape = Shape::Object(&[
    key("enabled", Shape::Flag),
    key("allow", list(&Shape::Regex, 1_000)),
    key("deny", list(&Shape::Regex, 1_000)),
    key("tags", list(&Shape::Text, 1_000)),
]);

const JANK: Shape = Shape::Object(&[
    key("strategies", list(&STRATEGY, 16)),
    key("anr_ms", integer(1_000, 60_000)),
    key("stack_depth", integer(1, 128)),
    key("max_stacks_per_session", integer(0, 1_000)),
    key("start_ms", integer(0, 600_000)),
    key("overrides", list(&JANK_OVERRIDE, 16)),
]);

const JANK_OVERRIDE: Shape = Shape::Object(&[
    key("page", Shape::Text),
    key("phase", Shape::OneOf(&["start", "later"])),
    required("strategies", list(&STRATEGY, 16)),
]);

const STRATEGY: Shape = Shape::Object(&[
    required("threshold_ms", integer(16, 60_000)),
    required("count", integer(1, 1_000)),
    key("period_ms", integer(0, 3_600_000)),
]);

const FRAMES: Shape = Shape::Object(&[
    key("window_ms", integer(1_000, 60_000)),
    key("enter_dropped", integer(1, 1_000)),
    key("leave_drawn", integer(1, 1_000)),
]);

const PAGE: Shape = Shape::Object(&[
    required("page", Shape::Text),
    required("api", list(&Shape::Text, 100)),
]);

const TRAFFIC: Shape = Shape::Object(&[
    key("sources", list(&TRAFFIC_SOURCE, 100)),
    key("web_mime_types", list(&Shape::Text, 100)),
]);

const TRAFFIC_SOURCE: Shape = Shape::Object(&[
    required("source", Shape::Text),
    required("hosts", some(&Shape::Text, 100)),
]);

const BUDGET: Shape = Shape::Object(&[
    key("spans", integer(0, 1_000_000)),
    key("metrics", integer(0, 1_000_000)),
    key("recompositions", integer(0, 1_000_000)),
    key("frame_windows", integer(0, 1_000_000)),
    key("page_loads", integer(0, 1_000_000)),
    key("janks", integer(0, 1_000_000)),
]);

const UPLOAD: Shape = Shape::Object(&[
    key("interval_s", integer(5, 86_400)),
    key("max_batch_events", integer(1, Limits::EVENTS as u64)),
    key("max_queue_bytes", integer(65_536, 1_073_741_824)),
    key("wifi_only", Shape::Flag),
]);

/// Returns the paths of all keys named `name` that known keys alone lead to.
pub(super) fn paths_of(name: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut open: Vec<(String, &[Key])> = vec![(String::new(), keys(&DOCUMENT))];
    while let Some((path, list)) = open.pop() {
        for key in list {
            let path = if path.is_empty() {
                key.name.to_owned()
            } else {
                format!("{path}.{}", key.name)
            };
            if key.name == name {
                found.push(path.clone());
            }
            open.push((path, keys(&key.shape)));
        }
    }
    found
}

fn keys(shape: &'static Shape) -> &'static [Key] {
    match shape {
        Shape::Object(keys) => keys,
        _ => &[],
    }
}
