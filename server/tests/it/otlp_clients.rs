//! Apps with the exporters of OpenTelemetry as they ship, in Python, JavaScript and Rust. All send the same values.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures_util::future::join_all;
use tokio::process::Command;

use crate::otlp_rust::App;
use crate::server::{NOW, Server};
use crate::third_party::{installed, succeeds};

const SESSION: &str = "7aa3cf63-c4b2-a1e0-a9fb-d2a4b1c0de11";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    Python,
    PythonOverGrpc,
    JavaScript,
    Rust,
}

impl Client {
    /// Those that send over HTTP.
    pub(crate) const ALL: [Self; 3] = [Self::Python, Self::JavaScript, Self::Rust];

    pub(crate) fn install(self) -> &'static str {
        match self {
            Self::Python => "0b7c6cc6-29a3-4f0e-9c5f-6b1f0f7a1d01",
            Self::PythonOverGrpc => "0b7c6cc6-29a3-4f0e-9c5f-6b1f0f7a1d04",
            Self::JavaScript => "0b7c6cc6-29a3-4f0e-9c5f-6b1f0f7a1d02",
            Self::Rust => "0b7c6cc6-29a3-4f0e-9c5f-6b1f0f7a1d03",
        }
    }

    /// Sends spans, metrics and log records, and waits until the exporters have ended.
    pub(crate) async fn sends(self, url: &str, key: &str) {
        match self {
            Self::Python | Self::PythonOverGrpc => {
                self.runs(&python(), "exporter.py", url, key).await;
            }
            Self::JavaScript => {
                self.runs(Path::new("node"), "exporter.mjs", url, key).await;
            }
            Self::Rust => {
                let app = App {
                    url: url.to_owned(),
                    key: key.to_owned(),
                    install: self.install(),
                    session: SESSION,
                };
                let ran = tokio::task::spawn_blocking(move || app.run()).await;
                ran.unwrap().unwrap();
            }
        }
    }

    /// Runs a script of `tests/opentelemetry`.
    pub(crate) async fn runs(self, program: &Path, script: &str, url: &str, key: &str) {
        let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/opentelemetry");
        let mut command = Command::new(program);
        command
            .arg(scripts.join(script))
            .env("SERVER_URL", url)
            .env("SERVER_KEY", key)
            .env("INSTALL", self.install())
            .env("SESSION", SESSION)
            .env("CLIENT_MODULES", installed("opentelemetry/node_modules"));
        // The exporters' time for all retries is longer than by default, so that a busy machine fails no test.
        match self {
            Self::Python | Self::PythonOverGrpc => command
                .envs(self.environment(url, key))
                .env("OTEL_EXPORTER_OTLP_TIMEOUT", "60"),
            _ => command
                .env("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")
                .env("OTEL_EXPORTER_OTLP_TIMEOUT", "60000"),
        };
        succeeds(&mut command).await;
    }

    fn protocol(self) -> &'static str {
        match self {
            Self::PythonOverGrpc => "grpc",
            _ => "http/protobuf",
        }
    }

    /// What docs/opentelemetry.md sets in the environment of an app.
    fn environment(self, url: &str, key: &str) -> [(&'static str, String); 6] {
        let install = self.install();
        [
            ("OTEL_EXPORTER_OTLP_ENDPOINT", url.to_owned()),
            ("OTEL_EXPORTER_OTLP_PROTOCOL", self.protocol().to_owned()),
            (
                "OTEL_EXPORTER_OTLP_HEADERS",
                format!("Authorization=Bearer {key}"),
            ),
            ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip".to_owned()),
            (
                "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE",
                "delta".to_owned(),
            ),
            (
                "OTEL_RESOURCE_ATTRIBUTES",
                format!(
                    "service.name=com.example.shop,service.version=4.12.0,app.installation.id={install},session.id={SESSION},\
                     os.name=android,team=checkout"
                ),
            ),
        ]
    }

    /// Checks every value that the client has sent, and that each is stored once. `ask` runs a query.
    pub(crate) async fn all_is_stored(self, ask: impl AsyncFn(&str) -> String) {
        let install = self.install();
        let ask = async |sql: &str| ask(&sql.replace("$INSTALL", install)).await;
        let stored = "SELECT name, count() FROM spans WHERE install_id = '$INSTALL' GROUP BY name ORDER BY name";
        assert_eq!(
            ask(stored).await,
            "GET /pay\t1\nKeyError\t1\ncheckout\t1\nlog.warn\t1\nreceipt\t1",
            "{self:?}"
        );
        let spans = "SELECT name, toString(kind), toString(status), app_id, app_version, toString(session_id), os_name, attributes['items'],
            attributes['free'], attributes['price'], attributes['names'], attributes['sizes'], attributes['ratios'], attributes['flags'],
            attributes['http.request.method'], attributes['otel.scope.name'], attributes['otel.scope.version'], attributes['team'],
            duration_us < 60000000 FROM spans WHERE install_id = '$INSTALL' AND name IN ('checkout', 'GET /pay') ORDER BY name";
        let common = format!("com.example.shop\t4.12.0\t{SESSION}\tandroid");
        assert_eq!(
            ask(spans).await,
            format!(
                "GET /pay\tnetwork\terror\t{common}\t\t\t\t\t\t\t\tGET\tshop.cart\t2.0\tcheckout\t1\n\
                 checkout\tmanual\tok\t{common}\t3\ttrue\t9.5\t[\"a\",\"b\"]\t[1,2]\t[0.5]\t[true,false]\t\tshop.cart\t2.0\tcheckout\t1"
            ),
            "{self:?}"
        );
        let related = "SELECT countIf(other.name = 'GET /pay' AND other.parent_span_id = one.span_id AND other.trace_id = one.trace_id),
            countIf(other.name = 'receipt' AND other.attributes['otel.links'] =
                concat(replaceAll(toString(one.trace_id), '-', ''), '-', leftPad(lower(hex(one.span_id)), 16, '0')))
            FROM spans AS one CROSS JOIN spans AS other
            WHERE one.name = 'checkout' AND one.install_id = '$INSTALL' AND other.install_id = '$INSTALL'";
        assert_eq!(ask(related).await, "1\t1", "{self:?}");
        let events = "SELECT arrayJoin(`events.name`) AS event FROM spans
            WHERE install_id = '$INSTALL' AND (event LIKE 'paid%' OR event LIKE 'exception%') ORDER BY event";
        let events = ask(events).await;
        let (exception, paid) = events.split_once('\n').unwrap();
        assert_eq!(paid, "paid by=card", "{self:?}");
        assert!(
            exception.contains("exception.message=no money"),
            "{self:?}: {exception}"
        );
        let metrics = "SELECT name, sum(value * count), sum(count), any(attributes['unit']), any(attributes['screen']) FROM metrics
            WHERE install_id = '$INSTALL' AND name IN ('taps', 'load') GROUP BY name ORDER BY name";
        assert_eq!(
            ask(metrics).await,
            "load\t60\t3\tms\t\ntaps\t7\t1\t{tap}\tcart",
            "{self:?}"
        );
        let logs = "SELECT name, toString(status), attributes['body'], attributes['exception.message'] != '' FROM spans
            WHERE install_id = '$INSTALL' AND attributes['body'] != '' ORDER BY name";
        assert_eq!(
            ask(logs).await,
            "KeyError\terror\tno cart\t1\nlog.warn\tunset\tnearly empty\t0",
            "{self:?}"
        );
    }
}

pub(crate) fn python() -> PathBuf {
    installed("opentelemetry/venv/bin/python")
}

/// Runs all clients at the same time.
pub(crate) async fn all_send(url: &str, key: &str) {
    join_all(Client::ALL.map(|client| client.sends(url, key))).await;
}

/// Checks that each value of each client is stored once, and that each span of eight days ago is rejected.
pub(crate) async fn all_of_all_is_stored(server: &Server) {
    server.drained().await;
    for client in Client::ALL {
        client
            .all_is_stored(async |sql| server.query(sql).await)
            .await;
    }
    let rejected = "SELECT sum(rejected) FROM batches";
    assert_eq!(server.query(rejected).await, "3");
}

/// Starts a server with the time of the machine, which exporters use.
#[expect(
    clippy::disallowed_methods,
    reason = "exporters read the clock of the machine"
)]
pub(crate) async fn server_of_today(arguments: &[&str]) -> Server {
    let server = Server::with(arguments).await;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    server.pass(now.saturating_sub(Duration::from_micros(NOW.unsigned_abs())));
    server
}
