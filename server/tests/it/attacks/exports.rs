//! Exports that a client requests and does not read.

use reqwest::{Method, Response};

use crate::server::{Server, spans};

async fn export(server: &Server, token: &str, table: &str) -> Response {
    let url = format!("{}/api/v1/projects/default/export/{table}.csv", server.url);
    let request = server.client.get(url).bearer_auth(token);
    request.send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_exports_do_not_block_exports_and_queries_of_others() {
    let server = Server::start().await;
    server.ready().await;
    server.send(&spans(1)).await;
    server.drained().await;
    // The view repeats the only span almost without end, so no export of it ends by itself.
    server.query("RENAME TABLE spans TO one_span").await;
    server
        .query("CREATE VIEW spans AS SELECT one_span.* FROM numbers(1000000000000) AS n CROSS JOIN one_span")
        .await;
    let attacker = server.token("viewer --project default").await;
    let unread = export(&server, &attacker, "spans").await;
    assert_eq!(unread.status(), 200);
    let again: Vec<_> = (0..6)
        .map(|_| export(&server, &attacker, "spans"))
        .collect();
    let again = futures_util::future::join_all(again);

    let other = server.token("viewer --project default").await;
    let others = async {
        for _ in 0..5 {
            let file = export(&server, &other, "traffic").await;
            assert_eq!(file.status(), 200);
            assert!(file.text().await.unwrap().contains("project"));
            let path = "/api/v1/projects/default/query/page_loads?measure=count";
            let table = server.call(&other, Method::GET, path, None).await;
            assert_eq!(table.status, 200);
        }
    };
    let (again, ()) = tokio::join!(again, others);
    for refused in again {
        assert_eq!(refused.status(), 503);
    }
    drop(unread);
}
