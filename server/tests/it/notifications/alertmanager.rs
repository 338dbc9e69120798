//! Notifications to a real Alertmanager, and what one receives.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use unjank_foundation::clock::{Clock, UnixTime};

use super::incidents::Database;
use super::receiver::Receiver;
use super::{channel, logged, sending, test};
use crate::server::{NOW, Server};

struct Alertmanager {
    url: String,
    child: Child,
    _folder: tempfile::TempDir,
}

/// Where `make setup` unpacks it.
fn fetched() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../.cache/alertmanager");
    folder.canonicalize().unwrap_or(folder)
}

fn program() -> PathBuf {
    let fetched = fetched().join("usr/bin/prometheus-alertmanager");
    let all = [
        PathBuf::from("prometheus-alertmanager"),
        PathBuf::from("alertmanager"),
        fetched,
    ];
    let runs = |program: &PathBuf| {
        let mut version = Command::new(program);
        version
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    };
    all.into_iter().find(runs).expect(
        "Alertmanager is missing: run `make setup`, which fetches it or prints what it needs",
    )
}

impl Alertmanager {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("alertmanager.yml");
        std::fs::write(
            &config,
            "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n",
        )
        .unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .port();
        let mut command = Command::new(program());
        // An unpacked Alertmanager looks for its templates there.
        if fetched().is_dir() {
            command.current_dir(fetched());
        }
        let child = command
            .arg(format!("--config.file={}", config.display()))
            .arg(format!(
                "--storage.path={}",
                folder.path().join("data").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .arg("--cluster.listen-address=")
            .arg("--log.level=error")
            .spawn()
            .unwrap();
        let started = Self {
            url: format!("http://127.0.0.1:{port}"),
            child,
            _folder: folder,
        };
        for _ in 0..400 {
            let ready = reqwest::get(format!("{}/-/ready", started.url)).await;
            if ready.is_ok_and(|ready| ready.status() == 200) {
                return started;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("Alertmanager did not start");
    }

    /// Returns the firing alerts.
    async fn alerts(&self) -> Vec<Value> {
        let alerts = reqwest::get(format!("{}/api/v2/alerts", self.url)).await;
        alerts.unwrap().json().await.unwrap()
    }

    async fn has(&self, fits: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        for _ in 0..400 {
            let alerts = self.alerts().await;
            if fits(&alerts) {
                return alerts;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("{:?}", self.alerts().await);
    }
}

impl Drop for Alertmanager {
    fn drop(&mut self) {
        let _ended = self.child.kill().is_ok();
        let _reaped = self.child.wait().is_ok();
    }
}

/// Sets the server to the machine's clock, which Alertmanager uses.
fn set_clock(server: &Server) -> i64 {
    let now = Clock::system().now();
    server.pass(now.since(UnixTime::from_micros(NOW)));
    now.as_micros()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_alertmanager_receives_the_start_the_refresh_and_the_end_of_an_alert() {
    let alertmanager = Alertmanager::start().await;
    let server = sending().await;
    let now = set_clock(&server);
    let token = server.token("admin").await;
    let made =
        json!({"kind": "alertmanager", "name": "am", "url": format!("{}/", alertmanager.url)});
    let id = channel(&server, &token, made).await;
    let rule = Database::of(&server).rule().await;
    let fired = rule.fire(&["critical", "warning"], now - 5_000_000).await;
    let alerts = alertmanager.has(|alerts| alerts.len() == 2).await;
    let of = |alerts: &[Value], incident: usize| {
        let page = fired[incident].to_string();
        let found = alerts
            .iter()
            .find(|one| one["labels"]["page"] == page.as_str());
        found.cloned()
    };
    let alert = of(&alerts, 0).unwrap();
    assert_eq!(alert["labels"]["alertname"], "CheckoutSlow");
    assert_eq!(alert["labels"]["severity"], "critical");
    assert_eq!(alert["status"]["state"], "active");
    assert_eq!(
        alert["annotations"]["summary"],
        "p75 of <checkout> is 480 ms, was 320 ms"
    );
    let page = format!(
        "https://unjank.example.com/incidents/{}?project=default",
        fired[0]
    );
    assert_eq!(alert["generatorURL"], page);
    // The alert is repeated before it expires there.
    let until = alert["endsAt"].clone();
    server.pass(Duration::from_secs(301));
    alertmanager
        .has(|alerts| of(alerts, 0).is_some_and(|alert| alert["endsAt"] != until))
        .await;
    rule.resolve(&fired[..1], now - 1_000_000).await;
    let left = alertmanager.has(|alerts| of(alerts, 0).is_none()).await;
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(of(&left, 1).is_some());
    assert_eq!(test(&server, &token, &id).await.body["delivered"], true);
    let tested = |alerts: &[Value]| {
        alerts
            .iter()
            .any(|one| one["labels"]["alertname"] == "UnjankTest")
    };
    alertmanager.has(tested).await;
}

/// Otherwise, a refresh that arrives after the end of an alert would let it fire again.
#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_an_alert_is_repeated() {
    let server = sending().await;
    let receiver = Receiver::start().await;
    let token = server.token("admin").await;
    let made = json!({"kind": "alertmanager", "name": "am", "url": receiver.url});
    channel(&server, &token, made).await;
    let rule = Database::of(&server).rule().await;
    let fired = rule.fire(&["critical"], NOW - 5_000_000).await;
    receiver.has(1).await;
    rule.resolve(&fired, NOW - 1_000_000).await;
    let end = receiver.has(2).await.remove(1).json();
    assert_eq!(end[0]["endsAt"], "2026-11-20T11:59:59Z");
    let delivered =
        |log: &[Value]| log.len() == 2 && log.iter().all(|one| one["state"] == "delivered");
    logged(&server, &token, delivered).await;
    server.pass(Duration::from_secs(301));
    let repeated = receiver.has(3).await.remove(2).json();
    assert_eq!(repeated, end);
}
