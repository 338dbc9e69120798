//! Delivery: batches stay on the device until the server has them, each is stored once, and losses are counted.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use unjank::{Mode, TransportError};

use crate::collector::{Running, receipt, refusal, status};

fn dropped(running: &Running) -> Vec<(String, String, u64)> {
    let batches = running.collector.batches();
    let lists = batches
        .iter()
        .filter_map(|batch| batch["sdk_health"]["dropped"].as_array());
    let entries = lists.flatten();
    entries
        .map(|one| {
            let text = |key: &str| one[key].as_str().unwrap().to_owned();
            (
                text("signal"),
                text("reason"),
                one["count"].as_u64().unwrap(),
            )
        })
        .collect()
}

#[test]
fn every_retry_sends_the_same_batch() {
    let running = Running::start();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let (ids, mut failures) = (Arc::clone(&seen), 0);
    running.collector.answer(move |batch| {
        ids.lock().unwrap().push(batch["batch_id"].clone());
        failures += 1;
        match failures {
            1 => Err(TransportError("unplugged".to_owned())),
            2 => Ok(status(500)),
            _ => Ok(receipt(batch)),
        }
    });
    unjank::span("checkout").end();
    for _ in 0..3 {
        running.flush();
    }
    let ids: BTreeSet<String> = seen.lock().unwrap().iter().map(Value::to_string).collect();
    assert_eq!(ids.len(), 1);
    assert_eq!(running.collector.events("spans").len(), 1);
}

#[test]
fn unsent_batches_are_sent_by_the_next_process() {
    let folder = tempfile::tempdir().unwrap();
    let test = |config: unjank::Config| config.mode(Mode::Test).data_dir(folder.path());
    let mut running = Running::with(test);
    running
        .collector
        .answer(|_| Err(TransportError("in a tunnel".to_owned())));
    for _ in 0..3 {
        unjank::span("checkout").end();
        running.flush();
    }
    running.restart(test);
    running.collector.answer(|batch| Ok(receipt(batch)));
    running.flush();
    assert_eq!(running.collector.events("spans").len(), 3);
    let installs: BTreeSet<String> = running
        .collector
        .batches()
        .iter()
        .map(|batch| batch["resource"]["install_id"].to_string())
        .collect();
    assert_eq!(installs.len(), 1);
    running.restart(test);
    running.flush();
    assert_eq!(
        running.collector.events("spans").len(),
        3,
        "nothing should be sent twice"
    );
}

#[test]
fn an_invalid_key_keeps_the_data_and_backs_off() {
    let running = Running::start();
    let attempts = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&attempts);
    running.collector.answer(move |_| {
        *counted.lock().unwrap() += 1;
        Ok(status(401))
    });
    unjank::span("checkout").end();
    for _ in 0..5 {
        running.flush();
    }
    assert_eq!(*attempts.lock().unwrap(), 1);
    assert!(dropped(&running).is_empty());
}

#[test]
fn rejected_events_are_counted_and_reported() {
    let running = Running::start();
    let mut refused = false;
    running.collector.answer(move |batch| {
        if std::mem::replace(&mut refused, true) {
            Ok(receipt(batch))
        } else {
            Ok(refusal(422, "invalid_resource"))
        }
    });
    unjank::span("checkout").end();
    unjank::span("checkout").end();
    running.flush();
    running.flush();
    assert_eq!(
        dropped(&running),
        [("spans".to_owned(), "refused".to_owned(), 2)]
    );
}

#[test]
fn a_rate_limited_signal_is_dropped_and_the_others_are_sent() {
    let running = Running::start();
    running.collector.answer(|batch| {
        let body = json!({"batch_id": batch["batch_id"], "accepted": 1,
            "rate_limits": [{"signal": "spans", "retry_after_s": 600}]});
        Ok(unjank::Response {
            body: body.to_string().into_bytes(),
            ..receipt(batch)
        })
    });
    unjank::span("first").end();
    running.flush();
    unjank::span("second").end();
    unjank::metric("m", 1.0);
    running.flush();
    assert_eq!(running.collector.events("spans").len(), 1);
    assert_eq!(running.collector.events("metrics").len(), 1);
    assert_eq!(
        dropped(&running),
        [("spans".to_owned(), "rate_limited".to_owned(), 1)]
    );
}

#[test]
fn a_flood_never_blocks_and_events_that_do_not_fit_are_counted() {
    let running = Running::with(|config| config.mode(Mode::Test).queue_events(64));
    let blocked = Arc::new(Mutex::new(()));
    let hold = blocked.lock().unwrap();
    let gate = Arc::clone(&blocked);
    running.collector.answer(move |batch| {
        drop(gate.lock());
        Ok(receipt(batch))
    });
    unjank::span("first").end();
    // The background thread is blocked in the transport, or about to be.
    assert!(!unjank::flush(Duration::from_millis(200)));
    for _ in 0..10_000 {
        unjank::span("flood").end();
    }
    drop(hold);
    running.flush();
    running.flush();
    let arrived = running.collector.events("spans").len() as u64;
    let lost: u64 = dropped(&running).iter().map(|(_, _, count)| count).sum();
    assert_eq!(arrived + lost, 10_001);
    // How many fit depends on how fast the background thread is.
    assert!(lost > 0);
    let batches = running.collector.batches();
    let cost = |batch: &Value| batch["sdk_health"]["overhead_us"].as_u64();
    assert!(
        batches.iter().filter_map(cost).any(|micros| micros > 0),
        "the losses are reported with the processor time of the SDK"
    );
}

#[test]
fn nothing_is_written_or_sent_before_consent_and_nothing_is_left_after_it_is_withdrawn() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("unjank");
    let running =
        Running::with(|config| config.mode(Mode::Test).data_dir(&data).start_disabled(true));
    unjank::span("before").end();
    assert!(!unjank::flush(Duration::from_millis(50)));
    assert!(!data.exists());
    assert_eq!(running.collector.polls(), 0);
    unjank::set_enabled(true);
    running
        .collector
        .answer(|_| Err(TransportError("later".to_owned())));
    unjank::span("during").end();
    running.flush();
    assert!(data.exists());
    unjank::set_enabled(false);
    unjank::span("after").end();
    unjank::set_enabled(true);
    running.collector.answer(|batch| Ok(receipt(batch)));
    unjank::span("again").end();
    running.flush();
    let names: Vec<Value> = running
        .collector
        .events("spans")
        .iter()
        .map(|span| span["name"].clone())
        .collect();
    assert_eq!(names, ["again"]);
}

#[cfg(target_os = "linux")]
#[test]
fn the_system_is_described_also_if_the_user_consents_later() {
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let mut lines = release.lines();
    let name = lines.find_map(|line| line.strip_prefix("ID="));
    let name = name.unwrap_or_default().trim_matches('"');
    for disabled in [false, true] {
        let running = Running::with(|config| config.mode(Mode::Test).start_disabled(disabled));
        unjank::set_enabled(true);
        unjank::span("checkout").end();
        running.flush();
        let batches = running.collector.batches();
        let version = &batches[0]["resource"]["os_version"];
        let version = version.as_str().unwrap_or_default();
        assert!(version.starts_with(name), "{version}");
        assert_eq!(version.is_empty(), name.is_empty(), "{version}");
    }
}

#[test]
fn without_consent_nothing_is_sent_at_the_end_and_nothing_collected_before() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Running::with(|config| config.mode(Mode::Test).data_dir(folder.path()));
    running.flush();
    running
        .collector
        .answer(|_| Err(TransportError("later".to_owned())));
    unjank::span("before").end();
    unjank::breadcrumb("before");
    unjank::traffic(unjank::Transferred {
        host: "a",
        tx_bytes: 7,
        ..unjank::Transferred::default()
    });
    running.flush();
    unjank::set_enabled(false);
    running.collector.answer(|batch| Ok(receipt(batch)));
    let polls = running.collector.polls();
    running.restart(|config| {
        config
            .mode(Mode::Test)
            .data_dir(folder.path())
            .start_disabled(true)
    });
    assert!(running.collector.batches().is_empty());
    assert_eq!(running.collector.polls(), polls);
    unjank::set_enabled(true);
    unjank::span("after").end();
    running.flush();
    assert_eq!(running.collector.events("spans").len(), 1);
    assert!(running.collector.events("traffic").is_empty());
}

#[test]
fn traffic_counted_before_the_ledger_is_read_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let test = |config: unjank::Config| config.mode(Mode::Test).data_dir(folder.path());
    let count = || {
        unjank::traffic(unjank::Transferred {
            host: "a",
            tx_bytes: 7,
            answered: true,
            ..unjank::Transferred::default()
        });
    };
    let mut running = Running::with(test);
    for _ in 0..5 {
        count();
        running.restart(test);
    }
    count();
    running.flush();
    let rows = running.collector.events("traffic");
    let bytes: u64 = rows
        .iter()
        .map(|row| row["tx_bytes"].as_u64().unwrap())
        .sum();
    assert_eq!(bytes, 6 * 7);
}

#[test]
fn before_send_can_change_and_drop_events_and_may_panic() {
    let running = Running::with(|config| {
        config.mode(Mode::Test).before_send(|event| {
            if let unjank::Event::Span(span) = event {
                assert!(span.name.as_str() != "panic", "a bug in the app");
                span.attributes.0.clear();
                return span.name.as_str() != "secret";
            }
            true
        })
    });
    unjank::span("secret").end();
    unjank::span("panic").end();
    let mut open = unjank::span("open");
    open.attribute("email", "ann@example.com");
    drop(open);
    running.flush();
    let spans = running.collector.events("spans");
    assert_eq!(
        spans.len(),
        1,
        "an event that makes the filter panic should be dropped"
    );
    assert!(spans.iter().all(|span| {
        span["attributes"]
            .as_object()
            .is_none_or(serde_json::Map::is_empty)
    }));
    assert_eq!(
        dropped(&running),
        [("spans".to_owned(), "filtered".to_owned(), 2)]
    );
}

#[test]
fn a_test_run_writes_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let running = Running::with(|config| {
        config
            .mode(Mode::Test)
            .reporter(unjank::ReportFile::create(&path).unwrap())
    });
    unjank::span("checkout").end();
    unjank::page_load("Cart", unjank::LaunchKind::Warm).final_draw();
    unjank::traffic(unjank::Transferred {
        host: "api.example.com",
        tx_bytes: 5,
        ..unjank::Transferred::default()
    });
    running.flush();
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let signals: Vec<&Value> = lines.iter().map(|line| &line["signal"]).collect();
    assert!(
        signals.contains(&&json!("span")) && signals.contains(&&json!("page_load")),
        "{text}"
    );
    let span = lines.iter().find(|line| line["signal"] == "span").unwrap();
    assert_eq!(span["event"]["name"], "checkout");
    let traffic = lines.iter().find(|line| line["signal"] == "traffic");
    assert_eq!(traffic.unwrap()["event"]["tx_bytes"], 5);
    assert_eq!(lines[0]["signal"], "resource");
    assert_eq!(lines[0]["event"]["sdk_name"], "unjank");
    assert_eq!(lines[0]["event"]["mode"], "test");
}

#[test]
fn a_long_backlog_is_sent_once_when_the_server_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let test = |config: unjank::Config| config.mode(Mode::Test).data_dir(folder.path());
    let mut running = Running::with(test);
    running
        .collector
        .configure(json!({"upload": {"max_queue_bytes": 64_000_000, "max_batch_events": 500}}));
    running.restart(test);
    running.flush();
    running.restart(test);
    running
        .collector
        .answer(|_| Err(TransportError("the server is down".to_owned())));
    for _ in 0..20 {
        for number in 0..1_000 {
            let mut span = unjank::span("checkout");
            span.attribute("number", number);
            span.attribute("noise", uuid::Uuid::new_v4());
        }
        running.flush();
    }
    running.restart(test);
    running.collector.answer(|batch| Ok(receipt(batch)));
    running.flush();
    let spans = running.collector.events("spans");
    let ids: BTreeSet<String> = spans
        .iter()
        .map(|span| span["span_id"].to_string())
        .collect();
    let lost: u64 = dropped(&running).iter().map(|(_, _, count)| count).sum();
    assert_eq!((spans.len(), lost), (20_000, 0));
    assert_eq!(ids.len(), 20_000);
}

#[test]
fn a_batch_belongs_to_one_user() {
    let running = Running::start();
    unjank::span("nobody").end();
    running.flush();
    unjank::set_user(Some("u-1"));
    unjank::span("somebody").end();
    running.flush();
    let users: Vec<Value> = running
        .collector
        .batches()
        .iter()
        .map(|batch| batch["resource"]["user_id"].clone())
        .collect();
    assert_eq!(users, ["", "u-1"]);
}

#[test]
fn a_receipt_for_another_batch_acknowledges_nothing() {
    let running = Running::start();
    let mut mixed_up = true;
    running.collector.answer(move |batch| {
        let another = json!({"batch_id": uuid::Uuid::from_u128(7)});
        Ok(if std::mem::take(&mut mixed_up) {
            receipt(&another)
        } else {
            receipt(batch)
        })
    });
    unjank::span("checkout").end();
    running.flush();
    running.flush();
    let batches = running.collector.batches();
    let ids: Vec<&Value> = batches.iter().map(|batch| &batch["batch_id"]).collect();
    assert_eq!(ids.len(), 2, "the batch should be sent again");
    assert_eq!(ids[0], ids[1]);
}

#[test]
fn losses_in_the_receipt_of_a_duplicate_are_counted() {
    let running = Running::start();
    let mut attempts = 0;
    running.collector.answer(move |batch| {
        attempts += 1;
        let body = json!({"batch_id": batch["batch_id"], "accepted": 0, "duplicate": true,
            "rejected": [{"signal": "spans", "index": 0, "code": "x", "detail": "y"}],
            "rate_limits": [{"signal": "metrics", "retry_after_s": 0, "dropped": 1}]});
        let duplicate = unjank::Response {
            body: body.to_string().into_bytes(),
            ..receipt(batch)
        };
        match attempts {
            1 => Err(TransportError("the response is lost".to_owned())),
            2 => Ok(duplicate),
            _ => Ok(receipt(batch)),
        }
    });
    unjank::span("checkout").end();
    unjank::metric("m", 1.0);
    for _ in 0..3 {
        running.flush();
    }
    let once = |signal: &str, reason: &str| (signal.to_owned(), reason.to_owned(), 1);
    let expected = [once("metrics", "rate_limited"), once("spans", "refused")];
    assert_eq!(dropped(&running), expected);
}
