//! Bad requests, a full disk and a missing ClickHouse: each gets its documented response, and no acknowledged event is lost.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::server::{Answer, KEY, Server, batch, span, spans};
use crate::wait;

/// Bodies that are wrong, each in its own way.
fn bad_bodies() -> Vec<(&'static str, Vec<u8>)> {
    let good = spans(1).to_string();
    let not_utf8 = spans(1)
        .to_string()
        .replace("checkout", "\u{7f}")
        .into_bytes();
    let not_utf8 = not_utf8
        .into_iter()
        .map(|byte| if byte == 0x7f { 0xff } else { byte })
        .collect();
    let deep_lists = [
        "{\"x\":".to_owned(),
        "[".repeat(100_000),
        "]".repeat(100_000),
        "}".to_owned(),
    ];
    vec![
        ("not json", b"hello".to_vec()),
        ("empty", Vec::new()),
        ("cut off", good.as_bytes()[..good.len() / 2].to_vec()),
        ("NaN", good.replace("41250", "NaN").into_bytes()),
        ("not utf-8", not_utf8),
        ("a list", b"[]".to_vec()),
        ("deep", b"{\"batch_id\":".repeat(200)),
        ("deep lists", deep_lists.concat().into_bytes()),
        (
            "twice the same field",
            good.replacen('{', "{\"spans\":[],", 1).into_bytes(),
        ),
        (
            "no batch id",
            edited(|batch| batch["batch_id"] = Value::Null),
        ),
        (
            "bad batch id",
            edited(|batch| batch["batch_id"] = json!("7")),
        ),
        (
            "nil batch id",
            edited(|batch| batch["batch_id"] = json!(uuid::Uuid::nil())),
        ),
        (
            "bad sent_at",
            edited(|batch| batch["sent_at"] = json!("yesterday")),
        ),
        (
            "bad module",
            edited(|batch| batch["modules"] = json!([{}, {"load_address": "x"}])),
        ),
        (
            "spans not a list",
            edited(|batch| batch["spans"] = json!({"a": 1})),
        ),
        (
            "no resource",
            edited(|batch| batch["resource"] = Value::Null),
        ),
        (
            "bad install id",
            edited(|batch| batch["resource"]["install_id"] = json!("me")),
        ),
        (
            "no app",
            edited(|batch| batch["resource"]["app_id"] = json!("")),
        ),
        (
            "another app",
            edited(|batch| batch["resource"]["app_id"] = json!("com.example.other")),
        ),
        (
            "a number too large",
            good.replace("41250", "1e999").into_bytes(),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_request_gets_its_documented_answer() {
    let server = Server::away(&[]).await;
    let cases = bad_bodies();
    let mut answers = String::new();
    for (name, body) in cases {
        let answer = server.send_bytes(body).await;
        let (status, code) = answer.outcome();
        let detail = match code.as_str() {
            "invalid_envelope" | "invalid_resource" => answer.body["detail"].as_str().unwrap(),
            _ => "",
        };
        answers += format!("{name}: {status} {code} {detail}").trim_end();
        answers += "\n";
    }
    insta::assert_snapshot!(answers, @r#"
    not json: 400 invalid_json
    empty: 400 invalid_json
    cut off: 400 invalid_json
    NaN: 202 accepted 0 rejected 1
    not utf-8: 202 accepted 1 rejected 0
    a list: 400 invalid_envelope the envelope is not valid: it must be an object, is a list
    deep: 400 invalid_json
    deep lists: 422 invalid_resource `resource` is not valid: it is missing
    twice the same field: 400 invalid_envelope the envelope is not valid: `spans` occurs twice
    no batch id: 400 invalid_envelope the envelope is not valid: `batch_id` is missing
    bad batch id: 400 invalid_envelope the envelope is not valid: `batch_id` must be a UUID
    nil batch id: 400 invalid_envelope the envelope is not valid: `batch_id` is the nil UUID: give the batch an id of its own
    bad sent_at: 400 invalid_envelope the envelope is not valid: `sent_at` must be an RFC 3339 time such as 2026-11-20T12:00:00.123Z, is the text "yesterday"
    bad module: 400 invalid_envelope the envelope is not valid: `modules[1].load_address` must be a whole number from 0 on, is the text "x"
    spans not a list: 400 invalid_envelope the envelope is not valid: `spans` must be a list of events, is an object
    no resource: 422 invalid_resource `resource` is not valid: it must be an object, is null
    bad install id: 422 invalid_resource `resource` is not valid: `install_id` must be a UUID
    no app: 422 invalid_resource `resource` is not valid: `app_id` is empty
    another app: 403 key_not_for_app
    a number too large: 202 accepted 0 rejected 1
    "#);
}

fn edited(edit: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut batch = spans(1);
    edit(&mut batch);
    batch.to_string().into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_is_a_problem_document_that_names_the_fault() {
    let server = Server::start().await;
    let response = server.request().body("{").send().await.unwrap();
    assert_eq!(
        response.headers()["content-type"],
        "application/problem+json"
    );
    let problem: Value = response.json().await.unwrap();
    insta::assert_json_snapshot!(problem, @r#"
    {
      "code": "invalid_json",
      "detail": "the body is not JSON: EOF while parsing an object (line 1, column 1)",
      "status": 400,
      "title": "Bad Request",
      "type": "about:blank"
    }
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_types_and_encodings_are_checked_before_the_body() {
    let server = Server::start().await;
    let url = format!("{}/v1/ingest", server.url);
    let post = || server.client.post(&url).body(spans(1).to_string());
    let json = "application/json";
    let answer = |request: reqwest::RequestBuilder| async {
        Answer::of(request.send().await.unwrap()).await.outcome()
    };
    assert_eq!(
        answer(post().header("content-type", json)).await,
        (401, "key_missing".to_owned())
    );
    assert_eq!(
        answer(
            post()
                .header("content-type", json)
                .basic_auth("a", Some("b"))
        )
        .await,
        (401, "key_missing".to_owned())
    );
    assert_eq!(
        answer(post().header("content-type", json).bearer_auth("nope")).await,
        (401, "key_unknown".to_owned())
    );
    assert_eq!(
        answer(post().bearer_auth(KEY)).await,
        (415, "content_type".to_owned())
    );
    assert_eq!(
        answer(post().bearer_auth(KEY).header("content-type", "text/plain")).await,
        (415, "content_type".to_owned())
    );
    assert_eq!(
        answer(
            post()
                .bearer_auth(KEY)
                .header("content-type", "application/json; charset=utf-8")
        )
        .await
        .0,
        202
    );
    assert_eq!(
        answer(server.request().header("content-encoding", "br").body("x")).await,
        (415, "content_encoding".to_owned())
    );
    assert_eq!(
        answer(
            server
                .request()
                .header("content-encoding", "zstd")
                .body("x")
        )
        .await,
        (400, "corrupt_encoding".to_owned())
    );
    assert_eq!(
        answer(
            server
                .request()
                .header("content-encoding", "gzip")
                .body("x")
        )
        .await,
        (400, "corrupt_encoding".to_owned())
    );
    assert_eq!(
        answer(server.client.get(&url)).await,
        (405, "method_not_allowed".to_owned())
    );
    assert_eq!(
        answer(server.client.get(format!("{}/nothing", server.url))).await,
        (404, "not_found".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn decompression_bombs_are_refused_while_they_inflate() {
    let server = Server::start().await;
    let zeros = vec![b' '; 64 << 20];
    let zstd = zstd::bulk::compress(&zeros, 19).unwrap();
    let zstd_of_unknown_size = zstd::stream::encode_all(std::io::Cursor::new(&zeros), 3).unwrap();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut gzip, &zeros).unwrap();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::Write::write_all(&mut zlib, &zeros).unwrap();
    for (encoding, body) in [
        ("zstd", zstd),
        ("zstd", zstd_of_unknown_size),
        ("gzip", gzip.finish().unwrap()),
        ("deflate", zlib.finish().unwrap()),
    ] {
        assert!(body.len() < 100_000, "{encoding}: a small body");
        let response = server
            .request()
            .header("content-encoding", encoding)
            .body(body)
            .send()
            .await
            .unwrap();
        assert_eq!(
            Answer::of(response).await.outcome(),
            (413, "decompressed_too_large".to_owned())
        );
    }
    assert_eq!(
        server.send_bytes(vec![b' '; (1 << 20) + 1]).await.outcome(),
        (413, "body_too_large".to_owned())
    );
    let mut wide = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
    wide.window_log(24).unwrap();
    std::io::Write::write_all(&mut wide, spans(1).to_string().as_bytes()).unwrap();
    let request = server.request().header("content-encoding", "zstd");
    let response = request.body(wide.finish().unwrap()).send().await.unwrap();
    let refused = Answer::of(response).await;
    assert_eq!(refused.outcome(), (400, "corrupt_encoding".to_owned()));
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.contains("window"), "{detail}");
}

/// Sends a raw request: its head, then a body that may be incomplete. Returns the status line of the response.
async fn by_hand(server: &Server, head: &str, body: &[u8], close: bool) -> String {
    let mut stream = TcpStream::connect(server.url.trim_start_matches("http://"))
        .await
        .unwrap();
    let head = format!(
        "POST /v1/ingest HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\ncontent-type: application/json\r\n{head}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    if close {
        stream.shutdown().await.unwrap();
    }
    let mut answer = vec![0; 4096];
    let read = tokio::time::timeout(wait::PATIENCE, stream.read(&mut answer))
        .await
        .expect("the server answers")
        .unwrap_or(0);
    String::from_utf8_lossy(&answer[..read])
        .lines()
        .next()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_clients_and_wrong_lengths_do_not_block_the_server() {
    let server = Server::with(&["--body-timeout-ms", "200"]).await;
    let good = spans(1).to_string();
    let longer = good.len() + 10;
    assert_eq!(
        by_hand(
            &server,
            &format!("content-length: {longer}"),
            good.as_bytes(),
            false
        )
        .await,
        "HTTP/1.1 408 Request Timeout"
    );
    assert_eq!(
        by_hand(&server, "content-length: 99999999999", b"", false).await,
        "HTTP/1.1 413 Payload Too Large"
    );
    assert_eq!(
        by_hand(&server, "content-length: nonsense", b"", false).await,
        "HTTP/1.1 400 Bad Request"
    );
    assert_eq!(
        by_hand(&server, "transfer-encoding: chunked", b"5\r\nhel", false).await,
        "HTTP/1.1 408 Request Timeout"
    );
    // If a client disconnects in the middle of a body, nothing is stored.
    let gone = by_hand(
        &server,
        &format!("content-length: {longer}"),
        good.as_bytes(),
        true,
    )
    .await;
    assert!(gone.is_empty() || gone.contains("400"), "{gone}");
    assert_eq!(server.send(&spans(1)).await.status, 202);
    assert_eq!(server.stored("SELECT count() FROM spans").await, "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_log_refuses_at_once_and_keeps_its_records() {
    // No ClickHouse: nothing drains.
    let mut server =
        Server::away(&["--log-max-bytes", "2097152", "--shutdown-timeout-ms", "100"]).await;
    let mut acknowledged = 0;
    let refused = loop {
        let answer = server.send(&big_batch()).await;
        if answer.status != 202 {
            break answer;
        }
        acknowledged += 1;
    };
    assert_eq!(refused.outcome(), (503, "log_full".to_owned()));
    assert!(refused.retry_after.is_some());
    assert!(acknowledged > 0);
    let ready = server
        .client
        .get(format!("{}/readyz", server.url))
        .send()
        .await
        .unwrap();
    assert_eq!(ready.status(), 503);
    // ClickHouse is reachable again: everything acknowledged is stored, and the log has room.
    server.point_at_the_engine().await;
    assert_eq!(
        server
            .stored("SELECT uniqExact(session_id) FROM spans")
            .await,
        acknowledged.to_string()
    );
    assert_eq!(server.send(&spans(1)).await.status, 202);
}

fn big_batch() -> Value {
    let mut batch = batch();
    let padded = |number: usize| {
        let mut span = span();
        span["attributes"] = (0..40)
            .map(|key| {
                (
                    format!("k{key}"),
                    json!(format!("{number}-{}", "x".repeat(60))),
                )
            })
            .collect::<serde_json::Map<_, _>>()
            .into();
        span
    };
    batch["spans"] = (0..40).map(padded).collect();
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn while_clickhouse_is_away_batches_are_acknowledged_and_stored_later() {
    let mut server = Server::away(&["--shutdown-timeout-ms", "100"]).await;
    let batch = spans(3);
    assert_eq!(server.send(&batch).await.status, 202);
    let ready = Answer::of(
        server
            .client
            .get(format!("{}/readyz", server.url))
            .send()
            .await
            .unwrap(),
    )
    .await;
    assert_eq!(
        (ready.status.as_u16(), ready.body["status"].clone()),
        (200, json!("degraded"))
    );
    server.point_at_the_engine().await;
    assert_eq!(server.send(&batch).await.body["duplicate"], true);
    assert_eq!(server.stored("SELECT count() FROM spans").await, "3");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_memory_budget_is_refused_as_overload() {
    let server = Server::with(&[
        "--max-body-memory-bytes",
        "1048576",
        "--max-compressed-bytes",
        "8388608",
        "--body-timeout-ms",
        "3000",
    ])
    .await;
    let answer = server.send_bytes(vec![b' '; 2 << 20]).await;
    assert_eq!(answer.outcome(), (503, "overloaded".to_owned()));
    // A client that reads nothing before it has sent everything gets the response, too.
    let large = vec![b' '; 8 << 20];
    let length = format!("content-length: {}", large.len());
    assert_eq!(
        by_hand(&server, &length, &large, false).await,
        "HTTP/1.1 503 Service Unavailable"
    );
    assert_eq!(server.send(&spans(1)).await.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nearly_full_disk_refuses_before_anything_breaks() {
    let server = Server::starting(&["--min-free-bytes", "1000000000000000"]).await;
    let ready = server.readiness().await;
    assert_eq!(ready.status, 503, "not ready even before the first batch");
    assert_eq!(ready.body["log"], "the disk is nearly full");
    let refused = server.send(&spans(1)).await;
    assert_eq!(refused.outcome(), (503, "disk_full".to_owned()));
    assert!(refused.retry_after.is_some());
    let ready = server
        .client
        .get(format!("{}/readyz", server.url))
        .send()
        .await
        .unwrap();
    assert_eq!(ready.status(), 503);
}
