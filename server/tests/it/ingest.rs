//! `POST /v1/ingest` with valid batches: every signal is stored, and every field is in its column.

use serde_json::{Value, json};

use crate::server::{Answer, Server, batch, span, spans};

pub(crate) const EXAMPLE: &str =
    include_str!("../../../client-sdk/protocol/tests/golden/batch_v1.json");

fn example() -> Value {
    serde_json::from_str(EXAMPLE).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_example_batch_is_accepted_and_every_signal_is_stored() {
    let server = Server::start().await;
    let answer = server.send(&example()).await;
    assert_eq!(answer.outcome(), (202, "accepted 9 rejected 0".to_owned()));
    assert_eq!(answer.body["duplicate"], false);
    let counts = "SELECT (SELECT count() FROM spans), (SELECT count() FROM frame_windows), (SELECT count() FROM janks), \
        (SELECT count() FROM traffic), (SELECT count() FROM page_loads), (SELECT count() FROM metrics), \
        (SELECT count() FROM app_starts), (SELECT count() FROM recompositions), (SELECT count() FROM sdk_health), \
        (SELECT count() FROM batches), (SELECT count() FROM stacks), (SELECT count() FROM stack_class_current)";
    assert_eq!(server.stored(counts).await, ["1"; 12].join("\t"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_field_of_a_span_is_stored() {
    let server = Server::start().await;
    server.send(&example()).await;
    insta::assert_snapshot!(
        server
            .stored("SELECT * EXCEPT (received_at, fold, range_id) FROM spans FORMAT Vertical")
            .await
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_field_of_the_other_signals_is_stored() {
    let server = Server::start().await;
    server.send(&example()).await;
    server.drained().await;
    let mut all = String::new();
    for table in [
        "frame_windows",
        "janks",
        "traffic",
        "page_loads",
        "metrics",
        "app_starts",
        "recompositions",
        "sdk_health",
        "batches",
        "stacks",
    ] {
        let own = "SELECT * EXCEPT (app_id, install_id, session_id, app_version, build, channel, mode, os_name, os_version, device_model, \
            device_manufacturer, device_class, locale, user_id, config_revision, fold, range_id)";
        let own = if table == "stacks" { "SELECT *" } else { own };
        all += &format!(
            "# {table}\n{}\n",
            server
                .query(&format!("{own} FROM {table} FORMAT Vertical"))
                .await
        );
    }
    insta::assert_snapshot!(all);
}

/// Sends a body in each encoding. Returns the outcomes.
async fn in_each_encoding(server: &Server, body: impl Fn() -> String) -> Vec<(u16, String)> {
    let plain = body();
    let zstd = zstd::bulk::compress(body().as_bytes(), 3).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut gzip, body().as_bytes()).unwrap();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(&mut zlib, body().as_bytes()).unwrap();
    let mut outcomes = Vec::new();
    for (encoding, body) in [
        ("identity", plain.into_bytes()),
        ("zstd", zstd),
        ("gzip", gzip.finish().unwrap()),
        ("deflate", zlib.finish().unwrap()),
    ] {
        let request = server.request().header("content-encoding", encoding);
        let answer = Answer::of(request.body(body).send().await.unwrap()).await;
        outcomes.push(answer.outcome());
    }
    outcomes
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_batches_are_accepted_like_plain_json() {
    let server = Server::start().await;
    let outcomes = in_each_encoding(&server, || spans(3).to_string()).await;
    assert_eq!(outcomes, vec![(202, "accepted 3 rejected 0".to_owned()); 4]);
    assert_eq!(
        server
            .stored("SELECT count(), uniqExact(span_id) FROM spans")
            .await,
        "12\t12"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_low_limit_of_inflated_bodies_is_exact() {
    const LIMIT: usize = 20_000;
    let server = Server::away(&["--max-decompressed-bytes", "20000"]).await;
    let padded = |length: usize| {
        let mut body = spans(1).to_string();
        body.extend(std::iter::repeat_n(' ', length - body.len()));
        body
    };
    let accepted = in_each_encoding(&server, || padded(LIMIT)).await;
    assert_eq!(accepted, vec![(202, "accepted 1 rejected 0".to_owned()); 4]);
    let refused = in_each_encoding(&server, || padded(LIMIT + 1)).await;
    assert_eq!(refused, vec![(413, "decompressed_too_large".to_owned()); 4]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_event_is_rejected_without_the_rest_of_its_batch() {
    let server = Server::start().await;
    let mut mixed = batch();
    let bad = |field: &str, value: Value| {
        let mut span = span();
        span[field] = value;
        span
    };
    mixed["spans"] = json!([
        span(),
        bad("duration_us", json!("long")),
        bad("duration_us", json!(-1)),
        bad("start", json!("0001-01-01T00:00:00Z")),
        bad("start", json!("9999-12-31T23:59:59Z")),
        bad("trace_id", json!("zz")),
        bad("sample_rate", json!(0)),
        bad("name", json!("")),
        7,
        span(),
        bad("sample_rate", json!("NaN")),
        bad("sample_rate", json!("often")),
    ]);
    let time = "2026-11-20T11:59:59Z";
    mixed["metrics"] = json!([
        {"name": "fps", "time": time, "value": "NaN"},
        {"name": "fps", "time": time, "value": 60, "min": 60, "max": 60, "attributes": {"cart": null, "page": 7}},
        {"name": "fps", "time": time, "value": 2, "min": 3, "max": 1},
    ]);
    let answer = server.send(&mixed).await;
    assert_eq!(answer.outcome(), (202, "accepted 3 rejected 12".to_owned()));
    let rejected: Vec<_> = answer.body["rejected"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{} {} {}", one["signal"], one["index"], one["code"]))
        .collect();
    insta::assert_snapshot!(rejected.join("\n").replace('"', ""), @r"
    spans 1 invalid_event
    spans 2 duration_out_of_range
    spans 3 time_out_of_range
    spans 4 time_out_of_range
    spans 5 invalid_event
    spans 6 sample_rate_out_of_range
    spans 7 name_missing
    spans 8 invalid_event
    spans 10 sample_rate_out_of_range
    spans 11 invalid_event
    metrics 0 value_not_finite
    metrics 2 value_out_of_range
    ");
    let unreadable: Vec<_> = answer.body["rejected"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|one| one["code"] == "invalid_event")
        .map(|one| one["detail"].as_str().unwrap())
        .collect();
    insta::assert_snapshot!(unreadable.join("\n"), @r#"
    `duration_us` must be a whole number, is the text "long"
    `trace_id` must be 32 hex digits, not all zero, is the text "zz"
    it must be an object, is the number `7`
    `sample_rate` must be a number, is the text "often"
    "#);
    assert_eq!(server.stored("SELECT count() FROM spans").await, "2");
    assert_eq!(
        server.query("SELECT attributes FROM metrics").await,
        "{'page':'7'}"
    );
    let outcomes = "SELECT signal, outcome, reason, sum(count) FROM outcomes WHERE project != '' GROUP BY ALL ORDER BY ALL";
    insta::assert_snapshot!(server.query(outcomes).await, @r"
    metrics	rejected	value_not_finite	1
    metrics	rejected	value_out_of_range	1
    metrics	stored		1
    spans	rejected	duration_out_of_range	1
    spans	rejected	invalid_event	4
    spans	rejected	name_missing	1
    spans	rejected	sample_rate_out_of_range	2
    spans	rejected	time_out_of_range	2
    spans	stored		2
    ");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skewed_clock_is_corrected_and_a_slow_network_is_not() {
    let server = Server::start().await;
    let mut skewed = spans(1);
    skewed["sent_at"] = json!("2025-01-01T00:00:00Z");
    skewed["spans"][0]["start"] = json!("2024-12-31T23:59:50Z");
    skewed["traffic"] =
        json!([{"day": "2024-12-31", "source": "api", "network": "wifi", "tx_bytes": 1}]);
    let mut slow = spans(1);
    slow["sent_at"] = json!("2026-11-20T11:59:45Z");
    assert_eq!(
        server.send(&skewed).await.outcome().1,
        "accepted 2 rejected 0"
    );
    assert_eq!(
        server.send(&slow).await.outcome().1,
        "accepted 1 rejected 0"
    );
    assert_eq!(
        server
            .stored("SELECT start FROM spans ORDER BY start")
            .await,
        "2026-11-20 11:59:50.000000\n2026-11-20 11:59:58.000000"
    );
    assert_eq!(server.query("SELECT day FROM traffic").await, "2026-11-20");
    assert_eq!(
        server
            .query("SELECT skew_us FROM batches ORDER BY skew_us")
            .await,
        "15000000\n59486400000000"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn long_texts_and_lists_are_truncated_and_counted() {
    let server = Server::start().await;
    let mut long = spans(2);
    long["spans"][0]["name"] = json!("é".repeat(2_000));
    long["spans"][0]["attributes"] = (0..100)
        .map(|number| (format!("k{number}"), json!("v")))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let line =
        |number: u32| json!({"time": "2026-11-20T11:58:59Z", "message": format!("L{number}")});
    let lines: Vec<_> = (0..70).map(line).collect();
    long["janks"] =
        json!([{"start": "2026-11-20T11:59:00Z", "duration_ms": 900, "run_log": lines}]);
    let answer = server.send(&long).await;
    assert_eq!(
        (
            answer.body["accepted"].as_u64(),
            answer.body["truncated"].as_u64()
        ),
        (Some(3), Some(2))
    );
    assert_eq!(server.stored("SELECT length(name) <= 1024, endsWith(name, '…'), length(attributes) FROM spans ORDER BY length(name) DESC LIMIT 1").await, "1\t1\t64");
    // The lines nearest to the stall are kept.
    assert_eq!(
        server
            .query("SELECT `run_log.message`[1], `run_log.message`[-1], length(`run_log.message`) FROM janks")
            .await,
        "L6\tL69\t64"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_events_are_accepted_and_one_more_is_refused() {
    let server = Server::with(&["--max-compressed-bytes", "33554432"]).await;
    assert_eq!(
        server.send(&spans(10_000)).await.outcome(),
        (202, "accepted 10000 rejected 0".to_owned())
    );
    assert_eq!(
        server.send(&spans(10_001)).await.outcome(),
        (413, "too_many_events".to_owned())
    );
    assert_eq!(server.stored("SELECT count() FROM spans").await, "10000");
}
