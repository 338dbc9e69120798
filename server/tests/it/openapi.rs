//! The API document is complete, current and correct. Schemathesis checks it by calling everything that it describes.

use std::collections::BTreeSet;
use std::path::Path;

use regex::Regex;
use reqwest::Method;
use serde_json::Value;
use tokio::process::Command;

use crate::people::admin;
use crate::postgres::postgres;
use crate::server::Server;
use crate::symbol_uploads::files_below;
use crate::third_party::{installed, succeeds};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
/// All operations except those of the session: a logout would end the session of the other calls.
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

/// `METHOD /path` of the routes in a function of a file in `src/http`. The router itself cannot list them.
fn routes(file: &str, function: &str, prefix: &str) -> BTreeSet<String> {
    let file = Path::new(CRATE).join("src").join(file);
    let table = std::fs::read_to_string(file).unwrap();
    let (_, rest) = table.split_once(&format!("fn {function}(")).unwrap();
    let (body, _) = rest.split_once("\n}\n").unwrap();
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
    let mut routed = routes("http.rs", "public", "");
    routed.extend(routes("http/devices.rs", "batches", ""));
    routed.extend(routes("http/devices.rs", "own", ""));
    routed.extend(routes("http/serving.rs", "health", ""));
    let for_people = std::fs::read_to_string(Path::new(CRATE).join("src/http.rs")).unwrap();
    let (_, management) = for_people.split_once("fn management(").unwrap();
    let folders = management.split(".merge(").skip(1);
    for folder in folders.map(|rest| rest.split_once("::routes()").unwrap().0) {
        routed.extend(routes(&format!("http/{folder}.rs"), "routes", "/api/v1"));
    }
    let documented = operations(&unjank_server::http::document());
    let missing: Vec<_> = routed.difference(&documented).collect();
    assert!(
        missing.is_empty(),
        "annotate the handlers of {missing:?} and name them in `Documented` of their folder"
    );
    let gone: Vec<_> = documented.difference(&routed).collect();
    assert!(gone.is_empty(), "there is no route for {gone:?}");
}

#[test]
fn every_operation_has_a_summary_and_a_unique_name() {
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

/// The codes with which the server rejects events, and those with which it refuses batches for good.
fn reasons() -> BTreeSet<String> {
    let src = Path::new(CRATE).join("src");
    let folders = ["ingest", "otlp"].into_iter();
    let files = folders.flat_map(|folder| files_below(&src.join(folder)));
    // A constant is named like its code.
    let code = Regex::new(r#"Reject::new\(\s*"?(\w+)"#).unwrap();
    let mut reasons = BTreeSet::from(["rate_limited", "invalid_otlp"].map(str::to_owned));
    for file in files {
        let text = std::fs::read_to_string(file).unwrap();
        let codes = code.captures_iter(&text);
        reasons.extend(codes.map(|found| found[1].to_lowercase()));
    }
    assert!(reasons.contains("time_out_of_range") && reasons.contains("cumulative_histogram"));
    let document = unjank_server::http::document();
    let responses = &document["paths"]["/v1/ingest"]["post"]["responses"];
    for status in ["400", "401", "403", "413", "415", "422"] {
        let schema = &responses[status]["content"]["application/problem+json"]["schema"];
        let codes = &schema["allOf"][1]["properties"]["code"]["enum"];
        let codes = codes.as_array().unwrap().iter();
        reasons.extend(codes.map(|code| code.as_str().unwrap().to_owned()));
    }
    reasons
}

#[test]
fn the_web_interface_explains_every_reason() {
    let page = Path::new(CRATE).join("../dashboards/web/src/ingest/reasons.ts");
    let page = std::fs::read_to_string(page).unwrap();
    let is_explained = |code: &str| {
        page.contains(&format!("\n  {code}: ")) || page.contains(&format!("/{code}': "))
    };
    let mut missing = reasons();
    missing.retain(|code| !is_explained(code));
    assert!(missing.is_empty(), "explain {missing:?} in reasons.ts");
}

#[test]
fn the_document_in_the_repository_is_current() {
    let kept = std::fs::read(Path::new(CRATE).join("openapi.json")).unwrap();
    let kept: Value = serde_json::from_slice(&kept).unwrap();
    assert!(
        kept == unjank_server::http::document(),
        "server/openapi.json is outdated: run `make openapi` and commit it"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_serves_its_document() {
    let server = Server::start().await;
    let url = format!("{}/openapi.json", server.url);
    let answer = server.client.get(url).send().await.unwrap();
    let document: Value = serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap();
    assert!(document == unjank_server::http::document());
}

/// All questions have the same filters, which one function reads. Trying the limits of 70 filters at all of them would take minutes, so
/// this removes them from all operations but one.
fn filters_at_one_operation(mut document: Value) -> Value {
    const KEPT: &str = "/api/v1/projects/{project}/query/{signal}";
    let parameters = &document["paths"][KEPT]["get"]["parameters"];
    let mut filters = parameters.as_array().unwrap().clone();
    filters.retain(|parameter| parameter["in"] == "query");
    assert!(filters.len() > 50, "{KEPT} no longer has the filters");
    for (path, item) in document["paths"].as_object_mut().unwrap() {
        for operation in item.as_object_mut().unwrap().values_mut() {
            let parameters = operation.get_mut("parameters");
            if let Some(Value::Array(parameters)) = parameters
                && path != KEPT
                && filters.iter().all(|filter| parameters.contains(filter))
            {
                parameters.retain(|parameter| !filters.contains(parameter));
            }
        }
    }
    document
}

/// An ingest key of each server of these tests.
const INGEST_KEY: &str = "any-key";
/// Tries the limits of each parameter.
const LIMITS: &str = "examples,coverage";
/// Tries unexpected cases.
const FUZZING: &str = "fuzzing";

/// Calls all operations whose paths match, and checks the responses against the document.
async fn check_responses(server: &Server, paths: &str, phases: &str) {
    let document = unjank_server::http::document();
    let document = match phases {
        LIMITS => filters_at_one_operation(document),
        _ => document,
    };
    let file = server.data_dir().join("openapi.json");
    std::fs::write(&file, document.to_string()).unwrap();
    let (token, session) = (server.token("admin").await, admin(server).await.session);
    // With a refused credential, each call would get a documented response.
    let get = |path: &str| server.client.get(format!("{}{path}", server.url));
    for request in [
        get("/v1/config").bearer_auth(INGEST_KEY),
        get("/api/v1/users").bearer_auth(&token),
        get("/api/v1/users").header("cookie", &session),
    ] {
        assert_eq!(request.send().await.unwrap().status(), 200);
    }
    let mut schemathesis = Command::new(installed("schemathesis/venv/bin/st"));
    schemathesis
        // The files that schemathesis keeps between runs are deleted with the server's files.
        .current_dir(server.data_dir())
        .arg("--config-file")
        .arg(Path::new(CRATE).join("tests/schemathesis/schemathesis.toml"))
        .args(["run", "--no-color", "--url", &server.url])
        .args(["--include-path-regex", paths, "--phases", phases])
        .arg(file)
        .env("API_TOKEN", token)
        .env("INGEST_KEY", INGEST_KEY)
        .env("SESSION", session.split_once('=').unwrap().1);
    succeeds(&mut schemathesis).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_to_devices_operators_and_logouts_match_the_document() {
    const PATHS: &str = "^/(v1/|ofrep/|healthz|readyz|openapi|api/v1/session)";
    for phases in [LIMITS, FUZZING] {
        check_responses(&Server::start().await, PATHS, phases).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_at_the_limits_of_parameters_match_the_document() {
    check_responses(&Server::start().await, PEOPLE, LIMITS).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_to_unexpected_requests_match_the_document() {
    check_responses(&Server::start().await, PEOPLE, FUZZING).await;
}

/// PostgreSQL refuses values that SQLite accepts: a NUL in a text, and a number outside its type.
#[tokio::test(flavor = "multi_thread")]
async fn responses_to_unexpected_requests_match_the_document_on_postgresql() {
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
    check_responses(&server, PEOPLE, FUZZING).await;
}
