//! ClickHouse's official Rust client, as the server uses it.

use clickhouse::{Client, Compression, Row};
use serde::{Deserialize, Serialize};

use crate::support::{PASSWORD, shared};

#[derive(Row, Serialize, Deserialize, Debug, PartialEq, Clone)]
struct Event {
    id: u64,
    name: String,
    kind: String,
    share: Option<f64>,
    list: Vec<u32>,
}

fn client(database: &str, compression: Compression) -> Client {
    Client::default()
        .with_url(&shared().url)
        .with_user("admin")
        .with_password(PASSWORD)
        .with_database(database)
        .with_compression(compression)
}

fn event(id: u64) -> Event {
    Event {
        id,
        name: format!("event {id}"),
        kind: format!("kind {}", id % 3),
        share: id.is_multiple_of(2).then_some(0.25),
        list: vec![1, 2, 3],
    }
}

#[tokio::test]
async fn inserted_rows_can_be_read() {
    for (database, compression) in [
        ("rust_plain", Compression::None),
        ("rust_lz4", Compression::Lz4),
    ] {
        shared().database(database).await;
        let client = client(database, compression);
        let table = "CREATE TABLE events (id UInt64, name String, kind LowCardinality(String), share Nullable(Float64), list Array(UInt32)) ENGINE = MergeTree ORDER BY id";
        client.query(table).execute().await.unwrap();
        let mut insert = client.insert::<Event>("events").await.unwrap();
        for id in 0..200_000 {
            insert.write(&event(id)).await.unwrap();
        }
        insert.end().await.unwrap();
        let mut cursor = client
            .query("SELECT ?fields FROM events ORDER BY id")
            .fetch::<Event>()
            .unwrap();
        let mut count = 0;
        while let Some(found) = cursor.next().await.unwrap() {
            assert_eq!(found, event(count));
            count += 1;
        }
        assert_eq!(count, 200_000);
        let found: Vec<Event> = client
            .query("SELECT ?fields FROM events WHERE name = {name:String}")
            .param("name", "event 7")
            .fetch_all()
            .await
            .unwrap();
        assert_eq!(found, [event(7)]);
    }
}

#[tokio::test]
async fn errors_of_queries_are_returned() {
    shared().database("rust_errors").await;
    for compression in [Compression::None, Compression::Lz4] {
        let client = client("rust_errors", compression);
        let error = client
            .query("SELECT * FROM nowhere")
            .fetch_one::<u8>()
            .await
            .unwrap_err();
        assert!(error.to_string().contains("Code: 60. "), "{error}");
        let mut cursor = client
            .query("SELECT throwIf(number = 700000), rand64() FROM numbers(2000000)")
            .fetch::<(u8, u64)>()
            .unwrap();
        let error = read_all(&mut cursor).await.unwrap_err();
        assert!(
            error.to_string().contains("Code: 395. "),
            "{compression:?}: {error}"
        );
    }
}

#[tokio::test]
async fn a_dropped_insert_stores_nothing() {
    shared().database("rust_dropped").await;
    let client = client("rust_dropped", Compression::Lz4);
    client
        .query("CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id")
        .execute()
        .await
        .unwrap();
    let mut insert = client.insert_formatted_with("INSERT INTO t FORMAT TSV");
    for id in 0..100_000 {
        insert.send(format!("{id}\n").into()).await.unwrap();
    }
    drop(insert);
    shared().until_running("INSERT INTO t FORMAT", 0).await;
    assert_eq!(
        client
            .query("SELECT count() FROM t")
            .fetch_one::<u64>()
            .await
            .unwrap(),
        0
    );
}

async fn read_all(
    cursor: &mut clickhouse::query::RowCursor<(u8, u64)>,
) -> clickhouse::error::Result<()> {
    while cursor.next().await?.is_some() {}
    Ok(())
}
