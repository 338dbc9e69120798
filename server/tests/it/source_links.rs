//! Frames link to their source lines by the template and rules of the project.

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Server, batch};

const LINKS: &str = "/api/v1/projects/default/source-links";
const PERIOD: &str = "from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z";

fn github() -> Value {
    json!({
        "template": "https://github.com/acme/shop/blob/v{version}/{path}#L{line}",
        "rules": [{"prefix": "com/example/", "replacement": "app/src/main/java/com/example/"}],
    })
}

fn janks(version: &str) -> Value {
    let mut batch = batch();
    batch["resource"]["app_version"] = json!(version);
    batch["resource"]["build"] = json!(41_200);
    batch["janks"] = json!([{
        "kind": "jank", "start": "2026-11-20T11:59:50Z", "duration_ms": 2300, "thread": "main",
        "stack": [
            {"class": "java.util.Arrays", "function": "sort", "file": "Arrays.java", "line": 90},
            {"class": "com.example.shop.Cart", "function": "pay", "file": "Cart.kt", "line": 41},
            {"module": "libshop.so", "build_id": "67E9A1B2C3", "offset": 4096},
        ],
    }]);
    batch
}

/// Repeats a query until the Kotlin frame of the response has this link.
async fn until_linked(
    server: &Server,
    (token, kind): (&str, &str),
    pointer: &str,
    url: &str,
) -> Value {
    let path = format!("/api/v1/projects/default/janks/{kind}?{PERIOD}");
    let mut answer = Value::Null;
    for _ in 0..100 {
        answer = server.call(token, Method::GET, &path, None).await.body;
        if answer.pointer(pointer) == Some(&json!(url)) {
            return answer;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("{url} is not at {pointer} of {answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_link_to_the_latest_version_of_their_stack() {
    let server = Server::start().await;
    server.ready().await;
    let editor = server.token("editor --project default").await;
    let saved = server
        .call(&editor, Method::PUT, LINKS, Some(github()))
        .await;
    assert_eq!(saved.status, 204, "{}", saved.body);
    for version in ["4.9.0", "4.10.0"] {
        server.send(&janks(version)).await;
    }
    server.drained().await;
    let url =
        "https://github.com/acme/shop/blob/v4.10.0/app/src/main/java/com/example/shop/Cart.kt#L41";
    let stacks = "/stacks/0/frames/1/source_url";
    let answer = until_linked(&server, (&editor, "stacks"), stacks, url).await;
    let stack = &answer["stacks"][0];
    let others = [0, 2].map(|place| &stack["frames"][place]["source_url"]);
    assert_eq!(others, [&Value::Null, &Value::Null]);
    // Screens name the build whose symbols are missing.
    let native = &stack["frames"][2];
    assert_eq!(native["build_id"], "67E9A1B2C3");
    assert_eq!(native["offset"], 4096);
    // A single jank links to its own version.
    let events = server
        .call(
            &editor,
            Method::GET,
            &format!("/api/v1/projects/default/janks/events?{PERIOD}&app_version=4.9.0"),
            None,
        )
        .await;
    let old = &events.body["events"][0]["stack"][1]["source_url"];
    assert_eq!(*old, json!(url.replace("4.10.0", "4.9.0")));
    // Build numbers are read from raw rows.
    let links =
        json!({"template": "https://code.example.com/{build}/{path}", "rules": github()["rules"]});
    let saved = server.call(&editor, Method::PUT, LINKS, Some(links)).await;
    assert_eq!(saved.status, 204, "{}", saved.body);
    let url = "https://code.example.com/41200/app/src/main/java/com/example/shop/Cart.kt";
    until_linked(&server, (&editor, "stacks"), stacks, url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_link_to_the_latest_build_of_their_stack() {
    let server = Server::start().await;
    server.ready().await;
    let editor = server.token("editor --project default").await;
    let links = server.call(&editor, Method::PUT, LINKS, Some(github()));
    assert_eq!(links.await.status, 204);
    for version in ["1.4.0+9", "1.4.0+10", "1.4.0+8", "nightly", "nightly"] {
        server.send(&janks(version)).await;
    }
    server.drained().await;
    let url = "https://github.com/acme/shop/blob/v1.4.0%2B10/app/src/main/java/com/example/shop/Cart.kt#L41";
    let stacks = "/stacks/0/frames/1/source_url";
    until_linked(&server, (&editor, "stacks"), stacks, url).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn stacks_name_the_builds_whose_symbols_are_missing() {
    let server = Server::start().await;
    server.ready().await;
    let viewer = server.token("viewer --project default").await;
    server.send(&janks("4.9.0")).await;
    server
        .answers(
            "SELECT missing[1] FROM stacks_symbolicated FINAL",
            "67e9a1b2c3",
        )
        .await;
    for (kind, pointer) in [("stacks", "/stacks/0"), ("events", "/events/0")] {
        let path = format!("/api/v1/projects/default/janks/{kind}?{PERIOD}");
        let answer = server.call(&viewer, Method::GET, &path, None).await.body;
        let stack = answer.pointer(pointer).unwrap();
        assert_eq!(stack["missing_symbols"], json!(["67e9a1b2c3"]), "{answer}");
        assert_eq!(stack["mismatched_symbols"], json!([]));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_editors_set_links_and_a_template_must_lead_to_a_host() {
    let server = Server::start().await;
    server.ready().await;
    let (viewer, editor) = (server.token("viewer").await, server.token("editor").await);
    let empty = server.call(&viewer, Method::GET, LINKS, None).await.body;
    assert_eq!(empty, json!({"template": "", "rules": []}));
    let refused = server
        .call(&viewer, Method::PUT, LINKS, Some(github()))
        .await;
    assert_eq!(refused.status, 403);
    for wrong in [
        json!({"template": "javascript:alert('{path}')"}),
        json!({"template": "https://{version}.example.com/{path}"}),
        json!({"template": "https://github.com/{path}/{branch}"}),
        json!({"template": "https://github.com/acme/"}),
        json!({"rules": vec![json!({"prefix": "/builds/"}); 21]}),
        json!({"rules": [["/builds/", ""]]}),
        json!({"link": "https://github.com/{path}"}),
    ] {
        let answer = server
            .call(&editor, Method::PUT, LINKS, Some(wrong.clone()))
            .await;
        assert_eq!(answer.status, 422, "{wrong}: {}", answer.body);
    }
    let saved = server
        .call(&editor, Method::PUT, LINKS, Some(github()))
        .await;
    assert_eq!(saved.status, 204);
    let read = server.call(&viewer, Method::GET, LINKS, None).await.body;
    assert_eq!(read, github());
    let admin = server.token("admin").await;
    let audit = "/api/v1/projects/default/audit";
    let audit = server.call(&admin, Method::GET, audit, None).await.body;
    let mut entries = audit["entries"].as_array().unwrap().iter();
    let entry = entries.find(|entry| entry["action"] == "source_links.set");
    assert_eq!(entry.unwrap()["detail"]["source_links"], github());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_shows_the_link_of_a_frame_or_why_there_is_none() {
    let server = Server::start().await;
    server.ready().await;
    let viewer = server.token("viewer").await;
    let preview = format!("{LINKS}/preview");
    let mut frame = json!({
        "links": github(), "class": "com.example.shop.Cart", "file": "Cart.kt", "line": 41, "app_version": "4.12.0",
    });
    let tried = server
        .call(&viewer, Method::POST, &preview, Some(frame.clone()))
        .await
        .body;
    assert_eq!(
        tried,
        json!({
            "path": "app/src/main/java/com/example/shop/Cart.kt",
            "url": "https://github.com/acme/shop/blob/v4.12.0/app/src/main/java/com/example/shop/Cart.kt#L41",
            "reason": null,
        })
    );
    frame["class"] = json!("okhttp3.Call");
    let tried = server
        .call(&viewer, Method::POST, &preview, Some(frame))
        .await
        .body;
    assert_eq!(
        tried,
        json!({"path": null, "url": null, "reason": "no_rule"})
    );
}
