//! Clients that disconnect: the engine cancels their queries.

use std::time::Duration;

use reqwest::Method;
use tokio::time::timeout;

use crate::server::{Server, spans};
use crate::wait;

/// Waits until this many queries run on the spans of this server.
async fn until_running(server: &Server, count: u32) {
    let sql = format!(
        "SELECT count() FROM system.processes WHERE position(query, '{}.spans') > 0 AND position(query, 'processes') = 0",
        server.database()
    );
    wait::until("this number of queries", async || {
        server.query(&sql).await == count.to_string()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_engine_cancels_the_query_of_a_client_that_disconnects() {
    let server = Server::start().await;
    server.ready().await;
    server.send(&spans(1)).await;
    server.drained().await;
    let token = server.token("viewer --project default").await;
    // The view repeats the only span almost without end, so no query of it ends by itself.
    server.query("RENAME TABLE spans TO one_span").await;
    server
        .query("CREATE VIEW spans AS SELECT one_span.* FROM numbers(1000000000000) AS n CROSS JOIN one_span")
        .await;
    for path in [
        "query/spans?locale=&by=name&measure=p95_us",
        "query/spans/series?locale=&measure=count",
        "traces?order=-duration_us",
    ] {
        let path = format!("/api/v1/projects/default/{path}");
        tokio::select! {
            answer = server.call(&token, Method::GET, &path, None) => panic!("{path}: {answer:?}"),
            () = until_running(&server, 1) => {}
        }
        // The other branch is dropped, and its connection with it. Queries end by themselves after 20 s, so the wait is shorter.
        let cancelled = timeout(Duration::from_secs(10), until_running(&server, 0)).await;
        assert!(cancelled.is_ok(), "{path}: the query still runs");
    }
}
