//! Everything that was ever on the wire must remain readable. Golden files are added, but never changed.

use serde_json::Value;
use unjank_protocol::{
    AppStartKind, Attributes, Batch, FrameWindow, Jank, JankKind, Network, Receipt, Resource,
    SpanKind, SpanStatus, Timestamp, whole_number,
};

const BATCH: &str = include_str!("golden/batch_v1.json");
const FUTURE: &str = include_str!("golden/batch_v1_from_the_future.json");
const HALF: &str = include_str!("golden/batch_v1_half.json");
const MODULES: &str = include_str!("golden/batch_v1_modules.json");
const STACK_MISSING: &str = include_str!("golden/batch_v1_stack_missing.json");
const MODE: &str = include_str!("golden/batch_v1_mode.json");
const APP_START_RATE: &str = include_str!("golden/batch_v1_app_start_rate.json");
const RECEIPT: &str = include_str!("golden/receipt_v1.json");
const RATE_LIMITED: &str = include_str!("golden/receipt_v1_held_back.json");

/// Removes values that mean the same as an absent one: `null`, empty maps, lists and texts, and the names that say nothing.
fn without_empty(value: Value) -> Value {
    let means_absent = |value: &Value| match value {
        Value::Null | Value::Bool(false) => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        Value::String(text) => ["", "manual", "unset", "unknown"].contains(&&**text),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(true) => false,
    };
    match value {
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (key, without_empty(value)))
            .filter(|(_, value)| !means_absent(value))
            .collect(),
        Value::Array(list) => list.into_iter().map(without_empty).collect(),
        Value::Number(number) => number.as_f64().map_or(Value::Null, Value::from),
        other => other,
    }
}

/// Asserts that `whole` contains everything in `part`.
fn assert_contains(whole: &Value, part: &Value, path: &str) {
    match (whole, part) {
        (Value::Object(whole), Value::Object(part)) => {
            for (key, value) in part {
                let found = whole
                    .get(key)
                    .unwrap_or_else(|| panic!("{path}.{key} is lost"));
                assert_contains(found, value, &format!("{path}.{key}"));
            }
        }
        (Value::Array(whole), Value::Array(part)) => {
            assert_eq!(whole.len(), part.len(), "{path}");
            for (index, (whole, part)) in whole.iter().zip(part).enumerate() {
                assert_contains(whole, part, &format!("{path}[{index}]"));
            }
        }
        (Value::String(whole), Value::String(part)) if Timestamp::parse(part).is_some() => {
            assert_eq!(Timestamp::parse(whole), Timestamp::parse(part), "{path}");
        }
        (whole, part) => assert_eq!(whole, part, "{path}"),
    }
}

#[test]
fn every_field_of_a_batch_survives_a_round_trip() {
    let batch: Batch<'_> = serde_json::from_str(BATCH).unwrap();
    assert_eq!(batch.events(), 9);
    let written = serde_json::to_value(&batch).unwrap();
    assert_contains(
        &without_empty(written),
        &without_empty(serde_json::from_str(BATCH).unwrap()),
        "batch",
    );
}

#[test]
fn a_stall_without_a_stack_may_give_the_reason() {
    let batch: Batch<'_> = serde_json::from_str(STACK_MISSING).unwrap();
    let reasons: Vec<_> = batch
        .janks
        .iter()
        .map(|jank| jank.stack_missing.as_str())
        .collect();
    let replaced = "another part of this process replaced the signal handler";
    assert_eq!(reasons, [replaced, "", ""]);
    let written = serde_json::to_value(&batch).unwrap();
    assert_eq!(written["janks"][0]["stack_missing"], replaced);
    assert!(written["janks"][1].get("stack_missing").is_none());
}

#[test]
fn a_batch_may_say_what_the_app_runs_for() {
    let test: Batch<'_> = serde_json::from_str(MODE).unwrap();
    assert_eq!(test.resource.mode.as_str(), "test");
    let written = serde_json::to_value(&test).unwrap();
    assert_eq!(written["resource"]["mode"], "test");
    let silent: Batch<'_> = serde_json::from_str(BATCH).unwrap();
    let written = serde_json::to_value(&silent).unwrap();
    assert!(written["resource"].get("mode").is_none());
}

#[test]
fn an_app_start_without_a_sample_rate_counts_once() {
    let sampled: Batch<'_> = serde_json::from_str(APP_START_RATE).unwrap();
    let written = serde_json::to_value(&sampled).unwrap();
    assert_eq!(written["app_starts"][0]["sample_rate"], 0.25);
    let silent: Batch<'_> = serde_json::from_str(BATCH).unwrap();
    let start = &silent.app_starts[0];
    assert!((start.sample_rate - 1.0).abs() < f64::EPSILON);
    let written = serde_json::to_value(start).unwrap();
    assert!(written.get("sample_rate").is_none());
}

#[test]
fn frames_refer_to_the_modules_of_their_batch() {
    let batch: Batch<'_> = serde_json::from_str(MODULES).unwrap();
    let names: Vec<_> = batch.modules.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["libshop.so", "base.apk", "index.android.bundle"]);
    let stack = &batch.janks[0].stack;
    let modules: Vec<_> = stack.iter().map(|frame| frame.module_index).collect();
    assert_eq!(modules, [Some(0), Some(0), Some(1), Some(2)]);
    assert_eq!(stack[1].address, Some(491_802_563_124));
    assert_eq!(stack[3].column, 132_161);
    let written = serde_json::to_value(&batch).unwrap();
    assert_contains(
        &without_empty(written),
        &without_empty(serde_json::from_str(MODULES).unwrap()),
        "batch",
    );
}

#[test]
fn a_split_batch_names_the_batches_it_was_split_from() {
    let half: Batch<'_> = serde_json::from_str(HALF).unwrap();
    let ids: Vec<String> = half.split_from.iter().map(ToString::to_string).collect();
    assert_eq!(
        ids,
        [
            "0192f0c0-7b3e-7cc1-9a55-0123456789ab",
            "0192f0c0-7b3e-7cc1-8f00-000000000001"
        ]
    );
    let written = serde_json::to_value(&half).unwrap();
    assert_eq!(written["split_from"], serde_json::json!(ids));
    for whole in [
        BATCH,
        FUTURE,
        &HALF.replace(
            r#"["0192f0c0-7b3e-7cc1-9a55-0123456789ab", "0192f0c0-7b3e-7cc1-8f00-000000000001"]"#,
            "null",
        ),
    ] {
        let whole: Batch<'_> = serde_json::from_str(whole).unwrap();
        let written = serde_json::to_value(&whole).unwrap();
        assert!(whole.split_from.is_empty() && written.get("split_from").is_none());
    }
}

#[test]
fn a_batch_of_a_later_version_is_read_with_unknown_names_as_other() {
    let batch: Batch<'_> = serde_json::from_str(FUTURE).unwrap();
    let span = &batch.spans[0];
    assert_eq!(
        (span.kind, span.status, span.network),
        (SpanKind::Other, SpanStatus::Other, Network::Other)
    );
    assert_eq!(
        span.trace_id.to_string(),
        "4bf92f3577b34da6a3ce929d0e0e4736"
    );
    assert_eq!(
        span.start,
        Timestamp::parse("2026-11-20T09:59:58Z").unwrap()
    );
    let attributes: Vec<_> = span
        .attributes
        .0
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    assert_eq!(attributes, [("n", "3"), ("on", "true")]);
    assert_eq!(
        (batch.janks[0].kind, batch.janks[0].stack[0].line),
        (JankKind::Other, -2)
    );
    assert_eq!(batch.app_starts[0].kind, AppStartKind::Other);
    assert_eq!(batch.session_id, uuid::Uuid::nil());
}

/// Writes all numbers as texts, and all booleans as 0 and 1.
fn in_other_notation(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::from(number.to_string()),
        Value::Bool(value) => Value::from(u8::from(value)),
        Value::Array(list) => list.into_iter().map(in_other_notation).collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(name, value)| (name, in_other_notation(value)))
            .collect(),
        other => other,
    }
}

/// A field that is not read with `scalar` fails here, if the golden batch has it.
#[test]
fn every_number_may_be_a_text_and_every_boolean_a_number() {
    for json in [BATCH, MODULES, APP_START_RATE] {
        let value: Value = serde_json::from_str(json).unwrap();
        let other = in_other_notation(value.clone()).to_string();
        let plain = value.to_string();
        assert_ne!(plain, other);
        let [plain, other] =
            [&plain, &other].map(|json| serde_json::from_str::<Batch<'_>>(json).unwrap());
        assert_eq!(other, plain);
    }
}

#[test]
fn what_dynamic_languages_write_is_read() {
    let resource: Resource<'_> = serde_json::from_str(
        r#"{"app_id":"com.example.shop","install_id":"5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11",
            "os_version":34,"user_id":4711,"refresh_hz":"59.94","build":"4.12e4"}"#,
    )
    .unwrap();
    assert_eq!(
        (resource.os_version.as_str(), resource.user_id.as_str()),
        ("34", "4711")
    );
    assert_eq!((resource.refresh_hz, resource.build), (60, 41_200));
    for wrong in [
        r#""os_version":[34]"#,
        r#""user_id":{}"#,
        r#""refresh_hz":"fast""#,
        r#""build":-1"#,
        r#""build":1.5"#,
    ] {
        let json = format!(
            r#"{{"app_id":"a","install_id":"5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11",{wrong}}}"#
        );
        assert!(
            serde_json::from_str::<Resource<'_>>(&json).is_err(),
            "{wrong}"
        );
    }
    let window = |histogram: &str| {
        let json = format!(
            r#"{{"start":"2026-11-20T12:00:00Z","duration_ms":1,"frames_drawn":1,"sample_rate":null,"refresh_hz":"",
                "frame_time_hist":{histogram}}}"#
        );
        serde_json::from_str::<FrameWindow<'_>>(&json).map(|window| {
            assert!((window.sample_rate - 1.0).abs() < f64::EPSILON);
            window.frame_time_hist.0
        })
    };
    assert_eq!(window(r#"{"8.0":10,"16":2}"#).unwrap(), [(8, 10), (16, 2)]);
    assert!(window("[]").unwrap().is_empty());
    for wrong in [r#"{"8.5":1}"#, r#"{"-8":1}"#, r#"{"4294967296":1}"#, "[1]"] {
        assert!(window(wrong).is_err(), "{wrong}");
    }
    let rate = |rate: &str| {
        let json = format!(
            r#"{{"start":"2026-11-20T12:00:00Z","duration_ms":1,"frames_drawn":1,"sample_rate":{rate}}}"#
        );
        serde_json::from_str::<FrameWindow<'_>>(&json).map(|window| window.sample_rate)
    };
    for (sent, expected) in [
        ("0.25", 0.25),
        (r#""0.25""#, 0.25),
        ("null", 1.0),
        (r#""""#, 1.0),
    ] {
        assert!(
            (rate(sent).unwrap() - expected).abs() < f64::EPSILON,
            "{sent}"
        );
    }
    assert!(rate(r#""NaN""#).unwrap().is_nan());
    assert!(rate(r#""often""#).is_err() && rate("true").is_err());
    for (number, expected) in [
        ("18446744073709551615.0", Some(u64::MAX)),
        ("41250.00", Some(41_250)),
        ("4.125E4", Some(41_250)),
        ("-0", Some(0)),
        ("100", Some(100)),
        ("0", Some(0)),
        ("1e300", None),
        ("inf", None),
        ("", None),
    ] {
        assert_eq!(whole_number(number), expected, "{number}");
    }
}

#[test]
fn attributes_that_are_null_take_no_place_of_others() {
    let nulls = (0..60).map(|n| format!(r#""null{n}":null"#));
    let values = (0..70).map(|n| format!(r#""value{n}":{n}"#));
    let read = |values: usize, members: &[String]| {
        let json = format!("{{{}}}", members.join(","));
        let attributes: Attributes<'_> = serde_json::from_str(&json).unwrap();
        assert_eq!(attributes.0.len(), values);
        assert!(attributes.0.iter().all(|(key, _)| key.starts_with("value")));
    };
    let all: Vec<_> = nulls.chain(values).collect();
    read(10, &all[..70]);
    // One more than the limit shows that there were more.
    read(65, &all);
}

#[test]
fn only_the_last_lines_of_a_run_log_are_read() {
    const TIME: &str = "2026-11-20T12:00:00Z";
    let line = |n: usize| format!(r#"{{"time":"{TIME}","message":"line {n}"}}"#);
    let read = |lines: &[String]| {
        let lines = lines.join(",");
        let json = format!(r#"{{"start":"{TIME}","duration_ms":1,"run_log":[{lines}]}}"#);
        let jank = serde_json::from_str::<Jank<'_>>(&json);
        jank.map(|jank| {
            let lines = jank.run_log.iter();
            lines
                .map(|line| line.message.to_string())
                .collect::<Vec<_>>()
        })
        .map_err(|error| error.to_string())
    };
    let mut lines: Vec<_> = (0..70).map(line).collect();
    for malformed in ["7", "{}", r#"{"time":"soon","message":[]}"#] {
        lines[5] = malformed.to_owned();
        let read = read(&lines).unwrap();
        // The extra line shows that there were more.
        assert_eq!(read.len(), 65);
        assert_eq!((read[1].as_str(), read[64].as_str()), ("line 6", "line 69"));
    }
    lines[6] = "{}".to_owned();
    let error = read(&lines).unwrap_err();
    assert!(error.starts_with("item 6: missing field `time`"), "{error}");
    assert_eq!(read(&lines[7..]).unwrap().len(), 63);
}

#[test]
fn a_receipt_survives_a_round_trip() {
    for text in [RECEIPT, RATE_LIMITED] {
        let receipt: Receipt<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(
            serde_json::to_value(&receipt).unwrap(),
            serde_json::from_str::<Value>(text).unwrap()
        );
    }
}
