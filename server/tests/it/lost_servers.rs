//! `unjank log drain`: what waits in the log of a lost server is stored once, also if the server comes back.

use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinSet;

use crate::engine::{PASSWORD, UNJANK, USER, engine};
use crate::postgres::{Way, postgres};
use crate::processes::{Program, fresh_spans};
use crate::server::{NOWHERE, Server};
use crate::wait;

/// Stored spans, distinct ones, those in the roll-up, and batches.
const COUNTS: &str = "SELECT (SELECT count() FROM spans), (SELECT uniqExact(span_id) FROM spans), \
     (SELECT toUInt64(sum(samples)) FROM spans_hourly), (SELECT count() FROM batches)";
/// The numbers of stored and duplicate spans according to `outcomes`.
const BOOKS: &str = "SELECT sumIf(count, outcome = 'stored'), sumIf(count, outcome = 'duplicate') \
     FROM outcomes WHERE project != '' AND signal = 'spans'";

const SECRET: &str = "one secret for all servers of this test";

/// Servers with one PostgreSQL and one ClickHouse. One of them works, another gets lost.
struct Room {
    server: Server,
    database: String,
    /// The data folder of the lost server.
    lost: tempfile::TempDir,
}

impl Room {
    async fn new() -> Self {
        let postgres = tokio::task::spawn_blocking(postgres).await.unwrap();
        let database = postgres.database().await;
        let settings = ["--database-url", &database, "--secret", SECRET];
        Self {
            server: Server::with(&settings).await,
            database,
            lost: tempfile::tempdir().unwrap(),
        }
    }

    /// Returns the settings of a process that uses this ClickHouse, if it is at this address.
    fn databases<'a>(&'a self, clickhouse: &'a str) -> Vec<&'a str> {
        vec![
            "--clickhouse-url",
            clickhouse,
            "--clickhouse-user",
            USER,
            "--clickhouse-password",
            PASSWORD,
            "--clickhouse-database",
            self.server.database(),
            "--database-url",
            &self.database,
        ]
    }

    /// Starts the server that gets lost.
    async fn start(&self, clickhouse: &str) -> Program {
        let settings = ["serve", "--secret", SECRET, "--flush-interval-ms", "10"];
        let databases = self.databases(clickhouse);
        let line = [&settings[..], &databases[..]].concat();
        Program::run(self.lost.path(), &line).await
    }

    /// Sends batches to a server without ClickHouse, and kills it.
    async fn lose(&self, batches: &[Value]) {
        let mut program = self.start(NOWHERE[1]).await;
        for batch in batches {
            program.send(batch).await;
        }
        program.kill();
    }

    fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(UNJANK);
        command
            .args(["log", "drain"])
            .arg(folder)
            .args(self.databases(&engine().url))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        command
    }

    /// Drains the log in a folder. Returns the output of the command.
    async fn drain(&self, folder: &Path) -> String {
        let output = self.command(folder).output().await.unwrap();
        assert!(output.status.success(), "{}", error(&output));
        String::from_utf8(output.stdout).unwrap()
    }

    async fn sql(&self, sql: &str) {
        let mut connection = PgConnection::connect(&self.database).await.unwrap();
        let done = sqlx::query(AssertSqlSafe(sql.to_owned()))
            .execute(&mut connection)
            .await;
        done.unwrap();
        connection.close().await.unwrap();
    }

    /// Lets ClickHouse refuse spans, or accept them again.
    async fn refuse_spans(&self, refused: bool) {
        let parts = if refused { 1 } else { 1_000 };
        let sql = format!("ALTER TABLE spans MODIFY SETTING parts_to_throw_insert = {parts}");
        self.server.query(&sql).await;
    }

    /// Stores a batch, loses the server with four others, and interrupts the command when it has stored a part of them.
    async fn lose_and_interrupt(&self) {
        let mut program = self.start(&engine().url).await;
        program.send(&fresh_spans(1)).await;
        program.rolled_up().await;
        program.kill();
        self.lose(&batches(4)).await;
        self.forget_claims().await;
        // ClickHouse refuses an INSERT if the table has a part already.
        self.refuse_spans(true).await;
        let child = self.command(self.lost.path()).spawn().unwrap();
        let count = "SELECT count() FROM batches";
        self.server.answers(count, "5").await;
        let pid = child.id().unwrap().to_string();
        let sent = std::process::Command::new("kill")
            .args(["-2", &pid])
            .status();
        assert!(sent.unwrap().success());
        let output = child.wait_with_output().await.unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", error(&output));
        assert!(error(&output).contains("interrupted: "), "{output:?}");
        self.refuse_spans(false).await;
    }

    /// Makes all servers look as if they had been down for five minutes.
    async fn forget_claims(&self) {
        self.sql("UPDATE claiming_logs SET seen_at = now() - INTERVAL '5 minutes'")
            .await;
    }

    /// Starts the lost server again on its folder and waits until its log is drained.
    async fn comes_back(&self) {
        let program = self.start(&engine().url).await;
        program.rolled_up().await;
    }

    fn ledger(&self) -> String {
        std::fs::read_to_string(self.lost.path().join("drain.json")).unwrap()
    }
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Waits until a command prints a line with a text on standard error.
async fn says(child: &mut Child, text: &str) {
    let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let found = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(text) {
                return true;
            }
        }
        false
    };
    let found = tokio::time::timeout(wait::PATIENCE, found).await;
    assert!(found.unwrap(), "the command ended without `{text}`");
}

fn batches(count: usize) -> Vec<Value> {
    (0..count).map(|_| fresh_spans(5)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_log_of_a_killed_server_is_stored_once_without_a_server() {
    let room = Room::new().await;
    room.lose(&batches(4)).await;
    let said = room.drain(room.lost.path()).await;
    assert!(
        said.contains("4 batches: 4 stored now, 0 stored before"),
        "{said}"
    );
    assert!(said.contains("dead letters: 0\n"), "{said}");
    assert!(said.contains("nothing is left to store"), "{said}");
    assert_eq!(room.server.query(COUNTS).await, "20\t20\t20\t4");
    assert_eq!(room.server.query(BOOKS).await, "20\t0");
    // Nothing is left for a second run, nor for the server.
    let said = room.drain(room.lost.path()).await;
    assert!(said.contains("drained 0 records"), "{said}");
    room.comes_back().await;
    assert_eq!(room.server.query(COUNTS).await, "20\t20\t20\t4");
    assert_eq!(room.server.query(BOOKS).await, "20\t0");
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_that_devices_have_sent_again_to_another_server_are_duplicates() {
    let room = Room::new().await;
    let batches = batches(4);
    room.lose(&batches).await;
    for batch in batches.iter().take(3) {
        assert_eq!(room.server.send(batch).await.status, 202);
    }
    room.server.drained().await;
    let said = room.drain(room.lost.path()).await;
    assert!(said.contains("1 stored now, 3 stored before"), "{said}");
    assert_eq!(room.server.query(COUNTS).await, "20\t20\t20\t4");
    assert_eq!(room.server.query(BOOKS).await, "20\t15");
    // The last one is a duplicate for the other server, too.
    assert_eq!(room.server.send(&batches[3]).await.status, 202);
    room.server.drained().await;
    assert_eq!(room.server.query(COUNTS).await, "20\t20\t20\t4");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_drain_is_continued() {
    let room = Room::new().await;
    room.lose_and_interrupt().await;
    assert!(!room.ledger().contains("\"range\":null"));
    room.drain(room.lost.path()).await;
    assert_eq!(room.server.query(COUNTS).await, "21\t21\t21\t5");
    assert_eq!(room.server.query(BOOKS).await, "21\t0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_without_its_ledger_is_drained_once() {
    let room = Room::new().await;
    room.lose_and_interrupt().await;
    // A copy of the folder `log` is all that was saved.
    let saved = tempfile::tempdir().unwrap();
    copy(&room.lost.path().join("log"), &saved.path().join("log"));
    room.drain(saved.path()).await;
    assert_eq!(room.server.query(COUNTS).await, "21\t21\t21\t5");
    assert_eq!(room.server.query(BOOKS).await, "21\t0");
    // The server comes back with an old ledger, in which the range is unfinished.
    room.comes_back().await;
    assert_eq!(room.server.query(COUNTS).await, "21\t21\t21\t5");
    assert_eq!(room.server.query(BOOKS).await, "21\t0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_stores_nothing_while_a_copy_of_its_log_is_drained() {
    let room = Room::new().await;
    room.lose(&batches(2)).await;
    let log = std::fs::read_to_string(room.lost.path().join("log/identity")).unwrap();
    let lease = format!("drain of log {}", log.trim());
    room.sql(&format!(
        "INSERT INTO leases VALUES ('{lease}', 'a command', {})",
        i64::MAX
    ))
    .await;
    let mut other = room.command(room.lost.path()).spawn().unwrap();
    says(&mut other, "another `unjank log drain` drains this log").await;
    other.kill().await.unwrap();
    let program = room.start(&engine().url).await;
    wait::until("a failed attempt", async || {
        let url = format!("{}/metrics", program.admin_url());
        let metrics = program.client.get(url).send().await.unwrap();
        let metrics = metrics.text().await.unwrap();
        let failures = metrics
            .lines()
            .find_map(|line| line.strip_prefix("unjank_writer_failures_total "));
        failures.is_some_and(|failures| failures != "0")
    })
    .await;
    assert_eq!(room.server.query("SELECT count() FROM spans").await, "0");
    room.sql("UPDATE leases SET until = 0 WHERE holder = 'a command'")
        .await;
    program.rolled_up().await;
    assert_eq!(room.server.query(COUNTS).await, "10\t10\t10\t2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_whose_server_stores_batches_is_left_to_it() {
    let room = Room::new().await;
    room.lose(&batches(2)).await;
    let log = std::fs::read_to_string(room.lost.path().join("log/identity")).unwrap();
    let log = log.trim().replace('-', "");
    room.sql(&format!(
        "INSERT INTO claiming_logs VALUES ('\\x{log}', now())"
    ))
    .await;
    let mut waiting = room.command(room.lost.path()).spawn().unwrap();
    says(&mut waiting, "waiting until it counts as gone").await;
    // The server makes another claim.
    room.sql("UPDATE claiming_logs SET seen_at = clock_timestamp()")
        .await;
    let status = tokio::time::timeout(wait::PATIENCE, waiting.wait()).await;
    assert_eq!(status.unwrap().unwrap().code(), Some(1));
    let mut waiting = room.command(room.lost.path()).spawn().unwrap();
    says(&mut waiting, "waiting until it counts as gone").await;
    // The server counts as gone.
    room.forget_claims().await;
    let status = tokio::time::timeout(wait::PATIENCE, waiting.wait()).await;
    assert!(status.unwrap().unwrap().success());
    assert_eq!(room.server.query(COUNTS).await, "10\t10\t10\t2");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_was_cut_off_learns_that_a_copy_of_its_log_was_drained() {
    let room = Room::new().await;
    let postgres = tokio::task::spawn_blocking(postgres).await.unwrap();
    let way = Way::to(postgres).await;
    let port = |port: u16| format!(":{port}/");
    let through = room.database.replace(&port(postgres.port), &port(way.port));
    let database = room.server.database();
    let settings = [
        ["--database-url", &through],
        ["--secret", SECRET],
        ["--clickhouse-database", database],
    ];
    let cut_off = Server::with(&settings.concat()).await;
    cut_off.send(&fresh_spans(1)).await;
    cut_off.drained().await;
    way.blocked.send_replace(true);
    for batch in batches(2) {
        assert_eq!(cut_off.send(&batch).await.status, 202);
    }
    wait::until("a failed claim", async || {
        cut_off.metric("unjank_writer_failures_total").await >= 1.0
    })
    .await;
    let saved = tempfile::tempdir().unwrap();
    copy(&cut_off.data_dir().join("log"), &saved.path().join("log"));
    room.forget_claims().await;
    room.drain(saved.path()).await;
    assert_eq!(room.server.query(COUNTS).await, "11\t11\t11\t3");
    way.blocked.send_replace(false);
    // It can store new batches after that.
    cut_off.send(&fresh_spans(1)).await;
    cut_off.drained().await;
    assert_eq!(room.server.query(COUNTS).await, "12\t12\t12\t4");
    assert_eq!(room.server.query(BOOKS).await, "12\t0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_server_ends_the_queries_of_an_interrupted_drain_before_it_claims_again() {
    let room = Room::new().await;
    let servers = ["--database-url", &room.database, "--secret", SECRET];
    let database = ["--clickhouse-database", room.server.database()];
    let running = Server::with(&[&servers[..], &database[..]].concat()).await;
    running.send(&fresh_spans(1)).await;
    running.drained().await;
    let log = std::fs::read_to_string(running.data_dir().join("log/identity")).unwrap();
    let log = log.trim();
    // As if `unjank log drain` had drained a copy of the log, and its last INSERT were still running.
    let number =
        "SELECT concat('unjank-', leftPad(lower(hex(range_id)), 32, '0'), '-test') FROM batches";
    let number = room.server.query(number).await;
    let slow = running.client.post(&engine().url);
    let slow = slow.query(&[("query_id", number.as_str()), ("max_block_size", "1")]);
    let slow = slow
        .basic_auth(USER, Some(PASSWORD))
        .body("SELECT sleepEachRow(1) FROM numbers(600) FORMAT Null");
    let mut others = JoinSet::new();
    others.spawn(slow.send());
    let at_work = format!("SELECT count() FROM system.processes WHERE query_id = '{number}'");
    room.server.answers(&at_work, "1").await;
    room.sql(&format!(
        "INSERT INTO leases VALUES ('drain of log {log}', 'a command', 1)"
    ))
    .await;
    running.send(&fresh_spans(1)).await;
    running.drained().await;
    assert_eq!(room.server.query(&at_work).await, "0");
    drop(others.join_next().await.unwrap().unwrap());
    // The lease is forgotten, so the server does not compare its ledger again.
    let failures = running.metric("unjank_writer_failures_total").await;
    running.send(&fresh_spans(1)).await;
    running.drained().await;
    assert_eq!(
        running.metric("unjank_writer_failures_total").await,
        failures
    );
    assert_eq!(room.server.query(COUNTS).await, "3\t3\t3\t3");
    assert_eq!(room.server.query(BOOKS).await, "3\t0");
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_without_a_log_and_folders_of_servers_are_refused() {
    let room = Room::new().await;
    let empty = tempfile::tempdir().unwrap();
    let log = room.server.data_dir().join("log");
    let missing = empty.path().join("missing");
    for (folder, reason) in [
        (room.server.data_dir(), "is in use by the server of process"),
        (empty.path(), "there is no ingest log in"),
        (missing.as_path(), "there is no ingest log in"),
        (log.as_path(), "is an ingest log itself"),
    ] {
        let output = room.command(folder).output().await.unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(error(&output).contains(reason), "{}", error(&output));
    }
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0);
    for (left_out, reason) in [
        ("--clickhouse-url", "set --clickhouse-url"),
        ("--database-url", "set --database-url"),
    ] {
        let settings = room.databases(&engine().url);
        let settings = settings.chunks(2).filter(|pair| pair[0] != left_out);
        let output = Command::new(UNJANK)
            .args(["log", "drain"])
            .arg(room.lost.path())
            .args(settings.flatten())
            .output();
        let output = output.await.unwrap();
        assert!(error(&output).contains(reason), "{}", error(&output));
    }
}

/// Copies the files of a folder.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}
