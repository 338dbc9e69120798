//! `unjank backup` to a bucket and `unjank restore` from one, with a small S3 server from npm.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use serde_json::Value;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::backups::{Room, batch, counts, fails, ids, report, succeeds};
use crate::engine::UNJANK;
use crate::processes::{Program, sql};
use crate::symbol_bucket::Bucket;
use crate::wait;

const KEY: &str = "S3RVER";

/// The size of a file that is uploaded in several parts.
const LARGE: u64 = 24 << 20;

fn command(bucket: &Bucket, key: &str, arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(UNJANK);
    command
        .args(arguments)
        .arg("--data-dir")
        .arg(folder)
        .envs(bucket.environment(key))
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

async fn run(bucket: &Bucket, arguments: &[&str], folder: &Path) -> Output {
    let mut command = command(bucket, KEY, arguments, folder);
    command.output().await.unwrap()
}

async fn backup(bucket: &Bucket, to: &str, folder: &Path) -> Output {
    run(bucket, &["backup", to], folder).await
}

async fn restore(bucket: &Bucket, from: &str, folder: &Path) -> Output {
    run(bucket, &["restore", from], folder).await
}

/// The file of an object of a bucket, below the folder `shop`.
fn object(bucket: &Bucket, backup: &str, name: &str) -> PathBuf {
    let name = format!("{backup}/{name}._S3rver_object");
    let objects = bucket.objects(backup);
    let found = objects.into_iter().find(|path| path.ends_with(&name));
    found.unwrap_or_else(|| panic!("no {name}"))
}

/// Adds a large symbol file. It is uploaded last, except for the description.
fn add_large_file(folder: &Path) {
    let folder = folder.join("symbols");
    std::fs::create_dir_all(&folder).unwrap();
    let file = std::fs::File::create(folder.join("large")).unwrap();
    file.set_len(LARGE).unwrap();
}

/// Waits until a bucket holds a part of the large file of a backup, and has other files besides its claim.
async fn is_held(bucket: &Bucket, name: &str) {
    wait::until("the upload is held", async || {
        bucket.has_held() && bucket.objects(name).len() > 1
    })
    .await;
}

/// Replaces the secret of a data folder with a pipe, so that a backup stops there until the result is run. It then has the tables and the log, and
/// has uploaded nothing.
async fn hold_at_secret(folder: &Path) -> Command {
    let (secret, aside) = (folder.join("secret"), folder.join("aside"));
    std::fs::rename(&secret, &aside).unwrap();
    let made = Command::new("mkfifo").arg(&secret).status().await;
    assert!(made.unwrap().success());
    let mut release = Command::new("sh");
    release
        .args(["-c", "cat \"$0\" > \"$1\""])
        .args([&aside, &secret])
        .kill_on_drop(true);
    release
}

async fn send_signal(child: &Child, signal: &str) {
    let pid = child.id().unwrap().to_string();
    let sent = Command::new("kill").args([signal, &pid]).status().await;
    assert!(sent.unwrap().success());
}

fn assert_clean(folder: &Path) {
    let staging = folder.join("backup-staging");
    assert!(!staging.exists(), "the staging folder is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_in_a_bucket_that_was_made_while_devices_report_has_each_batch_once() {
    let bucket = Bucket::start().await;
    let room = Room::new();
    let (folder, restored) = (room.data(), room.at("restored"));
    let mut program = room.server().await;
    let first = batch();
    program.send(&first).await;
    let (stop, stopped) = watch::channel(false);
    let mut devices = JoinSet::new();
    for _ in 0..2 {
        let url = format!("{}/v1/ingest", program.listen);
        devices.spawn(report(url, stopped.clone()));
    }
    let place = "s3://symbols/shop/one";
    let printed = succeeds(&backup(&bucket, place, &folder).await);
    assert!(
        printed.contains(&format!("unjank restore {place}")),
        "{printed}"
    );
    stop.send_replace(true);
    let mut all: Vec<_> = devices.join_all().await.into_iter().flatten().collect();
    assert_clean(&folder);
    assert!(folder.join("last-backup").exists());
    program.kill();

    succeeds(&restore(&bucket, place, &restored).await);
    assert_clean(&restored);
    let program = Program::start(&restored).await;
    program.rolled_up().await;
    let stored = sql(&restored, "SELECT batch_id FROM batches");
    let stored: BTreeSet<String> = stored.lines().map(str::to_owned).collect();
    assert!(ids([&first]).is_subset(&stored), "the first batch is lost");
    counts(&restored, stored.len()).await;
    // Devices retry all batches.
    all.push(first);
    for batch in &all {
        program.send(batch).await;
    }
    program.rolled_up().await;
    counts(&restored, all.len() + 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_dies_during_the_upload_has_no_backup() {
    let mut bucket = Bucket::start().await;
    let room = Room::new();
    let (folder, restored) = (room.data(), room.at("restored"));
    let _program = room.server().await;
    add_large_file(&folder);
    bucket.hold();
    let place = "s3://symbols/shop/one";
    let child = command(&bucket, KEY, &["backup", place], &folder)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    is_held(&bucket, "one").await;
    bucket.stop();
    bucket.release();
    let output = child.wait_with_output().await.unwrap();
    fails(&output, "does not answer");
    assert!(!folder.join("last-backup").exists());
    assert!(!folder.join("backup-staging/set").exists());
    // What is left in the bucket is not forgotten while the bucket does not answer.
    fails(&backup(&bucket, place, &folder).await, "does not answer");

    bucket.run().await;
    // The S3 server of the tests cannot always list what it was writing when it died.
    let refused = restore(&bucket, place, &restored).await;
    let said = String::from_utf8_lossy(&refused.stderr);
    let is_refused = said.contains("is not a complete backup") || said.contains("cannot be used");
    assert!(is_refused && !refused.status.success(), "{said}");
    assert!(!restored.exists(), "a refused restore wrote files");
    assert!(!bucket.objects("one").is_empty(), "objects are deleted");
    let again = backup(&bucket, place, &folder).await;
    if again.status.success() {
        assert_clean(&folder);
        succeeds(&restore(&bucket, place, &restored).await);
    } else {
        fails(&again, "cannot be used");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_backups_at_once_do_not_destroy_each_other() {
    let bucket = Bucket::start().await;
    let (room, other) = (Room::new(), Room::new());
    let folder = room.data();
    let _programs = (room.server().await, other.server().await);
    let place = "s3://symbols/shop/one";
    let mut release = hold_at_secret(&folder).await;
    let slow = command(&bucket, KEY, &["backup", place], &folder)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It has found the prefix empty.
    wait::until("the slow backup has copied the tables", async || {
        folder.join("backup-staging/set/log").exists()
    })
    .await;
    let same_folder = backup(&bucket, "s3://symbols/shop/two", &folder).await;
    fails(
        &same_folder,
        "another backup of this data folder is running",
    );
    succeeds(&backup(&bucket, place, &other.data()).await);
    let objects = || -> BTreeSet<_> { bucket.objects("one").into_iter().collect() };
    let complete = objects();
    let _released = release.spawn().unwrap();
    fails(&slow.wait_with_output().await.unwrap(), "choose");
    assert_eq!(objects(), complete);
    assert_clean(&folder);
    assert_eq!(bucket.objects("two").len(), 0);
    succeeds(&restore(&bucket, place, &room.at("restored")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_backup_left_is_not_deleted_if_another_backup_has_its_prefix() {
    let bucket = Bucket::start().await;
    let room = Room::new();
    let (folder, staging) = (room.data(), room.at("staging"));
    let _program = room.server().await;
    add_large_file(&folder);
    let staging_folder = staging.to_str().unwrap();
    let place = "s3://symbols/shop/one";
    let arguments = ["backup", place, "--staging", staging_folder];
    bucket.hold();
    let mut killed = command(&bucket, KEY, &arguments, &folder).spawn().unwrap();
    is_held(&bucket, "one").await;
    killed.kill().await.unwrap();
    bucket.release();
    let in_use = backup(&bucket, place, &folder).await;
    fails(&in_use, "another backup is being uploaded");

    bucket.clear("one");
    succeeds(&backup(&bucket, place, &folder).await);
    // As during the upload.
    std::fs::remove_file(object(&bucket, "one", "backup.json")).unwrap();
    let uploaded = bucket.objects("one").len();
    let next = "s3://symbols/shop/next";
    let arguments = ["backup", next, "--staging", staging_folder];
    succeeds(&run(&bucket, &arguments, &folder).await);
    assert_eq!(bucket.objects("one").len(), uploaded);
    assert_clean(&staging);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_other_programs_store_below_the_prefix_is_no_part_of_a_backup() {
    let bucket = Bucket::start().await;
    let room = Room::new();
    let (folder, restored) = (room.data(), room.at("restored"));
    let mut program = room.server().await;
    let place = "s3://symbols/shop/one";
    bucket.put_empty("one/");
    succeeds(&backup(&bucket, place, &folder).await);
    program.kill();
    let claim = "one/uploading-67e55044-10b1-426f-9247-bb680e5fe0c8";
    let folders = ["one/log/", "one/clickhouse/", "one/clickhouse/rollups/"];
    for name in folders.into_iter().chain([claim, "one/notes"]) {
        bucket.put_empty(name);
    }
    succeeds(&restore(&bucket, place, &restored).await);

    let mut tables = bucket.objects("one/clickhouse").into_iter();
    let table = tables.find(|path| std::fs::metadata(path).unwrap().len() > 0);
    let table = table.unwrap();
    let content = std::fs::read(&table).unwrap();
    std::fs::remove_file(&table).unwrap();
    let older = room.at("older");
    let incomplete = restore(&bucket, place, &older).await;
    fails(&incomplete, "in the folder clickhouse");

    // Older versions did not count the files.
    std::fs::write(&table, content).unwrap();
    let description = object(&bucket, "one", "backup.json");
    let text = std::fs::read(&description).unwrap();
    let mut set: Value = serde_json::from_slice(&text).unwrap();
    assert!(set.as_object_mut().unwrap().remove("tables").is_some());
    std::fs::write(&description, set.to_string()).unwrap();
    succeeds(&restore(&bucket, place, &older).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_or_interrupted_backup_to_a_bucket_leaves_nothing_after_the_next_one() {
    let bucket = Bucket::start().await;
    let room = Room::new();
    let (folder, staging) = (room.data(), room.at("staging"));
    let _program = room.server().await;
    add_large_file(&folder);
    let staging_folder = staging.to_str().unwrap().to_owned();
    let whole = "s3://symbols/shop/whole";
    succeeds(&backup(&bucket, whole, &folder).await);
    for (name, signal) in [("interrupted", "-15"), ("killed", "-9")] {
        let place = format!("s3://symbols/shop/{name}");
        let arguments = ["backup", &place, "--staging", &staging_folder];
        bucket.hold();
        let mut child = command(&bucket, KEY, &arguments, &folder).spawn().unwrap();
        is_held(&bucket, name).await;
        send_signal(&child, signal).await;
        // An interrupted backup waits for the part that it is sending.
        let mut ended = None;
        wait::until("the backup ends", async || {
            bucket.pass_one();
            ended = child.try_wait().unwrap();
            ended.is_some()
        })
        .await;
        assert!(!ended.unwrap().success());
        bucket.release();
    }
    assert_eq!(bucket.objects("interrupted").len(), 0);
    assert!(!bucket.objects("killed").is_empty());
    assert!(staging.join("backup-staging").exists());
    // A restore with the same staging folder does not forget it.
    let from = ["restore", whole, "--staging", &staging_folder];
    succeeds(&run(&bucket, &from, &room.at("whole")).await);
    assert!(staging.join("backup-staging").exists());

    let place = "s3://symbols/shop/next";
    let next = ["backup", place, "--staging", &staging_folder];
    // A bucket that is missing, or that has the same name at another endpoint, does not make the next backup forget it either.
    bucket.rename("symbols", "aside");
    let missing = run(&bucket, &next, &folder).await;
    fails(&missing, "there is no bucket `symbols`");
    bucket.rename("aside", "symbols");
    let elsewhere = Bucket::start().await;
    succeeds(&run(&elsewhere, &next, &folder).await);
    assert!(!bucket.objects("killed").is_empty());
    assert!(staging.join("backup-staging").exists());

    succeeds(&run(&bucket, &next, &folder).await);
    assert_eq!(bucket.objects("killed").len(), 0);
    assert_clean(&staging);
    let restored = room.at("restored");
    let from = ["restore", place, "--staging", &staging_folder];
    succeeds(&run(&bucket, &from, &restored).await);
    assert_clean(&staging);
    let large = std::fs::metadata(restored.join("symbols/large")).unwrap();
    assert_eq!(large.len(), LARGE);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_whole_backup_in_a_bucket_is_refused() {
    let bucket = Bucket::start().await;
    let room = Room::new();
    let (folder, restored) = (room.data(), room.at("restored"));
    let mut program = room.server().await;
    let place = "s3://symbols/shop/one";
    succeeds(&backup(&bucket, place, &folder).await);
    fails(&backup(&bucket, place, &folder).await, "is not empty");
    fails(
        &backup(&bucket, "s3://symbols", &folder).await,
        "must have a prefix",
    );
    let not_needed = room.at("backup");
    let not_needed = ["backup", not_needed.to_str().unwrap(), "--staging", "x"];
    fails(&run(&bucket, &not_needed, &folder).await, "--staging");
    program.kill();
    fails(&restore(&bucket, place, &folder).await, "is not empty");

    // A damaged file and a lost one.
    let file = object(&bucket, "one", "control.sqlite");
    let whole = std::fs::read(&file).unwrap();
    let mut damaged = whole.clone();
    damaged[4_000] ^= 1;
    std::fs::write(&file, damaged).unwrap();
    fails(
        &restore(&bucket, place, &restored).await,
        "has changed since the backup was made",
    );
    assert_clean(&restored);
    std::fs::remove_file(&file).unwrap();
    fails(&restore(&bucket, place, &restored).await, "lacks");

    // The same command again, once the file is whole.
    std::fs::write(&file, whole).unwrap();
    succeeds(&restore(&bucket, place, &restored).await);

    std::fs::remove_file(object(&bucket, "one", "backup.json")).unwrap();
    fails(
        &restore(&bucket, place, &room.at("other")).await,
        "is not a complete backup",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_that_would_leave_the_server_too_little_space_is_not_made() {
    let bucket = Bucket::start().await;
    let room = Room::new();
    let folder = room.data();
    let _program = room.server().await;
    let place = "s3://symbols/shop/one";
    let more_than_there_is = ["--min-free-bytes", "1000000000000000"];
    let arguments = [&["backup", place][..], &more_than_there_is].concat();
    let refused = run(&bucket, &arguments, &folder).await;
    fails(&refused, "are needed there");
    assert_clean(&folder);
    assert_eq!(bucket.objects("one").len(), 0);
    succeeds(&backup(&bucket, place, &folder).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_a_wrong_bucket_and_a_missing_server_are_named() {
    let mut bucket = Bucket::start().await;
    let room = Room::new();
    let restored = room.at("restored");
    let place = "s3://symbols/shop/one";
    let wrong = command(&bucket, "wrong", &["restore", place], &restored).output();
    fails(&wrong.await.unwrap(), "rejects the credentials");
    let missing = restore(&bucket, "s3://missing/shop/one", &restored).await;
    fails(&missing, "there is no bucket `missing`");
    let other = restore(&bucket, "gs://symbols/shop/one", &restored).await;
    fails(&other, "must be like s3://bucket/prefix");
    bucket.stop();
    let silent = restore(&bucket, place, &restored).await;
    fails(&silent, "does not answer");
    assert!(!restored.exists());
}
