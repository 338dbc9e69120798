//! Log records of OTLP. There is no signal for lines of a log, so each becomes what it tells of:
//!
//! * `device.anr` of opentelemetry-android and `metrickit.diagnostic.hang` of opentelemetry-swift: a jank with its stack.
//! * A record with an exception, or of the severity error: an error, as the SDK reports it: a span of no duration with the status `error`.
//! * Everything else: a span of no duration, named by the event, or `log` and the severity.

use unjank_foundation::fingerprint::fingerprint;
use unjank_protocol::{Jank, JankKind, JankStrategy, Span, SpanId, SpanStatus, Text, TraceId};

use super::attribute_values::cut;
use super::attributes::Known;
use super::message::{Raw, message};
use super::resource::{Scope, Sender};
use super::scalars::{Enum, Fixed, Id};
use super::spans::{span_id_of, time};
use super::stack_text::frames;
use super::value::Any;
use super::{Event, Found, Reject};

message! {
    LogRecord<'a> {
        1 time_unix_nano: Fixed,
        2 severity_number: Enum,
        3 severity_text: Text<'a>,
        5 body: Any<'a>,
        6 attributes: Known<'a>,
        9 trace_id: Id<16>,
        10 span_id: Id<8>,
        11 observed_time_unix_nano: Fixed,
        12 event_name: Text<'a>,
    }
}

/// The most frames of a stack.
const FRAMES: usize = 128;
/// opentelemetry-android reports an ANR once the main thread has not answered for this time.
const ANR_MS: u32 = 5_000;
/// Levels of libraries for logs, in any case, and the ranges of their severity numbers (*Appendix B* of the data model for logs).
const LEVELS: [(&str, &str); 16] = [
    ("trace", "trace"),
    ("verbose", "trace"),
    ("debug", "debug"),
    ("fine", "debug"),
    ("info", "info"),
    ("information", "info"),
    ("informational", "info"),
    ("notice", "info"),
    ("warn", "warn"),
    ("warning", "warn"),
    ("error", "error"),
    ("severe", "error"),
    ("critical", "error"),
    ("alert", "error"),
    ("fatal", "fatal"),
    ("emergency", "fatal"),
];
const HANG_DURATION: &str = "metrickit.diagnostic.hang.hang_duration";

/// `unique` is a number that no other record has.
pub(super) fn event<'a>(
    item: Raw<'a>,
    scope: &Scope<'a>,
    sender: &Sender<'a>,
    unique: u128,
) -> Result<Found<'a>, Reject> {
    let mut record: LogRecord<'a> = item.decode()?;
    let mut known = std::mem::take(&mut record.attributes);
    for text in [
        &mut record.body.0,
        &mut record.event_name,
        &mut record.severity_text,
    ] {
        cut(text);
    }
    if record.event_name.is_empty() {
        record.event_name = std::mem::take(&mut known.event_name);
    } else if known.event_name.as_str() == record.event_name.as_str() {
        known.event_name = Text::default();
    }
    if record.time_unix_nano.0 == 0 {
        record.time_unix_nano = record.observed_time_unix_nano;
    }
    let (session_id, user_id) = (known.session_id, known.user_id.take());
    let event = match record.event_name.as_str() {
        "device.anr" => Event::Jank(Box::new(jank(&record, known, JankKind::Anr, ANR_MS))),
        "metrickit.diagnostic.hang" => {
            let duration = known
                .others
                .iter()
                .find(|(name, _)| name.as_str() == HANG_DURATION);
            let seconds = duration
                .and_then(|(_, value)| value.parse().ok())
                .unwrap_or_default();
            let millis = std::time::Duration::try_from_secs_f64(seconds)
                .unwrap_or_default()
                .as_millis();
            let millis = u32::try_from(millis).unwrap_or(u32::MAX);
            let kind = if millis < ANR_MS {
                JankKind::Jank
            } else {
                JankKind::Anr
            };
            Event::Jank(Box::new(jank(&record, known, kind, millis)))
        }
        _ => Event::Span(Box::new(span(record, known, scope, sender, unique))),
    };
    Ok(Found {
        event,
        session_id,
        user_id,
    })
}

/// The record is written when the block was noticed, so the block began before.
fn jank<'a>(
    record: &LogRecord<'a>,
    mut known: Known<'a>,
    kind: JankKind,
    duration_ms: u32,
) -> Jank<'a> {
    let text = known.exception.stack.as_str();
    // One more than is kept, so that the cut is noticed.
    let stack = frames(text, FRAMES + 1);
    let missing = match (stack.is_empty(), text.is_empty()) {
        (false, _) => "",
        (true, true) => "the record has no exception.stacktrace",
        (true, false) => "exception.stacktrace has no format that unjank reads",
    };
    Jank {
        kind,
        network: known.take_network(),
        page: known.page,
        start: time(record.time_unix_nano).shifted(-i64::from(duration_ms) * 1_000),
        duration_ms: duration_ms.into(),
        ended: unjank_protocol::JankEnd::Finished,
        thread: known.thread,
        // Both are reported in the foreground only.
        foreground: true,
        strategy: JankStrategy {
            threshold_ms: if kind == JankKind::Anr { ANR_MS } else { 0 },
            ..JankStrategy::default()
        },
        uptime_ms: 0,
        stack,
        stack_missing: missing.into(),
        samples: Vec::new(),
        run_log: Vec::new(),
        sample_rate: 1.,
    }
}

fn span<'a>(
    record: LogRecord<'a>,
    mut known: Known<'a>,
    scope: &Scope<'a>,
    sender: &Sender<'a>,
    unique: u128,
) -> Span<'a> {
    let severity = severity(record.severity_number.0, &record.severity_text);
    let exception = known.exception.name();
    let is_error = matches!(severity, "error" | "fatal") || exception.is_some();
    let name = match exception {
        _ if !record.event_name.is_empty() => record.event_name,
        Some(exception) => exception,
        None => format!("log.{severity}").into(),
    };
    known.keep_exception();
    known.keep_event_name();
    for (name, value) in [
        ("body", record.body.0),
        ("severity_text", record.severity_text),
    ] {
        if !value.is_empty() {
            known.others.push((name.into(), value));
        }
    }
    let trace_id = if record.trace_id.0 == 0 {
        unique
    } else {
        record.trace_id.0
    };
    let span_id = fingerprint(&[&unique.to_le_bytes()]);
    let ids = (TraceId(trace_id.max(1)), SpanId(span_id.max(1)));
    Span {
        parent_span_id: span_id_of(record.span_id),
        name,
        status: if is_error {
            SpanStatus::Error
        } else {
            SpanStatus::Unset
        },
        ..known.into_span(ids, time(record.time_unix_nano), scope, sender)
    }
}

/// The range of a severity number. Without a number, the text counts, if a library for logs has such a level.
fn severity(number: u64, text: &str) -> &'static str {
    match number {
        1..=4 => "trace",
        5..=8 => "debug",
        9..=12 => "info",
        13..=16 => "warn",
        17..=20 => "error",
        21.. => "fatal",
        0 => {
            let level = text
                .trim()
                .trim_end_matches(|char: char| char.is_ascii_digit());
            let mut levels = LEVELS.iter();
            let known = levels.find(|(name, _)| level.eq_ignore_ascii_case(name));
            known.map_or("unspecified", |(_, severity)| *severity)
        }
    }
}
