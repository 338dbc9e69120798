//! A server under attack, and other clients that use it.

use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use reqwest::{Client, Method};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};
use unjank_protocol::Timestamp;

use crate::engine::{Database, clickhouse_flags};
use crate::processes::{Program, token};
use crate::server::spans;

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

/// Other clients upload a batch and poll once per interval.
const PACE: Duration = Duration::from_millis(20);
/// How much memory an attack may take.
const GROWTH: u64 = 100 << 20;

pub(super) struct Target {
    program: Program,
    folder: tempfile::TempDir,
    /// An ingest key of the attacker's project.
    pub(super) key: String,
    /// A viewer's API token for the attacker's project.
    pub(super) viewer: String,
    /// An ingest key of the other project.
    others_key: String,
    operator: String,
    pub(super) client: Client,
    /// Connects from another address than `client`.
    others: Client,
    _database: Database,
    _turn: MutexGuard<'static, ()>,
}

/// How the server treated other clients during an attack.
#[derive(Debug)]
pub(super) struct Others {
    pub(super) requests: usize,
    p99: Duration,
    /// Statuses other than the expected one.
    wrong: Vec<u16>,
    /// How many bytes the server's memory grew from before the attack to its peak.
    grew: u64,
}

impl Others {
    /// Asserts that other clients did not notice the attack.
    pub(super) fn are_served(&self) {
        report(self);
        assert!(self.requests >= 20, "{self:?}");
        assert!(self.wrong.is_empty(), "{self:?}");
        // Times mean something in a release build on a quiet machine only: `make attacks`. A debug build takes more memory.
        let limit = std::env::var_os("UNJANK_ATTACK_P99_MS");
        let growth = if limit.is_some() { GROWTH } else { 2 * GROWTH };
        assert!(self.grew <= growth, "{self:?}");
        if let Some(limit) = limit {
            let limit = limit.to_str().unwrap().parse().unwrap();
            assert!(self.p99 <= Duration::from_millis(limit), "{self:?}");
        }
    }
}

impl Target {
    pub(super) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// Starts a server with these settings and two projects.
    pub(super) async fn with(settings: &[&str]) -> Self {
        let turn = ONE_AT_A_TIME.lock().await;
        let folder = tempfile::tempdir().unwrap();
        let database = Database::new();
        let mut line = vec!["serve"];
        line.extend(clickhouse_flags(database.name()));
        line.extend(settings);
        let program = match std::env::var_os("UNJANK_ATTACK_SERVER") {
            Some(binary) => Program::of(Path::new(&binary), folder.path(), &line).await,
            None => Program::run(folder.path(), &line).await,
        };
        let operator = token(folder.path(), "admin", &[]);
        let mut target = Self {
            key: String::new(),
            viewer: String::new(),
            others_key: String::new(),
            client: Client::new(),
            others: Client::builder()
                .local_address(IpAddr::from([127, 0, 0, 2]))
                .build()
                .unwrap(),
            program,
            folder,
            operator,
            _database: database,
            _turn: turn,
        };
        target.key = target.project("attacked").await;
        target.others_key = target.project("others").await;
        let project = ["--project", "attacked"];
        target.viewer = token(target.folder.path(), "viewer", &project);
        target.program.drained().await;
        target
    }

    /// Where the server listens, without a scheme.
    pub(super) fn address(&self) -> &str {
        self.url().trim_start_matches("http://")
    }

    pub(super) async fn is_ready(&self) -> bool {
        let url = format!("{}/readyz", self.program.admin_url());
        let response = self.client.get(url).send().await.unwrap();
        response.status().is_success()
    }

    pub(super) fn url(&self) -> &str {
        &self.program.listen
    }

    /// Creates a project. Returns an ingest key of it.
    async fn project(&self, id: &str) -> String {
        let new = json!({"id": id, "name": id});
        self.call(Method::POST, "/api/v1/projects", &new).await;
        let path = format!("/api/v1/projects/{id}/keys");
        let key = self.call(Method::POST, &path, &json!({"name": id})).await;
        key["key"].as_str().unwrap().to_owned()
    }

    /// Sends a request with the operator's token.
    pub(super) async fn call(&self, method: Method, path: &str, body: &Value) -> Value {
        let url = format!("{}{path}", self.url());
        let request = self.client.request(method, url).bearer_auth(&self.operator);
        let response = request.json(body).send().await.unwrap();
        assert!(response.status().is_success(), "{path}: {response:?}");
        response.json().await.unwrap_or_default()
    }

    /// Runs an attack, and uploads and polls as another client while it lasts.
    pub(super) async fn others_during<T>(&self, attack: impl Future<Output = T>) -> (T, Others) {
        let pid = self.program.pid();
        self.upload().await;
        let before = memory(pid, "VmRSS:");
        std::fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
        tokio::pin!(attack);
        let (mut took, mut wrong) = (Vec::new(), Vec::new());
        let mut next = tokio::time::interval(PACE);
        let done = loop {
            tokio::select! {
                done = &mut attack => break done,
                _ = next.tick() => {}
            }
            // The attack goes on while others wait.
            let both = async {
                let began = Instant::now();
                let uploaded = self.upload().await;
                let upload = began.elapsed();
                let polled = self.poll().await;
                took.extend([upload, began.elapsed().saturating_sub(upload)]);
                (uploaded, polled)
            };
            tokio::pin!(both);
            let (early, statuses) = tokio::select! {
                done = &mut attack => (Some(done), both.await),
                statuses = &mut both => (None, statuses),
            };
            wrong.extend((statuses.0 != 202).then_some(statuses.0));
            wrong.extend((statuses.1 != 200).then_some(statuses.1));
            if let Some(done) = early {
                break done;
            }
        };
        took.sort_unstable();
        let others = Others {
            requests: took.len(),
            p99: took.get(took.len() * 99 / 100).copied().unwrap_or_default(),
            wrong,
            grew: memory(pid, "VmHWM:").saturating_sub(before),
        };
        (done, others)
    }

    async fn upload(&self) -> u16 {
        let mut batch = spans(20);
        let now = json!(now());
        for span in batch["spans"].as_array_mut().unwrap() {
            span["start"] = now.clone();
        }
        batch["sent_at"] = now;
        let request = self.others.post(format!("{}/v1/ingest", self.url()));
        let request = request.bearer_auth(&self.others_key).json(&batch);
        request.send().await.unwrap().status().as_u16()
    }

    async fn poll(&self) -> u16 {
        let request = self.others.get(format!("{}/v1/config", self.url()));
        let response = request.bearer_auth(&self.others_key).send().await;
        response.unwrap().status().as_u16()
    }
}

fn now() -> Timestamp {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap())
}

/// Prints the measurements of a run, for `--nocapture`.
#[expect(
    clippy::print_stderr,
    reason = "the test's answer is more than yes or no"
)]
fn report(others: &Others) {
    eprintln!("{others:?}");
}

/// A line of `/proc/…/status`, in bytes.
fn memory(pid: u32, name: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let kib = line.split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() * 1024
}
