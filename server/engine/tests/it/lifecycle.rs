//! Starting, stopping, and being killed.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use unjank_engine::{Engine, Ports};

use crate::support::{PROGRAM, TestEngine, options, ports, spawn};

#[tokio::test]
async fn the_engine_is_ready_within_two_seconds() {
    let mut fastest = Duration::MAX;
    // The best of three, because other tests run at the same time.
    for _ in 0..3 {
        let begun = Instant::now();
        let engine = TestEngine::start().await;
        engine.ask(&[], "SELECT 1").await;
        fastest = fastest.min(begun.elapsed());
        engine.stop().await;
    }
    assert!(fastest < Duration::from_secs(2), "{fastest:?}");
}

#[tokio::test]
async fn an_engine_killed_at_any_moment_keeps_its_stored_rows() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(&folder.path().join("engine"));
    let mut stored = 0_u64;
    for round in 0..8_u64 {
        let mut engine = TestEngine::on(&options).await;
        if round == 0 {
            engine.ask(&[], "CREATE DATABASE unjank").await;
            engine.ask(&[], "CREATE TABLE unjank.t (a UInt64) ENGINE = MergeTree ORDER BY a SETTINGS fsync_after_insert = 1, fsync_part_directory = 1").await;
        }
        let found = engine.ask(&[], "SELECT uniqExact(a) FROM unjank.t").await;
        let found: u64 = found.trim().parse().unwrap();
        // The INSERT that was in flight may be stored or not.
        assert!(
            found == stored || found == stored + 1_000,
            "{found} of {stored}"
        );
        stored = found;
        let begun = Instant::now();
        let moment = Duration::from_millis(40 + round * 37);
        while begun.elapsed() < moment {
            let insert =
                format!("INSERT INTO unjank.t SELECT {stored} + number FROM numbers(1000)");
            engine.ask(&[], &insert).await;
            stored += 1_000;
        }
        let insert = format!("INSERT INTO unjank.t SELECT {stored} + number FROM numbers(1000)");
        let in_flight = spawn(engine.post(&[]).body(insert).send());
        tokio::time::sleep(Duration::from_millis(round)).await;
        engine.signal(if round % 2 == 0 { "-KILL" } else { "-TERM" });
        engine.engine.ended().await;
        if in_flight
            .await
            .unwrap()
            .is_ok_and(|answer| answer.status() == 200)
        {
            stored += 1_000;
        }
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn the_engine_ends_instead_of_confirming_a_failed_write() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(&folder.path().join("engine"));
    // Writes beyond one mebibyte fail, as all writes do on a full disk.
    let limit = "trap '' XFSZ; ulimit -f 2048; exec \"$0\" \"$@\"";
    let mut limited = options.clone();
    limited.host.arguments = ["-c", limit, PROGRAM].map(OsString::from).into();
    limited
        .host
        .arguments
        .extend(options.host.arguments.clone());
    limited.host.program = PathBuf::from("/bin/sh");
    let mut engine = TestEngine::on(&limited).await;
    for sql in [
        "CREATE DATABASE unjank",
        "CREATE TABLE unjank.t (a UInt64, s String) ENGINE = MergeTree ORDER BY a",
        "INSERT INTO unjank.t SELECT number, randomString(10) FROM numbers(10)",
    ] {
        engine.ask(&[], sql).await;
    }
    let large = "INSERT INTO unjank.t SELECT number, randomString(1000) FROM numbers(3000)";
    let confirmed = engine.post(&[]).body(large).send().await;
    assert!(confirmed.is_err(), "{confirmed:?}");
    let reason = engine.engine.ended().await;
    assert!(reason.contains("the file is too large"), "{reason}");
    let engine = TestEngine::on(&options).await;
    assert_eq!(
        engine.ask(&[], "SELECT count() FROM unjank.t").await,
        "10\n"
    );
    engine.stop().await;
}

#[tokio::test]
async fn parts_with_empty_spare_files_keep_their_rows() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(&folder.path().join("engine"));
    let engine = TestEngine::on(&options).await;
    for sql in [
        "CREATE DATABASE unjank",
        "CREATE TABLE unjank.t (a UInt64) ENGINE = MergeTree ORDER BY a",
        "SYSTEM STOP MERGES unjank.t",
        "INSERT INTO unjank.t SELECT number FROM numbers(1000)",
        "INSERT INTO unjank.t SELECT number FROM numbers(500)",
    ] {
        engine.ask(&[], sql).await;
    }
    let paths = "SELECT path FROM system.parts WHERE database = 'unjank' AND active ORDER BY name";
    let paths = engine.ask(&[], paths).await;
    engine.stop().await;
    // The state after such a write has failed. ClickHouse reports no error then.
    for (part, file) in paths.lines().zip(["checksums.txt", "metadata_version.txt"]) {
        std::fs::write(Path::new(part).join(file), "").unwrap();
    }
    let engine = TestEngine::on(&options).await;
    assert_eq!(
        engine.ask(&[], "SELECT count() FROM unjank.t").await,
        "1500\n"
    );
    engine.stop().await;
}

#[tokio::test]
async fn the_engine_starts_if_there_are_empty_definitions() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(&folder.path().join("engine"));
    let engine = TestEngine::on(&options).await;
    for sql in [
        "CREATE DATABASE unjank",
        "CREATE TABLE unjank.t (a UInt64) ENGINE = MergeTree ORDER BY a",
    ] {
        engine.ask(&[], sql).await;
    }
    engine.stop().await;
    let files = ["metadata/empty.sql", "store/empty.sql"];
    for file in files {
        std::fs::write(options.data_dir.join(file), "").unwrap();
    }
    let engine = TestEngine::on(&options).await;
    for file in files {
        assert!(!options.data_dir.join(file).exists(), "{file}");
    }
    assert_eq!(engine.ask(&[], "SELECT count() FROM unjank.t").await, "0\n");
    engine.stop().await;
}

#[tokio::test]
async fn the_engine_starts_after_an_earlier_start_was_aborted_at_any_moment() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(&folder.path().join("engine"));
    for moment in [0, 20, 60, 120, 180, 240, 300, 400] {
        let ports = ports(false);
        let start = Engine::start(&options, &ports);
        // Dropping the start kills the engine.
        drop(tokio::time::timeout(Duration::from_millis(moment), start).await);
    }
    let engine = TestEngine::on(&options).await;
    assert_eq!(engine.ask(&[], "SELECT 1").await, "1\n");
    engine.stop().await;
}

#[tokio::test]
async fn a_data_folder_has_only_one_engine() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("engine");
    let engine = TestEngine::on(&options(&data_dir)).await;
    let mut second = options(&data_dir);
    second.lock_patience = Duration::from_millis(300);
    let error = Engine::start(&second, &ports(false))
        .await
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("another engine uses the data folder")
            && error.contains(data_dir.to_str().unwrap()),
        "{error}"
    );
    assert_eq!(engine.ask(&[], "SELECT 1").await, "1\n");
    // A second engine that waits gets the folder when the first has stopped.
    let waiting = spawn(async move {
        Engine::start(&options(&data_dir), &ports(false))
            .await
            .unwrap()
    });
    tokio::time::sleep(Duration::from_millis(300)).await;
    engine.stop().await;
    waiting.await.unwrap().stop().await.unwrap();
}

#[tokio::test]
async fn the_error_names_an_address_in_use() {
    let engine = TestEngine::start().await;
    let taken = engine.address().parse().unwrap();
    let error = format!("{:#}", Ports::reserve(taken, None).unwrap_err());
    assert!(
        error.contains(engine.address()) && error.contains("in use"),
        "{error}"
    );
    engine.stop().await;
}

#[tokio::test]
async fn a_restarted_engine_listens_on_the_same_ports() {
    let folder = tempfile::tempdir().unwrap();
    let options = options(&folder.path().join("engine"));
    let ports = ports(true);
    let mut url = None;
    for _ in 0..3 {
        let mut engine = Engine::start(&options, &ports).await.unwrap();
        assert_eq!(url.get_or_insert(engine.url()), &engine.url());
        // A connection that is open when the engine is killed.
        let address = engine.url().replace("http://", "");
        let _open = tokio::net::TcpStream::connect(address).await.unwrap();
        let pid = engine.pid().unwrap().to_string();
        let killed = std::process::Command::new("kill")
            .args(["-9", &pid])
            .status();
        assert!(killed.unwrap().success());
        engine.ended().await;
    }
}

#[tokio::test]
async fn the_error_explains_a_folder_that_clickhouse_cannot_open() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("engine");
    std::fs::create_dir_all(data_dir.join("metadata")).unwrap();
    std::fs::write(data_dir.join("metadata/broken.sql"), "no SQL").unwrap();
    let error = Engine::start(&options(&data_dir), &ports(false))
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("broken"), "{error}");
}

#[tokio::test]
async fn stopping_waits_for_a_running_query() {
    let engine = TestEngine::start().await;
    let request = engine
        .post(&[])
        .body("SELECT sleepEachRow(1) FROM numbers(2)")
        .send();
    let request = spawn(async { request.await.unwrap().text().await.unwrap() });
    engine.until_running("sleepEachRow", 1).await;
    engine.stop().await;
    assert_eq!(request.await.unwrap(), "0\n0\n");
}

#[tokio::test]
async fn stopping_cancels_a_query_that_takes_too_long() {
    let engine = TestEngine::start_with(|options| {
        options.shutdown_patience = Duration::from_secs(1);
    })
    .await;
    let endless = "SELECT max(sipHash64(number)) FROM numbers(1000000000000)";
    let request = spawn(engine.post(&[]).body(endless).send());
    engine.until_running("sipHash64", 1).await;
    let asked = Instant::now();
    engine.stop().await;
    assert!(asked.elapsed() < Duration::from_secs(10));
    assert!(
        request
            .await
            .unwrap()
            .map_or(true, |answer| answer.status() != 200)
    );
}

#[tokio::test]
async fn an_idle_engine_costs_little() {
    let engine = TestEngine::start().await;
    engine.ask(&[], "CREATE DATABASE d").await;
    engine
        .ask(
            &[],
            "CREATE TABLE d.t (a UInt64) ENGINE = MergeTree ORDER BY a",
        )
        .await;
    engine
        .ask(&[], "INSERT INTO d.t SELECT number FROM numbers(1000)")
        .await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    let before = engine.cpu();
    tokio::time::sleep(Duration::from_secs(5)).await;
    let used = engine.cpu() - before;
    assert!(used < Duration::from_millis(250), "{used:?} in 5 s");
    engine.stop().await;
}
