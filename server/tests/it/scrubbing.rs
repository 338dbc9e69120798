//! Personal data and secrets in texts: they are not stored, and it is said how many there were.

use std::path::Path;

use serde_json::{Value, json};

use crate::server::{NOW, Server, spans};

/// Whether a file below the folder has these bytes.
fn holds(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, text);
        }
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    })
}

fn private() -> Value {
    let start = unjank_protocol::Timestamp::from_micros(NOW);
    let mut batch = spans(2);
    let span = &mut batch["spans"][0];
    span["name"] = json!("GET https://bob:marker1@shop.example/pay?token=marker2");
    span["page"] = json!("/orders?user=marker3");
    span["attributes"] = json!({
        "password": "marker4", "note": "ask marker5@example.com, card 4111 1111 1111 1111", "plain": "kept as it is",
    });
    span["events"] = json!([{"time": start, "name": "sent Bearer marker6marker6"}]);
    batch["janks"] = json!([{
        "start": start, "duration_ms": 900, "run_log": [{"time": start, "message": "login as marker7@example.com"}],
    }]);
    batch["page_loads"] = json!([{
        "page": "Cart", "start": start, "total_ms": 1, "requests": [{"path": "/api/cart?id=marker8"}],
    }]);
    batch["resource"]["user_id"] = json!("marker9@example.com");
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_private_never_reaches_the_disk_and_is_counted() {
    let mut server = Server::with(&[
        "--clickhouse-url",
        "http://127.0.0.1:9",
        "--shutdown-timeout-ms",
        "100",
    ])
    .await;
    let batch = private();
    assert_eq!(server.send(&batch).await.body["accepted"], 4);
    // In the log as it waits for ClickHouse, and in no other file.
    assert!(holds(server.data_dir(), "kept as it is"));
    assert!(!holds(server.data_dir(), "marker"));
    server.point_at_the_engine().await;
    let span = "SELECT name, page, attributes['password'], attributes['note'], events.name[1], user_id FROM spans ORDER BY name LIMIT 1";
    assert_eq!(
        server.stored(span).await,
        "GET https://[user]@shop.example/pay?[query]\t/orders?[query]\t[secret]\task [email], card [card]\tsent Bearer [secret]\t[email]"
    );
    let others =
        "SELECT (SELECT run_log.message[1] FROM janks), (SELECT requests.path[1] FROM page_loads)";
    assert_eq!(
        server.query(others).await,
        "login as [email]\t/api/cart?[query]"
    );
    let counted = "SELECT signal, reason, sum(count) FROM outcomes WHERE outcome = 'scrubbed' AND project = 'default' \
                   GROUP BY ALL ORDER BY ALL";
    server
        .answers(
            counted,
            "janks\temail\t1\nother\temail\t1\npage_loads\tquery_string\t1\nspans\tcard_number\t1\nspans\temail\t1\n\
             spans\tquery_string\t2\nspans\tsecret\t3\nspans\turl_user\t1",
        )
        .await;
    // A duplicate is not counted a second time.
    assert_eq!(server.send(&batch).await.body["duplicate"], true);
}
