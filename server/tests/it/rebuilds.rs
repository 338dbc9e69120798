//! Roll-ups are rebuilt from raw rows during ingestion, and count each row once.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unjank_foundation::clock::DAY;
use unjank_server::store::{ClickHouse, LIFE, Login, Part, Period, Rebuilder, Target};

use crate::books::{check, mutate};
use crate::engine::{PASSWORD, UNJANK, USER, engine};
use crate::processes::{Program, fresh_spans, sql, unjank};
use crate::server::{NOW, Server, spans};
use crate::wait;

const FOR_EVER: [&str; 3] = [
    "--retention-days=0",
    "--retention-hourly-days=0",
    "--retention-daily-days=0",
];
/// 2026-11-19 to 2026-11-22.
const DAYS: Period = Period {
    from: 1_795_046_400,
    to: 1_795_305_600,
};
const SHORT: Duration = Duration::from_secs(1);

/// The number of spans according to raw rows and roll-ups.
const COUNTS: &str = "SELECT (SELECT count() FROM spans), (SELECT toUInt64(sum(samples)) FROM spans_hourly), \
     (SELECT toUInt64(sum(samples)) FROM spans_daily)";

fn counts(spans: usize) -> String {
    format!("{spans}\t{spans}\t{spans}")
}

/// Runs `unjank rollups rebuild` after the three days, when no server will roll up these rows any more. Returns whether it succeeded, and its standard error and output.
fn rebuild(server: &Server, arguments: &[&str]) -> (bool, String) {
    let output = Command::new(UNJANK)
        .args(["rollups", "rebuild"])
        .args(arguments)
        .args(server.flags_after(2 * DAY))
        .output()
        .unwrap();
    let text = [output.stderr, output.stdout].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

const THREE_DAYS: [&str; 4] = ["--from", "2026-11-19", "--to", "2026-11-22"];

fn store(server: &Server) -> ClickHouse {
    let store = ClickHouse::away(server.database());
    let login = || Login {
        user: USER.to_owned(),
        password: PASSWORD.to_owned(),
    };
    store.point_at(Some(&Target {
        url: engine().url.clone(),
        writer: login(),
        reader: login(),
        database: server.database().to_owned(),
        compress: false,
    }));
    store
}

async fn begin(server: &Server, life: Duration) -> Rebuilder {
    Rebuilder::begin(&store(server), NOW / 1_000_000, life)
        .await
        .unwrap()
}

fn plan(rebuilder: &Rebuilder) -> Vec<Part> {
    rebuilder.plan(&BTreeSet::from(["spans"]), DAYS).unwrap()
}

/// Rebuilds the roll-ups of spans. Returns the number of rebuilt parts.
async fn rebuild_spans(server: &Server) -> usize {
    let rebuilder = begin(server, LIFE).await;
    let plan = plan(&rebuilder);
    for part in &plan {
        rebuilder.rebuild(part, &|_, _| ()).await.unwrap();
    }
    rebuilder.end().await.unwrap();
    plan.len()
}

/// The number of scratch tables.
const SCRATCHES: &str = "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name LIKE '%rebuild\\_2%'";

async fn busy_server() -> Server {
    let server = Server::with(&FOR_EVER).await;
    server.ready().await;
    let mut batch = spans(5);
    batch["metrics"] = json!([
        {"name": "fps", "time": "2026-11-20T11:59:59Z", "value": 60},
        {"name": "fps", "time": "2026-11-19T11:59:59Z", "value": 50},
    ]);
    batch["traffic"] = json!([{"day": "2026-11-19", "source": "app", "network": "wifi", "tx_bytes": 70, "rx_bytes": 1, "requests": 3}]);
    batch["sdk_health"] =
        json!({"dropped": [{"signal": "spans", "reason": "queue_full", "count": 4}]});
    assert_eq!(server.send(&batch).await.status, 202);
    assert_eq!(server.send(&spans(2)).await.status, 202);
    server.drained().await;
    server
}

/// Returns the rows of all roll-ups, including marks.
async fn roll_ups(server: &Server) -> String {
    let tables = "SELECT name FROM system.tables WHERE database = currentDatabase() AND match(name, '_(hourly|daily)$') ORDER BY name";
    let mut all = String::new();
    for table in server.query(tables).await.lines() {
        let columns = format!(
            "SELECT arrayStringConcat(groupArray(name), ', ') FROM (SELECT name FROM system.columns WHERE database = currentDatabase() \
             AND table = '{table}' AND type NOT LIKE 'AggregateFunction%' ORDER BY position)"
        );
        let columns = server.query(&columns).await;
        let rows = format!("SELECT {columns} FROM {table} FINAL ORDER BY ALL");
        all += &format!("{table}\n{}\n", server.query(&rows).await);
        let installs =
            format!("SELECT uniqCombined64Merge(12)(installs) FROM {table} WHERE project != ''");
        all += &server.query(&installs).await;
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_restores_damaged_roll_ups() {
    let server = busy_server().await;
    let before = roll_ups(&server).await;
    for damage in [
        "ALTER TABLE spans_daily DELETE WHERE project != ''",
        "ALTER TABLE sdk_drops_hourly UPDATE count = 9 WHERE project != ''",
        // As servers before migration 0013 left the row.
        "ALTER TABLE traffic_daily UPDATE tx_bytes = 60 WHERE project != ''",
        "ALTER TABLE usage_hourly DELETE WHERE 1",
    ] {
        mutate(&server, damage).await;
    }
    server
        .query("INSERT INTO metrics_hourly SELECT * FROM metrics_hourly WHERE project != ''")
        .await;
    server.query("TRUNCATE TABLE app_starts_daily").await;
    assert_eq!(check(&server, &[]).0, 1);
    let (done, text) = rebuild(&server, &THREE_DAYS);
    assert!(done, "{text}");
    assert!(text.contains("21 of 21 done"), "{text}");
    assert!(text.contains("rebuilt: 21 parts"), "{text}");
    assert_eq!(check(&server, &[]).0, 0, "{text}");
    assert_eq!(roll_ups(&server).await, before);
    let (done, text) = rebuild(&server, &THREE_DAYS);
    assert!(done, "{text}");
    assert_eq!(
        roll_ups(&server).await,
        before,
        "a second rebuild changes nothing"
    );
    assert_eq!(server.query(SCRATCHES).await, "0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_corrects_traffic_stored_under_a_wrong_source() {
    let server = busy_server().await;
    let of_traffic =
        "SELECT source, sum(tx_bytes) FROM traffic_daily WHERE project != '' GROUP BY source";
    let row = "INSERT INTO traffic_daily SELECT * REPLACE('0' AS source) FROM traffic_daily WHERE project != ''";
    server.query(row).await;
    mutate(
        &server,
        "ALTER TABLE traffic_daily DELETE WHERE project != '' AND source = 'app'",
    )
    .await;
    assert_eq!(server.query(of_traffic).await, "0\t70");
    let (done, text) = rebuild(
        &server,
        &[&THREE_DAYS[..], &["--signal", "traffic"]].concat(),
    );
    assert!(done, "{text}");
    assert_eq!(server.query(of_traffic).await, "app\t70");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_restores_truncated_roll_ups_with_their_marks() {
    let mut server = busy_server().await;
    let before = roll_ups(&server).await;
    for table in ["spans_hourly", "spans_daily", "traffic_daily"] {
        server.query(&format!("TRUNCATE TABLE {table}")).await;
    }
    let (done, text) = rebuild(&server, &THREE_DAYS);
    assert!(done, "{text}");
    assert_eq!(roll_ups(&server).await, before);
    // A server whose ledger lists the fold as pending checks the marks.
    server.end().await;
    let path = server.data_dir().join("drain.json");
    let mut drain: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let number = "SELECT leftPad(lower(hex(bitShiftLeft(bitShiftRight(max(range_id), 36), 36))), 32, '0') FROM spans";
    let number = server.query(number).await;
    drain["folds"] = json!([{"number": number, "log_id": drain["log_id"], "ranges": 1, "rows": 2, "tables": ["spans"],
        "closed": true, "done": []}]);
    fs::write(&path, drain.to_string()).unwrap();
    server.start_again().await;
    server.ready().await;
    server.send(&spans(1)).await;
    server.drained().await;
    assert_eq!(server.query(COUNTS).await, counts(8));
}

#[tokio::test(flavor = "multi_thread")]
async fn rebuilds_lose_and_duplicate_nothing_while_two_servers_accept_batches() {
    let one = Server::with(&FOR_EVER).await;
    one.ready().await;
    let other = one.beside().await;
    other.ready().await;
    let until = Instant::now() + Duration::from_secs(10);
    let is_done = AtomicBool::new(false);
    let sending = async |server: &Server| {
        let mut sent = 0;
        while !is_done.load(Ordering::Relaxed) {
            assert_eq!(server.send(&spans(3)).await.status, 202);
            sent += 3;
        }
        sent
    };
    let rebuilding = async {
        let mut rebuilt = 0;
        while rebuilt <= 3 || Instant::now() < until {
            rebuilt += rebuild_spans(&one).await;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        is_done.store(true, Ordering::Relaxed);
    };
    let (first, second, ()) = tokio::join!(sending(&one), sending(&other), rebuilding);
    one.drained().await;
    other.drained().await;
    assert_eq!(one.query(COUNTS).await, counts(first + second));
    assert_eq!(check(&one, &[]).0, 0);
    let folds = "SELECT uniqExact(bitShiftRight(range_id, 36)) FROM spans";
    let folds: u32 = one.query(folds).await.parse().unwrap();
    assert!(folds > 8, "{folds}");
}

#[tokio::test(flavor = "multi_thread")]
async fn folds_wait_while_their_month_is_swapped() {
    let server = busy_server().await;
    let rebuilder = begin(&server, LIFE).await;
    for part in plan(&rebuilder) {
        let stored = server.query("SELECT count() FROM spans").await;
        let filled = rebuilder.fill(&part, &|_, _| ()).await.unwrap();
        // Folded before the hold, so the swap includes these rows.
        server.send(&spans(1)).await;
        server.drained().await;
        rebuilder.hold(&part).await.unwrap();
        // Sent during the hold, so the fold waits.
        server.send(&spans(2)).await;
        let more = stored.parse::<usize>().unwrap() + 3;
        let raw = "SELECT count() FROM spans";
        server.answers(raw, &more.to_string()).await;
        tokio::time::sleep(SHORT).await;
        assert!(server.metric("unjank_writer_unfolded_rows").await > 0.0);
        let ready = rebuilder.catch_up(&part, filled).await.unwrap();
        assert!(rebuilder.swap(&part, ready).await.unwrap());
        let of_part = format!("SELECT toUInt64(sum(samples)) FROM {}", part.target);
        assert_eq!(server.query(&of_part).await, (more - 2).to_string());
        rebuilder.release(&part).await.unwrap();
        server.drained().await;
        assert_eq!(server.query(COUNTS).await, counts(more));
    }
    rebuilder.end().await.unwrap();
    assert_eq!(check(&server, &[]).0, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_rebuild_blocks_folds_only_until_its_hold_expires() {
    let server = busy_server().await;
    mutate(
        &server,
        "ALTER TABLE spans_hourly DELETE WHERE project != ''",
    )
    .await;
    let killed = begin(&server, SHORT).await;
    let part = plan(&killed).remove(0);
    let filled = killed.fill(&part, &|_, _| ()).await.unwrap();
    killed.hold(&part).await.unwrap();
    let _ready = killed.catch_up(&part, filled).await.unwrap();
    drop(killed);
    assert_eq!(server.query(SCRATCHES).await, "1");
    server.send(&spans(2)).await;
    server.drained().await;
    assert_eq!(server.query(COUNTS).await, "9\t2\t9");
    let (done, text) = rebuild(&server, &THREE_DAYS);
    assert!(done, "{text}");
    assert_eq!(server.query(SCRATCHES).await, "0");
    assert_eq!(server.query(COUNTS).await, counts(9));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebuild_swaps_nothing_if_its_hold_expired_or_its_month_changed() {
    let server = busy_server().await;
    mutate(
        &server,
        "ALTER TABLE spans_hourly DELETE WHERE project != ''",
    )
    .await;
    let rebuilder = begin(&server, SHORT).await;
    let part = plan(&rebuilder).remove(0);
    let ready = async || {
        let filled = rebuilder.fill(&part, &|_, _| ()).await.unwrap();
        rebuilder.hold(&part).await.unwrap();
        rebuilder.catch_up(&part, filled).await.unwrap()
    };
    let late = ready().await;
    tokio::time::sleep(SHORT * 2).await;
    assert!(!rebuilder.swap(&part, late).await.unwrap());
    drop(rebuilder);

    let rebuilder = begin(&server, LIFE).await;
    let ready = async || {
        let filled = rebuilder.fill(&part, &|_, _| ()).await.unwrap();
        rebuilder.hold(&part).await.unwrap();
        rebuilder.catch_up(&part, filled).await.unwrap()
    };
    for change in [
        "INSERT INTO spans_hourly (project, hour, samples) VALUES ('default', '2026-11-20 11:00:00', 1)",
        "ALTER TABLE spans_hourly UPDATE samples = 8 WHERE project != '' SETTINGS mutations_sync = 2",
    ] {
        let other = ready().await;
        server.query(change).await;
        assert!(!rebuilder.swap(&part, other).await.unwrap(), "{change}");
    }
    server.query("OPTIMIZE TABLE spans_hourly FINAL").await;
    let merged = ready().await;
    server.query("OPTIMIZE TABLE spans_hourly FINAL").await;
    assert!(rebuilder.swap(&part, merged).await.unwrap());
    assert_eq!(server.query(COUNTS).await, "7\t7\t8");
    rebuilder.end().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_rebuilds_are_refused_with_the_reason() {
    let server = Server::start().await;
    server.ready().await;
    let kept = "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'traffic' AND engine_full LIKE '% TTL %'";
    server.answers(kept, "1").await;
    server.app().clickhouse.keep_batches(8).await.unwrap();
    let (done, text) = rebuild(&server, &["--from", "100d"]);
    assert!(!done);
    let reason = "spans_daily: can be rebuilt only from 20";
    assert!(text.contains(reason), "{text}");
    assert!(
        text.contains("older raw rows of `spans` are no longer stored"),
        "{text}"
    );
    let (done, text) = rebuild(&server, &["--from", "20d", "--signal", "spans"]);
    assert!(done, "{text}");
    let (done, text) = rebuild(&server, &["--from", "20d", "--signal", "usage"]);
    assert!(!done && text.contains("usage_hourly"), "{text}");
    let (done, text) = rebuild(&server, &["--from", "1d", "--signal", "nothing"]);
    assert!(!done && text.contains("use one of app_starts,"), "{text}");
    let (done, text) = rebuild(&server, &["--from", "1d", "--to", "2d"]);
    assert!(!done && text.contains("no hour lies between"), "{text}");

    let first = begin(&server, LIFE).await;
    let (done, text) = rebuild(&server, &["--from", "1d"]);
    assert!(
        !done && text.contains("another rebuild of roll-ups is running"),
        "{text}"
    );
    first.end().await.unwrap();
    assert!(rebuild(&server, &["--from", "1d"]).0);
}

#[tokio::test(flavor = "multi_thread")]
async fn hours_whose_raw_rows_expired_under_a_shorter_retention_are_not_rebuilt() {
    let mut server = Server::with(&["--retention-days", "7"]).await;
    server.ready().await;
    let kept = |days: u32| {
        format!(
            "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name = 'traffic' AND engine_full LIKE '%toIntervalDay({days})%'"
        )
    };
    server.answers(&kept(7), "1").await;
    server.end().await;
    server.change(&["--retention-days", "30"]);
    server.start_again().await;
    server.answers(&kept(30), "1").await;
    let (done, text) = rebuild(&server, &["--from", "20d", "--signal", "spans"]);
    assert!(
        !done && text.contains("older raw rows of `spans` are no longer stored"),
        "{text}"
    );
    let (done, text) = rebuild(&server, &["--from", "5d", "--signal", "spans"]);
    assert!(done, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_interrupted_rebuild_continues_with_the_remaining_parts() {
    let server = busy_server().await;
    assert!(rebuild(&server, &THREE_DAYS).0);
    let (_, text) = rebuild(&server, &THREE_DAYS);
    assert!(!text.contains("continuing"), "{text}");
    server.query("ALTER TABLE rollup_rebuilds DELETE WHERE target = '' OR target LIKE 'usage%' SETTINGS mutations_sync = 2").await;
    let (_, text) = rebuild(&server, &THREE_DAYS);
    assert!(text.contains("19 of 21 parts are done"), "{text}");
    assert!(text.contains("rebuilt: 2 parts"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_repairs_roll_ups_but_not_from_incomplete_raw_rows() {
    let server =
        Server::with(&[&FOR_EVER[..], &["--books-interval-ms=300", "--log=warn"]].concat()).await;
    server.ready().await;
    server.send(&spans(5)).await;
    server.drained().await;
    mutate(
        &server,
        "ALTER TABLE spans_hourly DELETE WHERE project != ''",
    )
    .await;
    mutate(
        &server,
        "ALTER TABLE spans_daily UPDATE samples = 50 WHERE project != ''",
    )
    .await;
    server.pass(Duration::from_secs(4_200));
    server.answers(COUNTS, &counts(5)).await;
    let rebuilt = r#"unjank_books_rebuilt_hours_total{signal="spans"}"#;
    wait::until("the rebuild", async || {
        server.metrics().await.contains(rebuilt)
    })
    .await;
    let differs = r#"unjank_books_difference_events{books="hours",signal="spans"}"#;
    wait::until("agreement", async || server.metric(differs).await == 0.0).await;

    mutate(&server, "ALTER TABLE spans DELETE WHERE 1").await;
    server.send(&spans(1)).await;
    server.drained().await;
    server.pass(Duration::from_secs(90_000));
    wait::until("the difference", async || {
        server.metric(differs).await >= 5.0
    })
    .await;
    crate::books::audited(&server).await;
    assert_eq!(server.query(COUNTS).await, "1\t6\t6");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_writer_of_the_embedded_engine_can_rebuild() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(folder.path()).await;
    program.send(&fresh_spans(3)).await;
    program.rolled_up().await;
    // The current hour is included.
    let arguments = ["rollups", "rebuild", "--from", "24h", "--to", "0m"];
    let output = unjank(folder.path(), &arguments);
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    assert_eq!(sql(folder.path(), COUNTS), counts(3));
}
