//! The exporters of OpenTelemetry as they ship, in Python and JavaScript: each value that they send is stored.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::json;
use tokio::process::Command;

use crate::remote_config::save;
use crate::server::{NOW, Server};
use crate::third_party::{installed, succeeds};

const INSTALL: &str = "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11";
const SESSION: &str = "7aa3cf63-c4b2-a1e0-a9fb-d2a4b1c0de11";

/// A server with the time of the machine, which exporters use.
#[expect(
    clippy::disallowed_methods,
    reason = "exporters read the clock of the machine"
)]
async fn server_of_today() -> Server {
    let server = Server::start().await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    server.pass(now.saturating_sub(Duration::from_micros(NOW.unsigned_abs())));
    server
}

async fn runs(program: PathBuf, script: &str, protocol: &str, server: &Server) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/opentelemetry")
        .join(script);
    let mut command = Command::new(program);
    command
        .arg(script)
        .env("SERVER_URL", &server.url)
        .env("PROTOCOL", protocol)
        .env("SERVER_KEY", "any-key")
        .env("INSTALL", INSTALL)
        .env("SESSION", SESSION)
        .env("CLIENT_MODULES", installed("opentelemetry/node_modules"));
    succeeds(&mut command).await;
}

/// Checks all values that the scripts have in common.
async fn all_is_stored(server: &Server) {
    let spans = "SELECT name, toString(kind), toString(status), app_id, app_version, toString(install_id), toString(session_id), os_name,
        attributes['items'], attributes['free'], attributes['names'], attributes['price'], attributes['http.request.method'],
        attributes['otel.scope.name'], attributes['otel.scope.version'], attributes['team'], duration_us < 60000000
        FROM spans WHERE name IN ('checkout', 'GET /pay') ORDER BY name";
    assert_eq!(
        server.stored(spans).await,
        format!(
            "GET /pay\tnetwork\terror\tcom.example.shop\t4.12.0\t{INSTALL}\t{SESSION}\tandroid\t\t\t\t\tGET\tshop.cart\t2.0\tcheckout\t1\n\
             checkout\tmanual\tok\tcom.example.shop\t4.12.0\t{INSTALL}\t{SESSION}\tandroid\t3\ttrue\t[\"a\",\"b\"]\t9.5\t\tshop.cart\t2.0\tcheckout\t1"
        )
    );
    let parents = "SELECT count() FROM spans AS child JOIN spans AS parent ON child.parent_span_id = parent.span_id AND child.trace_id = parent.trace_id
        WHERE child.name = 'GET /pay' AND parent.name = 'checkout'";
    assert_eq!(server.query(parents).await, "1");
    let events = "SELECT arrayJoin(`events.name`) AS event FROM spans WHERE event LIKE 'paid%' OR event LIKE 'exception%' ORDER BY event";
    let events = server.query(events).await;
    let (exception, paid) = events.split_once('\n').unwrap();
    assert_eq!(paid, "paid by=card");
    assert!(
        exception.contains("exception.message=no money"),
        "{exception}"
    );
    let metrics = "SELECT name, sum(value * count), sum(count), any(attributes['unit']), any(attributes['screen']) FROM metrics
        WHERE name IN ('taps', 'load') GROUP BY name ORDER BY name";
    assert_eq!(
        server.query(metrics).await,
        "load\t60\t3\tms\t\ntaps\t7\t1\t{tap}\tcart"
    );
    let logs = "SELECT name, toString(status), attributes['body'], attributes['exception.message'] != '' FROM spans
        WHERE attributes['body'] != '' ORDER BY name";
    assert_eq!(
        server.query(logs).await,
        "KeyError\terror\tno cart\t1\nlog.warn\tunset\tnearly empty\t0"
    );
    assert_eq!(server.query("SELECT sum(rejected) FROM batches").await, "0");
}

async fn python_sends_every_value(protocol: &str) {
    let server = server_of_today().await;
    let python = installed("opentelemetry/venv/bin/python");
    runs(python, "exporter.py", protocol, &server).await;
    all_is_stored(&server).await;
    let sdk = "SELECT DISTINCT sdk_name, sdk_version FROM batches";
    assert_eq!(server.query(sdk).await, "opentelemetry-python\t1.45.2");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exporters_for_python_send_every_value() {
    python_sends_every_value("http").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exporters_for_python_send_every_value_over_grpc() {
    python_sends_every_value("grpc").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exporters_for_javascript_send_every_value() {
    let server = server_of_today().await;
    runs("node".into(), "exporter.mjs", "http", &server).await;
    all_is_stored(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_samples_as_the_configuration_says_has_right_counts() {
    let server = server_of_today().await;
    let token = server.token("admin").await;
    let configuration = json!({"base": {"sampling": {"spans": {"default": 0.25}}}});
    save(&server, &token, configuration).await;
    let python = installed("opentelemetry/venv/bin/python");
    runs(python, "sampling.py", "http", &server).await;
    let counts = "SELECT any(sample_rate), uniq(sample_rate), count() BETWEEN 150 AND 350 FROM spans WHERE name = 'sampled'";
    assert_eq!(server.stored(counts).await, "0.25\t1\t1");
}
