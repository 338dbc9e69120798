//! The exporters of OpenTelemetry as they ship: each value that they send is stored.

use serde_json::json;

use crate::otlp_clients::{Client, all_of_all_is_stored, all_send, python, server_of_today};
use crate::relay::Relay;
use crate::remote_config::save;
use crate::server::KEY;

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
