//! One malformed event costs one event, and the bounds of a batch hold.

use unjank_columns::{Bounds, Fault, Malformed, Unreadable, read, write};
use unjank_protocol::{Batch, Metric, Network, Signal, Span, SpanId, Text, Timestamp, TraceId};

fn spans(count: u64) -> Batch<'static> {
    let mut batch = Batch::default();
    batch.resource.app_id = Text::from("com.example.shop");
    let json = r#"{"trace_id":"00000000000000000000000000000001","span_id":"0000000000000001","name":"checkout",
        "start":"2026-11-20T12:00:00Z","duration_us":5,"attributes":{"items":"3"},"thread":"main"}"#;
    let span: Span<'_> = serde_json::from_str(json).unwrap();
    batch.spans = (1..=count)
        .map(|id| Span {
            span_id: SpanId(id),
            ..span.clone()
        })
        .collect();
    batch
}

/// Reads a batch with three spans of which the second one is malformed.
#[track_caller]
fn assert_only_the_second_is_lost(change: impl FnOnce(&mut Span<'_>), expected: (&str, Fault)) {
    let mut batch = spans(3);
    change(&mut batch.spans[1]);
    let body = write(&batch);
    let read = read(&body, &Bounds::default()).unwrap();
    let (field, fault) = expected;
    let [lost] = *read.malformed else {
        panic!("{:?}", read.malformed);
    };
    assert_eq!((lost.signal, lost.index), (Signal::Spans, 1));
    assert_eq!((lost.field, lost.fault), (field, fault));
    batch.spans.remove(1);
    assert_eq!(read.batch, batch);
}

#[test]
fn ids_of_zero_cost_one_event() {
    assert_only_the_second_is_lost(
        |span| span.trace_id = TraceId(0),
        ("trace_id", Fault::ZeroId),
    );
    assert_only_the_second_is_lost(|span| span.span_id = SpanId(0), ("span_id", Fault::ZeroId));
}

#[test]
fn times_that_no_calendar_has_cost_one_event() {
    for micros in [i64::MIN, i64::MAX, 253_402_300_800_000_000] {
        assert_only_the_second_is_lost(
            |span| span.start = Timestamp::from_micros(micros),
            ("start", Fault::OutOfRange),
        );
    }
}

#[test]
fn values_that_are_not_numbers_cost_one_event() {
    let metric = |value| Metric {
        name: "m".into(),
        time: Timestamp::from_micros(0),
        value,
        min: Some(f64::NAN),
        max: None,
        count: None,
        page: "".into(),
        uptime_ms: 0,
        network: Network::Unknown,
        attributes: unjank_protocol::Attributes::default(),
        sample_rate: f64::NAN,
    };
    let batch = Batch {
        spans: Vec::new(),
        metrics: vec![metric(1.0), metric(f64::NAN), metric(f64::INFINITY)],
        ..spans(0)
    };
    let body = write(&batch);
    let read = read(&body, &Bounds::default()).unwrap();
    let lost: Vec<_> = read
        .malformed
        .iter()
        .map(|one| (one.index, one.field))
        .collect();
    assert_eq!(lost, [(1, "value"), (2, "value")]);
    // As JSON writes and reads them.
    let json = serde_json::to_string(&batch.metrics[0]).unwrap();
    assert_eq!(read.batch.metrics, [serde_json::from_str(&json).unwrap()]);
}

/// Replaces bytes that occur once.
fn replaced(body: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut places = body.windows(from.len()).enumerate();
    let at = places.find(|(_, bytes)| *bytes == from).unwrap().0;
    assert!(!places.any(|(_, bytes)| bytes == from));
    let mut changed = body.to_vec();
    changed.splice(at..at + from.len(), to.iter().copied());
    changed
}

#[test]
fn a_text_that_is_not_utf_8_costs_the_events_that_use_it() {
    let mut batch = spans(3);
    batch.spans[1].name = "search".into();
    let body = replaced(&write(&batch), b"search", b"sear\xffh");
    let read = read(&body, &Bounds::default()).unwrap();
    let lost = Malformed {
        signal: Signal::Spans,
        index: 1,
        field: "name",
        fault: Fault::NotUtf8,
    };
    assert_eq!(read.malformed, [lost]);
    assert_eq!(lost.to_string(), "`name`: the text is not UTF-8");
    assert_eq!(read.batch.spans.len(), 2);
}

#[test]
fn a_malformed_envelope_costs_the_batch() {
    let body = replaced(
        &write(&spans(1)),
        b"com.example.shop",
        b"com.example.sh\xffp",
    );
    let error = read(&body, &Bounds::default()).unwrap_err();
    assert_eq!(error, Unreadable::Envelope("app_id", Fault::NotUtf8));
}

#[test]
fn every_bound_refuses_the_batch() {
    let body = write(&spans(100));
    let whole = Bounds::default();
    assert_eq!(read(&body, &whole).unwrap().batch.events(), 100);
    let refused = |bounds: Bounds| read(&body, &bounds).unwrap_err();
    assert_eq!(
        refused(Bounds {
            events: 99,
            ..whole
        }),
        Unreadable::TooManyEvents { limit: 99 }
    );
    assert_eq!(
        refused(Bounds {
            text_bytes: 1_000,
            ..whole
        }),
        Unreadable::TextsTooLarge { limit: 1_000 }
    );
    let few = Bounds {
        list_bytes: 1_000,
        ..whole
    };
    assert_eq!(refused(few), Unreadable::ListsTooLarge);
    let few = Bounds {
        list_rows: 99,
        ..whole
    };
    assert_eq!(refused(few), Unreadable::ListsTooLarge);
}

#[test]
fn texts_count_as_often_as_they_are_used() {
    let body = write(&spans(100));
    let read = read(&body, &Bounds::default()).unwrap();
    let texts = "com.example.shop".len() + 100 * "checkoutmainitems3".len();
    assert_eq!(read.text_bytes, texts);
}

#[test]
fn unknown_sections_and_columns_are_skipped() {
    let batch = spans(2);
    let mut body = write(&batch);
    body.extend([0x7f, 3, 1, 2, 3]);
    body.extend([0xff, 0xff, 0x03, 0]);
    assert_eq!(read(&body, &Bounds::default()).unwrap().batch, batch);
}

#[test]
fn a_section_that_occurs_twice_is_refused() {
    let mut body = write(&spans(1));
    body.extend([8, 1, 0, 8, 1, 0]);
    let error = read(&body, &Bounds::default()).unwrap_err();
    assert_eq!(error, Unreadable::Twice(8));
}
