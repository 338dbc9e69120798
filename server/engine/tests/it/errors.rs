//! Failing: codes, statuses, and answers that break off.

use std::time::Duration;

use crate::support::{PASSWORD, encode, refused, shared, spawn};

/// Fails after several million rows.
const FAILS_LATE: &str = "SELECT throwIf(number = 700000), rand64() FROM numbers(2000000)";

#[tokio::test]
async fn a_wrong_password_is_refused() {
    let engine = shared();
    for (user, password) in [("default", "wrong"), ("default", ""), ("nobody", PASSWORD)] {
        let url = format!("{}/?{}", engine.url, encode(&[("query", "SELECT 1")]));
        let answer = engine
            .client
            .post(url)
            .basic_auth(user, Some(password))
            .send()
            .await
            .unwrap();
        assert_eq!(refused(answer).await, (516, 403), "{user}");
    }
}

#[tokio::test]
async fn errors_carry_clickhouses_codes_and_statuses() {
    let engine = shared();
    let cases = [
        ("SELECT * FROM nowhere", 60, 404),
        ("SELECT * FROM nowhere.t", 81, 404),
        ("SELECT nope", 47, 404),
        ("SELECT nope()", 46, 404),
        ("SELECT 1 FORMAT Nope", 73, 404),
        ("SELEC 1", 62, 400),
        ("SELECT (", 62, 400),
        ("", 62, 400),
        ("exit", 62, 400),
        ("SELECT 1; SELECT 2", 62, 400),
        ("SELECT 1 + 'a'", 43, 400),
        ("SELECT toUInt8('x')", 6, 400),
        ("SELECT 1 INTO OUTFILE 'x'", 48, 501),
        ("SELECT 1 SETTINGS nope = 1", 115, 404),
        ("DROP TABLE nowhere_at_all", 60, 404),
    ];
    for (text, code, status) in cases {
        assert_eq!(engine.refusal(&[], text).await, (code, status), "{text}");
    }
    assert_eq!(
        engine
            .refusal(&[("no_such_setting", "1")], "SELECT 1")
            .await,
        (115, 404)
    );
    assert_eq!(
        engine.refusal(&[("query_id", "a\nb")], "SELECT 1").await,
        (36, 400)
    );
}

#[tokio::test]
async fn an_error_says_nothing_of_how_an_answer_is_taken_out() {
    let engine = shared();
    for text in [
        "SELECT (1",
        "SELECT {a:b",
        "SELECT nope FROM system.one FORMAT JSON",
        "SELECT 1 FROM",
    ] {
        let body = engine
            .post(&[])
            .body(text)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap();
        assert!(
            !body.contains("OUTFILE '") && !body.contains("/fd/"),
            "{text}: {body}"
        );
    }
}

#[tokio::test]
async fn an_error_before_the_first_byte_is_a_clean_status() {
    let engine = shared();
    assert_eq!(
        engine
            .refusal(&[], "SELECT throwIf(number = 1000) FROM numbers(10000)")
            .await,
        (395, 500)
    );
    assert_eq!(
        engine
            .refusal(
                &[],
                "SELECT throwIf(number = 1000000) FROM numbers(2000000) FORMAT Null"
            )
            .await,
        (395, 500)
    );
}

#[tokio::test]
async fn an_error_in_mid_stream_never_looks_complete() {
    let engine = shared();
    let packings = ["identity", "gzip", "zstd", "lz4", "deflate"];
    for packing in packings {
        let mut answer = engine
            .post(&[])
            .header("accept-encoding", packing)
            .body(FAILS_LATE)
            .send()
            .await
            .unwrap();
        assert_eq!(answer.status(), 200);
        let tag = answer.headers()["x-clickhouse-exception-tag"]
            .to_str()
            .unwrap()
            .to_owned();
        let mut body = Vec::new();
        let broke_off = loop {
            match answer.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        assert!(broke_off, "{packing}: the answer looks complete");
        let body = crate::compression::unpack(packing, &body);
        let text = String::from_utf8_lossy(&body);
        let (_, trailer) = text
            .rsplit_once(&format!("\r\n__exception__\r\n{tag}\r\n"))
            .map_or_else(
                || panic!("{packing}"),
                |(start, _)| text.split_at(start.len()),
            );
        assert!(
            trailer.contains("Code: 395. DB::Exception: "),
            "{packing}: {trailer}"
        );
        assert!(
            trailer.ends_with(&format!(" {tag}\r\n__exception__\r\n")),
            "{packing}: {trailer}"
        );
    }
}

#[tokio::test]
async fn who_waits_for_the_end_gets_a_clean_error() {
    let engine = shared();
    assert_eq!(
        engine
            .refusal(&[("wait_end_of_query", "1")], FAILS_LATE)
            .await,
        (395, 500)
    );
    assert_eq!(
        engine
            .refusal(
                &[("wait_end_of_query", "1"), ("buffer_size", "1000")],
                FAILS_LATE
            )
            .await,
        (395, 500)
    );
}

#[tokio::test]
async fn who_waits_for_the_end_gets_a_large_answer_whole_and_counted() {
    let engine = shared();
    let answer = engine
        .post(&[("wait_end_of_query", "1"), ("buffer_size", "1000")])
        .body("SELECT number FROM numbers(3000000) FORMAT RowBinary")
        .send()
        .await
        .unwrap();
    let summary: serde_json::Value =
        serde_json::from_str(answer.headers()["x-clickhouse-summary"].to_str().unwrap()).unwrap();
    assert_eq!(summary["result_rows"], "3000000");
    let body = answer.bytes().await.unwrap();
    assert_eq!(body.len(), 24_000_000);
    assert!(
        body.chunks(8)
            .enumerate()
            .all(|(index, bytes)| bytes == (index as u64).to_le_bytes())
    );
}

#[tokio::test]
async fn an_id_cannot_run_twice_at_once() {
    let engine = shared();
    let first = engine.post(&[("query_id", "twice")]).body("SELECT sleepEachRow(1) FROM numbers(3) SETTINGS function_sleep_max_microseconds_per_block = 0");
    let first = spawn(first.send());
    engine
        .until_running("sleepEachRow(1) FROM numbers(3)", 1)
        .await;
    assert_eq!(
        engine.refusal(&[("query_id", "twice")], "SELECT 1").await.0,
        216
    );
    let answer = tokio::time::timeout(Duration::from_secs(30), first)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(answer.text().await.unwrap(), "0\n0\n0\n");
    assert_eq!(
        engine.ask(&[("query_id", "twice")], "SELECT 1").await,
        "1\n"
    );
}
