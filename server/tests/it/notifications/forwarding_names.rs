//! Obfuscated functions in spans that a project forwards.

use std::collections::BTreeMap;
use std::time::Duration;

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use prost::Message as _;
use serde_json::{Value, json};

use super::forwarding::{counted, forward, state, to};
use super::receiver::{Received, Receiver};
use super::sending;
use crate::function_names::traced;
use crate::symbols::{MAP_ID, mapping, upload_to};
use crate::wait;

const CODE: [&str; 3] = ["code.namespace", "code.function.name", "code.file.path"];

/// Names and code of the spans of a request.
fn names_of(request: &Received) -> BTreeMap<String, Value> {
    let message = ExportTraceServiceRequest::decode(&*request.inflated()).unwrap();
    let scopes = message
        .resource_spans
        .iter()
        .flat_map(|one| &one.scope_spans);
    let spans = scopes.flat_map(|scope| &scope.spans).map(|span| {
        let code = CODE.map(|name| {
            let found = span.attributes.iter().find(|one| one.key == name);
            serde_json::to_value(found).unwrap()["value"]["stringValue"].clone()
        });
        (span.name.clone(), json!(code))
    });
    spans.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_have_readable_names_or_those_that_the_device_sent() {
    let server = sending().await;
    let receiver = Receiver::answering(|_, before| {
        let status = if before == 1 { 503 } else { 200 };
        (status, None, Duration::ZERO)
    })
    .await;
    let admin = server.token("admin").await;
    let mut setting = to(&receiver.url);
    setting["spans"] = json!([{"name": "*"}]);
    forward(&server, &admin, setting).await;

    server.send(&traced(MAP_ID)).await;
    counted(&server, &admin, &[("delivered", 4)]).await;
    let file = format!("r8-map-id-{MAP_ID}");
    let sent = json!({
        "a.b.a": ["a.b", "a", file], "a.b.b": ["a.b", "b", file], "Load the cart": ["a.b", "b", file],
        "checkout": [null, null, null],
    });
    assert_eq!(json!(names_of(&receiver.received()[0])), sent);

    let uploads = server
        .token("editor --project default --only-symbols")
        .await;
    let uploaded = upload_to(&server, (&uploads, "default"), &mapping()).await;
    assert_eq!(uploaded["state"], "ok", "{uploaded}");
    let named = "SELECT count() FROM function_names FINAL WHERE function != ''";
    server.answers(named, "2").await;
    let cart = "com.example.shop.Cart";
    let readable = json!({
        "com.example.shop.Cart.pay": [cart, "pay", "Cart.kt"],
        "com.example.shop.Cart.clear": [cart, "clear", "Cart.kt"],
        "Load the cart": [cart, "clear", "Cart.kt"], "checkout": [null, null, null],
    });
    server.send(&traced(MAP_ID)).await;
    wait::until("the attempt failed", async || {
        state(&server, &admin).await["error"].is_string()
    })
    .await;
    server.pass(Duration::from_secs(5));
    counted(
        &server,
        &admin,
        &[("delivered", 8), ("waiting", 0), ("waiting_bytes", 0)],
    )
    .await;
    let received = receiver.received();
    assert_eq!(json!(names_of(&received[1])), readable);
    assert_eq!(received[2].body, received[1].body, "the same request");
}
