//! One malformed event costs one event, and the bounds of a batch hold.

use unjank_columns::{Bounds, Fault, Unreadable, mended, read, write};
use unjank_protocol::{
    Batch, Day, Metric, Module, Network, Signal, Span, SpanId, Text, Timestamp, TraceId, Traffic,
};

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
fn what_is_no_text_is_replaced_character_by_character() {
    let mut batch = spans(3);
    batch.resource.device_model = "phone".into();
    batch.spans[1].name = "search".into();
    batch.spans[2].name = "cart".into();
    let good = write(&batch);
    let mended_as = |from: &[u8], to: &[u8]| {
        let body = replaced(&good, from, to);
        let refused = read(&body, &Bounds::default()).unwrap_err();
        assert_eq!(refused, Unreadable::NoText);
        let mended = mended(&body).unwrap();
        let read = read(&mended, &Bounds::default()).unwrap();
        assert_eq!((read.malformed.len(), read.batch.spans.len()), (0, 3));
        let names = [1, 2].map(|at: usize| read.batch.spans[at].name.to_string());
        let model = read.batch.resource.device_model.to_string();
        [model, names[0].clone(), names[1].clone()]
    };
    assert_eq!(
        mended_as(b"search", b"sear\xffh"),
        ["phone", "sear\u{fffd}h", "cart"]
    );
    assert_eq!(
        mended_as(b"phone", b"phon\xc3"),
        ["phon\u{fffd}", "search", "cart"]
    );
    assert_eq!(
        mended_as(b"search", b"se\0rch"),
        ["phone", "se\u{fffd}rch", "cart"]
    );
    // Together, the two texts are UTF-8. Neither is alone.
    assert_eq!(
        mended_as(b"searchcart", b"searc\xc3\xa9art"),
        ["phone", "searc\u{fffd}", "\u{fffd}art"]
    );
    assert_eq!(mended(&good), Some(good.clone()));
    assert_eq!(mended(&good[..good.len() - 1]), None);
}

#[test]
fn a_malformed_envelope_costs_the_batch() {
    let refused = |batch: &Batch<'_>| {
        let body = write(batch);
        // Without the section of the texts, which is the first one.
        let rest = &body[6 + usize::from(body[5])..];
        let body = [&body[..4], rest].concat();
        read(&body, &Bounds::default()).unwrap_err()
    };
    let mut batch = spans(0);
    assert_eq!(
        refused(&batch),
        Unreadable::Resource("app_id", Fault::UnknownText)
    );
    batch.resource.app_id = "".into();
    batch.modules = vec![Module {
        name: "libshop.so".into(),
        build_id: "".into(),
        load_address: None,
    }];
    assert_eq!(
        refused(&batch),
        Unreadable::Envelope("modules", Fault::UnknownText)
    );
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

fn table_without(table: &[u8], field: u8) -> Vec<u8> {
    let (rows, mut columns) = table.split_at(1);
    let mut kept = rows.to_vec();
    while let [tag, length, after @ ..] = columns {
        let (bytes, next) = after.split_at(usize::from(*length));
        if tag >> 2 != field {
            kept.extend([*tag, *length]);
            kept.extend(bytes);
        }
        columns = next;
    }
    kept
}

/// Returns a batch without the column of a field. All tags and lengths of the batch have one byte.
fn without(body: &[u8], section: u8, field: u8) -> Vec<u8> {
    let (magic, mut rest) = body.split_at(4);
    let mut out = magic.to_vec();
    while let [number, length, after @ ..] = rest {
        let (table, next) = after.split_at(usize::from(*length));
        let kept = match *number == section {
            true => table_without(table, field),
            false => table.to_vec(),
        };
        out.extend([*number, u8::try_from(kept.len()).unwrap()]);
        out.extend(kept);
        rest = next;
    }
    out
}

#[test]
fn an_uptime_that_is_left_out_is_zero() {
    let mut batch = spans(2);
    let body = without(&write(&batch), 8, 6);
    assert_ne!(body, write(&batch));
    assert_eq!(read(&body, &Bounds::default()).unwrap().batch, batch);
    // An app that runs since 1970 has zeros in the column.
    for span in &mut batch.spans {
        span.uptime_ms = u64::try_from(span.start.as_micros() / 1_000).unwrap();
    }
    let body = write(&batch);
    assert_eq!(read(&body, &Bounds::default()).unwrap().batch, batch);
}

#[test]
fn a_time_that_is_left_out_is_not_1970() {
    let mut batch = spans(2);
    let body = without(&write(&batch), 8, 5);
    let malformed = read(&body, &Bounds::default()).unwrap().malformed;
    let lost: Vec<_> = malformed
        .iter()
        .map(|one| (one.index, one.field, one.fault))
        .collect();
    assert_eq!(
        lost,
        [(0, "start", Fault::Missing), (1, "start", Fault::Missing)]
    );
    for span in &mut batch.spans {
        span.start = Timestamp::from_micros(0);
    }
    let body = write(&batch);
    assert_eq!(read(&body, &Bounds::default()).unwrap().batch, batch);
}

#[test]
fn a_day_that_is_left_out_is_not_1970() {
    let traffic = |day| Traffic {
        day: Day::from_days(day),
        source: "api".into(),
        network: Network::Wifi,
        tx_bytes: 1,
        rx_bytes: 0,
        requests: 0,
        failed_requests: 0,
    };
    for day in [0, 20_777] {
        let batch = Batch {
            traffic: vec![traffic(day)],
            ..spans(0)
        };
        let body = write(&batch);
        assert_eq!(read(&body, &Bounds::default()).unwrap().batch, batch);
        let body = without(&body, 11, 0);
        let malformed = read(&body, &Bounds::default()).unwrap().malformed;
        assert_eq!(malformed[0].fault, Fault::Missing);
    }
}

#[test]
fn an_install_id_that_is_left_out_is_not_nil() {
    let body = write(&spans(1));
    assert!(
        read(&body, &Bounds::default()).is_ok(),
        "the nil id is an id"
    );
    // The column gets the number of a field that no version has.
    let body = replaced(&body, &[12 << 2, 16], &[31 << 2, 16]);
    assert_eq!(
        read(&body, &Bounds::default()).unwrap_err(),
        Unreadable::Resource("install_id", Fault::Missing)
    );
}

/// As in JSON, whose reader takes a rate and has no other numbers for an option.
#[test]
fn rates_and_options_that_are_not_numbers_are_read_as_in_json() {
    let mut batch = spans(1);
    batch.spans[0].sample_rate = 0.5;
    let body = replaced(
        &write(&batch),
        &[16 << 2 | 1, 2, 0x80, 0x20],
        &[16 << 2 | 1, 2, 0xc0, 0x10],
    );
    let read_back = read(&body, &Bounds::default()).unwrap().batch;
    assert!(read_back.spans[0].sample_rate.is_nan());

    let json = r#"{"name":"fps","time":"2026-11-20T12:00:00Z","value":1,"min":0.5}"#;
    let mut metric: Metric<'_> = serde_json::from_str(json).unwrap();
    let batch = Batch {
        metrics: vec![metric.clone()],
        ..spans(0)
    };
    let body = replaced(
        &write(&batch),
        &[4 << 2 | 3, 3, 0xbf, 0xc0, 0x03],
        &[4 << 2 | 3, 3, 0xff, 0xf0, 0x03],
    );
    metric.min = None;
    assert_eq!(
        read(&body, &Bounds::default()).unwrap().batch.metrics,
        [metric]
    );
}
