//! Bounds, and what happens at them.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Engine, PASSWORD, Setup, encode, refused, shared, spawn, until};

const ENDLESS: &str = "SELECT max(sipHash64(number)) FROM numbers(1000000000000)";

#[tokio::test]
async fn too_many_statements_wait_and_then_are_refused() {
    let setup = Setup {
        max_connections: 2,
        queue_patience: Duration::from_millis(500),
        ..Setup::default()
    };
    let engine = Engine::start(&setup).unwrap();
    let hold = |seconds: u32| {
        let text = format!(
            "SELECT sleepEachRow(1) FROM numbers({seconds}) SETTINGS function_sleep_max_microseconds_per_block = 0"
        );
        spawn(engine.post(&[]).body(text).send())
    };
    let holders = [hold(3), hold(3)];
    engine_is_full(&engine).await;
    let asked = Instant::now();
    let answer = engine.post(&[]).body("SELECT 1").send().await.unwrap();
    assert_eq!(refused(answer).await, (202, 503));
    assert!(asked.elapsed() >= Duration::from_millis(450));
    for holder in holders {
        assert_eq!(holder.await.unwrap().unwrap().status(), 200);
    }
    assert_eq!(engine.ask(&[], "SELECT 1").await, "1\n");
    assert!(engine.end());
}

async fn engine_is_full(engine: &Engine) {
    until(|| async {
        engine
            .post(&[])
            .body("SELECT 1")
            .send()
            .await
            .unwrap()
            .status()
            == 503
    })
    .await;
}

#[tokio::test]
async fn many_statements_at_once_all_end_well() {
    let engine = shared();
    let asked: Vec<_> = (0..200)
        .map(|number| {
            spawn(
                engine
                    .post(&[("param_n", &number.to_string())])
                    .body("SELECT {n:UInt32}, count() FROM numbers(100000)")
                    .send(),
            )
        })
        .collect();
    for (number, answer) in asked.into_iter().enumerate() {
        assert_eq!(
            answer.await.unwrap().unwrap().text().await.unwrap(),
            format!("{number}\t100000\n")
        );
    }
}

#[tokio::test]
async fn a_client_that_goes_away_stops_its_statement() {
    let engine = Engine::start(&Setup::default()).unwrap();
    // One that has not answered yet, one that streams, one that nobody reads.
    for text in [
        ENDLESS,
        "SELECT number FROM numbers(1000000000000)",
        "SELECT 1, number FROM numbers(1000000000000) FORMAT JSONCompact",
    ] {
        let mut stream = send(&engine, text).await;
        engine.until_running("1000000000000", 1).await;
        if text != ENDLESS {
            let mut bytes = vec![0; 100_000];
            stream.read_exact(&mut bytes).await.unwrap();
        }
        drop(stream);
        engine.until_running("1000000000000", 0).await;
    }
    tokio::time::sleep(Duration::from_millis(200)).await;
    let before = engine.cpu();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(
        engine.cpu() - before < Duration::from_millis(200),
        "something still computes"
    );
    assert_eq!(engine.ask(&[], "SELECT 1").await, "1\n");
    assert!(engine.end());
}

async fn send(engine: &Engine, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(engine.url.strip_prefix("http://").unwrap())
        .await
        .unwrap();
    let target = encode(&[("password", PASSWORD)]);
    let request = format!(
        "POST /?{target} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{text}",
        text.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn a_large_answer_takes_little_memory() {
    let engine = Engine::start(&Setup::default()).unwrap();
    engine
        .ask(
            &[],
            "SELECT count() FROM numbers(1000000) GROUP BY number % 10",
        )
        .await;
    let before = engine.memory();
    let mut answer = engine
        .post(&[])
        .body("SELECT number, repeat('x', 100) FROM numbers(10000000) FORMAT RowBinary")
        .send()
        .await
        .unwrap();
    let mut bytes = 0;
    let mut most = 0;
    while let Some(chunk) = answer.chunk().await.unwrap() {
        bytes += chunk.len();
        most = most.max(engine.memory());
    }
    assert_eq!(bytes, 10_000_000 * 109);
    assert!(
        most < before + (200 << 20),
        "{} MiB more",
        (most - before) >> 20
    );
    assert!(engine.end());
}

#[tokio::test]
async fn a_client_that_stops_reading_holds_the_statement_and_then_loses_it() {
    let engine = Engine::start(&Setup {
        stall: Duration::from_secs(1),
        ..Setup::default()
    })
    .unwrap();
    let stream = send(&engine, "SELECT number FROM numbers(1000000000000)").await;
    engine.until_running("1000000000000", 1).await;
    engine.until_running("1000000000000", 0).await;
    drop(stream);
    assert!(engine.end());
}

#[tokio::test]
async fn a_client_that_stops_sending_is_given_up() {
    let engine = Engine::start(&Setup {
        stall: Duration::from_secs(1),
        ..Setup::default()
    })
    .unwrap();
    engine
        .ask(&[], "CREATE TABLE stalled (a Int32) ENGINE = Memory")
        .await;
    let mut stream = TcpStream::connect(engine.url.strip_prefix("http://").unwrap())
        .await
        .unwrap();
    let target = encode(&[
        ("password", PASSWORD),
        ("query", "INSERT INTO stalled FORMAT TSV"),
    ]);
    stream
        .write_all(
            format!("POST /?{target} HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n1\n")
                .as_bytes(),
        )
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    assert!(answer.contains("Code: 33. DB::Exception: "), "{answer}");
    assert_eq!(engine.ask(&[], "SELECT count() FROM stalled").await, "0\n");
    assert!(engine.end());
}

#[tokio::test]
async fn a_statement_has_a_longest_length() {
    let engine = shared();
    let text = format!("SELECT 1 -- {}", "x".repeat(17 << 20));
    assert_eq!(
        engine
            .refusal(&[("max_query_size", "100000000")], &text)
            .await,
        (62, 400)
    );
}

#[tokio::test]
async fn memory_is_bounded_for_all_statements_together() {
    let engine = Engine::start(&Setup {
        max_memory_bytes: 700 << 20,
        ..Setup::default()
    })
    .unwrap();
    let (code, _) = engine
        .refusal(
            &[],
            "SELECT length(groupArray(repeat('x', 1000))) FROM numbers(10000000)",
        )
        .await;
    assert_eq!(code, 241);
    assert_eq!(engine.ask(&[], "SELECT 1").await, "1\n");
    assert!(engine.end());
}
