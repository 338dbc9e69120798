//! The demo: every day has every signal, roll-ups and percentiles agree with raw rows, and the regressions are visible.

use std::path::Path;

use serde_json::{Value, json};
use unjank_foundation::clock::{Clock, DAY};

use crate::processes::{Program, sql, token, unjank};
use crate::wait::until;

const DAYS: u32 = 30;
const SMALL: [&str; 5] = ["demo", "--installs", "120", "--seed", "7"];

/// A small demo that is being served.
struct Demo {
    folder: tempfile::TempDir,
    program: Program,
    token: String,
    from: String,
    to: String,
    /// Where the last two days begin.
    last_days: String,
}

impl Demo {
    /// Starts a demo with data of whole days, up to the last midnight.
    async fn seeded() -> Self {
        Self::of(&SMALL).await
    }

    /// Starts a demo with these arguments.
    async fn of(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let now = Clock::system().now();
        let until = now.floor(DAY);
        let [from, last_days, to] =
            [until - DAY * DAYS, until - DAY * 2, until].map(|at| at.to_string());
        let arguments = [arguments, &["--until", &to]].concat();
        let program = Program::run(folder.path(), &arguments).await;
        Self {
            token: token(folder.path(), "viewer", &[]),
            folder,
            program,
            from,
            to,
            last_days,
        }
    }

    fn sql(&self, query: &str) -> String {
        sql(self.folder.path(), query)
    }

    /// Runs a query over the whole month.
    async fn ask(&self, question: &str) -> Value {
        self.ask_from(&self.from, question).await
    }

    async fn ask_from(&self, from: &str, question: &str) -> Value {
        let url = format!(
            "{}/api/v1/projects/shop/query/{question}&from={from}&to={}&limit=1000",
            self.program.listen, self.to
        );
        let request = self.program.client.get(url).bearer_auth(&self.token);
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        assert!(answer["rows"].is_array(), "{question}: {answer}");
        answer
    }

    /// Compares 4.12.0 with 4.11.0. Returns the first row's first key, first value and base value.
    async fn worst(&self, question: &str) -> (String, f64, Option<f64>) {
        let versions = "app_version=4.12.0&base_app_version=4.11.0";
        let answer = self.ask(&format!("{question}&{versions}")).await;
        let row = &answer["rows"][0];
        let key = row["keys"][0].as_str().unwrap().to_owned();
        (
            key,
            row["values"][0].as_f64().unwrap(),
            row["base"][0].as_f64(),
        )
    }
}

/// A roll-up and the raw rows it is computed from: key columns, time column, the weight of a raw row, and the column of the sum.
struct RollUp {
    name: &'static str,
    raw: &'static str,
    keys: &'static str,
    time: &'static str,
    count: &'static str,
    counted: &'static str,
}

const fn roll_up(
    name: &'static str,
    keys: &'static str,
    time: &'static str,
    count: &'static str,
) -> RollUp {
    RollUp {
        name,
        raw: name,
        keys,
        time,
        count,
        counted: "count",
    }
}

const ROLL_UPS: &[RollUp] = &[
    roll_up("spans", "name, kind", "start", "1 / sample_rate"),
    roll_up(
        "frame_windows",
        "page, refresh_hz",
        "start",
        "1 / sample_rate",
    ),
    roll_up("janks", "kind, page", "start", "1 / sample_rate"),
    roll_up(
        "page_loads",
        "page, launch, outcome, network",
        "start",
        "1 / sample_rate",
    ),
    roll_up(
        "metrics",
        "name, page",
        "time",
        "greatest(count, 1) / sample_rate",
    ),
    roll_up("app_starts", "kind", "start", "1 / sample_rate"),
    roll_up(
        "recompositions",
        "function, page, cause",
        "start",
        "count / sample_rate",
    ),
    roll_up("sdk_health", "os_name", "received_at", "1"),
    RollUp {
        raw: "(SELECT *, `dropped.signal` AS signal, `dropped.reason` AS reason, `dropped.count` AS lost FROM sdk_health \
              ARRAY JOIN `dropped.signal`, `dropped.reason`, `dropped.count`)",
        ..roll_up("sdk_drops", "signal, reason", "received_at", "lost")
    },
    RollUp {
        counted: "rx_bytes",
        ..roll_up("traffic", "source, network", "day", "rx_bytes")
    },
    // `batches` keeps the last days only.
    RollUp {
        raw: "(SELECT * FROM batches WHERE received_at >= today() - 5)",
        ..roll_up("usage", "sdk_name, sdk_version", "received_at", "1")
    },
];

/// Every signal has rows on every day.
fn every_day_has_every_signal(demo: &Demo) {
    for (table, time) in [
        ("spans", "start"),
        ("frame_windows", "start"),
        ("janks", "start"),
        ("traffic", "day"),
        ("page_loads", "start"),
        ("metrics", "time"),
        ("app_starts", "start"),
        ("recompositions", "start"),
        ("sdk_health", "received_at"),
        ("usage_hourly", "hour"),
    ] {
        let days = demo.sql(&format!("SELECT uniqExact(toDate({time})) FROM {table}"));
        let days: i64 = days.parse().unwrap();
        assert!(days >= i64::from(DAYS), "{table}: {days} days");
    }
    let outcomes = "SELECT uniqExact(outcome), uniqExact(signal, reason) > 12 FROM outcomes WHERE project != ''";
    assert_eq!(demo.sql(outcomes), "3\t1", "stored, rejected and duplicate");
    let late = demo.sql("SELECT avg(received_at > start + INTERVAL 1 HOUR) FROM spans");
    let late: f64 = late.parse().unwrap();
    assert!((0.01..0.15).contains(&late), "{late}");
}

fn roll_ups_agree_with_raw_rows(demo: &Demo) {
    for (suffix, bucket, start) in [
        ("daily", "day", "toDate"),
        ("hourly", "hour", "toStartOfHour"),
    ] {
        for one in ROLL_UPS {
            if one.name == "traffic" && suffix == "hourly" {
                continue;
            }
            let RollUp {
                name,
                raw,
                keys,
                time,
                count,
                counted,
            } = one;
            let since = if *name == "usage" {
                format!("WHERE {bucket} >= today() - 5")
            } else {
                String::new()
            };
            let question = format!(
                "SELECT countIf(abs(sent.n - kept.n) > 0.000001 * sent.n), countIf(abs(toInt64(sent.i) - toInt64(kept.i)) > 0.03 * sent.i), \
                 count() > 10 FROM \
                 (SELECT {start}({time}) AS at, app_version, device_class, {keys}, toFloat64(sum({count})) AS n, uniqExact(install_id) AS i \
                  FROM {raw} AS r GROUP BY ALL) AS sent FULL JOIN \
                 (SELECT {bucket} AS at, app_version, device_class, {keys}, toFloat64(sum({counted})) AS n, uniqCombined64Merge(12)(installs) AS i \
                  FROM {name}_{suffix} {since} GROUP BY ALL) AS kept USING (at, app_version, device_class, {keys})"
            );
            assert_eq!(
                demo.sql(&question),
                "0\t0\t1",
                "{name}_{suffix}: {question}"
            );
        }
    }
    let by_stack = "SELECT countIf(sent.n != kept.n), count() > 10 FROM \
        (SELECT toDate(start) AS day, stack_hash, sum(1 / sample_rate) AS n FROM janks GROUP BY ALL) AS sent FULL JOIN \
        (SELECT day, stack_hash, sum(count) AS n FROM janks_daily GROUP BY ALL) AS kept USING (day, stack_hash)";
    assert_eq!(demo.sql(by_stack), "0\t1");
}

/// Queries of the API, each with its percentile, and with the columns and the table of the raw rows.
const PERCENTILES: &[(&str, f64, &str)] = &[
    (
        "spans?by=name&measure=p95_us",
        0.95,
        "toString(name), duration_us, sample_rate, spans",
    ),
    (
        "spans?by=name&measure=p50_us",
        0.5,
        "toString(name), duration_us, sample_rate, spans",
    ),
    (
        "page_loads?by=page&measure=t1_p75_ms",
        0.75,
        "toString(page), t1_ms, sample_rate, page_loads",
    ),
    (
        "page_loads?by=page&measure=t3_p95_ms",
        0.95,
        "toString(page), t3_ms, sample_rate, page_loads",
    ),
    (
        "page_loads?by=page&measure=total_p50_ms",
        0.5,
        "toString(page), total_ms, sample_rate, page_loads",
    ),
    (
        "janks?by=kind&measure=p50_ms",
        0.5,
        "toString(kind), duration_ms, sample_rate, janks",
    ),
    (
        "metrics?by=name&measure=p75",
        0.75,
        "toString(name), value, sample_rate, metrics",
    ),
    (
        "app_starts?by=kind&measure=p90_ms",
        0.9,
        "toString(kind), duration_ms, sample_rate, app_starts",
    ),
];

async fn percentiles_agree_with_raw_rows(demo: &Demo) {
    // For less than three days, queries read hourly roll-ups. There are fewer rows, so one rank is a larger share of them.
    for (from, source, fewest, rank) in [
        (&demo.from, "daily", 150, 0.01),
        (&demo.last_days, "hourly", 40, 0.035),
    ] {
        for (question, share, raw) in PERCENTILES {
            let [key, value, rate, table] = raw.split(", ").collect::<Vec<_>>()[..] else {
                panic!("four parts: {raw}")
            };
            let time = if table == "metrics" { "time" } else { "start" };
            let answer = demo.ask_from(from, question).await;
            assert_eq!(answer["source"], source, "{question}");
            // Accept neighbouring ranks, since any number between two neighbouring values is a correct percentile.
            let exact = |share: f64| {
                format!("quantileExactWeighted({share})({value}, toUInt32(round(1 / {rate})))")
            };
            let rows = demo.sql(&format!(
                "SELECT {key} AS k, {}, {} FROM {table} WHERE {value} IS NOT NULL AND {time} >= parseDateTimeBestEffort('{from}') \
                 GROUP BY k HAVING count() > {fewest}",
                exact(share - rank), exact(share + rank)
            ));
            assert!(!rows.is_empty() || source == "hourly", "{question}");
            all_lie_between(question, &answer, &rows);
        }
    }
}

/// Asserts that the API's value of each key lies between the two values from raw rows, within the width of a bucket.
fn all_lie_between(question: &str, answer: &Value, rows: &str) {
    for row in rows.lines() {
        let columns: Vec<_> = row.split('\t').collect();
        let [low, high] = [1, 2].map(|at| columns[at].parse::<f64>().unwrap());
        let value = answer["rows"].as_array().unwrap();
        let value = value.iter().find(|row| row["keys"][0] == columns[0]);
        let value = value.unwrap()["values"][0].as_f64().unwrap();
        assert!(
            (low * 0.99..=high * 1.01).contains(&value),
            "{question} of {}: {value}, of raw rows {low} to {high}",
            columns[0]
        );
    }
}

async fn changes_between_versions_are_visible(demo: &Demo) {
    let (name, now, before) = demo
        .worst("spans?by=name&kind=manual&measure=p95_us&order=-change.p95_us")
        .await;
    assert_eq!(name, "checkout");
    assert!(now > 1.4 * before.unwrap(), "{now} after {before:?}");
    let titles = demo
        .worst("janks?by=title&measure=count&order=-count")
        .await;
    let new = "database on main thread in OrderDao.insert".to_owned();
    assert_eq!((titles.0, titles.2), (new, None), "only in the new version");
    let frames = "frame_windows?by=page&measure=slow_share&order=-change.slow_share";
    let (page, now, before) = demo.worst(frames).await;
    assert_eq!(page, "CheckoutActivity");
    assert!(now > 1.6 * before.unwrap(), "{now} after {before:?}");
    let loads = "page_loads?by=page&page=CheckoutActivity&measure=t3_p75_ms";
    let (_, now, before) = demo.worst(loads).await;
    assert!(now > 1.2 * before.unwrap(), "{now} after {before:?}");
    let memory =
        "metrics?by=name&name=memory_used_bytes&page=ProductActivity&uptime=15m_1h&measure=mean";
    let (_, now, before) = demo.worst(memory).await;
    assert!(now > 1.3 * before.unwrap(), "{now} after {before:?}");
    let starts = "app_starts?by=kind&kind=cold&measure=mean_ms";
    let (_, now, before) = demo.worst(starts).await;
    assert!(now < 0.95 * before.unwrap(), "{now} after {before:?}");
}

async fn the_alert_rule_fires(demo: &Demo) {
    let url = format!("{}/api/v1/projects/shop/incidents", demo.program.listen);
    let fires = async || {
        let request = demo.program.client.get(&url).bearer_auth(&demo.token);
        let answer: Value = request.send().await.unwrap().json().await.unwrap();
        answer["incidents"][0]["group"]["page"] == "ProductActivity"
    };
    until("the alert rule of the demo fires", fires).await;
}

fn sizes(folder: &Path) -> String {
    let query = "SELECT (SELECT count() FROM spans), (SELECT count() FROM janks), (SELECT sum(count) FROM spans_daily), \
        (SELECT sum(count) FROM outcomes WHERE project != ''), (SELECT sum(count) FROM usage_daily)";
    sql(folder, query)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_demo_has_consistent_data_and_is_seeded_once() {
    let mut demo = Demo::seeded().await;
    every_day_has_every_signal(&demo);
    roll_ups_agree_with_raw_rows(&demo);
    percentiles_agree_with_raw_rows(&demo).await;
    changes_between_versions_are_visible(&demo).await;
    the_alert_rule_fires(&demo).await;

    let folder = demo.folder.path();
    let before = sizes(folder);
    demo.program.kill();
    demo.program = Program::run(folder, &SMALL).await;
    demo.program.drained().await;
    assert_eq!(sizes(folder), before, "a second start seeds nothing");
    a_new_revision_arrives_on_some_installs(&demo).await;
    demo.program.kill();

    std::fs::remove_file(folder.join("demo.json")).unwrap();
    let again = [
        "demo",
        "--serve=false",
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        "127.0.0.1:0",
    ];
    let refused = unjank(folder, &again);
    assert!(!refused.status.success());
    let error = String::from_utf8_lossy(&refused.stderr);
    assert!(
        error.contains("holds data of the project `shop`"),
        "{error}"
    );
}

async fn a_new_revision_arrives_on_some_installs(demo: &Demo) {
    let token = token(demo.folder.path(), "editor", &[]);
    let config = format!("{}/api/v1/projects/shop/config", demo.program.listen);
    let new =
        json!({"expected_revision": 1, "configuration": {"base": {"sampling": {"janks": 0.5}}}});
    let request = demo
        .program
        .client
        .put(&config)
        .bearer_auth(token)
        .json(&new);
    assert_eq!(request.send().await.unwrap().status(), 201);
    let arrived = async || {
        let request = demo.program.client.get(format!("{config}/rollout"));
        let answer = request.bearer_auth(&demo.token).send().await.unwrap();
        let rollout: Value = answer.json().await.unwrap();
        rollout["revision"] == 2 && rollout["running"].as_u64().unwrap() > 2
    };
    until("installs run revision 2", arrived).await;
}

#[test]
fn the_help_names_the_folder_of_the_demo() {
    let help = |command: &str| {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_unjank"))
            .args([command, "--help"])
            .env_remove("UNJANK_DATA_DIR")
            .output()
            .unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(help("demo").contains("[default: demo-data]"));
    assert!(!help("demo").contains("[default: data]"));
    assert!(help("serve").contains("[default: data]"));
}

/// Returns the groups in which a template of an alert rule fires at the end of the month, as the value of its only dimension.
async fn fired(demo: &Demo, rule: &Value) -> Vec<String> {
    let url = format!(
        "{}/api/v1/projects/shop/alert-rules/preview",
        demo.program.listen
    );
    let request = demo.program.client.post(url).bearer_auth(&demo.token);
    let request = request.json(&json!({"rule": rule, "days": 1}));
    let preview: Value = request.send().await.unwrap().json().await.unwrap();
    let by = rule["metric"]["by"][0].as_str().unwrap();
    let transitions = preview["transitions"].as_array().unwrap().iter();
    let fired = transitions.filter(|one| one["what"] == "fired");
    let mut groups: Vec<String> = fired
        .map(|one| one["group"][by].as_str().unwrap().to_owned())
        .collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// Every kind of span that devices of the demo send is one that the SDK makes.
fn spans_are_those_of_the_sdk(demo: &Demo) {
    let kinds =
        "SELECT arrayStringConcat(arraySort(groupUniqArray(toString(kind))), ' ') FROM spans";
    assert_eq!(demo.sql(kinds), "init manual method network");
    // The SDK names a traced function without its parameters, and knows the line of every span.
    let wrong = "SELECT countIf(code_line = 0 OR position(name, '(') > 0) FROM spans";
    assert_eq!(demo.sql(wrong), "0");
    assert_eq!(demo.sql("SELECT DISTINCT sdk_name FROM batches"), "unjank");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_templates_of_alert_rules_find_the_regressions_of_the_demo() {
    let demo = Demo::of(&["demo", "--installs", "700", "--seed", "7"]).await;
    spans_are_those_of_the_sdk(&demo);
    let url = format!(
        "{}/api/v1/projects/shop/alert-rules/templates",
        demo.program.listen
    );
    let request = demo.program.client.get(url).bearer_auth(&demo.token);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    let templates = answer["templates"].as_array().unwrap();
    for (name, group) in [
        ("A span got slower (p75)", "checkout"),
        ("A span got slower (p95)", "checkout"),
        ("More janks on a page", "CheckoutActivity"),
        (
            "Pages draw later once their data is there (T3 p75)",
            "CheckoutActivity",
        ),
        ("Memory after 15 minutes of use (p75)", "ProductActivity"),
    ] {
        let template = templates.iter().find(|one| one["name"] == name);
        assert_eq!(fired(&demo, template.unwrap()).await, [group], "{name}");
    }
}
