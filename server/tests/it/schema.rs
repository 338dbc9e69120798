//! Inserted columns have exactly the types that ClickHouse declares, so that nothing is converted on insert.

use std::sync::Arc;

use unjank_foundation::clock::UnixTime;
use unjank_protocol::Limits;
use unjank_server::ingest::{self, Context, Device};
use unjank_server::recent::{RecentNames, RecentStacks};
use unjank_server::records::Record;
use unjank_stacks::RuleSet;

use crate::ingest::EXAMPLE;
use crate::server::{NOW, Server};

#[tokio::test(flavor = "multi_thread")]
async fn every_inserted_column_has_the_type_that_its_table_declares() {
    let server = Server::start().await;
    server.ready().await;
    let device = Device {
        project: Arc::from("default"),
        apps: None,
        install_id: None,
    };
    let context = Context {
        device: &device,
        rules: &RuleSet::built_in(),
        scrubbing: &ingest::Scrubbing::default(),
        recent_stacks: &RecentStacks::new(8),
        recent_names: &RecentNames::new(100),
        forward: None,
        received_at: UnixTime::from_micros(NOW),
        wire_bytes: 1,
    };
    let mut batch: serde_json::Value = serde_json::from_str(EXAMPLE).unwrap();
    batch["split_from"] = serde_json::json!([uuid::Uuid::new_v4()]);
    let json = batch.to_string();
    let body = ingest::Body::new(json.as_bytes());
    let checked = ingest::check(&body, &device, &Limits::default(), context.received_at).unwrap();
    let record = checked.into_record(&context, None).record;
    let frames = Record::read(&record).unwrap().frames;
    assert_eq!(frames.len(), 13, "a frame for each table");
    for frame in frames {
        let mut ours: Vec<String> = frame
            .columns()
            .unwrap()
            .map(Result::unwrap)
            .map(|(kind, name)| format!("{name}\t{}", kind.sql_type()))
            .collect();
        // The writer adds this column.
        let is_numbered = !frame.table.starts_with("stack") && frame.table != "split_batches";
        ours.extend(is_numbered.then(|| "range_id\tUInt128".to_owned()));
        // Only older servers sent this column.
        ours.extend((is_numbered && frame.table != "batches").then(|| "fold\tUInt64".to_owned()));
        let declared = server
            .query(&format!("SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = '{}' FORMAT TSVRaw", frame.table))
            .await;
        let mut declared: Vec<&str> = declared.lines().collect();
        declared.sort_unstable();
        ours.sort_unstable();
        assert_eq!(ours, declared, "table {}", frame.table);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn migrations_run_once_and_a_restart_repeats_none() {
    let mut server = Server::start().await;
    server.ready().await;
    let ledger = "SELECT name, count() FROM schema_migrations GROUP BY name ORDER BY name";
    let first = server.query(ledger).await;
    server.restart().await;
    server.ready().await;
    assert_eq!(server.query(ledger).await, first);
    assert_eq!(
        first,
        "0001_signals\t1\n0002_stacks\t1\n0003_arrivals\t1\n0004_batch_devices\t1\n0005_classes\t1\n\
         0006_rollups\t1\n0007_rollups_of_use\t1\n0008_rollups_of_arrivals\t1\n0009_dash\t1\n0010_folds\t1\n\
         0011_proofs\t1\n0012_dash_without_marks\t1\n0013_mark_of_traffic\t1\n0014_rebuilds\t1\n\
         0015_split_batches\t1\n0016_dropped_rows\t1\n0017_marks_of_outcomes\t1\n0018_dropped_rows_of_projects\t1\n0019_raw_without_views\t1\n0020_fewer_merges\t1\n0021_stacks_symbolicated\t1\n0022_function_names\t1\n0023_ends_of_janks\t1\n0024_modes\t1\n0025_values_below_zero\t1\n0026_rates_of_app_starts\t1\nbaseline\t1"
    );
}

const BASELINE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../migrations/clickhouse/baseline.sql"
);
const HEAD: &str =
    "-- The schema that all migrations make together. `make baseline` writes this file from them.";

/// The text of a baseline that makes the tables of this database. Views come last, because they read tables and other views.
async fn definitions(server: &Server) -> String {
    let definitions = "SELECT formatQuery(replaceRegexpOne(replace(create_table_query, currentDatabase() || '.', ''), \
            '^CREATE (TABLE|MATERIALIZED VIEW|VIEW) ', 'CREATE \\1 IF NOT EXISTS ')) || ';\\n' \
        FROM system.tables WHERE database = currentDatabase() AND name != 'schema_migrations' \
        ORDER BY multiIf(engine = 'MaterializedView', 1, engine != 'View', 0, name LIKE 'dash_%', 3, 2), name FORMAT TSVRaw";
    format!("{HEAD}\n\n{}", server.query(definitions).await)
}

/// Deletes the database of a server that knows nothing of it.
async fn drop_database(server: &Server) {
    server
        .query(&format!("DROP DATABASE {} SYNC", server.database()))
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_baseline_makes_what_the_migrations_make_one_by_one() {
    let fresh = Server::away(&[]).await;
    fresh.command(&["migrate"]).await;
    let stepped = Server::away(&[]).await;
    // A database with a table is not fresh.
    for statement in ["DATABASE {}", "TABLE {}.mine (x UInt8) ENGINE = Memory"] {
        let statement = format!("CREATE {}", statement.replace("{}", stepped.database()));
        fresh.query(&statement).await;
    }
    stepped.command(&["migrate"]).await;
    stepped.query("DROP TABLE mine SYNC").await;
    let (migrations, baseline) = (definitions(&stepped).await, definitions(&fresh).await);
    drop_database(&stepped).await;
    drop_database(&fresh).await;
    if std::env::var_os("UNJANK_WRITE_BASELINE").is_some() {
        // It counts once it is compiled in.
        return std::fs::write(BASELINE, &migrations).unwrap();
    }
    let is_current = std::fs::read_to_string(BASELINE).unwrap() == migrations;
    assert!(
        is_current,
        "baseline.sql is not current: run `make baseline`"
    );
    assert!(baseline == migrations, "{baseline}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_baseline_is_continued_by_its_own_version_only() {
    const KILL: [&str; 2] = [
        "ALTER TABLE schema_migrations DELETE WHERE name != 'baseline' SETTINGS mutations_sync = 1",
        "DROP TABLE spans SYNC",
    ];
    let server = Server::away(&[]).await;
    server.command(&["migrate"]).await;
    let whole = definitions(&server).await;
    for statement in KILL {
        server.query(statement).await;
    }
    server.command(&["migrate"]).await;
    assert_eq!(definitions(&server).await, whole);

    let of_another =
        "ALTER TABLE schema_migrations UPDATE checksum = 1 WHERE true SETTINGS mutations_sync = 1";
    for statement in [KILL[0], KILL[1], of_another] {
        server.query(statement).await;
    }
    let refused = tokio::process::Command::new(env!("CARGO_BIN_EXE_unjank"))
        .arg("migrate")
        .args(server.flags())
        .output()
        .await
        .unwrap();
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success() && error.contains("drop the database"),
        "{error}"
    );
    drop_database(&server).await;
}
