//! Starting and ending.

use std::time::{Duration, Instant};

use crate::support::{Engine, Setup, spawn};

fn kept() -> Setup {
    Setup {
        throw_away: false,
        ..Setup::default()
    }
}

#[tokio::test]
async fn what_was_stored_is_there_after_a_kill() {
    let setup = kept();
    let engine = Engine::start(&setup).unwrap();
    engine.ask(&[], "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a SETTINGS fsync_after_insert = 1").await;
    engine
        .ask(&[], "INSERT INTO t SELECT number FROM numbers(100000)")
        .await;
    engine.kill();
    let engine = Engine::start(&Setup {
        throw_away: true,
        ..setup
    })
    .unwrap();
    assert_eq!(
        engine.ask(&[], "SELECT count(), sum(a) FROM t").await,
        "100000\t4999950000\n"
    );
    assert!(engine.end());
}

#[tokio::test]
async fn a_data_folder_has_one_engine() {
    let setup = kept();
    let engine = Engine::start(&setup).unwrap();
    let second = Setup {
        lock_patience: Duration::from_millis(300),
        ..setup.clone()
    };
    let error = Engine::start(&second).err().unwrap();
    assert!(
        error.contains("another engine") && error.contains(setup.data_dir.to_str().unwrap()),
        "{error}"
    );
    // A second one that waits gets the folder when the first has gone.
    let waiting = std::thread::spawn(move || {
        Engine::start(&Setup {
            throw_away: true,
            ..setup
        })
    });
    std::thread::sleep(Duration::from_millis(300));
    assert!(engine.end());
    assert!(waiting.join().unwrap().unwrap().end());
}

#[tokio::test]
async fn the_end_waits_for_a_running_statement() {
    let engine = Engine::start(&Setup::default()).unwrap();
    let request = engine
        .post(&[])
        .body("SELECT sleepEachRow(1) FROM numbers(2)")
        .send();
    let request = spawn(async { request.await.unwrap().text().await.unwrap() });
    engine.until_running("sleepEachRow", 1).await;
    let ended = tokio::task::spawn_blocking(|| engine.end());
    assert_eq!(request.await.unwrap(), "0\n0\n");
    assert!(ended.await.unwrap());
}

#[tokio::test]
async fn the_end_stops_a_statement_that_takes_too_long() {
    let engine = Engine::start(&Setup {
        shutdown_patience: Duration::from_millis(500),
        ..Setup::default()
    })
    .unwrap();
    let request = spawn(
        engine
            .post(&[])
            .body("SELECT max(sipHash64(number)) FROM numbers(1000000000000)")
            .send(),
    );
    engine.until_running("sipHash64", 1).await;
    let asked = Instant::now();
    assert!(tokio::task::spawn_blocking(|| engine.end()).await.unwrap());
    assert!(asked.elapsed() < Duration::from_secs(5));
    assert_eq!(
        crate::support::refused(request.await.unwrap().unwrap())
            .await
            .0,
        394
    );
}

#[tokio::test]
async fn an_idle_engine_costs_nothing() {
    let engine = Engine::start(&Setup::default()).unwrap();
    engine
        .ask(
            &[],
            "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a",
        )
        .await;
    engine
        .ask(&[], "INSERT INTO t SELECT number FROM numbers(1000)")
        .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = engine.cpu();
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert!(
        engine.cpu() - before < Duration::from_millis(150),
        "{:?} in 5 s",
        engine.cpu() - before
    );
    assert!(
        engine
            .ask(
                &[],
                "SELECT name FROM system.tables WHERE database = 'system' AND name LIKE '%\\_log'"
            )
            .await
            .is_empty()
    );
    assert!(engine.end());
}
