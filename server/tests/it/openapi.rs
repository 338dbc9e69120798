//! The API document: complete, current, and true, as schemathesis finds by trying everything it says.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Output;

use regex::Regex;
use reqwest::Method;
use serde_json::Value;

use crate::people::admin;
use crate::postgres::postgres;
use crate::server::Server;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
/// All but logging out, which ends the session that the others are tried with.
const PEOPLE: &str = "^/api/v1/(?!session)";
const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

/// `METHOD /path` of all operations of a document.
fn operations(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, item)| {
        let methods = METHODS.into_iter();
        methods
            .filter(|method| item.get(method).is_some())
            .map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    operations.collect()
}

/// `METHOD /path` of what a function of the routing table routes. The router itself does not tell.
fn routes(function: &str) -> BTreeSet<String> {
    let table = std::fs::read_to_string(Path::new(CRATE).join("src/http.rs")).unwrap();
    let (_, rest) = table.split_once(&format!("fn {function}(")).unwrap();
    let (body, _) = rest.split_once("\n}\n").unwrap();
    let prefix = if function == "public" { "" } else { "/api/v1" };
    let method = Regex::new(r"\b(get|put|post|delete|patch)\(\w+::\w+\)").unwrap();
    let mut routes = BTreeSet::new();
    for route in body.split(".route(").skip(1) {
        let path = route.split('"').nth(1).unwrap().replace("{*", "{");
        let before = routes.len();
        for found in method.captures_iter(route) {
            routes.insert(format!("{} {prefix}{path}", found[1].to_uppercase()));
        }
        assert!(routes.len() > before, "no method of {path} is understood");
    }
    routes
}

#[test]
fn every_public_route_is_in_the_document_and_nothing_else() {
    let mut routed = routes("public");
    routed.extend(routes("management"));
    routed.extend(routes("people"));
    routed.extend(routes("data"));
    routed.extend(routes("rules"));
    routed.extend(routes("alerts"));
    routed.extend(routes("questions"));
    routed.extend(routes("notifying"));
    routed.extend(routes("symbols"));
    let documented = operations(&unjank_server::http::document());
    let missing: Vec<_> = routed.difference(&documented).collect();
    assert!(
        missing.is_empty(),
        "annotate the handlers of {missing:?} and name them in http/api_document.rs"
    );
    let gone: Vec<_> = documented.difference(&routed).collect();
    assert!(gone.is_empty(), "there is no route for {gone:?}");
}

#[test]
fn every_operation_says_what_it_does_and_has_a_name_of_its_own() {
    let document = unjank_server::http::document();
    let mut names = BTreeSet::new();
    let paths = document["paths"].as_object().unwrap();
    for (path, item) in paths {
        for (method, operation) in item.as_object().unwrap() {
            let summary = operation["summary"].as_str().unwrap_or_default();
            assert!(!summary.is_empty(), "{method} {path} has no doc comment");
            let name = operation["operationId"].as_str().unwrap().to_owned();
            assert!(
                names.insert(name),
                "{method} {path} has the name of another"
            );
        }
    }
}

#[test]
fn the_document_in_the_repository_is_current() {
    let kept = std::fs::read(Path::new(CRATE).join("openapi.json")).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    assert!(
        kept == unjank_server::http::document(),
        "server/openapi.json is not what the code says: run `make openapi` and commit it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_answers_its_document() {
    let server = Server::start().await;
    let url = format!("{}/openapi.json", server.url);
    let answer = server.client.get(url).send().await.unwrap();
    let document: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    assert!(document == unjank_server::http::document());
}

fn schemathesis() -> PathBuf {
    let path = Path::new(CRATE).join("../.cache/schemathesis/venv/bin/st");
    assert!(
        path.exists(),
        "{} is missing: run `make clients`, which installs what the API is tried with",
        path.display()
    );
    path
}

/// Examples and coverage try the edges of each parameter, fuzzing what nobody thought of.
const ALL: &str = "examples,coverage,fuzzing";

/// Tries all operations whose paths match.
async fn hold(server: &Server, paths: &str, phases: &str) {
    let session = admin(server).await.session;
    let Output { status, stdout, .. } = tokio::process::Command::new(schemathesis())
        // What it remembers from one run to the next goes with the server's files.
        .current_dir(server.data_dir())
        .arg("--config-file")
        .arg(Path::new(CRATE).join("tests/schemathesis/schemathesis.toml"))
        .args(["run", "--no-color"])
        .args(["--include-path-regex", paths, "--phases", phases])
        .arg(format!("{}/openapi.json", server.url))
        .env("API_TOKEN", server.token("admin").await)
        .env("INGEST_KEY", "any-key")
        .env("SESSION", session.split_once('=').unwrap().1)
        .kill_on_drop(true)
        .output()
        .await
        .unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stdout));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_devices_operators_and_those_who_leave_are_answered_is_what_the_document_says() {
    let server = Server::start().await;
    hold(
        &server,
        "^/(v1/|ofrep/|healthz|readyz|openapi|api/v1/session)",
        ALL,
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_people_and_tools_are_answered_is_what_the_document_says() {
    hold(&Server::start().await, PEOPLE, ALL).await;
}

/// PostgreSQL takes less than SQLite: no NUL in a text, no number past its type.
#[tokio::test(flavor = "multi_thread")]
async fn on_postgresql_people_and_tools_are_answered_what_the_document_says() {
    let url = postgres().database().await;
    let server = Server::with(&["--database-url", url.as_str()]).await;
    let token = server.token("admin").await;
    for (path, outcome) in [
        ("/api/v1/projects/a%00b/config", (404, "project_unknown")),
        ("/api/v1/users?after=%00", (422, "invalid")),
    ] {
        let answer = server.call(&token, Method::GET, path, None).await;
        let (status, code) = answer.outcome();
        assert_eq!((status, code.as_str()), outcome, "{path}");
    }
    hold(&server, PEOPLE, "fuzzing").await;
}
