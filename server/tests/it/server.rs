//! A server for one test: in this process, on free ports, with its own database on the shared engine.

use std::path::Path;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use clap::Parser;
use reqwest::{Client, Method, RequestBuilder};
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use unjank_foundation::clock::{Clock, UnixTime};
use unjank_server::config::{Serve, Shared};
use unjank_server::serve::{Surroundings, Then, serve_after};
use unjank_server::{App, Listeners};

pub(crate) use crate::answer::Answer;
pub(crate) use crate::batches_to_send::{batch, span, spans};
use crate::engine::{Database, PASSWORD, UNJANK, USER, clickhouse_flags, engine, unique_name};
use crate::wait;

/// 2026-11-20T12:00:00Z, when the example batch was sent.
pub(crate) const NOW: i64 = 1_795_176_000_000_000;
pub(crate) const KEY: &str = "test-key";
/// Flags that name a ClickHouse that does not exist.
pub(crate) const NOWHERE: [&str; 2] = ["--clickhouse-url", "http://127.0.0.1:9"];
/// For how many days tests keep batches: their dates are fixed, and the engine uses the machine's clock.
const LONG: u32 = 10_000;
/// A time at which reading the clock panics.
const BROKEN: i64 = i64::MIN;

#[derive(Parser)]
#[command(args_override_self = true)]
struct Settings {
    #[command(flatten)]
    shared: Shared,
    #[command(flatten)]
    serve: Serve,
}

pub(crate) struct Server {
    pub(crate) url: String,
    pub(crate) admin_url: String,
    pub(crate) client: Client,
    pub(crate) folder: tempfile::TempDir,
    database: String,
    /// The server's time. Only the test advances it.
    now: Arc<AtomicI64>,
    /// The state that the handlers share while the server runs.
    app: Arc<Mutex<Weak<App>>>,
    shutdown: CancellationToken,
    running: Option<JoinHandle<anyhow::Result<()>>>,
    arguments: Vec<String>,
    /// Unless another server has made the database. Last, because fields are dropped in order.
    owned: Option<Database>,
}

impl Server {
    /// Starts a server and waits until its tables exist.
    pub(crate) async fn start() -> Self {
        Self::with(&[]).await
    }

    /// Starts a server with these flags and waits until its tables exist.
    pub(crate) async fn with(arguments: &[&str]) -> Self {
        let server = Self::starting(arguments).await;
        server.ready().await;
        server
    }

    /// Starts a server with these flags. Its tables need not exist yet: a test that stores rows waits for [`Self::ready`] first.
    pub(crate) async fn starting(arguments: &[&str]) -> Self {
        let name = unique_name();
        let owned = (!arguments.contains(&NOWHERE[0])).then(|| Database::of(&name));
        Self::on(name, owned, arguments).await
    }

    /// Starts a server that cannot reach its ClickHouse, for tests that need no rows. That saves the time to make the tables.
    pub(crate) async fn away(arguments: &[&str]) -> Self {
        Self::starting(&[arguments, &NOWHERE].concat()).await
    }

    /// Starts a second server with the same settings and database, but its own data folder.
    pub(crate) async fn beside(&self) -> Self {
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        let server = Self::on(self.database.clone(), None, &arguments).await;
        if !arguments.contains(&NOWHERE[0]) {
            server.ready().await;
        }
        server
    }

    async fn on(database: String, owned: Option<Database>, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut named = arguments.windows(2).rev();
        let database = named
            .find(|pair| pair[0] == "--clickhouse-database")
            .map_or(database, |pair| pair[1].to_owned());
        let arguments = arguments
            .iter()
            .map(|argument| (*argument).to_owned())
            .collect();
        let mut server = Self {
            url: String::new(),
            admin_url: String::new(),
            client: Client::new(),
            folder,
            owned: owned.filter(|owned| owned.name() == database),
            database,
            now: Arc::new(AtomicI64::new(NOW)),
            app: Arc::default(),
            shutdown: CancellationToken::new(),
            running: None,
            arguments,
        };
        server.run().await;
        server
    }

    async fn run(&mut self) {
        let listeners = Listeners {
            public: free_port().await,
            admin: free_port().await,
        };
        self.url = format!("http://{}", listeners.public.local_addr().unwrap());
        self.admin_url = format!("http://{}", listeners.admin.local_addr().unwrap());
        let data_dir = self.folder.path().to_str().unwrap();
        let keys = format!("{KEY}=com.example.shop,any-key=*");
        let mut line = vec!["unjank", "--data-dir", data_dir];
        line.extend(clickhouse_flags(&self.database));
        line.extend(["--engine-program", UNJANK, "--ingest-keys", &keys]);
        line.extend(["--flush-interval-ms", "10"]);
        // Later flags win, so a test may name another ClickHouse.
        line.extend(self.arguments.iter().map(String::as_str));
        let Settings {
            shared,
            serve: settings,
        } = Settings::try_parse_from(line).unwrap();
        self.shutdown = CancellationToken::new();
        let now = Arc::clone(&self.now);
        let clock = Clock::new(move || match now.load(Ordering::Relaxed) {
            BROKEN => panic!("the clock is broken"),
            at => UnixTime::from_micros(at),
        });
        let surroundings = Surroundings {
            listeners,
            clock,
            shutdown: self.shutdown.clone(),
        };
        let slot = Arc::clone(&self.app);
        let prepare = async move |app: Arc<App>| {
            *slot.lock().unwrap() = Arc::downgrade(&app);
            Ok(Then::Serve)
        };
        #[expect(clippy::disallowed_methods, reason = "`end` joins it")]
        let running =
            tokio::spawn(
                async move { serve_after(&shared, &settings, surroundings, prepare).await },
            );
        self.running = Some(running);
    }

    /// Returns the state that the server's handlers share.
    pub(crate) fn app(&self) -> Arc<App> {
        self.app.lock().unwrap().upgrade().unwrap()
    }

    /// Returns the flags with which a command uses this server's folder, store and time.
    pub(crate) fn flags(&self) -> Vec<String> {
        self.flags_after(Duration::ZERO)
    }

    /// Returns the flags of [`Self::flags`] for a command that runs later.
    pub(crate) fn flags_after(&self, time: Duration) -> Vec<String> {
        let now = UnixTime::from_micros(self.now.load(Ordering::Relaxed)) + time;
        let now = now.to_string();
        let data_dir = self.data_dir().to_str().unwrap();
        let flags = ["--data-dir", data_dir, "--now", &now].into_iter();
        let flags = flags.chain(clickhouse_flags(&self.database));
        flags.map(str::to_owned).collect()
    }

    /// Makes every read of the clock panic.
    pub(crate) fn break_clock(&self) {
        self.now.store(BROKEN, Ordering::Relaxed);
    }

    /// Repairs the clock.
    pub(crate) fn mend_clock(&self) {
        self.now.store(NOW, Ordering::Relaxed);
    }

    /// Waits until the server ends with an error, and returns the error.
    pub(crate) async fn failed(&mut self) -> String {
        let running = self.running.take().unwrap();
        let ended = tokio::time::timeout(wait::PATIENCE, running);
        let error = ended.await.expect("the server ends").unwrap().unwrap_err();
        format!("{error:#}")
    }

    /// Shuts the server down gracefully. Afterwards, ClickHouse has everything that was acknowledged.
    pub(crate) async fn end(&mut self) {
        self.shutdown.cancel();
        self.running.take().unwrap().await.unwrap().unwrap();
    }

    /// Starts the server again after [`Self::end`], on the same folder and database.
    pub(crate) async fn start_again(&mut self) {
        self.run().await;
    }

    /// Ends the server and starts it again on the same folder and database.
    pub(crate) async fn restart(&mut self) {
        self.end().await;
        self.run().await;
    }

    /// Restarts the server on the shared engine.
    pub(crate) async fn point_at_the_engine(&mut self) {
        self.arguments
            .retain(|argument| !NOWHERE.contains(&argument.as_str()));
        self.owned = Some(Database::of(&self.database));
        self.restart().await;
        self.ready().await;
    }

    /// Replaces the flags for the next start.
    pub(crate) fn change(&mut self, arguments: &[&str]) {
        self.arguments = arguments
            .iter()
            .map(|argument| (*argument).to_owned())
            .collect();
    }

    /// Waits until a query has the expected result. Background work has no other visible effect.
    pub(crate) async fn answers(&self, sql: &str, expected: &str) {
        let mut last = String::new();
        let answered = wait::holds(async || {
            last = self.query(sql).await;
            last == expected
        });
        if !answered.await {
            assert_eq!(last, expected, "{sql}");
        }
    }

    /// Advances the server's clock.
    pub(crate) fn pass(&self, time: Duration) {
        let time = i64::try_from(time.as_micros()).unwrap();
        self.now.fetch_add(time, Ordering::Relaxed);
    }

    pub(crate) fn data_dir(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn database(&self) -> &str {
        &self.database
    }

    /// A request to the ingest endpoint with a valid key.
    pub(crate) fn request(&self) -> RequestBuilder {
        self.request_with(KEY)
    }

    pub(crate) fn request_with(&self, key: &str) -> RequestBuilder {
        self.client
            .post(format!("{}/v1/ingest", self.url))
            .bearer_auth(key)
            .header("content-type", "application/json")
    }

    pub(crate) async fn send(&self, batch: &Value) -> Answer {
        Answer::of(self.request().body(batch.to_string()).send().await.unwrap()).await
    }

    pub(crate) async fn send_bytes(&self, bytes: impl Into<Vec<u8>>) -> Answer {
        Answer::of(self.request().body(bytes.into()).send().await.unwrap()).await
    }

    /// Runs a query on the test's database. Returns lines of tab-separated values.
    pub(crate) async fn query(&self, sql: &str) -> String {
        let request = self
            .client
            .post(&engine().url)
            .query(&[("database", self.database.as_str())]);
        let response = request
            .basic_auth(USER, Some(PASSWORD))
            .body(sql.to_owned())
            .send()
            .await
            .unwrap();
        let (status, text) = (response.status(), response.text().await.unwrap());
        assert!(status.is_success(), "{sql}: {text}");
        text.trim_end().to_owned()
    }

    /// Waits until everything in the log is in ClickHouse, then runs the query.
    pub(crate) async fn stored(&self, sql: &str) -> String {
        self.drained().await;
        self.query(sql).await
    }

    /// Creates an API token on the command line. `--project …` may follow the role.
    pub(crate) async fn token(&self, role: &str) -> String {
        let mut line = vec!["token", "create", "--name", "test", "--role"];
        line.extend(role.split(' '));
        self.command(&line).await
    }

    /// Runs a command of the program on this server's control database. Returns its output.
    pub(crate) async fn command(&self, line: &[&str]) -> String {
        self.opened().await;
        let output = tokio::process::Command::new(UNJANK)
            .args(line)
            .args(self.flags())
            .args(self.database_arguments())
            .output()
            .await
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{error}");
        let answer = String::from_utf8(output.stdout).unwrap().trim().to_owned();
        // Standard error may be a file or a journal.
        let is_secret = answer.starts_with("uj");
        assert!(
            !is_secret || !error.contains(&answer),
            "a secret is in the log"
        );
        answer
    }

    /// Waits until a server that starts has created its project and keys, because commands do not create them.
    async fn opened(&self) {
        let is_open = || self.running.is_none() || self.app.lock().unwrap().strong_count() > 0;
        wait::until("the server has its project", async || is_open()).await;
    }

    /// Returns `--database-url …` if the server was started with it.
    fn database_arguments(&self) -> &[String] {
        let at = self
            .arguments
            .iter()
            .position(|argument| argument == "--database-url");
        at.map_or(&[], |at| &self.arguments[at..at + 2])
    }

    /// Calls the API with a token.
    pub(crate) async fn call(
        &self,
        token: &str,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Answer {
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.url))
            .bearer_auth(token);
        if let Some(body) = body {
            request = request.json(&body);
        }
        Answer::of(request.send().await.unwrap()).await
    }

    /// Returns the response of `/readyz`.
    pub(crate) async fn readiness(&self) -> Answer {
        let url = format!("{}/readyz", self.url);
        Answer::of(self.client.get(url).send().await.unwrap()).await
    }

    /// Waits until the server is ready, which implies that the schema exists in ClickHouse.
    pub(crate) async fn ready(&self) {
        wait::until("the store is ready", async || {
            self.readiness().await.body["status"] == "ready"
        })
        .await;
        self.app().clickhouse.keep_batches(LONG).await.unwrap();
        self.stop_ageing().await;
    }

    /// Stops expiry. The engine uses the machine's clock, so the rows of tests, which have fixed dates, would expire some day.
    async fn stop_ageing(&self) {
        let tables = "SELECT name FROM system.tables WHERE database = currentDatabase() AND endsWith(engine, 'MergeTree')";
        for table in self.query(tables).await.lines() {
            self.query(&format!(
                "SYSTEM STOP TTL MERGES `{}`.`{table}`",
                self.database
            ))
            .await;
        }
    }

    /// Lets the engine delete expired rows of `table` again.
    pub(crate) async fn start_ageing(&self, table: &str) {
        self.query(&format!(
            "SYSTEM START TTL MERGES `{}`.`{table}`",
            self.database
        ))
        .await;
    }

    /// Waits until all accepted events are stored and rolled up.
    pub(crate) async fn drained(&self) {
        wait::until("the log drains", async || {
            !(self.metric("unjank_log_pending_records").await > 0.0
                || self.metric("unjank_writer_unfolded_rows").await > 0.0)
        })
        .await;
    }

    pub(crate) async fn metrics(&self) -> String {
        self.client
            .get(format!("{}/metrics", self.admin_url))
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
    }

    pub(crate) async fn metric(&self, name: &str) -> f64 {
        let metrics = self.metrics().await;
        let value = metrics
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.unwrap_or_else(|| panic!("no metric {name}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if let Some(running) = &self.running {
            running.abort();
        }
    }
}

async fn free_port() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.unwrap()
}
