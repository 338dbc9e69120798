//! Engines for tests, and requests to them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{RequestBuilder, Response};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use unjank_engine::{ClickHouse, Engine, EngineOptions, HostProgram, Ports, Role, User, library};

/// The host, the stand-in for `clickhouse` and the intruder.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_engine-under-test");
pub(crate) const PASSWORD: &str = "a secret: 'quoted' & <more>";

/// Returns the options of an engine under test: all roles, on free ports.
pub(crate) fn options(data_dir: &Path) -> EngineOptions {
    let user = |name: &str, role| User {
        name: name.to_owned(),
        password: PASSWORD.to_owned(),
        role,
    };
    EngineOptions {
        data_dir: data_dir.to_owned(),
        clickhouse: ClickHouse::Library(library_path()),
        host: HostProgram {
            program: PathBuf::from(PROGRAM),
            arguments: vec![OsString::from("host")],
        },
        database: "unjank".to_owned(),
        users: vec![
            user("admin", Role::Admin),
            user("writer", Role::Writer),
            user("reader", Role::Reader),
        ],
        sources: Vec::new(),
        max_memory_bytes: 3 << 30,
        nice: 0,
        shutdown_patience: Duration::from_secs(5),
        lock_patience: Duration::from_secs(10),
    }
}

pub(crate) fn library_path() -> PathBuf {
    let cache = std::env::home_dir().unwrap().join(".cache/unjank/engine");
    library::locate_or_fetch(None, &cache, &|_| {}).unwrap()
}

/// Reserves free ports, with one for the native protocol if `native` is set.
pub(crate) fn ports(native: bool) -> Ports {
    let any = "127.0.0.1:0".parse().unwrap();
    Ports::reserve(any, native.then_some(any)).unwrap()
}

/// An engine for one test.
pub(crate) struct TestEngine {
    pub(crate) engine: Engine,
    pub(crate) client: reqwest::Client,
    pub(crate) url: String,
    _ports: Ports,
    /// The data folder, which lives as long as the engine.
    _folder: Option<TempDir>,
}

impl TestEngine {
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// Starts an engine with the native protocol.
    pub(crate) async fn start_native() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let options = options(&folder.path().join("engine"));
        Self {
            _folder: Some(folder),
            ..Self::with_ports(&options, ports(true)).await
        }
    }

    /// Starts an engine with options that `change` has modified.
    pub(crate) async fn start_with(change: impl FnOnce(&mut EngineOptions)) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut options = options(&folder.path().join("engine"));
        change(&mut options);
        Self {
            _folder: Some(folder),
            ..Self::on(&options).await
        }
    }

    pub(crate) async fn on(options: &EngineOptions) -> Self {
        Self::with_ports(options, ports(false)).await
    }

    pub(crate) async fn with_ports(options: &EngineOptions, ports: Ports) -> Self {
        let engine = Engine::start(options, &ports).await.unwrap();
        Self {
            _ports: ports,
            url: engine.url(),
            client: reqwest::Client::builder()
                .pool_max_idle_per_host(0)
                .build()
                .unwrap(),
            engine,
            _folder: None,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.engine.pid().unwrap()
    }

    pub(crate) fn address(&self) -> &str {
        self.url.strip_prefix("http://").unwrap()
    }

    pub(crate) fn signal(&self, name: &str) {
        let killed = std::process::Command::new("kill")
            .args([name, &self.pid().to_string()])
            .status();
        assert!(killed.unwrap().success());
    }

    /// Returns a request of a user.
    pub(crate) fn request(&self, user: &str, parameters: &[(&str, &str)]) -> RequestBuilder {
        self.client
            .post(format!("{}/?{}", self.url, encode(parameters)))
            .header("X-ClickHouse-User", user)
            .header("X-ClickHouse-Key", PASSWORD)
    }

    pub(crate) fn post(&self, parameters: &[(&str, &str)]) -> RequestBuilder {
        self.request("admin", parameters)
    }

    /// Returns the answer to an administrator's query, which must succeed.
    pub(crate) async fn ask(&self, parameters: &[(&str, &str)], text: &str) -> String {
        self.ask_as("admin", parameters, text).await
    }

    pub(crate) async fn ask_as(
        &self,
        user: &str,
        parameters: &[(&str, &str)],
        text: &str,
    ) -> String {
        let request = self.request(user, parameters).body(text.to_owned());
        let answer = request.send().await.unwrap();
        let status = answer.status();
        let body = answer.text().await.unwrap();
        assert_eq!(status, 200, "{user}: {text}: {body}");
        body
    }

    /// Returns the error code of a query, which must fail.
    pub(crate) async fn refusal(&self, user: &str, text: &str) -> u32 {
        let request = self.request(user, &[]).body(text.to_owned());
        refused(request.send().await.unwrap()).await
    }

    /// Returns how many queries are running besides this one.
    pub(crate) async fn running(&self, like: &str) -> u32 {
        let text = format!(
            "SELECT count() FROM system.processes WHERE query LIKE '%{like}%' AND query NOT LIKE '%system.processes%'"
        );
        self.ask_as("reader", &[], &text)
            .await
            .trim()
            .parse()
            .unwrap()
    }

    pub(crate) async fn until_running(&self, like: &str, count: u32) {
        until(|| async { self.running(like).await == count }).await;
    }

    /// Returns the resident memory in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS"));
        let kilobytes = line.unwrap().split_whitespace().nth(1).unwrap();
        kilobytes.parse::<u64>().unwrap() * 1024
    }

    /// Returns the CPU time used so far.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap()
            .split_whitespace()
            .collect();
        let ticks = |place: usize| fields[place].parse::<u64>().unwrap();
        Duration::from_millis((ticks(11) + ticks(12)) * 10)
    }

    pub(crate) async fn stop(self) {
        self.engine.stop().await.unwrap();
    }
}

/// Returns the engine that tests without special options share, each with its own database.
pub(crate) fn shared() -> &'static TestEngine {
    static SHARED: OnceLock<TestEngine> = OnceLock::new();
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    SHARED.get_or_init(|| {
        let runtime = RUNTIME.get_or_init(|| Runtime::new().unwrap());
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        spawn_on(runtime, async move {
            sender.send(TestEngine::start().await).unwrap_or_default();
        });
        receiver.recv().unwrap()
    })
}

fn spawn_on(runtime: &Runtime, work: impl Future<Output = ()> + Send + 'static) {
    drop(runtime.spawn(work));
}

impl TestEngine {
    /// Creates a database for one test.
    pub(crate) async fn database(&self, name: &str) -> String {
        self.ask(&[], &format!("CREATE DATABASE `{name}`")).await;
        name.to_owned()
    }
}

/// Runs work concurrently with the test.
#[expect(
    clippy::disallowed_methods,
    reason = "a test joins what it spawns, or ends with it"
)]
pub(crate) fn spawn<F>(work: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    tokio::spawn(work)
}

/// Waits until a condition is true. Panics after 30 seconds.
pub(crate) async fn until<F: Future<Output = bool>>(condition: impl Fn() -> F) {
    let wait = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait)
        .await
        .expect("the condition is not true after 30 seconds");
}

pub(crate) async fn refused(answer: Response) -> u32 {
    let status = answer.status();
    let header = answer.headers().get("x-clickhouse-exception-code").cloned();
    let body = answer.text().await.unwrap();
    let code = header.unwrap_or_else(|| panic!("{status} {body}"));
    code.to_str().unwrap().parse().unwrap()
}

pub(crate) fn encode(parameters: &[(&str, &str)]) -> String {
    let escape = |text: &str| {
        text.bytes()
            .map(|byte| format!("%{byte:02x}"))
            .collect::<String>()
    };
    parameters
        .iter()
        .map(|(name, value)| format!("{}={}&", escape(name), escape(value)))
        .collect()
}
