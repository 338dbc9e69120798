//! A collector between apps and the server: Rotel puts what several apps send into requests of its own, and sends them again.

use std::process::Stdio;

use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::otlp_clients::{all_of_all_is_stored, all_send, server_of_today};
use crate::relay::{Fault, Relay};
use crate::server::{KEY, Server};
use crate::third_party::installed;
use crate::wait;

struct Collector {
    url: String,
    _process: Child,
    _folder: tempfile::TempDir,
}

impl Collector {
    /// Starts a collector that sends to a server with a key.
    async fn before(server: &str, protocol: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let addresses = [free_address().await, free_address().await];
        let [http, grpc] = &addresses;
        let packages = installed("opentelemetry/venv/lib").read_dir().unwrap();
        let mut packages = packages.map(|python| python.unwrap().path().join("site-packages"));
        let program = packages.find_map(|packages| {
            let program = packages.join("rotel/rotel-agent");
            program.exists().then_some(program)
        });
        let process = Command::new(program.expect("`make setup` installs Rotel"))
            .arg("start")
            .env("ROTEL_OTLP_HTTP_ENDPOINT", http)
            .env("ROTEL_OTLP_GRPC_ENDPOINT", grpc)
            .env("ROTEL_PID_FILE", folder.path().join("pid"))
            .env("ROTEL_LOG_FILE", folder.path().join("log"))
            .env("ROTEL_EXPORTER", "otlp")
            .env("ROTEL_OTLP_EXPORTER_PROTOCOL", protocol)
            .env("ROTEL_OTLP_EXPORTER_ENDPOINT", server)
            .env(
                "ROTEL_OTLP_EXPORTER_CUSTOM_HEADERS",
                format!("Authorization=Bearer {KEY}"),
            )
            .env("ROTEL_OTLP_EXPORTER_RETRY_INITIAL_BACKOFF", "100ms")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        wait::until("the collector listens", async || {
            TcpStream::connect(http).await.is_ok()
        })
        .await;
        Self {
            url: format!("http://{http}"),
            _process: process,
            _folder: folder,
        }
    }
}

async fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().to_string()
}

async fn all_has_arrived(server: &Server) {
    let all = "SELECT (SELECT count() FROM spans), (SELECT sum(count) FROM metrics)";
    server.answers(all, "15\t12").await;
    all_of_all_is_stored(server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_apps_send_through_a_collector_is_stored_once_also_if_the_collector_sends_again() {
    let server = server_of_today(&[]).await;
    let relay = Relay::before(&server.url, |_, time| {
        (time == 1).then_some(Fault::Answers(503))
    })
    .await;
    let collector = Collector::before(&relay.url, "http").await;
    all_send(&collector.url, KEY).await;
    all_has_arrived(&server).await;
    let (different, all) = relay.requests();
    assert_eq!(all, 2 * different, "the same bytes come again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_collector_sends_over_grpc() {
    let server = server_of_today(&[]).await;
    let collector = Collector::before(&server.url, "grpc").await;
    all_send(&collector.url, KEY).await;
    all_has_arrived(&server).await;
}
