//! Computes a hash for each event, in the same way here and in ClickHouse.
//!
//! A fingerprint covers the fields that identify an event and that the server stores unchanged. It covers the event's time only
//! for devices with a correct clock, because the server shifts the times of the others. The SQL expressions and the Rust code of
//! each signal must list the same fields in the same order.

use std::fmt::Write;

use twox_hash::XxHash64;
use unjank_protocol::{Batch, Limits, Signal, Text};
use uuid::Uuid;

use crate::run_tag::has_right_clock;

/// Signals that have a table, in the order of a batch.
pub(crate) const SIGNALS: [Signal; 9] = [
    Signal::Spans,
    Signal::FrameWindows,
    Signal::Janks,
    Signal::Traffic,
    Signal::PageLoads,
    Signal::Metrics,
    Signal::AppStarts,
    Signal::Recompositions,
    Signal::SdkHealth,
];

/// Returns the columns that a signal's fingerprint covers, as SQL expressions of type String.
fn columns(signal: Signal) -> &'static [&'static str] {
    match signal {
        Signal::Spans => &[
            "toString(trace_id)",
            "toString(span_id)",
            "toString(parent_span_id)",
            "toString(kind)",
            "toString(duration_us)",
            "toString(name)",
        ],
        Signal::FrameWindows => &[
            "toString(uptime_ms)",
            "toString(duration_ms)",
            "toString(frames_drawn)",
            "toString(frames_dropped)",
            "toString(jank_ms)",
            "toString(delay_ms)",
            "toString(page)",
        ],
        Signal::Janks => &[
            "toString(kind)",
            "toString(uptime_ms)",
            "toString(duration_ms)",
            "toString(thread)",
            "toString(page)",
        ],
        Signal::Traffic => &[
            "toString(network)",
            "toString(tx_bytes)",
            "toString(rx_bytes)",
            "toString(requests)",
            "toString(failed_requests)",
            "toString(source)",
        ],
        Signal::PageLoads => &[
            "toString(uptime_ms)",
            "toString(total_ms)",
            "toString(launch)",
            "toString(outcome)",
            "toString(page)",
        ],
        Signal::Metrics => &[
            "toString(uptime_ms)",
            "toString(reinterpretAsUInt64(value))",
            "toString(page)",
            "toString(name)",
        ],
        Signal::AppStarts => &["toString(kind)", "toString(duration_ms)", "toString(page)"],
        Signal::Recompositions => &[
            "toString(uptime_ms)",
            "toString(window_ms)",
            "toString(count)",
            "toString(page)",
            "toString(cause)",
            "toString(function)",
        ],
        Signal::SdkHealth => &[
            "toString(overhead_us)",
            "toString(queue_bytes)",
            "toString(upload_bytes)",
        ],
        Signal::Other => &[],
    }
}

/// Whether fingerprints cover the time of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Times {
    /// Only for devices whose install id marks their clock as correct.
    OfRightClocks,
    /// Never: for recorded batches, and for batches sent long after they were built.
    Ignored,
}

/// Returns the time of an event as an SQL expression of type String.
fn time_column(signal: Signal) -> &'static str {
    match signal {
        Signal::Metrics => "toString(toUnixTimestamp64Micro(time))",
        Signal::Traffic => "toString(day)",
        Signal::SdkHealth => "''",
        _ => "toString(toUnixTimestamp64Micro(start))",
    }
}

/// Returns the SQL expression of the fingerprint of a row in the signal's table.
pub(crate) fn sql(signal: Signal, times: Times) -> String {
    let columns = columns(signal).join(", '|', ");
    let time = match times {
        Times::OfRightClocks => format!(
            "if(endsWith(toString(install_id), 'a'), {}, '')",
            time_column(signal)
        ),
        Times::Ignored => "''".to_owned(),
    };
    format!("xxHash64(concat(toString(install_id), '|', {time}, '|', {columns}))")
}

/// Returns the fingerprints of a batch's events per signal, in the order of the signal's list.
pub(crate) fn of_batch(batch: &Batch<'_>, times: Times) -> Vec<(Signal, Vec<u64>)> {
    let install = batch.resource.install_id;
    let mut hasher = Hasher {
        install,
        times: times == Times::OfRightClocks && has_right_clock(install),
        text: String::with_capacity(256),
    };
    let lists = SIGNALS.map(|signal| (signal, hasher.of_signal(batch, signal)));
    lists
        .into_iter()
        .filter(|(_, fingerprints)| !fingerprints.is_empty())
        .collect()
}

struct Hasher {
    install: Uuid,
    times: bool,
    text: String,
}

/// Defines a method that returns the fingerprints of one list. It hashes the time, then the values in the order of [`columns`].
macro_rules! list {
    ($signal:ident, $event:ident: $time:expr, [$($value:expr),+ $(,)?]) => {
        fn $signal(&mut self, batch: &Batch<'_>) -> Vec<u64> {
            batch.$signal.iter().map(|$event| self.begin($time)$(.add($value))+.end()).collect()
        }
    };
}

impl Hasher {
    fn of_signal(&mut self, batch: &Batch<'_>, signal: Signal) -> Vec<u64> {
        match signal {
            Signal::Spans => self.spans(batch),
            Signal::FrameWindows => self.frame_windows(batch),
            Signal::Janks => self.janks(batch),
            Signal::Traffic => self.traffic(batch),
            Signal::PageLoads => self.page_loads(batch),
            Signal::Metrics => self.metrics(batch),
            Signal::AppStarts => self.app_starts(batch),
            Signal::Recompositions => self.recompositions(batch),
            Signal::SdkHealth => self.sdk_health(batch),
            Signal::Other => Vec::new(),
        }
    }

    list!(spans, span: span.start.as_micros(), [
        Uuid::from_u128(span.trace_id.0),
        span.span_id.0,
        span.parent_span_id.map_or(0, |parent| parent.0),
        span.kind,
        span.duration_us,
        stored(&span.name),
    ]);
    list!(frame_windows, window: window.start.as_micros(), [
        window.uptime_ms,
        window.duration_ms,
        window.frames_drawn,
        window.frames_dropped,
        window.jank_ms,
        window.delay_ms,
        stored(&window.page),
    ]);
    list!(janks, jank: jank.start.as_micros(), [
        jank.kind,
        jank.uptime_ms,
        jank.duration_ms,
        stored(&jank.thread),
        stored(&jank.page),
    ]);
    list!(traffic, traffic: traffic.day, [
        traffic.network,
        traffic.tx_bytes,
        traffic.rx_bytes,
        traffic.requests,
        traffic.failed_requests,
        stored(&traffic.source),
    ]);
    list!(page_loads, load: load.start.as_micros(), [
        load.uptime_ms,
        load.total_ms,
        load.launch,
        load.outcome,
        stored(&load.page),
    ]);
    list!(metrics, metric: metric.time.as_micros(), [
        metric.uptime_ms,
        metric.value.to_bits(),
        stored(&metric.page),
        stored(&metric.name),
    ]);
    list!(app_starts, start: start.start.as_micros(), [start.kind, start.duration_ms, stored(&start.page)]);
    list!(recompositions, redraw: redraw.start.as_micros(), [
        redraw.uptime_ms,
        redraw.window_ms,
        redraw.count,
        stored(&redraw.page),
        stored(&redraw.cause),
        stored(&redraw.function),
    ]);
    list!(sdk_health, health: "", [health.overhead_us, health.queue_bytes, health.upload_bytes]);

    fn begin(&mut self, time: impl std::fmt::Display) -> &mut Self {
        self.text.clear();
        write!(self.text, "{}|", self.install).expect("writing to a string");
        if self.times {
            write!(self.text, "{time}").expect("writing to a string");
        }
        self
    }

    fn add(&mut self, value: impl std::fmt::Display) -> &mut Self {
        write!(self.text, "|{value}").expect("writing to a string");
        self
    }

    fn end(&self) -> u64 {
        XxHash64::oneshot(0, self.text.as_bytes())
    }
}

/// Returns the text as the server stores it: truncated at the protocol's limit.
fn stored<'a>(text: &Text<'a>) -> Text<'a> {
    let mut text = text.clone();
    text.truncate(Limits::default().string_bytes);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_matches_the_example_in_the_clickhouse_documentation() {
        // SELECT xxHash64('Hello, world!')
        assert_eq!(
            XxHash64::oneshot(0, b"Hello, world!"),
            17_691_043_854_468_224_118
        );
    }

    #[test]
    fn a_fingerprint_hashes_the_fields_of_the_sql_expression() {
        let batch = r#"{"batch_id":"00000000-0000-0000-0000-000000000001",
            "resource":{"app_id":"a","install_id":"00000000-0000-0000-0000-0000000000aa"},
            "spans":[{"trace_id":"000000000000000000000000000000ff","span_id":"000000000000000f",
                "name":"pay","start":"2026-01-01T00:00:00Z","duration_us":7}],
            "metrics":[{"name":"fps","time":"2026-01-01T00:00:00Z","value":1.0}]}"#;
        let batch: Batch<'_> = serde_json::from_str(batch).unwrap();
        let install = "00000000-0000-0000-0000-0000000000aa";
        let ids = "00000000-0000-0000-0000-0000000000ff|15|0";
        let hash = |text: &str| vec![XxHash64::oneshot(0, text.as_bytes())];
        for (times, start) in [
            (Times::OfRightClocks, "1767225600000000"),
            (Times::Ignored, ""),
        ] {
            let span = format!("{install}|{start}|{ids}|manual|7|pay");
            let metric = format!("{install}|{start}|0|4607182418800017408||fps");
            assert_eq!(
                of_batch(&batch, times),
                [
                    (Signal::Spans, hash(&span)),
                    (Signal::Metrics, hash(&metric))
                ]
            );
        }
        assert_eq!(
            sql(Signal::AppStarts, Times::OfRightClocks),
            "xxHash64(concat(toString(install_id), '|', if(endsWith(toString(install_id), 'a'), \
             toString(toUnixTimestamp64Micro(start)), ''), '|', toString(kind), '|', toString(duration_ms), '|', toString(page)))"
        );
    }
}
