//! Limits, and the behaviour at each of them.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{PASSWORD, TestEngine, encode, shared, spawn};

const ENDLESS: &str = "SELECT max(sipHash64(number)) FROM numbers(1000000000000)";

/// Sends a reader's query and does not read its answer.
async fn send(engine: &TestEngine, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(engine.address()).await.unwrap();
    let target = encode(&[("user", "reader"), ("password", PASSWORD)]);
    let request = format!(
        "POST /?{target} HTTP/1.0\r\nHost: x\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn clickhouse_knows_the_settings_of_its_configuration() {
    // ClickHouse ignores a setting that it does not know.
    let changed = "SELECT name FROM system.server_settings WHERE changed AND name IN \
        ('asynchronous_metrics_update_period_s', 'background_schedule_pool_size', 'memory_worker_period_ms') ORDER BY name";
    assert_eq!(
        shared().ask(&[], changed).await,
        "asynchronous_metrics_update_period_s\nbackground_schedule_pool_size\nmemory_worker_period_ms\n"
    );
}

#[tokio::test]
async fn fifty_concurrent_readers_are_all_answered() {
    let engine = shared();
    let asked: Vec<_> = (0..50)
        .map(|number: u32| {
            let request = engine.request("reader", &[("param_n", &number.to_string())]);
            spawn(request.body("SELECT {n:UInt32}, count() FROM numbers(3000000) WHERE sipHash64(number) != 0").send())
        })
        .collect();
    for (number, answer) in asked.into_iter().enumerate() {
        let text = answer.await.unwrap().unwrap().text().await.unwrap();
        assert_eq!(text, format!("{number}\t3000000\n"));
    }
}

#[tokio::test]
async fn the_query_of_a_client_that_disconnects_ends() {
    let engine = TestEngine::start().await;
    // One query that has not answered yet, and one that streams its answer.
    for text in [ENDLESS, "SELECT number FROM numbers(1000000000000)"] {
        let mut stream = send(&engine, text).await;
        engine.until_running("1000000000000", 1).await;
        if text != ENDLESS {
            stream.read_exact(&mut [0; 100_000]).await.unwrap();
        }
        drop(stream);
        engine.until_running("1000000000000", 0).await;
    }
    assert_eq!(engine.ask(&[], "SELECT 1").await, "1\n");
    engine.stop().await;
}

#[tokio::test]
async fn a_query_can_be_killed() {
    let engine = shared();
    let request = engine.request("reader", &[("query_id", "to-be-killed")]);
    let request = spawn(
        request
            .body(format!("{ENDLESS} SETTINGS max_threads = 1"))
            .send(),
    );
    engine.until_running("max_threads = 1", 1).await;
    engine
        .ask(&[], "KILL QUERY WHERE query_id = 'to-be-killed' SYNC")
        .await;
    let answer = request.await.unwrap().unwrap();
    assert_eq!(crate::support::refused(answer).await, 394);
}

#[tokio::test]
async fn a_slow_query_ends_at_its_time_limit() {
    let engine = shared();
    let begun = Instant::now();
    let text = format!("{ENDLESS} SETTINGS max_execution_time = 1");
    assert_eq!(engine.refusal("reader", &text).await, 159);
    assert!(begun.elapsed() < Duration::from_secs(15));
}

#[tokio::test]
async fn ten_gigabytes_are_streamed_in_constant_memory() {
    let engine = TestEngine::start().await;
    let text = "SELECT repeat('x', 1000) FROM numbers(10000000) FORMAT RowBinary";
    let mut stream = send(&engine, text).await;
    let mut buffer = vec![0; 1 << 20];
    let mut bytes = 0;
    // Resident memory after each hundred megabytes.
    let mut resident = Vec::new();
    loop {
        let count = stream.read(&mut buffer).await.unwrap();
        if count == 0 {
            break;
        }
        bytes += count;
        if bytes / (100 << 20) >= resident.len() {
            resident.push(engine.memory());
        }
    }
    // Each string has a length of two bytes. The rest is the head of the answer.
    assert!((10_020_000_000..10_020_010_000).contains(&bytes), "{bytes}");
    let (first, rest) = resident.split_at(10);
    let most = |of: &[u64]| of.iter().max().unwrap() >> 20;
    assert!(most(rest) < most(first) + 200, "{resident:?}");
    engine.stop().await;
}

#[tokio::test]
async fn memory_is_bounded_for_all_queries_together() {
    let engine = TestEngine::start_with(|options| options.max_memory_bytes = 700 << 20).await;
    let large = "SELECT length(groupArray(repeat('x', 1000))) FROM numbers(10000000)";
    for _ in 0..3 {
        assert_eq!(engine.refusal("reader", large).await, 241);
        assert_eq!(engine.ask(&[], "SELECT 1").await, "1\n");
    }
    engine.stop().await;
}

#[tokio::test]
async fn readers_leave_room_for_the_writer() {
    let engine = TestEngine::start_with(|options| options.max_memory_bytes = 1 << 30).await;
    engine.ask_as("writer", &[], "CREATE DATABASE unjank").await;
    engine
        .ask_as(
            "writer",
            &[],
            "CREATE TABLE unjank.t (a UInt64) ENGINE = MergeTree ORDER BY a",
        )
        .await;
    // Half of the queries last for minutes. The others take memory up to their limit.
    let worst = |number: u32| {
        let text = if number.is_multiple_of(2) {
            "SELECT sleepEachRow(1) FROM numbers(600) SETTINGS max_block_size = 1, max_threads = 1"
        } else {
            "SELECT length(groupArray(repeat('x', 1000))) FROM numbers(10000000)"
        };
        spawn(engine.request("reader", &[]).body(text).send())
    };
    let asked: Vec<_> = (0..150).map(worst).collect();
    for change in [
        "max_memory_usage_for_user = 0",
        "max_concurrent_queries_for_user = 0",
        "max_execution_time = 0",
    ] {
        let text = format!("SELECT 1 SETTINGS {change}");
        let code = engine.refusal("reader", &text).await;
        assert!(code == 452 || code == 202, "{change}: {code}");
    }
    for _ in 0..20 {
        let insert = "INSERT INTO unjank.t SELECT number FROM numbers(100000)";
        engine.ask_as("writer", &[], insert).await;
    }
    drop(asked);
}

#[tokio::test]
async fn the_query_log_shows_slow_queries_and_is_bounded() {
    let engine = TestEngine::start().await;
    let slow = "SELECT sleep(0.3), 'the slow one'";
    engine.ask_as("reader", &[], slow).await;
    for number in 0..200 {
        engine
            .ask_as("reader", &[], &format!("SELECT {number}"))
            .await;
    }
    // ClickHouse creates the table when the first rows are written.
    let exists =
        "SELECT count() FROM system.tables WHERE database = 'system' AND name = 'query_log'";
    crate::support::until(|| async { engine.ask_as("reader", &[], exists).await == "1\n" }).await;
    let slowest = "SELECT query, query_duration_ms >= 300 FROM system.query_log WHERE type != 'QueryStart' ORDER BY query_duration_ms DESC LIMIT 1";
    crate::support::until(|| async {
        engine
            .ask_as("reader", &[], slowest)
            .await
            .replace('\\', "")
            == format!("{slow}\t1\n")
    })
    .await;
    let kept = "SELECT engine, match(engine_full, 'max_bytes_to_keep = \\\\d+') FROM system.tables WHERE database = 'system' AND name = 'query_log'";
    assert_eq!(engine.ask_as("reader", &[], kept).await, "Memory\t1\n");
    engine.stop().await;
}
