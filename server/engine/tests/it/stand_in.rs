//! A program named `clickhouse` in place of the library.

use std::path::Path;

use unjank_engine::{ClickHouse, Engine};

use crate::support::{PROGRAM, TestEngine, library_path, options, ports};

/// Creates a `clickhouse` that passes its arguments to the library. The library is in the data folder, because the program may read nothing else.
fn stand_in(folder: &Path, data_dir: &Path) -> ClickHouse {
    let path = folder.join("clickhouse");
    std::fs::copy(PROGRAM, &path).unwrap();
    std::fs::create_dir(data_dir).unwrap();
    let library = data_dir.join("libchdb.so");
    if std::fs::hard_link(library_path(), &library).is_err() {
        std::fs::copy(library_path(), &library).unwrap();
    }
    ClickHouse::Program(path)
}

#[tokio::test]
async fn a_clickhouse_program_serves_stores_and_stops_like_the_library() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("engine");
    let mut options = options(&data_dir);
    options.clickhouse = stand_in(folder.path(), &data_dir);
    let engine = TestEngine::on(&options).await;
    engine.ask(&[], "CREATE DATABASE unjank").await;
    engine
        .ask(
            &[],
            "CREATE TABLE unjank.t (a UInt64) ENGINE = MergeTree ORDER BY a",
        )
        .await;
    engine
        .ask(&[], "INSERT INTO unjank.t VALUES (1), (2)")
        .await;
    assert_eq!(engine.refusal("default", "SELECT 1").await, 700);
    engine.stop().await;
    // The library can open the data that the program stored.
    options.clickhouse = ClickHouse::Library(library_path());
    let engine = TestEngine::on(&options).await;
    assert_eq!(engine.ask(&[], "SELECT sum(a) FROM unjank.t").await, "3\n");
    engine.stop().await;
}

#[tokio::test]
async fn a_program_that_does_not_start_is_explained() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("engine");
    let mut options = options(&data_dir);
    options.clickhouse = stand_in(folder.path(), &data_dir);
    std::fs::remove_file(data_dir.join("libchdb.so")).unwrap();
    let error = Engine::start(&options, &ports(false)).await.unwrap_err();
    assert!(error.to_string().contains("libchdb.so"), "{error}");
}
