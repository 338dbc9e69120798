//! The package of a span: the first parts of a Java package name, or the crate of a Rust path.

use reqwest::Method;
use serde_json::json;

use crate::server::{Server, batch, span};

#[tokio::test(flavor = "multi_thread")]
async fn time_is_summed_by_package_and_crate() {
    let server = Server::start().await;
    server.ready().await;
    let mut batch = batch();
    let classes = [
        "com.example.shop.cart.Basket",
        "com.example.shop.Start",
        "com.example.lib.Json$Reader",
        "com.example.{shop.Cart, bank.Transfer}",
        "Main",
        "kotlin.Unit",
        "shop::stalls::parse",
        "shop::Cart",
        "",
    ];
    batch["spans"] = classes
        .iter()
        .map(|class| {
            let mut span = span();
            span["duration_us"] = json!(1_000);
            span["code"] = json!({"class": class, "function": "run"});
            span
        })
        .collect();
    let answer = server.send(&batch).await;
    assert_eq!(answer.outcome(), (202, "accepted 9 rejected 0".to_owned()));
    server.drained().await;
    let token = server.token("viewer --project default").await;
    let path = "/api/v1/projects/default/query/spans?by=package&measure=sum_us&order=-sum_us";
    let answer = server.call(&token, Method::GET, path, None).await;
    let rows = answer.body["rows"].as_array().unwrap();
    let rows: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["keys"][0].as_str().unwrap(),
                row["values"][0].as_f64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("com.example.shop", 2_000.0),
            ("shop", 2_000.0),
            ("", 1_000.0),
            ("Main", 1_000.0),
            ("com.example", 1_000.0),
            ("com.example.lib", 1_000.0),
            ("kotlin.Unit", 1_000.0),
        ]
    );
}
