//! A trace in Chrome's trace event format, which Perfetto and `chrome://tracing` open.

use serde_json::{Value, json};

use crate::store::reads::StoredSpan;

/// Returns complete events with times in microseconds, one lane per thread.
#[must_use]
pub fn chrome_trace(spans: &[StoredSpan]) -> Value {
    let mut threads: Vec<&str> = spans.iter().map(|span| span.thread.as_str()).collect();
    threads.sort_unstable();
    threads.dedup();
    let lane = |thread: &str| threads.partition_point(|one| *one < thread) + 1;
    let process = spans.first().map(|span| {
        let name = format!("{} on {}", span.app_version, span.device_model);
        json!({"ph": "M", "name": "process_name", "pid": 1, "args": {"name": name}})
    });
    let names = threads.iter().map(|thread| {
        json!({"ph": "M", "name": "thread_name", "pid": 1, "tid": lane(thread), "args": {"name": thread}})
    });
    let events = spans.iter().map(|span| {
        let mut args = serde_json::Map::new();
        for (name, value) in &span.attributes {
            args.insert(name.clone(), value.clone().into());
        }
        if !span.code_file.is_empty() {
            args.insert("file".to_owned(), format!("{}:{}", span.code_file, span.code_line).into());
        }
        // 0 if unknown.
        if span.uptime_ms > 0 {
            args.insert("uptime_ms".to_owned(), span.uptime_ms.into());
        }
        json!({
            "ph": "X", "name": span.name, "cat": span.kind, "ts": span.start, "dur": span.duration_us,
            "pid": 1, "tid": lane(&span.thread), "args": args
        })
    });
    let events: Vec<Value> = process.into_iter().chain(names).chain(events).collect();
    json!({"displayTimeUnit": "ms", "traceEvents": events})
}
