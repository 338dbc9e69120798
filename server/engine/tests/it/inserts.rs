//! Guarantees on which the server's INSERTs rely: tokens, one part per block and partition, and clients that disconnect.

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::{PASSWORD, encode, shared, until};

/// Returns `count` rows as one block in ClickHouse's Native format, which the engine itself encodes.
async fn native_block(select: &str, count: u32) -> Bytes {
    let text = format!(
        "SELECT {select} FROM numbers({count}) SETTINGS max_block_size = {count}, max_threads = 1 FORMAT Native"
    );
    shared()
        .post(&[])
        .body(text)
        .send()
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap()
}

async fn insert(database: &str, text: &str, more: &[(&str, &str)], body: Bytes) {
    let answer = shared()
        .post(&[&[("database", database), ("query", text)], more].concat())
        .body(body)
        .send()
        .await
        .unwrap();
    assert_eq!(
        answer.status(),
        200,
        "{text}: {}",
        answer.text().await.unwrap()
    );
}

async fn exactly_once_tables(name: &str) {
    let engine = shared();
    let database = engine.database(name).await;
    let database = [("database", database.as_str())];
    engine.ask(&database, "CREATE TABLE raw (a UInt64, d UInt8) ENGINE = MergeTree PARTITION BY d ORDER BY a SETTINGS non_replicated_deduplication_window = 1000, fsync_after_insert = 1, fsync_part_directory = 1").await;
    engine.ask(&database, "CREATE TABLE hourly (d UInt8, c UInt64) ENGINE = SummingMergeTree ORDER BY d SETTINGS non_replicated_deduplication_window = 1000").await;
    engine.ask(&database, "CREATE MATERIALIZED VIEW to_hourly TO hourly AS SELECT d, count() AS c FROM raw GROUP BY d").await;
}

const ONCE: [(&str, &str); 3] = [
    ("async_insert", "0"),
    ("insert_deduplicate", "1"),
    ("deduplicate_blocks_in_dependent_materialized_views", "1"),
];

#[tokio::test]
async fn repeating_a_token_stores_one_copy() {
    let engine = shared();
    exactly_once_tables("one_copy").await;
    let counts = || {
        engine.ask(
            &[("database", "one_copy")],
            "SELECT (SELECT count() FROM raw), (SELECT sum(c) FROM hourly)",
        )
    };
    let block = native_block("number AS a, toUInt8(number % 3) AS d", 200_000).await;
    for _ in 0..2 {
        let once = [&ONCE[..], &[("insert_deduplication_token", "first")]].concat();
        insert(
            "one_copy",
            "INSERT INTO raw FORMAT Native",
            &once,
            block.clone(),
        )
        .await;
    }
    assert_eq!(counts().await, "200000\t200000\n");
    // The same rows under another token are intended repeats.
    let once = [&ONCE[..], &[("insert_deduplication_token", "second")]].concat();
    insert(
        "one_copy",
        "INSERT INTO raw FORMAT Native",
        &once,
        block.clone(),
    )
    .await;
    assert_eq!(counts().await, "400000\t400000\n");
    // The same holds for several blocks.
    let rows: String = (0..2_500_000)
        .map(|number| format!("{number}\t1\n"))
        .collect();
    for _ in 0..2 {
        let once = [&ONCE[..], &[("insert_deduplication_token", "third")]].concat();
        insert(
            "one_copy",
            "INSERT INTO raw FORMAT TSV",
            &once,
            rows.clone().into(),
        )
        .await;
    }
    assert_eq!(counts().await, "2900000\t2900000\n");
}

#[tokio::test]
async fn one_block_is_stored_as_one_part_per_partition() {
    let engine = shared();
    exactly_once_tables("one_part").await;
    let database = [("database", "one_part")];
    engine.ask(&database, "SYSTEM STOP MERGES raw").await;
    let block = native_block("number AS a, toUInt8(number % 3) AS d", 200_000).await;
    insert("one_part", "INSERT INTO raw FORMAT Native", &ONCE, block).await;
    let parts = "SELECT groupArray((partition, rows)) FROM (SELECT * FROM system.parts WHERE database = 'one_part' AND table = 'raw' AND active ORDER BY name)";
    assert_eq!(
        engine.ask(&database, parts).await,
        "[('0',66667),('1',66667),('2',66666)]\n"
    );
}

#[tokio::test]
async fn a_client_that_disconnects_during_an_insert_stores_nothing() {
    let engine = shared();
    let database = engine.database("gone_client").await;
    let database = [("database", database.as_str())];
    engine
        .ask(
            &database,
            "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a",
        )
        .await;
    let address = engine.address();
    let target = encode(&[
        database[0],
        ("user", "admin"),
        ("password", PASSWORD),
        ("query", "INSERT INTO t FORMAT TSV"),
    ]);
    let rows: String = (0..300_000).map(|number| format!("{number}\n")).collect();
    // Once with a length that is never reached, and once in chunks without a last one.
    let heads = [
        ("Content-Length: 99000000", String::new(), ""),
        (
            "Transfer-Encoding: chunked",
            format!("{:x}\r\n", rows.len()),
            "\r\n",
        ),
    ];
    for (head, before, after) in heads {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request =
            format!("POST /?{target} HTTP/1.1\r\nHost: x\r\n{head}\r\n\r\n{before}{rows}{after}");
        stream.write_all(request.as_bytes()).await.unwrap();
        engine.until_running("INSERT INTO t", 1).await;
        drop(stream);
        engine.until_running("INSERT INTO t", 0).await;
        assert_eq!(engine.ask(&database, "SELECT count() FROM t").await, "0\n");
    }
}

#[tokio::test]
async fn merges_and_ttls_work_in_the_background() {
    let engine = shared();
    let database = engine.database("background").await;
    let database = [("database", database.as_str())];
    engine.ask(&database, "CREATE TABLE t (a UInt64, t DateTime) ENGINE = MergeTree ORDER BY a TTL t + INTERVAL 1 DAY SETTINGS merge_with_ttl_timeout = 0").await;
    for number in 0..12 {
        engine
            .ask(
                &database,
                &format!(
                    "INSERT INTO t VALUES ({number}, '2020-01-01 00:00:00'), ({number}, now())"
                ),
            )
            .await;
    }
    until(|| async { engine.ask(&database, "SELECT count() FROM t").await == "12\n" }).await;
    until(|| async {
        let parts = engine
            .ask(
                &database,
                "SELECT count() FROM system.parts WHERE database = 'background' AND active",
            )
            .await;
        parts.trim().parse::<u32>().unwrap() < 12
    })
    .await;
}
