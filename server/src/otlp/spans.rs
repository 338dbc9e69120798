//! Spans of OTLP. Every span becomes a span; its scope, kind, links and status become attributes, with the names that the specification
//! has for formats without them (*Mapping to non-OTLP formats*).

use unjank_protocol::{Span, SpanEvent, SpanId, SpanKind, SpanStatus, Text, Timestamp, TraceId};

use super::attribute_values::{TEXT, cut};
use super::attributes::{Known, MOST};
use super::message::{Inner, Raw, Short, message};
use super::resource::{Scope, Sender};
use super::scalars::{Count, Enum, Fixed, Id};
use super::stack_text::{STACK, shortened};
use super::value::KeyValue;
use super::{Event, Found, Reject, old_http_names};

message! {
    OtlpSpan<'a> {
        1 trace_id: Id<16>,
        2 span_id: Id<8>,
        3 trace_state: Text<'a>,
        4 parent_span_id: Id<8>,
        5 name: Text<'a>,
        6 kind: Enum,
        7 start_time_unix_nano: Fixed,
        8 end_time_unix_nano: Fixed,
        9 attributes: Known<'a>,
        10 dropped_attributes_count: Count,
        11 events: Short<OtlpEvent<'a>>,
        12 dropped_events_count: Count,
        13 links: Short<Link<'a>>,
        14 dropped_links_count: Count,
        15 status: Inner<Status<'a>>,
    }
}

message! {
    OtlpEvent<'a> {
        1 time_unix_nano: Fixed,
        2 name: Text<'a>,
        3 attributes: Short<KeyValue<'a>>,
    }
}

message! {
    Link<'a> {
        1 trace_id: Id<16>,
        2 span_id: Id<8>,
        4 attributes: Short<KeyValue<'a>>,
    }
}

message! {
    Status<'a> {
        2 message: Text<'a>,
        3 code: Enum,
    }
}

const UNSET: u64 = 0;
const CLIENT: u64 = 3;

pub(super) fn span<'a>(
    item: Raw<'a>,
    scope: &Scope<'a>,
    sender: &Sender<'a>,
) -> Result<Found<'a>, Reject> {
    let span: OtlpSpan<'a> = item.decode()?;
    let ids = ids(span.trace_id, span.span_id)?;
    let mut known = span.attributes;
    known.keep_exception();
    known.keep_event_name();
    // In spans of servers, some of the names are about their client.
    if matches!(span.kind.0, UNSET | CLIENT) {
        old_http_names::rename(&mut known.others);
    }
    let kind = match span.kind.0 {
        2 => "server",
        CLIENT => "client",
        4 => "producer",
        5 => "consumer",
        _ => "",
    };
    let Status { message, code } = span.status.0;
    let (events, cut_events) = span.events.first(MOST);
    let with_attributes = link_attributes(&span.links.0);
    let (links, cut_links) = links(&span.links);
    let dropped = |count: Count, cut: u64| match count.0.saturating_add(cut) {
        0 => Text::default(),
        count => count.to_string().into(),
    };
    let named = [
        ("span.kind", kind.into()),
        ("otel.status_description", message),
        ("otel.links", links),
        ("otel.link_attributes", with_attributes),
        (
            "otel.dropped_attributes_count",
            dropped(span.dropped_attributes_count, 0),
        ),
        (
            "otel.dropped_events_count",
            dropped(span.dropped_events_count, cut_events),
        ),
        (
            "otel.dropped_links_count",
            dropped(span.dropped_links_count, cut_links),
        ),
    ];
    for (name, value) in named.into_iter().filter(|(_, value)| !value.is_empty()) {
        known.others.push((name.into(), value));
    }
    let by_app = known.sample_rate.or(sender.sample_rate);
    let sample_rate = sample_rate_of(&span.trace_state).or(by_app);
    let is_request = known.is_request && span.kind.0 == CLIENT;
    let start = time(span.start_time_unix_nano);
    let (session_id, user_id) = (known.session_id, known.user_id.take());
    let event = Span {
        parent_span_id: span_id_of(span.parent_span_id),
        name: span.name,
        kind: if is_request {
            SpanKind::Network
        } else {
            SpanKind::Manual
        },
        duration_us: time(span.end_time_unix_nano).micros_since(start),
        status: match code.0 {
            1 => SpanStatus::Ok,
            2 => SpanStatus::Error,
            _ => SpanStatus::Unset,
        },
        events: events.into_iter().map(log_entry).collect(),
        sample_rate: sample_rate.unwrap_or(1.),
        ..known.into_span(ids, start, scope, sender)
    };
    Ok(Found {
        event: Event::Span(Box::new(event)),
        session_id,
        user_id,
    })
}

/// Nanoseconds since the epoch as a time, which has microseconds.
pub(super) fn time(Fixed(nanos): Fixed) -> Timestamp {
    Timestamp::from_micros(i64::try_from(nanos / 1_000).unwrap_or(i64::MAX))
}

fn ids(trace_id: Id<16>, span_id: Id<8>) -> Result<(TraceId, SpanId), Reject> {
    let missing = |name| {
        let detail = format!("`{name}` is missing, zero or of the wrong length");
        Reject::new("invalid_event", detail)
    };
    if trace_id.0 == 0 {
        return Err(missing("trace_id"));
    }
    let span_id = span_id_of(span_id).ok_or_else(|| missing("span_id"))?;
    Ok((TraceId(trace_id.0), span_id))
}

pub(super) fn span_id_of(Id(id): Id<8>) -> Option<SpanId> {
    u64::try_from(id).ok().filter(|id| *id != 0).map(SpanId)
}

/// The log entry of a span has a text only, so the attributes are part of it: `exception exception.type=IOException`. A stack is the last one,
/// because it gets the room that is left.
fn log_entry(event: OtlpEvent<'_>) -> SpanEvent<'_> {
    let mut name = event.name;
    let mut attributes = event.attributes.0;
    if !attributes.is_empty() {
        let mut text = name.as_str().to_owned();
        attributes.sort_by_key(|one| one.key.as_str() == STACK);
        for KeyValue { key, value } in &mut attributes {
            if key.as_str() == STACK {
                let room = TEXT.saturating_sub(text.len() + " =".len() + STACK.len());
                value.0 = shortened(std::mem::take(&mut value.0), room);
            }
            append(&mut text, key, &value.0);
        }
        name = text.into();
    }
    SpanEvent {
        time: time(event.time_unix_nano),
        name,
    }
}

/// Appends an attribute to a text, unless that is longer than is kept.
fn append(text: &mut String, key: &str, value: &str) {
    if text.len() <= TEXT {
        text.extend([" ", key, "=", value]);
    }
}

/// The attributes of links as text, after the ids of their spans: `051581bf3cb55c13 kind=retry`.
fn link_attributes(links: &[Link<'_>]) -> Text<'static> {
    let mut text = String::new();
    for link in links.iter().filter(|link| !link.attributes.0.is_empty()) {
        if text.len() > TEXT {
            break;
        }
        let separator = if text.is_empty() { "" } else { "; " };
        text.push_str(&format!("{separator}{:016x}", link.span_id.0));
        for KeyValue { key, value } in &link.attributes.0 {
            append(&mut text, key, &value.0);
        }
    }
    let mut text = Text::from(text);
    cut(&mut text);
    text
}

/// Links as `<trace id>-<span id>`, separated by blanks: as many as are kept of a text, and the number of the others.
fn links(links: &Short<Link<'_>>) -> (Text<'static>, u64) {
    /// The bytes of a link and a blank.
    const LINK: usize = 32 + 1 + 16 + 1;
    let sent = (links.0.len() as u64).saturating_add(links.1);
    let links = links.0.iter().filter(|link| link.trace_id.0 != 0);
    let texts = links.map(|link| format!("{:032x}-{:016x}", link.trace_id.0, link.span_id.0));
    let texts: Vec<_> = texts.take((TEXT + 1) / LINK).collect();
    let cut = sent.saturating_sub(texts.len() as u64);
    (texts.join(" ").into(), cut)
}

/// The sample rate that the samplers of OpenTelemetry write into the trace state: `ot=th:c` means that traces whose random number is
/// below 0xc0000000000000 of 2⁵⁶ were dropped, so a quarter was kept (*Probability Sampling*).
fn sample_rate_of(trace_state: &str) -> Option<f64> {
    let mut members = trace_state.split(',').map(str::trim);
    let mut parts = members
        .find_map(|member| member.strip_prefix("ot="))?
        .split(';');
    let digits = parts.find_map(|part| part.strip_prefix("th:"))?;
    if digits.len() > 14 {
        return None;
    }
    let threshold = u64::from_str_radix(&format!("{digits:0<14}"), 16).ok()?;
    const ALL: u64 = 1 << 56;
    #[expect(clippy::cast_precision_loss, reason = "a rate of 56 bits has 53")]
    let rate = ALL.saturating_sub(threshold) as f64 / ALL as f64;
    Some(rate)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::otlp::Kind;
    use crate::otlp::bounds::{attribute, of};

    #[test]
    fn a_sample_rate_that_is_no_number_is_not_a_missing_one() {
        use crate::otlp::attribute_values::sample_rate;
        assert_eq!(sample_rate("0.25"), Some(0.25));
        assert_eq!(sample_rate(""), None);
        for text in ["NaN", "1/10", "true"] {
            assert!(sample_rate(text).is_some_and(f64::is_nan), "{text}");
        }
    }

    #[test]
    fn the_log_entry_of_an_exception_keeps_the_frames_of_its_root_cause() {
        let value = |text: String| json!({"stringValue": text});
        let calls = "\tat com.example.Main.run(Main.kt:7)\n".repeat(100);
        let stack = format!(
            "a.B: no\n{calls}Caused by: c.D: disk\n\tat com.example.Disk.write(Disk.kt:1)\n{calls}"
        );
        let event = json!({"name": "exception", "attributes": [
            {"key": STACK, "value": value(stack)},
            {"key": "exception.type", "value": value("a.B".to_owned())},
        ]});
        let span = json!({"traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "spanId": "051581bf3cb55c13", "events": [event]});
        let request = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]});
        of(Kind::Traces, &request, |read| {
            let batches = read.unwrap().batches;
            let entry = batches[0].spans[0].events[0].name.as_str();
            let start = "exception exception.type=a.B exception.stacktrace=Caused by: c.D: disk\n\
                at com.example.Disk.write(Disk.kt:1)\nat com.example.Main.run(Main.kt:7)\n";
            assert!(entry.starts_with(start), "{entry}");
            assert!(entry.len() <= TEXT && entry.ends_with('…'), "{entry}");
        });
    }

    #[test]
    fn links_and_events_that_are_left_out_are_counted() {
        let link =
            json!({"traceId": "0102030405060708090a0b0c0d0e0f10", "spanId": "0102030405060708"});
        for (sent, links, events) in [
            (1, (1, None), (1, None)),
            (20, (20, None), (20, None)),
            (21, (20, Some("1")), (21, None)),
            (64, (20, Some("44")), (64, None)),
            (65, (20, Some("45")), (64, Some("1"))),
            (128, (20, Some("108")), (64, Some("64"))),
        ] {
            let span = json!({"traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "spanId": "051581bf3cb55c13",
                "links": vec![link.clone(); sent], "events": vec![json!({"name": "tap"}); sent]});
            let request = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]});
            of(Kind::Traces, &request, |read| {
                let batches = read.unwrap().batches;
                let span = &batches[0].spans[0];
                let texts = attribute(span, "otel.links").unwrap();
                assert!(texts.len() <= TEXT);
                let kept = texts.split(' ').filter(|text| text.len() == 49).count();
                assert_eq!((kept, attribute(span, "otel.dropped_links_count")), links);
                let kept = span.events.len();
                assert_eq!((kept, attribute(span, "otel.dropped_events_count")), events);
            });
        }
    }

    #[test]
    fn a_number_of_dropped_attributes_that_cannot_be_read_rejects_no_span() {
        for (sent, kept) in [
            (json!(3), Some("3")),
            (json!("3"), Some("3")),
            (json!(-1), None),
            (json!("many"), None),
            (json!([3]), None),
            (json!(null), None),
        ] {
            let span = json!({"traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "spanId": "051581bf3cb55c13", "droppedAttributesCount": sent});
            let request = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]});
            of(Kind::Traces, &request, |read| {
                let request = read.unwrap();
                assert!(request.undecoded.is_empty(), "{sent}");
                let mut attributes = request.batches[0].spans[0].attributes.0.iter();
                let dropped =
                    attributes.find(|(name, _)| name.as_str() == "otel.dropped_attributes_count");
                assert_eq!(dropped.map(|(_, value)| value.as_str()), kept, "{sent}");
            });
        }
    }

    #[test]
    fn the_trace_state_has_the_sample_rate() {
        let of = |state| sample_rate_of(state).map(|rate| (rate * 1_000.).round() / 1_000.);
        assert_eq!(of("ot=th:c"), Some(0.25));
        assert_eq!(of("other=th:1, ot=rv:6e6d1a75832a2f;th:fd70a4"), Some(0.01));
        assert_eq!(of("ot=th:0"), Some(1.));
        for without in ["", "ot=rv:1", "ot=th:xyz", "ot=th:123456789abcdef", "th:c"] {
            assert_eq!(of(without), None, "{without}");
        }
    }
}
