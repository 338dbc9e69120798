//! What a request may take at most, however little it takes on the wire.

use serde_json::{Value, json};
use unjank_protocol::{Batch, Span, SpanStatus};

use super::{Form, Kind, Request, Unreadable, read};
use crate::ingest::Body;

/// Reads JSON, whose texts are copies if they have escapes.
pub(super) fn of<T>(
    kind: Kind,
    request: &Value,
    check: impl FnOnce(Result<Request<'_>, Unreadable>) -> T,
) -> T {
    let text = request.to_string();
    let body = Body::new(text.as_bytes());
    check(read(&body, kind, Form::Json, 10_000))
}

pub(super) fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// Returns an attribute of a span.
pub(super) fn attribute<'a>(span: &'a Span<'_>, name: &str) -> Option<&'a str> {
    let mut all = span.attributes.0.iter();
    let found = all.find(|(known, _)| known.as_str() == name);
    found.map(|(_, value)| value.as_str())
}

fn metrics(resource: &[Value], data: &Value) -> Value {
    json!({"resourceMetrics": [{"resource": {"attributes": resource}, "scopeMetrics": [{"metrics": [data]}]}]})
}

/// The bytes of all texts of the metrics.
fn texts(batches: &[Batch<'_>]) -> usize {
    let metrics = batches.iter().flat_map(|batch| &batch.metrics);
    let attributes = metrics.flat_map(|metric| &metric.attributes.0);
    attributes.map(|(key, value)| key.len() + value.len()).sum()
}

#[test]
fn a_histogram_copies_no_long_text_for_each_of_its_buckets() {
    let long = "a\n".repeat(500_000);
    let counts = vec![1; 1_024];
    let bounds: Vec<_> = (1..1_024).collect();
    let point = json!({"bucketCounts": counts, "explicitBounds": bounds, "attributes": [text("own", &long), text(&long, "key")]});
    let data = json!({"name": long, "unit": long, "histogram": {"aggregationTemporality": 1, "dataPoints": [point]}});
    of(
        Kind::Metrics,
        &metrics(&[text("team", &long)], &data),
        |read| {
            let batches = read.unwrap().batches;
            assert_eq!(batches[0].metrics.len(), 32);
            assert!(texts(&batches) < 32 * 6 * 1_024);
            let measured: u64 = batches[0].metrics.iter().filter_map(|one| one.count).sum();
            assert_eq!(measured, 1_024);
        },
    );
}

#[test]
fn room_is_asked_for_before_it_is_taken() {
    let attributes: Vec<_> = (0..60)
        .map(|n| text(&format!("key {n}"), &"a\n".repeat(500)))
        .collect();
    let points = vec![json!({"asInt": 1}); 1_000];
    let data = json!({"name": "load", "gauge": {"dataPoints": points}});
    of(Kind::Metrics, &metrics(&attributes, &data), |read| {
        assert!(matches!(
            read.unwrap_err(),
            Unreadable::TooMany {
                what: "bytes of attributes",
                ..
            }
        ));
    });
    // Points without a value count, too. They are rejected, in one batch.
    let data = |points| json!({"name": "load", "gauge": {"dataPoints": vec![json!({}); points]}});
    let both = |first, second| {
        let mut request = metrics(&[], &data(first));
        let scopes = &mut request["resourceMetrics"][0]["scopeMetrics"];
        scopes
            .as_array_mut()
            .unwrap()
            .push(json!({"metrics": [data(second)]}));
        of(Kind::Metrics, &request, |read| {
            read.map(|request| request.batches.len())
        })
    };
    assert_eq!(both(5_000, 5_000), Ok(1));
    assert_eq!(
        both(5_000, 5_001),
        Err(Unreadable::TooMany {
            what: "events",
            limit: 10_000
        })
    );
}

#[test]
fn long_texts_of_a_resource_are_cut_before_events_and_batches_copy_them() {
    let long = "a\n".repeat(100_000);
    let resource =
        ["service.version", "user.id", "session.id", "other"].map(|name| text(name, &long));
    let spans: Vec<_> = (1..500)
        .map(|id| json!({"traceId": format!("{id:032x}"), "spanId": format!("{id:016x}"), "name": "tap", "attributes": [text("session.id", &id.to_string())]}))
        .collect();
    let request = json!({"resourceSpans": [{"resource": {"attributes": resource}, "scopeSpans": [{"scope": {"name": long}, "spans": spans}]}]});
    of(Kind::Traces, &request, |read| {
        let batches = read.unwrap().batches;
        assert_eq!(batches.len(), 499);
        for batch in batches {
            assert!(
                batch.resource.user_id.len() <= 1_024 && batch.resource.app_version.len() <= 1_024
            );
            assert!(
                batch.spans[0]
                    .attributes
                    .0
                    .iter()
                    .all(|(_, value)| value.len() <= 1_024)
            );
        }
    });
}

#[test]
fn long_and_deep_values_and_stacks_are_left_out_or_cut() {
    let mut deep = json!({"intValue": "1"});
    for _ in 0..40 {
        deep = json!({"arrayValue": {"values": [deep]}});
    }
    let long = json!({"arrayValue": {"values": vec![json!({"intValue": "1"}); 10_000]}});
    let span = json!({"traceId": "5b8aa5a2d2c872e8321cf37308d69df2", "spanId": "051581bf3cb55c13", "name": "tap",
        "attributes": [{"key": "long", "value": long}, {"key": "deep", "value": deep}]});
    let request = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]});
    of(Kind::Traces, &request, |read| {
        let batches = read.unwrap().batches;
        let attributes = &batches[0].spans[0].attributes.0;
        assert_eq!(attributes[0].1.as_str(), "…");
        assert!(attributes[1].1.starts_with("[[["));
    });
    let stack = "a.B.c(B.kt:4)\n".repeat(100_000);
    let record = |name: &str| json!({"eventName": name, "attributes": [text("exception.stacktrace", &stack)]});
    let request = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record("device.anr"), record("error")]}]}]});
    of(Kind::Logs, &request, |read| {
        let batches = read.unwrap().batches;
        assert_eq!(
            batches[0].janks[0].stack.len(),
            129,
            "one more than is kept"
        );
        assert!(batches[0].spans[0].attributes.0[0].1.len() <= 1_024);
    });
}

#[test]
fn numbers_that_are_out_of_range_reject_their_point_only() {
    let histogram = |point: Value| json!({"name": "load", "histogram": {"aggregationTemporality": 1, "dataPoints": [point, {"bucketCounts": ["3"], "min": 1, "max": 3}]}});
    for wrong in [json!(vec!["1"; 1_025]), json!(["-3"]), json!(["NaN"])] {
        let point = json!({"bucketCounts": wrong, "explicitBounds": vec![0.5; 1]});
        of(Kind::Metrics, &metrics(&[], &histogram(point)), |read| {
            let request = read.unwrap();
            assert_eq!(
                (request.undecoded.len(), request.batches[0].metrics.len()),
                (1, 1)
            );
        });
    }
    // A range that is impossible is no range.
    let point = json!({"bucketCounts": ["1", "1"], "explicitBounds": [5], "min": 9, "max": 1});
    of(Kind::Metrics, &metrics(&[], &histogram(point)), |read| {
        let request = read.unwrap();
        let values: Vec<_> = request.batches[0]
            .metrics
            .iter()
            .map(|one| one.value)
            .collect();
        assert_eq!(values, [2.5, 5., 2.]);
    });
}

#[test]
fn records_are_errors_by_their_severity_or_their_exception() {
    let severity = |number: Value| json!({"severityNumber": number});
    let level = |text: &str| json!({"severityText": text});
    let exception = |name: &str| json!({"attributes": [text(name, "no money")]});
    for (record, is_error, name) in [
        (severity(json!(17)), true, "log.error"),
        (severity(json!("SEVERITY_NUMBER_ERROR3")), true, "log.error"),
        (severity(json!("SEVERITY_NUMBER_WARN")), false, "log.warn"),
        (
            json!({"severityNumber": 9, "severityText": "ERROR"}),
            false,
            "log.info",
        ),
        (level("ERROR"), true, "log.error"),
        (level("Error"), true, "log.error"),
        (level("FATAL2"), true, "log.fatal"),
        (level("Warning"), false, "log.warn"),
        (level("chatty"), false, "log.unspecified"),
        (level(""), false, "log.unspecified"),
        (exception("exception.type"), true, "no money"),
        (exception("exception.message"), true, "exception"),
        (exception("exception.stacktrace"), true, "exception"),
        (
            json!({"eventName": "app.crash", "attributes": [text("exception.message", "no money")]}),
            true,
            "app.crash",
        ),
    ] {
        let request = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]});
        of(Kind::Logs, &request, |read| {
            let batches = read.unwrap().batches;
            let span = &batches[0].spans[0];
            let read = (span.status == SpanStatus::Error, span.name.as_str());
            assert_eq!(read, (is_error, name), "{record}");
        });
    }
}
