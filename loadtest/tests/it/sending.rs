//! The requests that a server receives, and the report about them.

use std::collections::HashSet;
use std::time::Duration;

use unjank_protocol::{Batch, Timestamp};

use crate::sink::{Act, Sink};

#[test]
fn the_report_of_an_open_loop_matches_the_requests_in_every_encoding_and_form() {
    for (encoding, form) in [
        ("zstd", "json"),
        ("gzip", "json"),
        ("identity", "json"),
        ("zstd", "columns"),
    ] {
        let sink = Sink::start(|_| Act::Take);
        let (output, report) = sink.run(&[
            "--rate",
            "200",
            "--duration",
            "1s",
            "--events-per-batch",
            "20",
            "--encoding",
            encoding,
            "--form",
            form,
        ]);
        assert!(output.status.success(), "{output:?}");
        let load = &report["phases"][0]["load"];
        let seen = sink.finish();
        assert!(
            (120..300).contains(&seen.batches.len()),
            "{}",
            seen.batches.len()
        );
        assert_eq!(load["acknowledged"], seen.batches.len());
        assert_eq!(load["events_accepted"], seen.batches.len() * 20);
        assert_eq!(load["retries"], 0);
        assert_eq!(seen.encodings[encoding], seen.requests);
        assert_eq!(report["settings"]["form"], form);
    }
}

#[test]
fn batches_come_from_many_devices_and_sessions_span_several_batches() {
    let sink = Sink::start(|_| Act::Take);
    sink.run(&[
        "--rate",
        "max",
        "--batches",
        "300",
        "--devices",
        "50",
        "--seed",
        "7",
        "--prepare",
    ]);
    let seen = sink.finish();
    assert_eq!(seen.batches.len(), 300);
    let mut installs = HashSet::new();
    let mut sessions = HashSet::new();
    let mut skewed = 0;
    let now = time_now();
    for (json, _) in seen.batches.values() {
        let batch: Batch<'_> = serde_json::from_str(json).unwrap();
        installs.insert(batch.resource.install_id);
        sessions.insert(batch.session_id);
        assert_eq!(batch.batch_id.get_version_num(), 7);
        let skew = now.micros_since(batch.sent_at.unwrap());
        skewed += u32::from(skew.abs() > 30_000_000);
    }
    assert!((20..=50).contains(&installs.len()), "{}", installs.len());
    assert!((30..200).contains(&sessions.len()), "{}", sessions.len());
    assert!(
        skewed < 60,
        "the clocks of {skewed} of 300 batches are wrong"
    );
}

#[test]
fn the_latency_of_a_stall_counts_for_every_delayed_batch() {
    // One request takes half a second on the only connection, so the requests behind it wait too.
    let sink = Sink::start(|number| {
        if number == 50 {
            Act::TakeAfter(Duration::from_millis(500))
        } else {
            Act::Take
        }
    });
    let (_, report) = sink.run(&[
        "--rate",
        "100",
        "--duration",
        "1s",
        "--events-per-batch",
        "5",
        "--connections",
        "1",
        "--arrivals",
        "even",
        "--prepare",
    ]);
    let load = &report["phases"][0]["load"];
    let (latency, service) = (&load["latency"], &load["service"]);
    assert!(service["p90_ms"].as_f64().unwrap() < 100.0, "{load:#}");
    assert!(latency["p90_ms"].as_f64().unwrap() > 300.0, "{load:#}");
    assert!(latency["max_ms"].as_f64().unwrap() >= 500.0);
}

#[test]
fn rejected_events_are_counted_by_code() {
    let sink = Sink::start(|_| Act::Take);
    let (_, report) = sink.run(&[
        "--rate",
        "max",
        "--batches",
        "20",
        "--prepare",
        "--invalid",
        "1",
    ]);
    let load = &report["phases"][0]["load"];
    assert_eq!(load["rejections"]["duration_out_of_range"], 20);
    assert_eq!(load["events_rejected"], 20);
    assert_eq!(load["wrong_receipts"], 0);
}

#[test]
fn recorded_batches_are_sent_unchanged_and_twice() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = r#"{ "batch_id":"718835a0-6c33-5eea-907b-f734ab9f659d",  "unknown": [1],
        "resource":{"app_id":"a","install_id":"3700df27-b77f-4005-ab67-7a4835f5d142"},
        "metrics":[{"name":"fps","time":"2026-01-01T00:00:00Z","value":1}] }"#;
    std::fs::write(folder.path().join("one.json"), recorded).unwrap();
    let sink = Sink::start(|_| Act::Take);
    let (output, report) = sink.run(&["--replay", folder.path().to_str().unwrap()]);
    assert!(output.status.success(), "{output:?}");
    let seen = sink.finish();
    assert_eq!(
        seen.batches["718835a0-6c33-5eea-907b-f734ab9f659d"],
        (recorded.to_owned(), 2)
    );
    assert_eq!(report["phases"][0]["load"]["duplicates"], 0);
    assert_eq!(report["phases"][1]["load"]["duplicates"], 1);
}

#[expect(
    clippy::disallowed_methods,
    reason = "compared with the clock of another process"
)]
fn time_now() -> Timestamp {
    let since = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap())
}
