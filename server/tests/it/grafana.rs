//! The dashboards, tested without Grafana: they have one structure, read only the `dash_*` views, and show the numbers of the query API.

pub(crate) mod board;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use regex::Regex;
use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use self::board::{Board, all_boards, boards, chosen, expanded, text};
use crate::ingest::EXAMPLE;
use crate::server::{Server, batch, span};

const PERIOD: &str = "from=2026-11-20T10:00:00Z&to=2026-11-20T13:00:00Z";
const ONE_OF_EACH: &[(&str, &str)] = &[
    ("app_version", "4.12.0"),
    ("os_name", "android"),
    ("device_class", "high"),
    ("page", "MainActivity"),
];

/// The golden batch from a new install, with durations that depend on `number`. Events of even numbers are sampled at a tenth.
fn sent(version: &str, number: u64) -> Value {
    let mut batch: Value = serde_json::from_str(EXAMPLE).unwrap();
    batch["batch_id"] = json!(Uuid::new_v4());
    batch["session_id"] = json!(Uuid::new_v4());
    batch["resource"]["install_id"] = json!(Uuid::new_v4());
    batch["resource"]["app_version"] = json!(version);
    let rate = if number.is_multiple_of(2) { 0.1 } else { 1.0 };
    for signal in ["frame_windows", "janks", "page_loads", "metrics"] {
        batch[signal][0]["page"] = json!("MainActivity");
        batch[signal][0]["sample_rate"] = json!(rate);
    }
    batch["spans"][0]["duration_us"] = json!(10_000 * (number + 1));
    batch["spans"][0]["sample_rate"] = json!(rate);
    let mut failed = batch["spans"][0].clone();
    failed["span_id"] = json!(format!("{:016x}", number + 1));
    failed["name"] = json!("upload");
    failed["status"] = json!("error");
    failed["on_main_thread"] = json!(false);
    batch["spans"].as_array_mut().unwrap().push(failed);
    batch["frame_windows"][0]["jank_ms"] = json!(100 * number);
    batch["frame_windows"][0]["delay_ms"] = json!(70 * number);
    batch["janks"][0]["duration_ms"] = json!(700 + 330 * number);
    batch["page_loads"][0]["total_ms"] = json!(400 + 90 * number);
    batch["app_starts"][0]["duration_ms"] = json!(900 + 110 * number);
    batch["app_starts"][0]["sample_rate"] = json!(rate);
    let mut cpu = batch["metrics"][0].clone();
    cpu["name"] = json!("cpu_percent");
    cpu["value"] = json!(7 * number);
    batch["metrics"][0]["value"] = json!(100_000_000 + 9_000_000 * number);
    batch["metrics"].as_array_mut().unwrap().push(cpu);
    batch["recompositions"][0]["page"] = json!("MainActivity");
    batch["sdk_health"]["upload_bytes"] = json!(1_000 * number);
    batch
}

/// A server with varied data: two versions, refused events, and a device with a wrong clock.
async fn seeded() -> Server {
    let mut server = Server::start().await;
    server.ready().await;
    for version in ["4.11.0", "4.12.0"] {
        for number in 0..6 {
            let answer = server.send(&sent(version, number)).await;
            assert_eq!(answer.body["rejected"], json!([]), "{}", answer.body);
        }
    }
    let mut refused = batch();
    refused["spans"] = json!([span(), span()]);
    refused["spans"][0]["duration_us"] = json!(-1);
    let mut skewed = batch();
    skewed["sent_at"] = json!("2026-11-20T11:50:00Z");
    skewed["spans"] = json!([span()]);
    skewed["spans"][0]["start"] = json!("2026-11-20T11:49:00Z");
    for batch in [refused, skewed] {
        assert_eq!(server.send(&batch).await.status, 202);
    }
    // A restart flushes the counts of outcomes.
    server.restart().await;
    server.ready().await;
    server
}

/// Rows of a statement by column.
async fn rows(server: &Server, sql: &str) -> Vec<BTreeMap<String, Value>> {
    let answer = server.query(&format!("{sql} FORMAT JSONEachRow")).await;
    let lines = answer.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The single number a panel shows.
async fn number(server: &Server, sql: &str) -> f64 {
    let rows = rows(server, sql).await;
    assert_eq!((rows.len(), rows[0].len()), (1, 1), "{sql}");
    let number = rows[0].values().next().unwrap();
    number.as_f64().unwrap_or_else(|| panic!("{sql}: {number}"))
}

#[test]
fn dashboards_have_one_structure() {
    let boards = all_boards();
    assert_eq!(boards.len(), 9);
    let uids: BTreeSet<_> = boards
        .iter()
        .map(|board| text(&board.json, "uid"))
        .collect();
    assert_eq!(uids.len(), boards.len(), "{uids:?}");
    for board in &boards {
        let Board { file, json } = board;
        assert_eq!(json["id"], Value::Null, "{file}");
        assert_eq!(
            (&json["schemaVersion"], &json["version"]),
            (&json!(39), &json!(1))
        );
        assert!(json.get("__inputs").is_none(), "{file}");
        // Every data source is the variable.
        // Links between dashboards hand variables on, so each type has a variable of its own.
        let source = match board.source() {
            "prometheus" => json!({"type": "prometheus", "uid": "${prometheus}"}),
            kind => json!({"type": kind, "uid": "${datasource}"}),
        };
        let uses = json.to_string().matches("\"datasource\":{").count();
        let ours = json
            .to_string()
            .matches(&format!("\"datasource\":{source}"))
            .count();
        assert_eq!(uses, ours, "{file}");
    }
}

#[test]
fn panels_have_a_title_a_unit_and_a_description() {
    for board in &all_boards() {
        let file = &board.file;
        let ids: BTreeSet<_> = board.panels().map(|one| one["id"].as_u64()).collect();
        assert_eq!(ids.len(), board.panels().count(), "{file}");
        for panel in board.panels() {
            let title = text(panel, "title");
            let unit = text(&panel["fieldConfig"]["defaults"], "unit");
            let is_sentence = text(panel, "description").ends_with('.');
            assert!(
                is_sentence && !title.is_empty() && !unit.is_empty(),
                "{file}: {title} needs a title, a unit and a description"
            );
            let [left, width] = ["x", "w"].map(|key| panel["gridPos"][key].as_u64().unwrap());
            assert!(left + width <= 24, "{file}: {title}");
        }
    }
}

#[test]
fn queries_read_only_the_views() {
    let from = Regex::new(r"(?i)\b(?:FROM|JOIN)\s+([\w.`]+)").unwrap();
    let used = Regex::new(r"\$\{?([a-z]\w*)").unwrap();
    for board in &boards() {
        let file = &board.file;
        let names: BTreeSet<_> = board.variables().map(|one| text(one, "name")).collect();
        for (name, sql) in board.lists() {
            // Grafana does not escape a backslash in a quoted name, and names come from devices.
            let left_out = format!("position({}, char(92)) = 0", listed(sql));
            let safe = name == "project" || sql.contains(&left_out);
            assert!(safe, "{file}: {name} may list names with a backslash");
        }
        for (title, sql) in [board.queries(), board.lists()].concat() {
            let tables: Vec<_> = from
                .captures_iter(sql)
                .map(|one| one.extract::<1>().1[0])
                .collect();
            let ours = !tables.is_empty() && tables.iter().all(|table| table.starts_with("dash_"));
            assert!(ours, "{file}: {title} reads {tables:?}");
            let mut variables = used.captures_iter(sql).map(|one| one.extract::<1>().1[0]);
            let unknown = variables.find(|one| !names.contains(one));
            assert_eq!(unknown, None, "{file}: {title} has no such variable");
        }
    }
}

/// Returns the column that the query of a list selects.
fn listed(sql: &str) -> &str {
    let words = sql.split(' ').skip(1);
    words.into_iter().find(|word| *word != "DISTINCT").unwrap()
}

#[test]
fn compose_provides_the_paths_and_variables_that_grafana_uses() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../");
    let read = |file: &str| fs::read_to_string(format!("{root}{file}")).unwrap();
    let compose = read("docker-compose.yml");
    let folder = "dashboards/grafana/provisioning";
    let provider = read(&format!("{folder}/dashboards/unjank.yaml"));
    let source = read(&format!("{folder}/datasources/unjank.yaml"));
    assert!(provider.contains("path: /etc/unjank/dashboards\n"));
    assert!(compose.contains("./dashboards/grafana/dashboards:/etc/unjank/dashboards:ro"));
    assert!(compose.contains(&format!("./{folder}:/etc/grafana/provisioning:ro")));
    assert!(compose.contains("GF_INSTALL_PLUGINS: grafana-clickhouse-datasource\n"));
    assert!(source.contains("type: grafana-clickhouse-datasource\n"));
    let asked = Regex::new(r"\$\{(\w+)\}").unwrap();
    for one in asked.captures_iter(&source) {
        let given = format!("      {}: ", &one[1]);
        assert!(compose.contains(&given), "compose does not set {}", &one[1]);
    }
}

/// Whether a query finds a value that is not null.
async fn finds(server: &Server, sql: &str, more: &[(&'static str, &'static str)]) -> bool {
    let rows = rows(server, &expanded(sql, &chosen(more))).await;
    let mut values = rows.iter().flat_map(BTreeMap::values);
    values.any(|value| !value.is_null())
}

#[tokio::test(flavor = "multi_thread")]
async fn every_query_runs_and_finds_something() {
    let server = seeded().await;
    for board in boards() {
        for (title, sql) in [board.queries(), board.lists()].concat() {
            let finds = finds(&server, sql, &[]).await && finds(&server, sql, ONE_OF_EACH).await;
            assert!(finds, "{}: {title} finds nothing", board.file);
        }
    }
}

#[test]
fn no_query_divides_by_zero() {
    for board in &boards() {
        for (title, sql) in board.queries() {
            let is_safe = |divisor: &str| {
                divisor.starts_with("nullIf(")
                    || divisor.starts_with("if(refresh_hz = 0, 60, refresh_hz)")
            };
            let all_are_safe = sql.split(" / ").skip(1).all(is_safe);
            assert!(all_are_safe, "{}: {title} may divide by 0", board.file);
            // `least` skips NULL.
            assert!(!sql.contains("least(1,"), "{}: {title}", board.file);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_share_of_nothing_is_no_number() {
    let server = Server::start().await;
    server.ready().await;
    let mut sent = batch();
    sent["frame_windows"] = json!([{"start": "2026-11-20T11:59:00Z", "duration_ms": 0, "frames_drawn": 0,
        "slow_frames": 3, "frozen_frames": 1, "jank_ms": 5, "delay_ms": 5}]);
    sent["traffic"] = json!([{"day": "2026-11-20", "source": "api", "failed_requests": 2}]);
    let answer = server.send(&sent).await;
    assert_eq!(answer.body["rejected"], json!([]), "{}", answer.body);
    server.drained().await;
    for board in boards() {
        let shares: &[&str] = match text(&board.json, "uid") {
            "unjank-frames" => &[
                "Dropped frames",
                "Slow frames",
                "Frozen frames",
                "Janky time",
                "Delay per minute",
                "Frames per second",
            ],
            "unjank-traffic" => &["Failed requests"],
            _ => &[],
        };
        let queries = board.queries();
        for share in shares {
            let (_, sql) = queries.iter().find(|one| one.0 == *share).unwrap();
            let rows = rows(&server, &expanded(sql, &chosen(&[]))).await;
            let mut values = rows.iter().flat_map(BTreeMap::values);
            assert!(values.all(Value::is_null), "{share}: {rows:?}");
        }
    }
}

/// The dashboard and title of a panel with one number, and the subject and measure, with filters, of the same query to the API.
const NUMBERS: &[(&str, &str, &str, &str)] = &[
    ("overview", "Installs", "usage", "installs"),
    ("overview", "Sessions", "usage", "sessions"),
    ("overview", "Stalls", "janks", "count"),
    ("overview", "Janky time", "frame_windows", "jank_share"),
    ("overview", "Page load, p75", "page_loads", "total_p75_ms"),
    (
        "overview",
        "Cold start, p75",
        "app_starts",
        "p75_ms&kind=cold",
    ),
    ("jank", "Stalls", "janks", "count"),
    ("jank", "Blocked time", "janks", "sum_ms"),
    ("jank", "Stall, p50", "janks", "p50_ms"),
    ("jank", "Stall, p95", "janks", "p95_ms"),
    ("frames", "Dropped frames", "frame_windows", "dropped_share"),
    ("frames", "Slow frames", "frame_windows", "slow_share"),
    ("frames", "Frozen frames", "frame_windows", "frozen_share"),
    ("frames", "Janky time", "frame_windows", "jank_share"),
    (
        "frames",
        "Delay per minute",
        "frame_windows",
        "delay_ms_per_minute",
    ),
    ("frames", "Frames per second", "frame_windows", "fps"),
    ("page-loads", "Page loads", "page_loads", "count"),
    ("page-loads", "Completed", "page_loads", "completed_share"),
    ("page-loads", "Total, p50", "page_loads", "total_p50_ms"),
    ("page-loads", "Total, p75", "page_loads", "total_p75_ms"),
    ("page-loads", "Total, p95", "page_loads", "total_p95_ms"),
    ("page-loads", "Mean", "page_loads", "mean_ms"),
    ("spans", "Spans", "spans", "count"),
    ("spans", "Errors", "spans", "error_share"),
    ("spans", "On the main thread", "spans", "main_thread_share"),
    (
        "spans",
        "p95 of the chosen span",
        "spans",
        "p95_us&name=checkout",
    ),
    ("traffic", "Bytes", "traffic", "bytes"),
    ("traffic", "Sent", "traffic", "tx_bytes"),
    ("traffic", "Received", "traffic", "rx_bytes"),
    ("traffic", "Failed requests", "traffic", "failed_share"),
    (
        "resources",
        "Chosen metric, p50",
        "metrics",
        "p50&name=memory_used_bytes",
    ),
    (
        "resources",
        "Chosen metric, p95",
        "metrics",
        "p95&name=memory_used_bytes",
    ),
    (
        "resources",
        "Chosen metric, maximum",
        "metrics",
        "max&name=memory_used_bytes",
    ),
    (
        "resources",
        "Samples",
        "metrics",
        "count&name=memory_used_bytes",
    ),
    ("ingest-health", "Batches", "usage", "count"),
    ("ingest-health", "Events", "usage", "accepted"),
    ("ingest-health", "Bytes", "usage", "wire_bytes"),
    ("ingest-health", "Skewed clocks", "usage", "skewed_share"),
    ("ingest-health", "Lost on devices", "sdk_drops", "count"),
];

#[tokio::test(flavor = "multi_thread")]
async fn panels_show_the_numbers_of_the_query_api() {
    let server = seeded().await;
    let token = server.token("viewer --project default").await;
    let boards = boards();
    for board in &boards {
        let name = text(&board.json, "uid").trim_start_matches("unjank-");
        let compared = NUMBERS.iter().filter(|one| one.0 == name).count();
        assert!(compared > 0, "nothing of {name} is compared");
    }
    for (board, title, subject, measure) in NUMBERS {
        let uid = format!("unjank-{board}");
        let board = boards
            .iter()
            .find(|one| text(&one.json, "uid") == uid)
            .unwrap();
        let queries = board.queries();
        let (_, sql) = queries.iter().find(|one| one.0 == *title).unwrap();
        for (more, filter) in [
            (&[][..], ""),
            (&[("app_version", "4.12.0")], "&app_version=4.12.0"),
        ] {
            let shown = number(&server, &expanded(sql, &chosen(more))).await;
            let path = format!(
                "/api/v1/projects/default/query/{subject}?{PERIOD}&measure={measure}{filter}"
            );
            let answer = server.call(&token, Method::GET, &path, None).await.body;
            let asked = answer["rows"][0]["values"][0].as_f64();
            let asked = asked.unwrap_or_else(|| panic!("{path}: {answer}"));
            let near = (shown - asked).abs() <= 1e-9 * asked.abs();
            assert!(
                near && asked > 0.0,
                "{uid}, {title}: {shown} is not {asked}"
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_versions_has_their_order() {
    let server = Server::start().await;
    server.ready().await;
    let mut versions = [
        "nightly",
        "1.4.0",
        "1.4.0+1234abc",
        "1.4.0+gf00ba42",
        "1.4.0+9",
        "1.4.0+10",
        "4.9.0",
        "4.9.0 (40)",
        "4.10.0-beta2",
        "4.10.0-rc1",
        "4.10.0-rc10",
        "4.10",
        "4.10.0 (9)",
        "4.10.0 (41)",
        "4.10.0-SP1",
        "4.10.1 EAP",
        "4.10.1 M1",
        "4.10.1",
        "4.10.1k",
        "6.0.0.rc1",
        "6.0.0~rc2",
        "release-6.0.0",
        "6.0.0 (9) debug",
        "6.0.0, build 10",
        "com.shop@6.0.0+11",
        "6.0.0_12",
        "6.0.0.post1",
        "6.0.10.RELEASE",
        "release/6.0.11",
        "10.0",
    ];
    versions.reverse();
    for version in versions {
        assert_eq!(server.send(&sent(version, 1)).await.status, 202);
    }
    server.drained().await;
    versions.reverse();
    for board in boards() {
        let lists = board.lists();
        let (_, sql) = lists.iter().find(|one| one.0 == "app_version").unwrap();
        let found = rows(&server, &expanded(sql, &chosen(&[]))).await;
        let found: Vec<_> = found.iter().map(|row| &row["app_version"]).collect();
        assert_eq!(found, versions, "{}", board.file);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_groups_of_janks_are_those_of_the_query_api() {
    let server = seeded().await;
    let token = server.token("viewer --project default").await;
    let boards = boards();
    let mut queries = boards.iter().flat_map(Board::queries);
    let (_, sql) = queries.find(|one| one.0 == "Groups").unwrap();
    let shown = rows(&server, &expanded(sql, &chosen(&[]))).await;
    let path = format!(
        "/api/v1/projects/default/query/janks?{PERIOD}&by=group_id&by=title&by=category&measure=count&measure=sum_ms&order=-sum_ms"
    );
    let answer = server.call(&token, Method::GET, &path, None).await.body;
    let asked = answer["rows"].as_array().unwrap();
    assert_eq!((shown.len(), asked.len()), (1, 1));
    let keys = json!([
        shown[0]["group_id"],
        shown[0]["title"],
        shown[0]["category"]
    ]);
    assert_eq!(keys, asked[0]["keys"]);
    let [stalls, blocked] = ["stalls", "blocked"].map(|column| shown[0][column].as_f64());
    let [count, sum_ms] = [0, 1].map(|place| asked[0]["values"][place].as_f64());
    assert_eq!((stalls, blocked), (count, sum_ms));
}

#[tokio::test(flavor = "multi_thread")]
async fn views_are_described_and_unaffected_by_new_columns() {
    let server = Server::start().await;
    server.ready().await;
    let views = server
        .query("SELECT name, comment FROM system.tables WHERE database = currentDatabase() AND name LIKE 'dash_%' ORDER BY name")
        .await;
    let used: String = boards()
        .iter()
        .map(|board| board.json.to_string())
        .collect();
    let columns = "SELECT table, name, type FROM system.columns WHERE database = currentDatabase() AND table LIKE 'dash_%' ORDER BY ALL";
    let before = server.query(columns).await;
    let tables = "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine LIKE '%MergeTree' AND match(name, '_(hourly|daily)$|^outcomes$')";
    for table in server.query(tables).await.lines() {
        let sql = format!(
            "ALTER TABLE {table} ADD COLUMN weight Float64, ADD COLUMN bucket Int16, ADD COLUMN part UInt8"
        );
        server.query(&sql).await;
    }
    for line in views.lines() {
        let (view, comment) = line.split_once('\t').unwrap();
        assert!(comment.ends_with('.'), "{view} does not say what it holds");
        assert!(
            used.contains(&format!("FROM {view} ")),
            "no dashboard shows {view}"
        );
        server.query(&format!("SELECT * FROM {view}")).await;
    }
    assert_eq!(server.query(columns).await, before);
    assert!(!before.contains("SimpleAggregateFunction"), "{before}");
}
