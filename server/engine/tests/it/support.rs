//! Engines to test, and requests to them.
//!
//! The library is global to a process, so every engine runs in a child: this very test binary, told by a variable to be
//! an engine (see `engine_process`).

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use reqwest::{RequestBuilder, Response};
use serde::{Deserialize, Serialize};
use tokio::io::AsyncReadExt;
use unjank_engine::{EngineOptions, library, serve};

/// Tells a child to be an engine, and which.
const ROLE: &str = "UNJANK_ENGINE_UNDER_TEST";
pub(crate) const PASSWORD: &str = "a secret: 'quoted' & more";

/// How an engine under test is run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Setup {
    pub(crate) data_dir: PathBuf,
    pub(crate) max_memory_bytes: u64,
    pub(crate) max_connections: usize,
    pub(crate) queue_patience: Duration,
    pub(crate) stall: Duration,
    pub(crate) max_sessions: usize,
    pub(crate) shutdown_patience: Duration,
    pub(crate) lock_patience: Duration,
    /// The data folder goes when the engine ends.
    pub(crate) throw_away: bool,
}

impl Default for Setup {
    fn default() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let name = format!(
            "engine-{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        );
        Self {
            data_dir: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name),
            max_memory_bytes: 3 << 30,
            max_connections: 32,
            queue_patience: Duration::from_secs(30),
            stall: Duration::from_secs(30),
            max_sessions: 64,
            shutdown_patience: Duration::from_secs(8),
            lock_patience: Duration::from_secs(10),
            throw_away: true,
        }
    }
}

/// An engine in a child process.
pub(crate) struct Engine {
    pub(crate) url: String,
    pub(crate) client: reqwest::Client,
    child: Child,
    lifeline: Option<ChildStdin>,
}

/// The engine that all tests without special wishes share.
pub(crate) fn shared() -> &'static Engine {
    static SHARED: OnceLock<Engine> = OnceLock::new();
    SHARED.get_or_init(|| Engine::start(&Setup::default()).unwrap())
}

impl Engine {
    /// Starts an engine, or answers with what it said instead of starting.
    #[expect(
        clippy::zombie_processes,
        reason = "its `Drop` waits for it, and a test that panics here has no engine"
    )]
    pub(crate) fn start(setup: &Setup) -> Result<Self, String> {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "support::engine_process", "--nocapture"])
            .env(ROLE, serde_json::to_string(setup).unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lifeline = child.stdin.take();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        loop {
            let line = lines
                .next()
                .expect("the engine ended without a word")
                .unwrap();
            if let Some((_, url)) = line.split_once("ENGINE READY ") {
                // The rest of its output is of no interest, but the pipe must not fill up.
                std::thread::spawn(move || lines.for_each(drop));
                return Ok(Self {
                    url: url.to_owned(),
                    client: reqwest::Client::builder()
                        .pool_max_idle_per_host(0)
                        .build()
                        .unwrap(),
                    child,
                    lifeline,
                });
            }
            if let Some((_, error)) = line.split_once("ENGINE FAILED ") {
                child.wait().unwrap();
                return Err(error.to_owned());
            }
        }
    }

    /// Ends it as a supervisor would, and answers whether it ended well.
    pub(crate) fn end(mut self) -> bool {
        drop(self.lifeline.take());
        self.child.wait().unwrap().success()
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// A request with the right password.
    pub(crate) fn post(&self, parameters: &[(&str, &str)]) -> RequestBuilder {
        self.client
            .post(format!("{}/?{}", self.url, encode(parameters)))
            .header("X-ClickHouse-User", "default")
            .header("X-ClickHouse-Key", PASSWORD)
    }

    /// The answer to a statement that must succeed.
    pub(crate) async fn ask(&self, parameters: &[(&str, &str)], text: &str) -> String {
        let answer = self
            .post(parameters)
            .body(text.to_owned())
            .send()
            .await
            .unwrap();
        let status = answer.status();
        let body = answer.text().await.unwrap();
        assert_eq!(status, 200, "{text}: {body}");
        body
    }

    /// The code and the status of a statement that must fail.
    pub(crate) async fn refusal(&self, parameters: &[(&str, &str)], text: &str) -> (u32, u16) {
        refused(
            self.post(parameters)
                .body(text.to_owned())
                .send()
                .await
                .unwrap(),
        )
        .await
    }

    /// How many statements run besides the one that asks.
    pub(crate) async fn running(&self, like: &str) -> u32 {
        let text = format!(
            "SELECT count() FROM system.processes WHERE query LIKE '%{like}%' AND query NOT LIKE '%system.processes%'"
        );
        self.ask(&[], &text).await.trim().parse().unwrap()
    }

    /// Waits until `running` is as asked.
    pub(crate) async fn until_running(&self, like: &str, count: u32) {
        until(|| async { self.running(like).await == count }).await;
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Resident memory in bytes.
    pub(crate) fn memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status
            .lines()
            .find(|line| line.starts_with("VmRSS"))
            .unwrap();
        line.split_whitespace()
            .nth(1)
            .unwrap()
            .parse::<u64>()
            .unwrap()
            * 1024
    }

    /// Processor time used so far.
    pub(crate) fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let fields: Vec<&str> = stat
            .rsplit(')')
            .next()
            .unwrap()
            .split_whitespace()
            .collect();
        let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
        Duration::from_millis(ticks * 10)
    }

    /// A database for one test.
    pub(crate) async fn database(&self, name: &str) -> String {
        self.ask(&[], &format!("CREATE DATABASE `{name}`")).await;
        name.to_owned()
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        drop(self.child.wait());
    }
}

/// Runs something beside the test.
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

/// Waits until something is so; fails when it does not become so.
pub(crate) async fn until<F: Future<Output = bool>>(condition: impl Fn() -> F) {
    let wait = async {
        while !condition().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait)
        .await
        .expect("it does not become so");
}

pub(crate) async fn refused(answer: Response) -> (u32, u16) {
    let status = answer.status().as_u16();
    let header = answer.headers().get("x-clickhouse-exception-code").cloned();
    let body = answer.text().await.unwrap();
    let code = header
        .unwrap_or_else(|| panic!("{status} {body}"))
        .to_str()
        .unwrap()
        .parse()
        .unwrap();
    assert!(
        body.starts_with(&format!("Code: {code}. DB::Exception: ")),
        "{body}"
    );
    (code, status)
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

/// No test: what a child runs when it is told to be an engine.
#[test]
fn engine_process() {
    let Some(setup) = std::env::var_os(ROLE) else {
        return;
    };
    let setup: Setup = serde_json::from_str(setup.to_str().unwrap()).unwrap();
    let data_dir = setup.data_dir.clone();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let served = runtime.block_on(serve_until_stdin_ends(setup.clone()));
    runtime.shutdown_background();
    if setup.throw_away {
        std::fs::remove_dir_all(data_dir).unwrap();
    }
    if let Err(error) = served {
        say(&format!("ENGINE FAILED {error:#}"));
    }
}

async fn serve_until_stdin_ends(setup: Setup) -> anyhow::Result<()> {
    let cache = std::env::home_dir().unwrap().join(".cache/unjank/engine");
    let library = library::locate_or_fetch(None, &cache, &say)?;
    let options = EngineOptions {
        data_dir: setup.data_dir,
        library,
        password: PASSWORD.to_owned(),
        max_memory_bytes: setup.max_memory_bytes,
        max_connections: setup.max_connections,
        queue_patience: setup.queue_patience,
        stall: setup.stall,
        max_sessions: setup.max_sessions,
        shutdown_patience: setup.shutdown_patience,
        lock_patience: setup.lock_patience,
        ..EngineOptions::default()
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let on_ready = move || {
        say(&format!("ENGINE READY {url}"));
        Ok(())
    };
    let ended = async {
        let mut bytes = [0; 16];
        while tokio::io::stdin()
            .read(&mut bytes)
            .await
            .is_ok_and(|count| count > 0)
        {}
    };
    serve(options, listener, on_ready, ended).await
}

/// Past the test harness, which may capture what is printed.
fn say(line: &str) {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{line}")
        .and_then(|()| out.flush())
        .unwrap();
}

/// A channel as the stream a request's body is made of.
pub(crate) struct Receiving<T>(pub(crate) tokio::sync::mpsc::Receiver<T>);

impl<T> futures_util::Stream for Receiving<T> {
    type Item = T;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<T>> {
        self.0.poll_recv(context)
    }
}
