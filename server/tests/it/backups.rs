//! `unjank backup` and `unjank restore`: backups are made while devices report, restored, interrupted and damaged.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::sleep;
use unjank_protocol::Timestamp;

use crate::engine::UNJANK;
use crate::postgres::postgres;
use crate::processes::{Program, fresh_spans, sql, unjank};
use crate::server::{Server, spans};
use crate::wait;

/// The number of spans of a batch.
const SPANS: usize = 5;
/// The pause of a device between two batches.
const PAUSE: Duration = Duration::from_millis(100);

/// The folders of a test.
pub(crate) struct Room {
    folder: tempfile::TempDir,
}

impl Room {
    pub(crate) fn new() -> Self {
        let room = Self {
            folder: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(room.data()).unwrap();
        room
    }

    /// The data folder of the first server.
    pub(crate) fn data(&self) -> PathBuf {
        self.at("data")
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Starts a server that has stored one batch.
    pub(crate) async fn server(&self) -> Program {
        let program = Program::start(&self.data()).await;
        program.send(&batch()).await;
        program.drained().await;
        program
    }
}

/// The number of rows of each signal in raw tables, in roll-ups and in `outcomes`.
const COUNTS: &str = "SELECT (SELECT count() FROM spans) AS spans, (SELECT uniqExact(span_id) FROM spans), \
     (SELECT toUInt64(sum(samples)) FROM spans_hourly), (SELECT toUInt64(sum(samples)) FROM spans_daily), \
     (SELECT toUInt64(sum(count)) FROM outcomes WHERE project != '' AND signal = 'spans' AND outcome = 'stored'), \
     (SELECT count() FROM metrics), (SELECT toUInt64(sum(samples)) FROM metrics_hourly), \
     (SELECT uniqExact(batch_id) FROM batches), (SELECT count() FROM batches)";

fn expected(batches: usize) -> String {
    let (spans, metrics) = (SPANS * batches, batches);
    [
        spans, spans, spans, spans, spans, metrics, metrics, batches, batches,
    ]
    .map(|number| number.to_string())
    .join("\t")
}

/// Waits until this number of batches is stored and counted exactly once. After a start, the server also rolls up the folds whose marks are
/// missing.
pub(crate) async fn counts(folder: &Path, batches: usize) {
    let mut last = String::new();
    let expected = expected(batches);
    let reached = wait::holds(async || {
        last = sql(folder, COUNTS);
        last == expected
    });
    if !reached.await {
        assert_eq!(last, expected);
    }
}

/// A batch with events of two tables.
pub(crate) fn batch() -> Value {
    let mut batch = fresh_spans(SPANS);
    let time = batch["spans"][0]["start"].clone();
    batch["metrics"] = json!([{"name": "cart_items", "time": time, "value": 3.0}]);
    batch
}

pub(crate) fn succeeds(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub(crate) fn fails(output: &Output, reason: &str) {
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "the command succeeded");
    assert!(errors.contains(reason), "no `{reason}` in\n{errors}");
}

async fn backup(folder: &Path, to: &Path) -> Output {
    let to = to.to_str().unwrap();
    let command = tokio::process::Command::new(UNJANK)
        .args(["backup", to, "--data-dir"])
        .arg(folder)
        .output();
    command.await.unwrap()
}

fn restore(from: &Path, folder: &Path) -> Output {
    unjank(folder, &["restore", from.to_str().unwrap()])
}

/// Sends batches until `stop` becomes true. Returns the acknowledged batches, oldest first.
pub(crate) async fn report(url: String, stop: watch::Receiver<bool>) -> Vec<Value> {
    let client = reqwest::Client::new();
    let mut sent = Vec::new();
    while !*stop.borrow() {
        let batch = batch();
        let request = client.post(&url).bearer_auth("k").json(&batch);
        assert_eq!(request.send().await.unwrap().status(), 202);
        sent.push(batch);
        sleep(PAUSE).await;
    }
    sent
}

pub(crate) fn ids<'b>(batches: impl IntoIterator<Item = &'b Value>) -> BTreeSet<String> {
    let ids = batches.into_iter().map(|batch| batch["batch_id"].as_str());
    ids.map(|id| id.unwrap().to_owned()).collect()
}

/// Makes backups while devices report. Returns all acknowledged batches and, for each backup, the ids of the batches that were acknowledged
/// before the backup began.
async fn reports_and_backups(
    program: &Program,
    folder: &Path,
    to: &[PathBuf],
) -> (Vec<Value>, Vec<BTreeSet<String>>) {
    let mut before = Vec::new();
    let mut all = Vec::new();
    for to in to {
        let (stop, stopped) = watch::channel(false);
        let url = format!("{}/v1/ingest", program.listen);
        let mut devices = JoinSet::new();
        for _ in 0..2 {
            devices.spawn(report(url.clone(), stopped.clone()));
        }
        before.push(ids(&all));
        succeeds(&backup(folder, to).await);
        stop.send_replace(true);
        all.extend(devices.join_all().await.into_iter().flatten());
    }
    (all, before)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_was_made_while_devices_report_has_each_batch_once() {
    let room = Room::new();
    let folder = room.data();
    let mut program = room.server().await;
    let backups: Vec<PathBuf> = (0..3)
        .map(|number| room.at(&format!("backup{number}")))
        .collect();
    let (all, before) = reports_and_backups(&program, &folder, &backups).await;
    program.kill();
    for (number, (from, before)) in backups.iter().zip(before).enumerate() {
        let restored = room.at(&format!("restored{number}"));
        let printed = succeeds(&restore(from, &restored));
        assert!(printed.contains("unjank serve --data-dir"), "{printed}");
        let program = Program::start(&restored).await;
        program.rolled_up().await;
        let stored = sql(&restored, "SELECT batch_id FROM batches");
        let stored: BTreeSet<String> = stored.lines().map(str::to_owned).collect();
        let lost: Vec<_> = before.difference(&stored).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
        counts(&restored, stored.len()).await;
        if number > 0 {
            continue;
        }
        // Devices retry all batches.
        for batch in &all {
            program.send(batch).await;
        }
        program.rolled_up().await;
        counts(&restored, all.len() + 1).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restored_server_has_the_keys_the_users_and_the_secret_of_the_old_one() {
    let room = Room::new();
    let (folder, to, restored) = (room.data(), room.at("backup"), room.at("restored"));
    let mut program = room.server().await;
    let token = succeeds(&unjank(
        &folder,
        &["token", "create", "--name", "ci", "--role", "admin"],
    ));
    let made = async || {
        let url = format!("{}/metrics", program.admin_url());
        let metrics = program.client.get(url).send().await.unwrap();
        let metrics = metrics.text().await.unwrap();
        let last = "unjank_last_backup_timestamp_seconds ";
        let line = metrics.lines().find_map(|line| line.strip_prefix(last));
        line.unwrap().parse::<i64>().unwrap()
    };
    assert_eq!(made().await, 0);
    succeeds(&backup(&folder, &to).await);
    let set: Value =
        serde_json::from_slice(&std::fs::read(to.join("backup.json")).unwrap()).unwrap();
    let until = set["complete_until"].as_str().and_then(Timestamp::parse);
    assert_eq!(made().await, until.unwrap().as_micros() / 1_000_000);
    program.kill();
    succeeds(&restore(&to, &restored));
    let program = Program::start(&restored).await;
    let url = format!("{}/api/v1/projects", program.listen);
    let answer = program
        .client
        .get(url)
        .bearer_auth(token.trim())
        .send()
        .await
        .unwrap();
    assert_eq!(answer.status(), 200);
    let secret = |folder: &Path| std::fs::read(folder.join("secret")).unwrap();
    assert_eq!(secret(&restored), secret(&folder));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_whole_backup_is_refused_and_nothing_is_overwritten() {
    let room = Room::new();
    let (folder, to, restored) = (room.data(), room.at("backup"), room.at("restored"));
    fails(&backup(&folder, &to).await, "no embedded engine is running");
    assert!(!to.exists(), "the folder of a failed backup is left");
    let mut program = room.server().await;
    for inside in [folder.clone(), folder.join("backups/today")] {
        fails(&backup(&folder, &inside).await, "is in the data folder");
    }
    assert!(!folder.join("backups").exists());
    succeeds(&backup(&folder, &to).await);
    fails(&backup(&folder, &to).await, "is not empty");
    program.kill();
    fails(&restore(&to, &folder), "is not empty");
    fails(&restore(&folder, &restored), "is not a complete backup");
    fails(
        &restore(&room.at("nowhere"), &restored),
        "there is no folder",
    );
    let other = [
        "restore",
        to.to_str().unwrap(),
        "--clickhouse-database",
        "other",
    ];
    fails(&unjank(&restored, &other), "--clickhouse-database=unjank");

    // A backup of a later version.
    let description = to.join("backup.json");
    let whole = std::fs::read(&description).unwrap();
    let mut later: Value = serde_json::from_slice(&whole).unwrap();
    later["version"] = json!("999.0.0");
    std::fs::write(&description, later.to_string()).unwrap();
    let refused = restore(&to, &restored);
    fails(
        &refused,
        "made by unjank 999.0.0, which is newer than this one",
    );
    std::fs::write(&description, whole).unwrap();

    // A damaged file.
    let (file, whole) = (
        to.join("control.sqlite"),
        std::fs::read(to.join("control.sqlite")).unwrap(),
    );
    let mut damaged = whole.clone();
    damaged[4_000] ^= 1;
    std::fs::write(&file, damaged).unwrap();
    let refused = restore(&to, &restored);
    fails(&refused, "has changed since the backup was made");
    fails(&refused, "run the same command again");
    fails(&unjank(&restored, &["serve"]), "did not finish");
    std::fs::write(&file, &whole[1..]).unwrap();
    fails(&restore(&to, &restored), "has another size");

    // The same command again, once the file is whole.
    std::fs::write(&file, whole).unwrap();
    succeeds(&restore(&to, &restored));
    let program = Program::start(&restored).await;
    program.rolled_up().await;
    counts(&restored, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_or_interrupted_backup_leaves_nothing_that_stops_the_next_one() {
    let room = Room::new();
    let folder = room.data();
    let program = room.server().await;
    for (name, signal) in [("killed", "-9"), ("interrupted", "-2")] {
        let to = room.at(name);
        let mut child = tokio::process::Command::new(UNJANK)
            .args(["backup", to.to_str().unwrap(), "--data-dir"])
            .arg(&folder)
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        wait::until("the backup has begun", async || to.exists()).await;
        let pid = child.id().unwrap().to_string();
        let sent = std::process::Command::new("kill")
            .args([signal, &pid])
            .status();
        assert!(sent.unwrap().success());
        child.wait().await.unwrap();
    }
    let complete = room.at("interrupted/backup.json");
    assert!(complete.exists() || !room.at("interrupted").exists());
    program.send(&batch()).await;
    program.drained().await;
    let to = room.at("next");
    succeeds(&backup(&folder, &to).await);
    let left = std::fs::read_dir(folder.join("engine/backups"));
    assert!(
        left.is_err() || left.unwrap().next().is_none(),
        "files are left in the engine's folder"
    );
    let restored = room.at("restored");
    succeeds(&restore(&to, &restored));
    let program = Program::start(&restored).await;
    program.rolled_up().await;
    counts(&restored, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_with_postgresql_and_its_own_clickhouse_is_restored() {
    let postgres = tokio::task::spawn_blocking(postgres).await.unwrap();
    let control = postgres.database().await;
    let secret = "one secret for the old server and the restored one";
    let settings = ["--database-url", &control, "--secret", secret];
    let mut server = Server::with(&settings).await;
    server.ready().await;
    assert_eq!(server.send(&spans(3)).await.status, 202);
    server.drained().await;
    let room = Room::new();
    let to = room.at("backup");
    let place = format!("File('{}/{{part}}')", server.database());
    let flags = server.flags();
    let run = async |command: &[&str], control: &str, data_dir: &Path| {
        let output = tokio::process::Command::new(UNJANK)
            .args(command)
            .args(&flags)
            .args(["--database-url", control, "--data-dir"])
            .arg(data_dir)
            .output();
        output.await.unwrap()
    };
    let made = ["backup", to.to_str().unwrap()];
    fails(
        &run(&made, &control, server.data_dir()).await,
        "--clickhouse-to",
    );
    let made = ["backup", to.to_str().unwrap(), "--clickhouse-to", &place];
    succeeds(&run(&made, &control, server.data_dir()).await);
    server.end().await;
    let before = server.query("SELECT count() FROM spans").await;
    let restored = room.at("restored");
    let other = postgres.database().await;
    let made = ["restore", to.to_str().unwrap(), "--clickhouse-from", &place];
    fails(&run(&made, &other, &restored).await, "already has tables");
    server
        .query(&format!("DROP DATABASE `{}` SYNC", server.database()))
        .await;
    succeeds(&run(&made, &other, &restored).await);
    assert_eq!(server.query("SELECT count() FROM spans").await, before);
    // The server continues with the restored databases and the restored log.
    let data_dir = restored.to_str().unwrap();
    server.change(&[
        "--database-url",
        &other,
        "--secret",
        secret,
        "--data-dir",
        data_dir,
    ]);
    server.start_again().await;
    server.ready().await;
    server.drained().await;
    assert_eq!(server.send(&spans(2)).await.status, 202);
    server.drained().await;
    let counts =
        "SELECT (SELECT count() FROM spans), (SELECT toUInt64(sum(samples)) FROM spans_hourly)";
    server.answers(counts, "5\t5").await;
}
