//! `unjank mcp`, started and called by the official client of the Model Context Protocol.

use std::path::Path;

use serde_json::json;
use tokio::process::Command;

use crate::asked::Asked;
use crate::server::{span, spans};
use crate::third_party::{installed, succeeds};

#[tokio::test(flavor = "multi_thread")]
async fn an_assistant_queries_a_project() {
    let mut many = spans(0);
    many["spans"] = (0..900)
        .map(|_| {
            let mut span = span();
            span["name"] = json!("many");
            span
        })
        .collect();
    let asked = Asked::of(&[spans(3), many]).await;
    let server = &asked.server;
    let admin = server.token("admin").await;
    let body = json!({"id": "other", "name": "Other"});
    let made = server
        .call(
            &admin,
            reqwest::Method::POST,
            "/api/v1/projects",
            Some(body),
        )
        .await;
    assert_eq!(made.status, 201, "{}", made.body);
    succeeds(
        Command::new("node")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mcp/client.mjs"))
            .env("CLIENT_MODULES", installed("mcp/node_modules"))
            .env("UNJANK", env!("CARGO_BIN_EXE_unjank"))
            .env("UNJANK_URL", &server.url)
            .env("UNJANK_TOKEN", &asked.token)
            .env("OTHER_TOKEN", server.token("viewer --project other").await),
    )
    .await;
}
