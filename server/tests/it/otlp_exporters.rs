//! The exporters of OpenTelemetry as they ship: each value that they send is stored.

use reqwest::Method;
use serde_json::json;

use crate::otlp_clients::{Client, all_of_all_is_stored, all_send, python, server_of_today};
use crate::relay::Relay;
use crate::remote_config::save;
use crate::server::{KEY, Server};

#[tokio::test(flavor = "multi_thread")]
async fn the_exporters_for_python_javascript_and_rust_send_every_value() {
    let server = server_of_today(&[]).await;
    let relay = Relay::before(&server.url, |_, _| None).await;
    all_send(&relay.url, KEY).await;
    all_of_all_is_stored(&server).await;
    // The resource of the app in JavaScript has no name of an SDK.
    assert_eq!(
        server
            .query("SELECT DISTINCT sdk_name, sdk_version FROM batches ORDER BY sdk_name")
            .await,
        "\t\nopentelemetry-python\t1.45.2\nopentelemetry-rust\t0.33.1"
    );
    // Partial success is success to them: they repeat nothing.
    assert_eq!(relay.requests(), (9, 9));
    screens_show_all(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_exporters_for_python_send_every_value_over_grpc() {
    let server = server_of_today(&[]).await;
    let python = Client::PythonOverGrpc;
    python.sends(&server.url, KEY).await;
    server.drained().await;
    python
        .all_is_stored(async |sql| server.query(sql).await)
        .await;
}

/// Asks what the pages *Spans*, *Resources* and *Traces* ask.
async fn screens_show_all(server: &Server) {
    let token = server.token("viewer").await;
    let ask = async |path: String| {
        let path = format!("/api/v1/projects/default/{path}");
        let answer = server.call(&token, Method::GET, &path, None).await;
        assert_eq!(answer.status, 200, "{path}: {:?}", answer.body);
        answer.body
    };
    let shown = async |query: &str| {
        let answer = ask(format!("query/{query}")).await;
        let rows = answer["rows"].as_array().unwrap().iter();
        let rows =
            rows.map(|row| format!("{} {}", row["keys"][0].as_str().unwrap(), row["values"]));
        let mut rows: Vec<_> = rows.collect();
        rows.sort();
        rows
    };
    assert_eq!(
        shown("spans?by=name&measure=count&measure=installs&measure=error_share").await,
        [
            "GET /pay [3.0,3.0,1.0]",
            "KeyError [3.0,3.0,1.0]",
            "checkout [3.0,3.0,0.0]",
            "log.warn [3.0,3.0,0.0]",
            "receipt [3.0,3.0,0.0]"
        ]
    );
    assert_eq!(
        shown("metrics?by=name&measure=count&measure=mean").await,
        ["load [9.0,20.0]", "taps [3.0,7.0]"]
    );
    for client in Client::ALL {
        let checkout = format!(
            "SELECT toString(trace_id) FROM spans WHERE name = 'checkout' AND install_id = '{}'",
            client.install()
        );
        let trace = server.query(&checkout).await.replace('-', "");
        let trace = ask(format!("traces/{trace}")).await;
        let named = |name: &str| {
            let mut spans = trace["spans"].as_array().unwrap().iter();
            let span = spans.find(|span| span["name"] == name);
            span.unwrap_or_else(|| panic!("{name}: {trace}"))
        };
        let (checkout, pay) = (named("checkout"), named("GET /pay"));
        assert_eq!(pay["parent_span_id"], checkout["span_id"], "{trace}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_app_that_samples_as_the_configuration_says_has_right_counts() {
    let server = server_of_today(&[]).await;
    let token = server.token("admin").await;
    let configuration = json!({"base": {"sampling": {"spans": {"default": 0.25}}}});
    save(&server, &token, configuration).await;
    Client::Python
        .runs(&python(), "sampling.py", &server.url, "any-key")
        .await;
    let counts = "SELECT any(sample_rate), uniq(sample_rate), count() BETWEEN 150 AND 350 FROM spans WHERE name = 'sampled'";
    assert_eq!(server.stored(counts).await, "0.25\t1\t1");
}
