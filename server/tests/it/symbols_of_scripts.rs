//! Frames of scripts: their source maps are uploaded as bundlers write them, and the stacks arrive as browsers send them.

use std::process::Command;

use serde_json::json;
use unjank_symbols::MIN_MEMORY_BYTES;

use crate::engine::UNJANK;
use crate::server::Server;
use crate::symbols::{CULPRITS, READABLE, janks, upload_to};

const ID: &str = "6f2b1c7e-98c4-4d5e-8a71-0d9f3b6a5e42";

const SOURCE: &str = "function pay() {\n  send(function () { close() })\n}\n";

/// The map of a script with three lines. The second line begins where the first one ended: in line 1 of the source. The third one has line
/// 2 of the source, and from column 10 on the function without a name.
pub(crate) fn map() -> String {
    json!({
        "version": 3, "debugId": ID, "debug_id": ID.to_uppercase(), "sources": ["cart.js"], "sourcesContent": [SOURCE],
        "names": ["i", "value"], "mappings": "AAAAA;AAAAA;AACAC,UAAoBA",
    })
    .to_string()
}

async fn server_with(map: &str) -> Server {
    let server = Server::start().await;
    server.ready().await;
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    let state = upload_to(&server, (&token, "default"), map.as_bytes()).await;
    assert_eq!(state["state"], "ok", "{state}");
    server
}

async fn send(server: &Server, frames: &[(&str, u32, u32)]) {
    let frame = |(function, line, column): &(&str, u32, u32)| {
        json!({
            "build_id": ID, "function": function, "file": "https://example.com/app.js", "line": line, "column": column,
        })
    };
    let stack: Vec<_> = frames.iter().map(frame).collect();
    server.send(&janks(&json!(stack))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_line_of_a_script_has_its_function_and_line() {
    let server = server_with(&map()).await;
    send(
        &server,
        &[("t.a", 2, 1), ("t.b", 3, 5), ("", 3, 15), ("t.c", 1, 9)],
    )
    .await;
    server
        .answers(
            READABLE,
            ".pay cart.js:1 1, .pay cart.js:2 1, .<anonymous> cart.js:2 1, .pay cart.js:1 1",
        )
        .await;
    server.answers(CULPRITS, "pay").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_that_devices_send_are_kept_where_the_map_tells_none() {
    let server = server_with(&map()).await;
    send(&server, &[("Checkout.payNow", 3, 15)]).await;
    let expected = ".Checkout.payNow cart.js:2 1";
    server.answers(READABLE, expected).await;
    server.answers(CULPRITS, "Checkout.payNow").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn identifiers_of_a_map_without_sources_are_not_functions() {
    let map = map().replace("sourcesContent", "sources_content");
    let server = server_with(&map).await;
    send(&server, &[("Checkout.payNow", 2, 1), ("t.b", 3, 5)]).await;
    let expected = ".Checkout.payNow cart.js:1 1, .t.b cart.js:2 1";
    server.answers(READABLE, expected).await;
}

#[test]
fn the_smallest_parser_reads_functions_and_a_smaller_one_says_that_it_cannot() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cart.js.map");
    std::fs::write(&file, map()).unwrap();
    let convert = |bytes: u64| {
        let out = folder.path().join(bytes.to_string());
        let run = Command::new(UNJANK)
            .args(["symbol-parser", "--max-seconds", "60"])
            .args(["--max-memory-bytes", &bytes.to_string(), "convert"])
            .arg(&file)
            .arg("0")
            .arg(&out)
            .output();
        let answer = String::from_utf8(run.unwrap().stdout).unwrap();
        (answer, std::fs::read(out).unwrap())
    };
    let (answer, lookup) = convert(MIN_MEMORY_BYTES);
    assert_eq!(answer, "\"Converted\"");
    assert!(lookup.windows(3).any(|name| name == b"pay"));
    let (answer, _) = convert(MIN_MEMORY_BYTES / 2);
    assert!(answer.starts_with("{\"NeedsMemory\":"), "{answer}");
}
