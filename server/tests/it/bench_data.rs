//! The data that `make bench-queries` generates must resemble that of an app. Otherwise the benchmark measures nothing useful.

use crate::server::Server;

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_of_the_benchmark_occurs_on_one_or_two_pages() {
    let server = Server::start().await;
    server.ready().await;
    let sql = include_str!("../../../loadtest/src/fill/janks.sql")
        .replace("{day:Int64}", "20000")
        .replace("{adopted:Int64}", "5")
        .replace("{first:UInt64}", "0")
        .replace("{rows:UInt64}", "20000");
    server.query(&sql).await;
    let pages =
        "SELECT uniqExact(page) AS pages FROM janks GROUP BY stack_hash HAVING count() > 20";
    let most = format!(
        "SELECT max(pages), countIf(pages = 2) > 0, countIf(pages = 2) < 0.2 * count() FROM ({pages})"
    );
    assert_eq!(server.query(&most).await, "2\t1\t1");
    let all = "SELECT uniqExact(page), uniqExact(stack_hash) > 1000, count() FROM janks";
    assert_eq!(server.query(all).await, "20\t1\t20000");
}
