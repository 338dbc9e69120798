//! The program as a process: `unjank serve` with its embedded engine, killed and restarted.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use reqwest::Client;
use serde_json::{Value, json};

use crate::engine::UNJANK;
use crate::rules::{OWN, janks};
use crate::server::{NOW, spans};
use crate::wait;

pub(crate) struct Program {
    child: Child,
    pub(crate) listen: String,
    admin: String,
    pub(crate) client: Client,
}

impl Program {
    /// Starts `unjank serve` on `folder` and waits until it accepts batches.
    pub(crate) async fn start(folder: &Path) -> Self {
        let arguments = ["serve", "--flush-interval-ms", "50"];
        Self::run(folder, &arguments).await
    }

    /// Starts a command that serves from `folder` and waits until it listens.
    pub(crate) async fn run(folder: &Path, arguments: &[&str]) -> Self {
        Self::of(Path::new(UNJANK), folder, arguments).await
    }

    /// Like [`Self::run`], with another binary.
    pub(crate) async fn of(program: &Path, folder: &Path, arguments: &[&str]) -> Self {
        Self::inside(&[], program, folder, arguments).await
    }

    /// Like [`Self::of`], with variables of the environment.
    pub(crate) async fn inside(
        environment: &[(&str, &str)],
        program: &Path,
        folder: &Path,
        arguments: &[&str],
    ) -> Self {
        let file = folder.join("server.json");
        let _there = std::fs::remove_file(&file).is_ok();
        let mut child = Command::new(program)
            .args(arguments)
            .args(["--listen", "127.0.0.1:0"])
            .args(["--admin-listen", "127.0.0.1:0", "--log", "warn"])
            .arg("--data-dir")
            .arg(folder)
            .env("UNJANK_INGEST_KEYS", "k=*")
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let addresses: Value = loop {
            assert!(
                child.try_wait().unwrap().is_none(),
                "the program ended early"
            );
            match std::fs::read(&file)
                .ok()
                .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            {
                Some(addresses) => break addresses,
                None => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        };
        let url = |name: &str| format!("http://{}", addresses[name].as_str().unwrap());
        Self {
            child,
            listen: url("listen"),
            admin: url("admin_listen"),
            client: Client::new(),
        }
    }

    pub(crate) fn admin_url(&self) -> &str {
        &self.admin
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) async fn send(&self, batch: &Value) -> Value {
        let request = self
            .client
            .post(format!("{}/v1/ingest", self.listen))
            .bearer_auth("k")
            .header("content-type", "application/json");
        let response = request.body(batch.to_string()).send().await.unwrap();
        assert_eq!(response.status(), 202);
        response.json().await.unwrap()
    }

    async fn admin(&self, path: &str) -> String {
        let url = format!("{}{path}", self.admin);
        self.client
            .get(url)
            .send()
            .await
            .unwrap()
            .text()
            .await
            .unwrap()
    }

    /// Waits until the server is ready and its log is drained.
    pub(crate) async fn drained(&self) {
        self.wait_for_metric("unjank_log_pending_records 0\n").await;
    }

    /// Waits until the log is drained and all rows are rolled up.
    pub(crate) async fn rolled_up(&self) {
        self.drained().await;
        self.wait_for_metric("unjank_writer_unfolded_rows 0\n")
            .await;
    }

    /// Waits until the server is ready and its metrics contain `line`.
    async fn wait_for_metric(&self, line: &str) {
        wait::until(line, async || {
            self.admin("/readyz").await.contains("\"ready\"")
                && self.admin("/metrics").await.contains(line)
        })
        .await;
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ended = self.child.kill().is_ok();
        let _reaped = self.child.wait().is_ok();
    }
}

pub(crate) fn unjank(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(UNJANK)
        .args(arguments)
        .arg("--data-dir")
        .arg(folder)
        .output()
        .unwrap()
}

/// Runs a command on a data folder. Returns its output, without the end of the last line.
fn output_of(folder: &Path, arguments: &[&str]) -> String {
    let output = unjank(folder, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {error}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.trim_end().to_owned()
}

pub(crate) fn sql(folder: &Path, query: &str) -> String {
    output_of(folder, &["sql", query])
}

/// Creates an API token on the command line. The flags may name its project or the control database.
pub(crate) fn token(folder: &Path, role: &str, flags: &[&str]) -> String {
    let line = ["token", "create", "--name", "test", "--role", role];
    output_of(folder, &[&line[..], flags].concat())
}

/// A batch of valid spans for a program that uses the machine's clock.
pub(crate) fn fresh_spans(count: usize) -> Value {
    let mut batch = spans(count);
    // Times of the example day; `sent_at` makes the server shift them to today.
    batch["sent_at"] = json!(unjank_protocol::Timestamp::from_micros(NOW).to_string());
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn one_process_accepts_a_batch_and_answers_queries() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(folder.path()).await;
    program.send(&fresh_spans(3)).await;
    program.drained().await;
    assert_eq!(
        sql(
            folder.path(),
            "SELECT name, count() FROM spans GROUP BY name"
        ),
        "checkout\t3"
    );
    assert!(unjank(folder.path(), &["healthcheck"]).status.success());
    let write = unjank(folder.path(), &["sql", "DROP TABLE spans"]);
    assert!(!write.status.success(), "unjank sql only reads");
    assert!(String::from_utf8_lossy(&write.stderr).contains("Not enough privileges"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_keeps_every_acknowledged_event() {
    let folder = tempfile::tempdir().unwrap();
    let mut acknowledged = 0;
    for _ in 0..4 {
        let mut program = Program::start(folder.path()).await;
        for _ in 0..20 {
            acknowledged += program.send(&fresh_spans(5)).await["accepted"]
                .as_u64()
                .unwrap();
        }
        program.kill();
    }
    let program = Program::start(folder.path()).await;
    program.drained().await;
    let counts = sql(
        folder.path(),
        "SELECT count(), uniqExact(span_id) FROM spans",
    );
    assert_eq!(counts, format!("{acknowledged}\t{acknowledged}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_engine_is_restarted_and_no_row_is_lost_or_duplicated() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(folder.path()).await;
    let mut acknowledged = 0;
    for _ in 0..3 {
        program.drained().await;
        for _ in 0..10 {
            acknowledged += program.send(&fresh_spans(5)).await["accepted"]
                .as_u64()
                .unwrap();
        }
        let engine: Value =
            serde_json::from_slice(&std::fs::read(folder.path().join("engine.json")).unwrap())
                .unwrap();
        let killed = Command::new("kill")
            .args(["-9", &engine["pid"].to_string()])
            .status()
            .unwrap();
        assert!(killed.success());
    }
    program.drained().await;
    let counts = sql(
        folder.path(),
        "SELECT count(), uniqExact(span_id) FROM spans",
    );
    assert_eq!(counts, format!("{acknowledged}\t{acknowledged}"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_whose_log_nobody_reads_any_longer_ends_when_it_is_asked_to() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = tokio::process::Command::new(UNJANK)
        .args(["serve", "--listen", "127.0.0.1:0"])
        .args(["--admin-listen", "127.0.0.1:0", "--data-dir"])
        .arg(folder.path())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    wait::until("the server", async || {
        folder.path().join("server.json").exists()
    })
    .await;
    drop(child.stderr.take());
    let pid = child.id().unwrap().to_string();
    assert!(Command::new("kill").arg(pid).status().unwrap().success());
    let ended = tokio::time::timeout(wait::PATIENCE, child.wait());
    assert!(ended.await.expect("an end").unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn reclassification_of_history_continues_after_the_server_was_killed() {
    const STACKS: usize = 8_000;
    let folder = tempfile::tempdir().unwrap();
    let mut program = Program::start(folder.path()).await;
    let classes: Vec<String> = (0..STACKS)
        .map(|number| format!("com.example.Page{number}x"))
        .collect();
    for classes in classes.chunks(1_000) {
        program.send(&janks(classes)).await;
    }
    program.drained().await;
    let token = token(folder.path(), "editor", &[]);
    let rules = format!("{}/api/v1/projects/default/rules", program.listen);
    let request = program.client.put(&rules).bearer_auth(token);
    let body = json!({"expected_revision": 0, "rules": OWN});
    assert_eq!(
        request.json(&body).send().await.unwrap().status(),
        201,
        "{body}"
    );
    wait::until("history is being classified", async || {
        let counted = "\nunjank_reclassified_stacks_total 0\n";
        !program.admin("/metrics").await.contains(counted)
    })
    .await;
    program.kill();
    let program = Program::start(folder.path()).await;
    program.drained().await;
    let rewritten = "SELECT count() FROM stack_class_current WHERE rules_version = 1";
    wait::until("history is classified", async || {
        sql(folder.path(), rewritten) == STACKS.to_string()
    })
    .await;
    let events = sql(folder.path(), "SELECT count() FROM janks");
    assert_eq!(events, STACKS.to_string());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_folder_of_the_previous_release_opens_with_all_its_rows() {
    // The folder is from a release whose engine had an HTTP interface of our own. It has one batch with an event of every signal; the
    // row of the batch itself expired after eight days.
    const FOLDER: &[u8] = include_bytes!("../folders/before-listeners.tar.zst");
    const TABLES: &str = "SELECT table, sum(rows) FROM system.parts WHERE active AND database = 'unjank' AND table NOT LIKE 'schema%' \
                          AND table NOT IN ('outcomes', 'stack_classes', 'batches') GROUP BY table ORDER BY table";
    let folder = tempfile::tempdir().unwrap();
    let archive = zstd::stream::read::Decoder::new(FOLDER).unwrap();
    tar::Archive::new(archive).unpack(folder.path()).unwrap();
    let forever = ["", "-hourly", "-daily"].map(|of| format!("--retention{of}-days=0"));
    let mut arguments = vec!["serve", "--flush-interval-ms", "50"];
    arguments.extend(forever.iter().map(String::as_str));
    let program = Program::run(folder.path(), &arguments).await;
    program.drained().await;
    let raw = [
        "app_starts",
        "frame_windows",
        "janks",
        "metrics",
        "page_loads",
        "recompositions",
        "sdk_health",
        "spans",
    ];
    let rolled_up = [
        "app_starts",
        "frame_windows",
        "janks",
        "metrics",
        "page_loads",
        "recompositions",
        "sdk_drops",
        "sdk_health",
        "spans",
        "usage",
    ];
    let mut tables: Vec<String> = raw
        .iter()
        .chain(&["stacks", "traffic", "traffic_daily"])
        .map(|table| (*table).to_owned())
        .chain(
            rolled_up
                .iter()
                .flat_map(|table| ["hourly", "daily"].map(|step| format!("{table}_{step}"))),
        )
        .map(|table| format!("{table}\t1"))
        .collect();
    tables.sort();
    assert_eq!(
        sql(folder.path(), TABLES).lines().collect::<Vec<_>>(),
        tables
    );
    // A release with other built-in rules reclassifies the stack.
    let classes = "SELECT uniq(stack_hash), uniq(group_id) FROM stack_classes";
    assert_eq!(sql(folder.path(), classes), "1\t1");
    // New rows are stored in addition to the old ones, and rolled up.
    program.send(&fresh_spans(3)).await;
    program.rolled_up().await;
    let spans = "SELECT (SELECT count() FROM spans), (SELECT sum(samples) FROM spans_hourly), (SELECT sum(samples) FROM spans_daily)";
    assert_eq!(sql(folder.path(), spans), "4\t4\t4");
}

#[tokio::test(flavor = "multi_thread")]
async fn sql_waits_for_the_engine_and_takes_statements_from_arguments_files_and_stdin() {
    let folder = tempfile::tempdir().unwrap();
    let _program = Program::start(folder.path()).await;
    // The server is up, but its engine is still starting.
    let output = unjank(folder.path(), &["sql", "SELECT count() FROM spans"]);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    assert!(error.contains("the engine is starting: waiting"), "{error}");
    let file = folder.path().join("question.sql");
    std::fs::write(&file, "SELECT 1 AS one, 'x' AS two;\n").unwrap();
    let file = file.to_str().unwrap();
    let csv = unjank(
        folder.path(),
        &["sql", "--file", file, "--format", "CSVWithNames"],
    );
    assert_eq!(
        String::from_utf8_lossy(&csv.stdout),
        "\"one\",\"two\"\n1,\"x\"\n"
    );
    let piped = Command::new(UNJANK)
        .args(["sql", "--data-dir"])
        .arg(folder.path())
        .stdin(std::fs::File::open(file).unwrap())
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&piped.stdout), "1\tx\n");
    let outside = tempfile::NamedTempFile::new().unwrap();
    let query = format!("SELECT file('{}')", outside.path().display());
    let outside = unjank(folder.path(), &["sql", &query]);
    assert!(!outside.status.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_owner_can_read_the_data_folder_and_the_engine_ends_with_a_killed_server() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    let mut program = Program::start(&data_dir).await;
    program.drained().await;
    let mut paths = vec![data_dir.clone()];
    while let Some(path) = paths.pop() {
        // The engine deletes files meanwhile.
        let Ok(found) = path.symlink_metadata() else {
            continue;
        };
        let open = found.permissions().mode() & 0o077 != 0 && !found.is_symlink();
        assert!(!open, "{}", path.display());
        if found.is_dir() {
            let entries = std::fs::read_dir(&path).into_iter().flatten().flatten();
            paths.extend(entries.map(|entry| entry.path()));
        }
    }
    let engine = std::fs::read(data_dir.join("engine.json")).unwrap();
    let engine: Value = serde_json::from_slice(&engine).unwrap();
    program.kill();
    wait::until("the engine ends with its server", async || {
        Path::new(&format!("/proc/{}/cwd", engine["pid"]))
            .read_link()
            .is_err()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_server_on_the_same_folder_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = Program::start(folder.path()).await;
    let second = unjank(
        folder.path(),
        &[
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--admin-listen",
            "127.0.0.1:0",
        ],
    );
    assert!(!second.status.success());
    let error = String::from_utf8_lossy(&second.stderr);
    let reason = format!("is in use by the server of process {}", first.pid());
    assert!(error.contains(&reason), "{error}");
    first.kill();
    let health = unjank(folder.path(), &["healthcheck"]);
    let error = String::from_utf8_lossy(&health.stderr);
    assert!(
        !health.status.success() && error.contains("has ended"),
        "{error}"
    );
}
