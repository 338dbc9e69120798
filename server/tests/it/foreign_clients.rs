//! Batches and requests as clients in other languages write them: halves of characters, numbers with a fraction, ids in capitals, empty
//! texts. A bad character costs a character, and ids that mean the same are the same.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::asked::Asked;
use crate::remote_config::save;
use crate::server::{KEY, Server, batch, span};

const PERIOD: &str = "from=2026-11-20T10:00:00Z&to=2026-11-20T13:00:00Z";
const CAPITALS: &str = "5C0C7E0E-6C6B-4A3E-8A0E-0F6F8D3B2A11";

/// A batch of every signal with texts that are found again.
fn of_all() -> Value {
    let time = "2026-11-20T11:59:00Z";
    let mut batch = batch();
    batch["resource"]["device_model"] = json!("CUT");
    batch["resource"]["build"] = json!(41_200);
    batch["resource"]["refresh_hz"] = json!(60);
    batch["spans"] = json!([span()]);
    batch["spans"][0]["name"] = json!("CUT");
    batch["spans"][0]["attributes"] = json!({"cart": "CUT", "CUT": "x"});
    batch["spans"][0]["events"] = json!([{"time": time, "name": "CUT"}]);
    batch["frame_windows"] =
        json!([{"page": "CUT", "start": time, "duration_ms": 10_000, "frames_drawn": 500}]);
    batch["janks"] = json!([{"page": "CUT", "start": time, "duration_ms": 900, "thread": "CUT",
        "stack": [{"class": "CUT", "function": "pay", "line": 41}], "run_log": [{"time": time, "message": "CUT"}]}]);
    batch["traffic"] = json!([{"day": "2026-11-20", "source": "CUT", "tx_bytes": 7}]);
    batch["page_loads"] = json!([{"page": "CUT", "start": time, "total_ms": 900,
        "requests": [{"path": "CUT", "duration_ms": 20}]}]);
    batch["metrics"] = json!([{"name": "CUT", "time": time, "value": 3}]);
    batch["app_starts"] = json!([{"start": time, "duration_ms": 900, "page": "CUT",
        "phases": [{"name": "CUT", "duration_ms": 40}]}]);
    batch["recompositions"] = json!([{"function": "CUT", "start": time, "count": 4}]);
    batch["sdk_health"] =
        json!({"overhead_us": 7, "dropped": [{"signal": "spans", "reason": "CUT", "count": 2}]});
    batch
}

const EVENTS: u64 = 9;

async fn accepted(server: &Server, body: impl Into<Vec<u8>>) -> Value {
    let answer = server.send_bytes(body).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    answer.body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_character_costs_a_character_in_every_signal() {
    let asked = Asked::of(&[]).await;
    let server = &asked.server;
    for cut in ["half \\ud83d", "\\ude00 half", "tab\there", "C:\\Users"] {
        let body = of_all().to_string().replace("CUT", cut);
        let receipt = accepted(server, body).await;
        assert_eq!(
            (&receipt["accepted"], &receipt["rejected"]),
            (&json!(EVENTS), &json!([]))
        );
        // Also if nothing but the resource has one.
        let mut bare = batch();
        bare["resource"]["device_model"] = json!("CUT");
        bare["sdk_health"] = json!({"overhead_us": 7});
        let body = bare.to_string().replace("CUT", cut);
        assert_eq!(accepted(server, body).await["accepted"], 1);
    }
    let mut bytes = of_all().to_string().replace("CUT", "caf?").into_bytes();
    for byte in &mut bytes {
        if *byte == b'?' {
            *byte = 0xc3;
        }
    }
    assert_eq!(accepted(server, bytes).await["accepted"], EVENTS);
    server.drained().await;
    for (signal, dimension) in [
        ("spans", "name"),
        ("frame_windows", "page"),
        ("janks", "page"),
        ("traffic", "source"),
        ("page_loads", "page"),
        ("metrics", "name"),
        ("app_starts", "page"),
        ("recompositions", "function"),
        ("sdk_drops", "reason"),
        ("usage", "device_model"),
    ] {
        let path = format!("query/{signal}?by={dimension}&measure=installs&{PERIOD}");
        let answer = asked.ask(&path).await.body;
        let rows = answer["rows"]
            .as_array()
            .unwrap_or_else(|| panic!("{path}: {answer}"));
        let mut found: Vec<_> = rows
            .iter()
            .map(|row| row["keys"][0].as_str().unwrap())
            .collect();
        found.sort_unstable();
        assert_eq!(
            found,
            [
                "C:\\Users",
                "caf\u{fffd}",
                "half \u{fffd}",
                "tab\there",
                "\u{fffd} half"
            ],
            "{signal}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_names_and_empty_texts_of_other_languages_are_read() {
    let asked = Asked::of(&[]).await;
    let mut sent = of_all();
    sent["session_id"] = json!("");
    sent["sent_at"] = json!("");
    sent["resource"]["install_id"] = json!(CAPITALS);
    sent["spans"][0]["parent_span_id"] = json!("");
    sent["spans"][0]["trace_id"] = json!("4BF92F3577B34DA6A3CE929D0E0E4736");
    sent["spans"][0]["kind"] = json!("Network");
    sent["spans"][0]["status"] = json!("ERROR");
    sent["spans"][0]["attributes"] = json!({"ids": [1, 2], "cart": {"a": true}});
    sent["app_starts"][0]["kind"] = json!("COLD");
    sent["page_loads"][0]["t1_ms"] = Value::Null;
    let second = {
        let mut second = span();
        second["parent_span_id"] = json!("0000000000000000");
        second
    };
    sent["spans"].as_array_mut().unwrap().push(second);
    // Lua, Dart and JavaScript write whole numbers with a fraction or an exponent.
    let body = sent
        .to_string()
        .replace(":41250", ":41250.0")
        .replace(":10000", ":1e4")
        .replace(":900", ":900.00")
        .replace(":500", ":5.0E2")
        .replace(":41,", ":41.0,")
        .replace(":41200", ":\"41200\"")
        .replace("\"refresh_hz\":60", "\"refresh_hz\":59.94");
    let receipt = accepted(&asked.server, format!("\u{feff}{body}")).await;
    assert_eq!(
        (&receipt["accepted"], &receipt["rejected"]),
        (&json!(EVENTS + 1), &json!([]))
    );
    asked.server.drained().await;
    let seen = "SELECT toString(kind), toString(status), duration_us, build, attributes['ids'], attributes['cart'] FROM spans WHERE kind = 'network'";
    assert_eq!(
        asked.server.query(seen).await,
        "network\terror\t41250\t41200\t[1,2]\t{\"a\":true}"
    );
    assert_eq!(
        asked
            .server
            .query("SELECT toString(kind), duration_ms FROM app_starts")
            .await,
        "cold\t900"
    );
    assert_eq!(
        asked
            .server
            .query("SELECT frames_drawn, duration_ms, refresh_hz FROM frame_windows")
            .await,
        "500\t10000\t60"
    );
    // Queries find the names in any case, too.
    for filter in [
        "spans?kind=NETWORK",
        "spans?status=Error",
        "app_starts?kind=Cold",
        "app_starts?contains.kind=COL",
    ] {
        let path = format!("query/{filter}&measure=count&{PERIOD}");
        let answer = asked.ask(&path).await.body;
        assert_eq!(answer["rows"][0]["values"][0], 1.0, "{path}: {answer}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_is_none_costs_its_event() {
    let server = Server::start().await;
    server.ready().await;
    // It costs the event that has it.
    for spelling in [
        "NaN",
        "nan",
        "-nan",
        "NAN",
        "inf",
        "-inf",
        "+Inf",
        "-Infinity",
        "-nan(ind)",
        "1.#INF",
        "1e999",
    ] {
        let mut metrics = batch();
        let metric = json!({"name": "load", "time": "2026-11-20T11:59:00Z", "value": 0.5});
        metrics["metrics"] = json!([metric, metric]);
        let body = metrics.to_string().replacen("0.5", spelling, 1);
        let receipt = accepted(&server, body).await;
        let rejected = receipt["rejected"][0]["index"].as_u64();
        assert_eq!((&receipt["accepted"], rejected), (&json!(1), Some(0)));
        // Nor is it a sample rate. A missing one is 1.
        let mut metrics = batch();
        let metric = json!({"name": "load", "time": "2026-11-20T11:59:00Z", "value": 0.5, "sample_rate": 0.25});
        metrics["metrics"] = json!([metric, metric]);
        let body = metrics.to_string().replacen("0.25", spelling, 1);
        let receipt = accepted(&server, body).await;
        assert_eq!(
            (&receipt["accepted"], &receipt["rejected"][0]["code"]),
            (&json!(1), &json!("sample_rate_out_of_range"))
        );
        // Elsewhere it is missing, also if nothing else is wrong with the batch.
        let mut other = batch();
        other["spans"] = json!([span()]);
        other["spans"][0]["attributes"] = json!({"ratio": 7.5, "cart": 3});
        other["sdk_health"] = json!({"overhead_us": 7.5});
        let body = other.to_string().replace("7.5", spelling);
        assert_eq!(accepted(&server, body).await["accepted"], 2, "{spelling}");
        let mut health = batch();
        health["sdk_health"] = json!({"overhead_us": 7.5});
        let body = health.to_string().replace("7.5", spelling);
        assert_eq!(accepted(&server, body).await["accepted"], 1, "{spelling}");
    }
    server.drained().await;
    let attributes = "SELECT DISTINCT attributes FROM spans";
    assert_eq!(server.query(attributes).await, "{'cart':'3'}");
}

#[tokio::test(flavor = "multi_thread")]
async fn times_are_read_as_languages_write_them() {
    let asked = Asked::of(&[]).await;
    let times = [
        "2026-11-20 11:59:00+00:00",
        "2026-11-20 11:59:00 +0000",
        "2026-11-20T12:59:00+0100",
        "2026-11-20T06:29:00.000-0530",
        "2026-11-20T13:59:00.000+02",
        "2026-11-20T11:59:00,000Z",
        "2026-11-20t11:59:00z",
        " 2026-11-20T11:59:00.0000001Z",
    ];
    // Without a time zone, nobody knows when that was.
    let unknown = [
        "2026-11-20T11:59:00",
        "2026-11-20 +0000",
        "20.11.2026 11:59 +0000",
    ];
    let metrics = times.iter().chain(&unknown);
    let metrics = metrics.map(|time| json!({"name": "load", "time": time, "value": 0.5}));
    let mut sent = batch();
    sent["metrics"] = metrics.collect();
    let receipt = accepted(&asked.server, sent.to_string()).await;
    assert_eq!(receipt["accepted"], times.len());
    assert_eq!(
        receipt["rejected"].as_array().map(Vec::len),
        Some(unknown.len())
    );
    asked.server.drained().await;
    let stored =
        "SELECT DISTINCT time = toDateTime64('2026-11-20 11:59:00', 6, 'UTC') FROM metrics";
    assert_eq!(asked.server.query(stored).await, "1");
    // People may write their periods so, too.
    let path =
        "query/metrics?measure=count&from=2026-11-20%2010:00:00%20%2B0000&to=2026-11-20T13:00:00Z";
    let answer = asked.ask(path).await.body;
    assert_eq!(answer["rows"][0]["values"][0], 8.0, "{answer}");
}

/// A batch with empty lists as maps, empty maps as lists, `null` rates, and numbers in the texts of its resource.
fn of_dynamic_languages() -> Value {
    let mut sent = of_all();
    sent["modules"] = json!({});
    sent["split_from"] = json!({});
    sent["metrics"] = json!({});
    sent["traffic"] = json!({});
    sent["resource"]["os_version"] = json!(34);
    sent["resource"]["user_id"] = json!(4711);
    sent["resource"]["refresh_hz"] = json!("90");
    sent["spans"][0]["name"] = json!(404);
    sent["spans"][0]["thread"] = json!(7);
    sent["page_loads"][0]["page"] = json!(true);
    sent["recompositions"][0]["function"] = json!(1.5);
    sent["spans"][0]["attributes"] = json!([]);
    sent["spans"][0]["events"] = json!({});
    sent["spans"][0]["uptime_ms"] = json!(77);
    sent["janks"][0]["stack"] = json!({});
    sent["janks"][0]["run_log"] = json!({});
    sent["page_loads"][0]["requests"] = json!({});
    sent["app_starts"][0]["phases"] = json!({});
    sent["sdk_health"]["dropped"] = json!({});
    let mut window = sent["frame_windows"][0].clone();
    window["frame_time_hist"] = json!([]);
    sent["frame_windows"][0]["frame_time_hist"] = json!({"8.0": 10});
    sent["frame_windows"].as_array_mut().unwrap().push(window);
    for signal in [
        "spans",
        "frame_windows",
        "janks",
        "page_loads",
        "app_starts",
        "recompositions",
    ] {
        sent[signal][0]["sample_rate"] = Value::Null;
    }
    sent
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_lists_and_texts_of_dynamic_languages_cost_nothing() {
    let asked = Asked::of(&[]).await;
    // All signals except metrics and traffic, and one frame window more.
    let events = EVENTS - 1;
    let receipt = accepted(&asked.server, of_dynamic_languages().to_string()).await;
    assert_eq!(
        (&receipt["accepted"], &receipt["rejected"]),
        (&json!(events), &json!([]))
    );
    let negative = of_dynamic_languages().to_string().replace(":77", ":-0");
    assert_eq!(accepted(&asked.server, negative).await["accepted"], events);
    asked.server.drained().await;
    let stored = asked
        .server
        .query("SELECT uptime_ms, os_version, user_id, sample_rate, name, thread FROM spans ORDER BY uptime_ms")
        .await;
    assert_eq!(stored, "0\t34\t4711\t1\t404\t7\n77\t34\t4711\t1\t404\t7");
    let rates = "SELECT DISTINCT refresh_hz FROM frame_windows";
    assert_eq!(asked.server.query(rates).await, "90");
    // A map that has events is refused.
    let mut wrong = of_all();
    wrong["spans"] = json!({"0": span()});
    let refused = asked.server.send(&wrong).await;
    assert_eq!(refused.outcome(), (400, "invalid_envelope".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_install_id_in_capitals_is_the_same_install() {
    let mut sent = of_all();
    sent["resource"]["install_id"] = json!(CAPITALS);
    let asked = Asked::of(&[sent]).await;
    let server = &asked.server;
    let small = CAPITALS.to_lowercase();
    let braces = format!("%7B{CAPITALS}%7D");
    let plain = CAPITALS.replace('-', "");
    for id in [CAPITALS, &small, &braces, &plain] {
        let answer = asked
            .ask(&format!(
                "query/spans?install_id={id}&measure=count&{PERIOD}"
            ))
            .await;
        assert_eq!(answer.body["rows"][0]["values"][0], 1.0, "{id}");
    }
    let path = format!("query/spans?contains.install_id=5C0C7E0E&measure=count&{PERIOD}");
    let part = asked.ask(&path).await;
    assert_eq!(part.body["rows"][0]["values"][0], 1.0);
    // An override for the install in one form applies to the other, and so does a share of installs.
    let editor = server.token("editor").await;
    let document = json!({
        "base": {"sampling": {"janks": 0.5}, "tracing": {"enabled": false}},
        "overrides": [
            {"id": "named", "note": "x", "when": {"install_id": [CAPITALS]}, "patch": {"sampling": {"janks": 1.0}}},
            {"id": "half", "note": "x", "when": {"percentage": {"percent": 50, "salt": "one"}}, "patch": {"tracing": {"enabled": true}}},
        ]
    });
    let saved = save(server, &editor, document).await;
    assert_eq!(saved.status, 201, "{:?}", saved.body);
    let mut halves = Vec::new();
    for place in 0..20_u128 {
        let id = match place {
            0 => Uuid::try_parse(CAPITALS).unwrap(),
            _ => Uuid::from_u128(0xabcd_ef00_aaaa_4bbb_8ccc_dddd_eeee_0000 + place),
        };
        let mut answers = Vec::new();
        for id in [id.to_string(), id.to_string().to_uppercase()] {
            let path = format!("{}/v1/config?install_id={id}&build=4.12e4", server.url);
            let polled = server
                .client
                .get(path)
                .bearer_auth(KEY)
                .send()
                .await
                .unwrap();
            let polled: Value = polled.json().await.unwrap();
            let flags = server
                .client
                .post(format!(
                    "{}/ofrep/v1/evaluate/flags/tracing.enabled",
                    server.url
                ))
                .bearer_auth(KEY)
                .json(&json!({"context": {"targetingKey": id}}))
                .send()
                .await
                .unwrap();
            let flags: Value = flags.json().await.unwrap();
            assert_eq!(flags["value"], polled["tracing"]["enabled"], "{flags}");
            answers.push((
                polled["sampling"]["janks"].clone(),
                polled["tracing"]["enabled"].clone(),
            ));
        }
        assert_eq!(answers[0], answers[1], "{id}");
        assert_eq!(answers[0].0, if place == 0 { 1.0 } else { 0.5 });
        halves.push(answers[0].1 == true);
    }
    assert!(halves.contains(&true) && halves.contains(&false));
    // Erasure finds the install in capitals.
    let admin = server.token("admin").await;
    let path = format!("/api/v1/projects/default/data?install_id={CAPITALS}");
    let erased = server.call(&admin, Method::DELETE, &path, None).await;
    assert_eq!(erased.status, 202, "{:?}", erased.body);
    assert!(erased.body.to_string().contains(&small), "{}", erased.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn installs_without_a_session_are_not_one_session() {
    let mut batches = Vec::new();
    for install in 0..5_u128 {
        for part in 0..2 {
            let mut sent = of_all();
            sent["resource"]["install_id"] = json!(Uuid::from_u128(0x1000 + install));
            match part {
                0 => sent["session_id"] = Value::Null,
                _ => sent["session_id"] = json!(Uuid::nil()),
            }
            batches.push(sent);
        }
    }
    let asked = Asked::of(&batches).await;
    for (signal, rest) in [
        ("usage", ""),
        ("janks", ""),
        ("frame_windows", ""),
        ("frame_windows", "&locale="),
    ] {
        let path = format!("query/{signal}?measure=sessions&measure=installs&{PERIOD}{rest}");
        let answer = asked.ask(&path).await.body;
        let values = answer["rows"][0]["values"].as_array().unwrap();
        assert_eq!(values[..2], [json!(5.0), json!(5.0)], "{path}: {answer}");
    }
    let listed = asked.ask(&format!("sessions?{PERIOD}")).await.body;
    assert_eq!(
        listed["sessions"].as_array().map(Vec::len),
        Some(5),
        "{listed}"
    );
}
