//! Rows that ClickHouse refuses for their content wait in the dead-letter folder. All other rows are stored.

use std::process::Command;

use serde_json::json;

use crate::engine::UNJANK;
use crate::otlp;
use crate::server::{Server, spans};

/// Runs `unjank dead-letter …` on the data of the test's server. Returns its output.
pub(crate) fn dead_letter(server: &Server, arguments: &[&str]) -> String {
    let output = Command::new(UNJANK)
        .arg("dead-letter")
        .args(arguments)
        .args(server.flags())
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

const OUTCOMES: &str = "SELECT outcome, sum(count) AS events FROM outcomes WHERE project != '' GROUP BY outcome HAVING events != 0 ORDER BY outcome";

pub(crate) async fn server_with_a_refused_batch() -> Server {
    let server = Server::start().await;
    server.send(&spans(1)).await;
    server.drained().await;
    server
        .query("ALTER TABLE spans ADD CONSTRAINT no_poison CHECK name != 'poison'")
        .await;
    let mut poisoned = spans(2);
    poisoned["spans"][1]["name"] = json!("poison");
    poisoned["metrics"] = json!([{"name": "fps", "time": "2026-11-20T11:59:59Z", "value": 60}]);
    for batch in [spans(3), poisoned, spans(4)] {
        assert_eq!(server.send(&batch).await.status, 202);
    }
    server.drained().await;
    server
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_refused_rows_wait_and_a_retry_stores_them() {
    let server = server_with_a_refused_batch().await;
    assert_eq!(server.query("SELECT count() FROM spans").await, "8");
    assert_eq!(server.query("SELECT count() FROM metrics").await, "1");
    assert_eq!(server.query(OUTCOMES).await, "dead_letter\t2\nstored\t9");
    let list = dead_letter(&server, &["list"]);
    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(
        list.contains("\tdefault\tspans\t2\t") && list.contains("no_poison"),
        "{list}"
    );
    let unknown = Command::new(UNJANK)
        .args(["dead-letter", "retry", "../drain", "123"])
        .args(server.flags())
        .output()
        .unwrap();
    let printed = String::from_utf8(unknown.stdout).unwrap();
    for id in ["../drain", "123"] {
        assert!(
            printed.contains(&format!("there is no item {id}:")),
            "{printed}"
        );
    }
    server
        .query("ALTER TABLE spans DROP CONSTRAINT no_poison")
        .await;
    dead_letter(&server, &["retry", "--all"]);
    assert_eq!(dead_letter(&server, &["retry", "--all"]), "no items\n");
    assert_eq!(server.query("SELECT count() FROM spans").await, "10");
    assert_eq!(server.query(OUTCOMES).await, "stored\t11");
    assert_eq!(dead_letter(&server, &["list"]).lines().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_rows_count_as_rejected() {
    let server = server_with_a_refused_batch().await;
    dead_letter(&server, &["drop", "--all"]);
    assert_eq!(server.query(OUTCOMES).await, "rejected\t2\nstored\t9");
}

/// Each session of a request has rows of its own in the log. ClickHouse refuses them together.
#[tokio::test(flavor = "multi_thread")]
async fn the_sessions_of_a_refused_request_wait_one_by_one_and_none_is_lost() {
    let server = Server::start().await;
    server.ready().await;
    server
        .query("ALTER TABLE spans ADD CONSTRAINT no_poison CHECK name != 'poison'")
        .await;
    let send = async |names: [&str; 3], first: u64| {
        let spans = (first..).zip(names).map(|(id, name)| {
            let mut span = otlp::span(name, id);
            let session = format!("00000000-0000-4000-8000-{id:012}");
            span["attributes"] = json!([otlp::text("session.id", &session)]);
            span
        });
        let request = otlp::traces(&spans.collect::<Vec<_>>()).to_string();
        let answer = otlp::post(&server, "traces", otlp::JSON, request.into_bytes()).await;
        assert_eq!(answer.status(), 200);
    };
    tokio::join!(
        send(["one", "poison", "two"], 1),
        send(["three", "four", "five"], 4)
    );
    server.drained().await;
    const NAMES: &str = "SELECT arrayStringConcat(arraySort(groupArray(name)), ' ') FROM spans";
    assert_eq!(server.query(NAMES).await, "five four three");
    assert_eq!(server.query(OUTCOMES).await, "dead_letter\t3\nstored\t3");
    let list = dead_letter(&server, &["list"]);
    assert_eq!(list.lines().count(), 4, "{list}");
    server
        .query("ALTER TABLE spans DROP CONSTRAINT no_poison")
        .await;
    dead_letter(&server, &["retry", "--all"]);
    let all = "five four one poison three two";
    assert_eq!(server.query(NAMES).await, all);
    assert_eq!(server.query(OUTCOMES).await, "stored\t6");
}
