//! Writing: formats, blocks, exactly once, and clients that go away.

use std::time::Duration;

use bytes::Bytes;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use crate::support::{PASSWORD, encode, refused, shared};

/// `count` rows as one block in ClickHouse's Native format, made by the engine itself.
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

#[tokio::test]
async fn every_format_round_trips() {
    let engine = shared();
    let database = engine.database("every_format").await;
    let database = [("database", database.as_str())];
    let columns = "a Int64, s String, l LowCardinality(String), n Nullable(Float64), t DateTime64(3), r Array(UInt8), u UUID";
    engine
        .ask(
            &database,
            &format!("CREATE TABLE source ({columns}) ENGINE = MergeTree ORDER BY a"),
        )
        .await;
    engine.ask(&database, "INSERT INTO source SELECT number, 'tab\t;\\'x\\n' || number, toString(number % 7), if(number % 3 = 0, NULL, number / 4), toDateTime64('2026-01-01 00:00:00', 3) + number, [1, number % 5], toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0') FROM numbers(20000)").await;
    let sum = "SELECT count(), sum(cityHash64(*)) FROM ";
    let expected = engine.ask(&database, &format!("{sum} source")).await;
    let formats = [
        "Native",
        "RowBinary",
        "RowBinaryWithNames",
        "RowBinaryWithNamesAndTypes",
        "JSONEachRow",
        "JSONCompactEachRow",
        "CSV",
        "CSVWithNames",
        "TSV",
        "TSVWithNamesAndTypes",
        "Values",
        "Parquet",
        "ArrowStream",
        "MsgPack",
        "JSON",
        "Avro",
    ];
    for format in formats {
        // Avro and MsgPack have no type for some columns; these go as text or numbers of another kind.
        let select = if matches!(format, "Avro" | "MsgPack") {
            "a, s, l, n"
        } else {
            "*"
        };
        let answer = engine
            .post(&database)
            .body(format!("SELECT {select} FROM source FORMAT {format}"))
            .send()
            .await
            .unwrap();
        let data = answer.bytes().await.unwrap();
        engine
            .ask(&database, "CREATE OR REPLACE TABLE target AS source")
            .await;
        let columns = if select == "*" { "" } else { "(a, s, l, n)" };
        insert(
            "every_format",
            &format!("INSERT INTO target {columns} FORMAT {format}"),
            &[],
            data,
        )
        .await;
        let found = if select == "*" {
            engine.ask(&database, &format!("{sum} target")).await
        } else {
            let pair = "SELECT count(), sum(cityHash64(a, s, l, n)) FROM ";
            assert_eq!(
                engine.ask(&database, &format!("{pair} target")).await,
                engine.ask(&database, &format!("{pair} source")).await,
                "{format}"
            );
            continue;
        };
        assert_eq!(found, expected, "{format}");
    }
}

#[tokio::test]
async fn data_may_follow_the_statement_in_the_body() {
    let engine = shared();
    let database = engine.database("inline_data").await;
    let database = [("database", database.as_str())];
    engine
        .ask(
            &database,
            "CREATE TABLE t (a Int32, s String) ENGINE = Memory",
        )
        .await;
    engine
        .ask(
            &database,
            "INSERT INTO t VALUES (1, 'x;y'), (2, 'it\\'s'); ",
        )
        .await;
    engine
        .ask(
            &database,
            "INSERT INTO t FORMAT JSONEachRow {\"a\":3,\"s\":\"SELECT\"}",
        )
        .await;
    engine
        .ask(
            &database,
            "INSERT INTO t (s, a) SETTINGS max_threads = 1 FORMAT CSV\nz,4\n",
        )
        .await;
    engine
        .ask(&[database[0], ("query", "INSERT INTO t")], "(5, 'v')")
        .await;
    engine
        .ask(
            &[
                database[0],
                ("query", "INSERT INTO t"),
                ("default_format", "TSV"),
            ],
            "6\tw\n",
        )
        .await;
    engine
        .ask(
            &[database[0], ("query", "INSERT INTO t VALUES")],
            "(7, 'u')",
        )
        .await;
    engine
        .ask(&[database[0], ("query", "INSERT INTO t FORMAT CSV")], "")
        .await;
    engine
        .ask(
            &[database[0], ("param_table", "t")],
            "INSERT INTO {table:Identifier} FORMAT CSV\n8,q\n",
        )
        .await;
    engine
        .ask(&database, "INSERT INTO t SELECT 9, 'selected'")
        .await;
    let rows = engine
        .ask(
            &database,
            "SELECT groupArray((a, s)) FROM (SELECT * FROM t ORDER BY a)",
        )
        .await;
    assert_eq!(
        rows,
        "[(1,'x;y'),(2,'it\\'s'),(3,'SELECT'),(4,'z'),(5,'v'),(6,'w'),(7,'u'),(8,'q'),(9,'selected')]\n"
    );
}

#[tokio::test]
async fn binary_data_may_look_like_sql() {
    let engine = shared();
    let database = engine.database("binary_sql").await;
    engine
        .ask(
            &[("database", &database)],
            "CREATE TABLE t (s String) ENGINE = Memory",
        )
        .await;
    let text = b"'; -- \n\n/* \\ ` \0 $x$ INSERT INTO t VALUES (".repeat(100);
    let mut row = vec![
        u8::try_from(text.len() & 0x7f | 0x80).unwrap(),
        u8::try_from(text.len() >> 7).unwrap(),
    ];
    row.extend_from_slice(&text);
    let mut body = b"INSERT INTO t FORMAT RowBinary\n".to_vec();
    for _ in 0..1000 {
        body.extend_from_slice(&row);
    }
    let answer = engine
        .post(&[("database", &database)])
        .body(body)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200, "{}", answer.text().await.unwrap());
    let found = engine
        .ask(
            &[("database", &database)],
            "SELECT count(), uniqExact(s), any(length(s)) FROM t",
        )
        .await;
    assert_eq!(found, format!("1000\t1\t{}\n", text.len()));
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
async fn the_same_token_twice_stores_one_copy() {
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
    // Other rows under another token are honest repeats.
    let once = [&ONCE[..], &[("insert_deduplication_token", "second")]].concat();
    insert(
        "one_copy",
        "INSERT INTO raw FORMAT Native",
        &once,
        block.clone(),
    )
    .await;
    assert_eq!(counts().await, "400000\t400000\n");
    // Over several blocks as well.
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
async fn one_block_sent_is_one_part_stored_for_each_partition() {
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
async fn an_insert_is_counted() {
    let engine = shared();
    let database = engine.database("counted").await;
    engine
        .ask(
            &[("database", &database)],
            "CREATE TABLE t (a UInt64) ENGINE = Memory",
        )
        .await;
    let answer = engine
        .post(&[
            ("database", &database),
            ("query", "INSERT INTO t FORMAT TSV"),
        ])
        .body("1\n2\n3\n")
        .send()
        .await
        .unwrap();
    let summary: serde_json::Value =
        serde_json::from_str(answer.headers()["x-clickhouse-summary"].to_str().unwrap()).unwrap();
    assert_eq!(
        (&summary["written_rows"], &summary["written_bytes"]),
        (&"3".into(), &"24".into())
    );
}

#[tokio::test]
async fn refused_data_stores_nothing() {
    let engine = shared();
    let database = engine.database("refused_data").await;
    let database = [("database", database.as_str())];
    engine.ask(&database, "CREATE TABLE t (a UInt64, CONSTRAINT small CHECK a < 1000000) ENGINE = MergeTree ORDER BY a").await;
    let mut rows: String = (0..300_000).map(|number| format!("{number}\n")).collect();
    let sent = |rows: String| {
        engine
            .post(&[database[0], ("query", "INSERT INTO t FORMAT TSV")])
            .body(rows)
            .send()
    };
    rows.push_str("not a number\n");
    assert_eq!(refused(sent(rows.clone()).await.unwrap()).await, (27, 400));
    assert_eq!(
        refused(sent("1000001\n".to_owned()).await.unwrap()).await,
        (469, 400)
    );
    let answer = engine
        .post(&[database[0], ("query", "INSERT INTO t FORMAT Native")])
        .body(b"\x01\x05garbage".to_vec())
        .send()
        .await
        .unwrap();
    assert_ne!(answer.status(), 200);
    let answer = engine
        .post(&[database[0], ("query", "INSERT INTO t FORMAT RowBinary")])
        .body(b"\x01\x02\x03".to_vec())
        .send()
        .await
        .unwrap();
    assert_eq!(refused(answer).await, (33, 400));
    assert_eq!(
        engine
            .refusal(
                &[database[0], ("query", "INSERT INTO nowhere FORMAT TSV")],
                "1\n"
            )
            .await,
        (60, 404)
    );
    assert_eq!(engine.ask(&database, "SELECT count() FROM t").await, "0\n");
}

#[tokio::test]
async fn a_client_that_goes_away_in_mid_insert_stores_nothing() {
    let engine = shared();
    let database = engine.database("gone_client").await;
    let database = [("database", database.as_str())];
    engine
        .ask(
            &database,
            "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a",
        )
        .await;
    let address = engine.url.strip_prefix("http://").unwrap();
    let target = encode(&[
        database[0],
        ("password", PASSWORD),
        ("query", "INSERT INTO t FORMAT TSV"),
    ]);
    let rows: String = (0..300_000).map(|number| format!("{number}\n")).collect();
    // Once with a length that is never reached, once in chunks without a last one.
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
async fn a_stream_of_inserts_is_stored_as_it_comes() {
    let engine = shared();
    let database = engine.database("slow_stream").await;
    engine
        .ask(
            &[("database", &database)],
            "CREATE TABLE t (a UInt64) ENGINE = Memory",
        )
        .await;
    let (sender, receiver) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(1);
    let body = reqwest::Body::wrap_stream(crate::support::Receiving(receiver));
    let sending = async move {
        for number in 0..20 {
            sender
                .send(Ok(Bytes::from(format!("{number}\n"))))
                .await
                .unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let request = engine
        .post(&[
            ("database", &database),
            ("query", "INSERT INTO t FORMAT TSV"),
        ])
        .body(body)
        .send();
    let (answer, ()) = tokio::join!(request, sending);
    assert_eq!(answer.unwrap().status(), 200);
    assert_eq!(
        engine
            .ask(&[("database", &database)], "SELECT count(), sum(a) FROM t")
            .await,
        "20\t190\n"
    );
}

#[tokio::test]
async fn merges_and_lifetimes_work_in_the_background() {
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
    crate::support::until(|| async {
        engine.ask(&database, "SELECT count() FROM t").await == "12\n"
    })
    .await;
    crate::support::until(|| async {
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
