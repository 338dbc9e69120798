//! The query API: aggregates, comparisons, exports, errors and the separation of projects.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::asked::Asked;
use crate::server::{Server, batch, span};

impl Asked {
    /// Keys, values and base of each row.
    async fn rows(&self, path: &str) -> Vec<(Value, Value, Value)> {
        let answer = self.ask(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        let rows = answer.body["rows"].as_array().unwrap();
        rows.iter()
            .map(|row| {
                (
                    row["keys"].clone(),
                    row["values"].clone(),
                    row["base"].clone(),
                )
            })
            .collect()
    }

    async fn source(&self, path: &str) -> String {
        self.ask(path).await.body["source"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

/// A batch with spans of a version. Each has one of the durations, and represents `1 / rate` spans.
fn version(version: &str, name: &str, durations_ms: &[u64], rate: f64) -> Value {
    let mut batch = batch();
    batch["resource"]["app_version"] = json!(version);
    batch["resource"]["install_id"] = json!(Uuid::new_v4());
    batch["spans"] = durations_ms
        .iter()
        .map(|ms| {
            let mut span = span();
            span["name"] = json!(name);
            span["duration_us"] = json!(ms * 1_000);
            span["sample_rate"] = json!(rate);
            span
        })
        .collect();
    batch
}

/// A batch with one value of each metric.
fn measured(version: &str, metrics: [(&str, f64); 3]) -> Value {
    let mut batch = batch();
    batch["resource"]["app_version"] = json!(version);
    let time = "2026-11-20T11:59:00Z";
    let metrics = metrics.map(|(name, value)| json!({"name": name, "time": time, "value": value}));
    batch["metrics"] = json!(metrics);
    batch
}

const HOURLY: &str = "from=2026-11-20T10:00:00Z&to=2026-11-20T13:00:00Z";
const DAILY: &str = "from=2026-11-15T10:00:00Z&to=2026-11-20T13:00:00Z";

fn assert_close(actual: &Value, expected: f64) {
    let actual = actual.as_f64().unwrap();
    assert!(
        (actual / expected - 1.0).abs() < 0.011,
        "{actual} is not about {expected}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn roll_ups_and_raw_rows_give_the_same_values_weighted_by_the_sample_rate() {
    // One in ten slow spans was sent. They represent 100 of 199 spans, so the median is slow.
    let slow: Vec<u64> = (0..10).map(|i| 1_000 + i).collect();
    let fast: Vec<u64> = (0..99).map(|i| 100 + i / 10).collect();
    let asked = Asked::of(&[
        version("4.12.0", "checkout", &slow, 0.1),
        version("4.12.0", "checkout", &fast, 1.0),
    ])
    .await;
    let measures =
        "by=name&measure=count&measure=installs&measure=p50_us&measure=p99_us&measure=mean_us";
    for (period, rest, source) in [
        (HOURLY, "", "hourly"),
        (DAILY, "", "daily"),
        (HOURLY, "&locale=", "raw"),
        (DAILY, "&locale=", "raw"),
    ] {
        let path = format!("query/spans?{measures}&{period}{rest}");
        assert_eq!(asked.source(&path).await, source);
        let rows = asked.rows(&path).await;
        let (keys, values, base) = &rows[0];
        assert_eq!(
            (rows.len(), keys, base),
            (1, &json!(["checkout"]), &Value::Null)
        );
        assert_close(&values[0], 199.0);
        assert_eq!(values[1], json!(2.0));
        assert_close(&values[2], 1_000_000.0);
        assert_close(&values[3], 1_009_000.0);
        assert_close(
            &values[4],
            (100.0 * 1_004.5 + 99.0 * 104.454) / 199.0 * 1_000.0,
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_largest_regression_between_two_versions_comes_first() {
    let asked = Asked::of(&[
        version("4.11.0", "checkout", &[100, 100, 100], 1.0),
        version("4.11.0", "search", &[500, 500, 500], 1.0),
        version("4.11.0", "gone", &[500], 1.0),
        version("4.12.0", "checkout", &[200, 200, 200], 1.0),
        version("4.12.0", "search", &[400, 400, 400], 1.0),
        version("4.12.0", "new", &[900], 1.0),
        measured("4.11.0", [("rise", -80.0), ("fall", -60.0), ("turn", -5.0)]),
        measured("4.12.0", [("rise", -60.0), ("fall", -80.0), ("turn", 5.0)]),
    ])
    .await;
    for period in [HOURLY, DAILY] {
        let ask = async |measure: &str| {
            let versions = "app_version=4.12.0&base_app_version=4.11.0";
            let path = format!("query/{measure}&by=name&{versions}&{period}");
            let rows = asked.rows(&path).await;
            let names: Vec<_> = rows.iter().map(|(keys, ..)| keys[0].clone()).collect();
            (rows, names)
        };
        // A base below zero does not turn the order.
        let (_, names) = ask("metrics?measure=p50&order=-change.p50").await;
        assert_eq!(names, ["turn", "rise", "fall"]);
        let (rows, names) = ask("spans?measure=p95_us&order=-change.p95_us").await;
        assert_eq!(names, ["checkout", "search", "new"]);
        assert_close(&rows[0].1[0], 200_000.0);
        assert_close(&rows[0].2[0], 100_000.0);
        assert_eq!(rows[2].2, Value::Null);
    }
    // Groups with too few samples are left out.
    let path = format!(
        "query/spans?by=name&measure=p95_us&order=-change.p95_us&app_version=4.12.0&base_app_version=4.11.0&{DAILY}&at_least_samples=3&contains.name=SEAR"
    );
    let rows = asked.rows(&path).await;
    assert_eq!((rows.len(), &rows[0].0), (1, &json!(["search"])));
    // The base can also be a period. Nothing happened in this one.
    let path = format!(
        "query/spans?by=name&measure=count&{HOURLY}&base_from=2026-11-20T07:00:00Z&base_to=2026-11-20T10:00:00Z"
    );
    assert!(
        asked
            .rows(&path)
            .await
            .iter()
            .all(|(_, _, base)| base.is_null())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_series_has_every_step_and_the_largest_groups() {
    let asked = Asked::of(&[
        version("4.11.0", "checkout", &[100], 1.0),
        version("4.12.0", "checkout", &[100, 200], 1.0),
        version("4.13.0", "checkout", &[1, 2, 3], 0.5),
    ])
    .await;
    let answer = asked
        .ask(&format!(
            "query/spans/series?by=app_version&measure=count&limit=2&{HOURLY}"
        ))
        .await
        .body;
    assert_eq!(
        (
            answer["step_s"].clone(),
            answer["times"].as_array().unwrap().len()
        ),
        (json!(3600), 3)
    );
    let series: Vec<_> = answer["series"]
        .as_array()
        .unwrap()
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        series,
        [
            r#"{"keys":["4.13.0"],"values":{"count":[null,6.0,null]}}"#,
            r#"{"keys":["4.12.0"],"values":{"count":[null,2.0,null]}}"#
        ]
    );
    let spread = asked
        .ask(&format!(
            "query/spans/distribution?by=app_version&limit=1&{HOURLY}"
        ))
        .await
        .body;
    assert_eq!(spread["field"], "durations_us");
    assert_eq!(
        spread["bounds"].as_array().unwrap().len(),
        spread["series"][0]["counts"].as_array().unwrap().len()
    );
}

fn stalled(version: &str, function: &str, duration_ms: u64) -> Value {
    let mut batch = batch();
    batch["resource"]["app_version"] = json!(version);
    batch["janks"] = json!([{
        "kind": "jank", "start": "2026-11-20T11:59:50Z", "duration_ms": duration_ms, "thread": "main", "page": "CartActivity",
        "stack": [
            {"class": "android.database.sqlite.SQLiteConnection", "function": "nativeExecute", "native": true},
            {"class": "com.example.shop.db.OrderDao", "function": function, "file": "OrderDao.java", "line": 25},
            {"class": "android.os.Looper", "function": "loop"},
        ],
        "run_log": [{"time": "2026-11-20T11:59:49Z", "message": "order sent"}],
    }]);
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn the_stacks_and_events_of_a_jank_group_can_be_queried() {
    let asked = Asked::of(&[
        stalled("4.11.0", "insert", 1_000),
        stalled("4.12.0", "insert", 2_000),
        stalled("4.12.0", "insert", 3_000),
        stalled("4.12.0", "delete", 700),
    ])
    .await;
    let groups = asked
        .rows(&format!(
            "query/janks?by=group_id&by=title&measure=count&measure=sum_ms&order=-sum_ms&{DAILY}"
        ))
        .await;
    assert_eq!(
        (groups.len(), groups[0].1.clone()),
        (2, json!([3.0, 6_000.0]))
    );
    let group = groups[0].0[0].as_str().unwrap();
    let stacks = asked
        .ask(&format!("janks/stacks?group_id={group}&{DAILY}"))
        .await
        .body;
    assert_eq!(stacks["stacks"].as_array().unwrap().len(), 1);
    assert_eq!(
        stacks["stacks"][0]["frames"][1]["label"],
        "com.example.shop.db.OrderDao.insert"
    );
    let flame = asked
        .ask(&format!(
            "janks/flame?app_version=4.12.0&base_app_version=4.11.0&{DAILY}"
        ))
        .await
        .body;
    assert_eq!(
        (
            flame["root"]["value"].clone(),
            flame["root"]["base"].clone()
        ),
        (json!(5_700.0), json!(1_000.0))
    );
    assert_eq!(
        flame["root"]["children"][0]["name"],
        "android.os.Looper.loop"
    );
    assert_eq!(
        flame["root"]["children"][0]["children"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let folded = asked
        .ask(&format!("janks/folded?group_id={group}&{HOURLY}"))
        .await
        .body;
    let line = "android.os.Looper.loop;com.example.shop.db.OrderDao.insert;android.database.sqlite.SQLiteConnection.nativeExecute 6000\n";
    assert_eq!(folded, json!(line));
    let profile = asked
        .ask(&format!("janks/speedscope?group_id={group}&{HOURLY}"))
        .await
        .body;
    assert_eq!(profile["profiles"][0]["weights"], json!([6_000.0]));
    let events = asked
        .ask(&format!("janks/events?group_id={group}&{HOURLY}&limit=1"))
        .await
        .body;
    assert_eq!(events["events"].as_array().unwrap().len(), 1);
    assert_eq!(events["events"][0]["run_log"][0]["message"], "order sent");
    assert_eq!(events["events"][0]["stack"][1]["line"], 25);
}

#[tokio::test(flavor = "multi_thread")]
async fn filter_values_of_the_wrong_type_match_nothing_and_events_ignore_the_base() {
    let asked = Asked::of(&[
        stalled("4.11.0", "insert", 1_000),
        stalled("4.12.0", "insert", 2_000),
    ])
    .await;
    for period in [HOURLY, DAILY] {
        let none = format!("janks/flame?stack_hash=none&{period}");
        assert_eq!(asked.ask(&none).await.body["root"]["value"], 0.0);
        let refresh = format!("query/frame_windows?refresh_hz=fast&by=refresh_hz&{period}");
        assert_eq!(asked.rows(&refresh).await, []);
    }
    let path = "janks/events?app_version=4.12.0&base_app_version=4.11.0";
    let events = asked.ask(&format!("{path}&{HOURLY}")).await.body;
    assert_eq!(events["events"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trace_can_be_found_read_and_exported() {
    let mut parent = span();
    let mut child = span();
    child["trace_id"] = parent["trace_id"].clone();
    child["parent_span_id"] = parent["span_id"].clone();
    child["name"] = json!("com.example.shop.db.OrderDao.insert");
    child["code"] = json!({"class": "com.example.shop.db.OrderDao", "function": "insert"});
    child["duration_us"] = json!(30_000);
    child["on_main_thread"] = json!(true);
    child["thread"] = json!("main");
    parent["attributes"] = json!({"items": "3"});
    let mut batch = batch();
    batch["spans"] = json!([parent, child]);
    let asked = Asked::of(&[batch]).await;
    let found = asked
        .ask(&format!("traces?name=checkout&at_least_us=41000&{HOURLY}"))
        .await
        .body;
    assert_eq!(found["spans"].as_array().unwrap().len(), 1);
    let slower = asked
        .ask(&format!("traces?name=checkout&at_least_us=42000&{HOURLY}"))
        .await
        .body;
    assert_eq!(slower["spans"], json!([]));
    let trace = found["spans"][0]["trace_id"].as_str().unwrap();
    let whole = asked.ask(&format!("traces/{trace}")).await.body;
    assert_eq!(whole["spans"][1]["parent_span_id"], parent["span_id"]);
    assert_eq!(whole["spans"][0]["attributes"], json!({"items": "3"}));
    let chrome = asked.ask(&format!("traces/{trace}/chrome")).await.body;
    let complete = chrome["traceEvents"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["ph"] == "X");
    assert_eq!(
        complete
            .map(|event| event["dur"].as_u64().unwrap())
            .collect::<Vec<_>>(),
        [41_250, 30_000]
    );
    let inside = asked
        .ask(&format!("spans/inside?name=checkout&{HOURLY}"))
        .await
        .body;
    assert_eq!(inside["spans"], 1);
    let rows: Vec<_> = inside["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (row["self_us"].clone(), row["package"].clone()))
        .collect();
    assert_eq!(
        rows,
        [
            (json!(11_250), json!("")),
            (json!(30_000), json!("com.example.shop"))
        ]
    );
    assert_eq!(
        asked
            .ask("traces/00000000000000000000000000000001")
            .await
            .status,
        404
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn csv_exports_escape_formulas() {
    let mut batch = version("4.12.0", "=1+1", &[5], 1.0);
    batch["spans"][0]["attributes"] = json!({"a": "@SUM(1)"});
    batch["resource"]["user_id"] = json!("-2");
    let mut hidden = version("4.12.0", " +1", &[5], 1.0);
    hidden["resource"]["user_id"] = json!("\u{200b}\u{a0}＝2");
    let asked = Asked::of(&[
        batch,
        hidden,
        version("4.12.0", "a \"quoted\", name\nof two lines", &[6], 1.0),
    ])
    .await;
    let csv = asked.ask(&format!("export/spans.csv?{HOURLY}")).await;
    let text = csv.body.as_str().unwrap();
    assert!(text.starts_with("\"project\",\"app_id\""), "{text}");
    for safe in [
        "\"'=1+1\"",
        "\"'-2\"",
        "\"' +1\"",
        "\"'\u{200b}\u{a0}＝2\"",
        "{\"\"a\"\":\"\"@SUM(1)\"\"}",
        "\"a \"\"quoted\"\", name\nof two lines\"",
    ] {
        assert!(text.contains(safe), "{safe} is not in {text}");
    }
    let one = asked
        .ask(&format!("export/spans.csv?name=%3D1%2B1&{HOURLY}"))
        .await;
    assert_eq!(one.body.as_str().unwrap().lines().count(), 2);
    assert_eq!(asked.ask("export/stacks.csv").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn filter_values_cannot_inject_sql_and_projects_are_separate() {
    let asked = Asked::of(&[version("4.12.0", "x') OR 1=1 --", &[5], 1.0)]).await;
    let path = |name: &str| format!("query/spans?by=name&measure=count&{HOURLY}&name={name}");
    assert_eq!(asked.rows(&path("x%27%29+OR+1%3D1+--")).await.len(), 1);
    assert_eq!(asked.rows(&path("y%27%29+OR+1%3D1+--")).await.len(), 0);
    assert_eq!(asked.rows(&path("%5C%27%00%0A")).await.len(), 0);
    let admin = asked.server.token("admin").await;
    let project = json!({"id": "other", "name": "Other"});
    asked
        .server
        .call(&admin, Method::POST, "/api/v1/projects", Some(project))
        .await;
    let other = format!("/api/v1/projects/other/query/spans?measure=count&{HOURLY}");
    let answer = asked.server.call(&admin, Method::GET, &other, None).await;
    assert_eq!(
        (answer.status.as_u16(), answer.body["rows"].clone()),
        (200, json!([]))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_queries_are_refused_with_a_remedy() {
    let asked = Asked::of(&[]).await;
    let searches = format!("query/spans?{}", "contains.name=a&".repeat(500));
    let measures = format!("query/spans?{}", "measure=count&".repeat(500));
    for (path, words) in [
        (searches.as_str(), "20 times"),
        (&measures, "50 times"),
        ("query/spans?by=colour", "they have name, kind"),
        ("query/spans?measure=speed", "they have count"),
        (
            "query/spans?order=-change.count",
            "`order` by change requires a base",
        ),
        ("query/spans?from=yesterday", "such as 2026-11-20T12:00:00Z"),
        (
            "query/spans?from=2026-11-20T12:00:00Z&to=2026-11-19T12:00:00Z",
            "`from` must come before `to`",
        ),
        ("query/spans?limit=5000", "1 to 1000"),
        (
            "query/spans?base_from=2026-11-20T12:00:00Z",
            "`base_from` and `base_to`",
        ),
        ("query/spans/series?by=name&by=kind", "one dimension"),
        ("query/traffic/distribution", "`field` of traffic"),
        ("traces?order=name", "`-duration_us`"),
        ("spans/inside", "`name`"),
        (
            "spans/flame?base_app_version=4.11.0",
            "requires `app_version`",
        ),
        (
            "query/outcomes?base_app_version=4.12.0",
            "no dimension `app_version`",
        ),
        ("query/traffic?at_least_samples=5", "no measure `samples`"),
        (
            "query/traffic?by=day&by=source&by=network&by=app_id",
            "3 times",
        ),
    ] {
        let answer = asked.ask(path).await;
        assert_eq!(
            answer.outcome(),
            (422, "question_unfit".to_owned()),
            "{path}"
        );
        let detail = answer.body["detail"].as_str().unwrap();
        assert!(detail.contains(words), "{path}: {detail}");
    }
    assert_eq!(asked.ask("query/nothing").await.status, 404);
    let away = Server::away(&[]).await;
    let token = away.token("viewer").await;
    let answer = away
        .call(
            &token,
            Method::GET,
            "/api/v1/projects/default/query/spans",
            None,
        )
        .await;
    assert_eq!(answer.outcome(), (503, "store_unavailable".to_owned()));
}
