//! App starts: the share of slow ones, and single starts.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::asked::Asked;
use crate::server::batch;

const HOURLY: &str = "from=2026-11-20T10:00:00Z&to=2026-11-20T13:00:00Z";
const DAILY: &str = "from=2026-11-15T10:00:00Z&to=2026-11-20T13:00:00Z";

fn starts(version: &str, starts: &[(&str, u32)]) -> Value {
    let mut batch = batch();
    batch["resource"]["app_version"] = json!(version);
    batch["resource"]["install_id"] = json!(Uuid::new_v4());
    let of = |(second, (kind, ms)): (usize, &(&str, u32))| {
        json!({
            "kind": kind, "start": format!("2026-11-20T11:59:{second:02}Z"), "duration_ms": ms, "page": "Feed",
            "phases": [{"name": "process", "duration_ms": 300}, {"name": "first_frame", "duration_ms": ms - 300}],
        })
    };
    batch["app_starts"] = starts.iter().enumerate().map(of).collect();
    batch
}

/// The values of the first row.
fn values(answer: &Value) -> Vec<f64> {
    let values = answer["rows"][0]["values"].as_array().unwrap();
    values.iter().map(|value| value.as_f64().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_starts_have_a_threshold_for_each_kind_in_raw_rows_and_roll_ups() {
    let asked = Asked::of(&[starts(
        "4.12.0",
        &[
            ("cold", 5_200),
            ("cold", 4_800),
            ("cold", 1_600),
            ("cold", 900),
            ("warm", 2_100),
            ("warm", 1_900),
            ("hot", 1_600),
            ("hot", 1_400),
            ("hot", 400),
            ("hot", 400),
            ("other", 4_800),
            ("other", 60_000),
        ],
    )])
    .await;
    for (period, rest, source) in [
        (HOURLY, "", "hourly"),
        (DAILY, "", "daily"),
        (HOURLY, "&locale=", "raw"),
    ] {
        let path = format!("query/app_starts?by=kind&measure=slow_start_share&{period}{rest}");
        let answer = asked.ask(&path).await.body;
        assert_eq!(answer["source"], source);
        let mut shares: Vec<_> = answer["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| (row["keys"][0].as_str().unwrap(), row["values"][0].as_f64()))
            .collect();
        shares.sort_unstable_by_key(|(kind, _)| *kind);
        let expected = [
            ("cold", Some(0.25)),
            ("hot", Some(0.25)),
            ("other", Some(0.5)),
            ("warm", Some(0.5)),
        ];
        assert_eq!(shares, expected, "{source}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_of_a_sampled_session_stands_for_those_of_the_others() {
    let mut sampled = starts("4.12.0", &[("cold", 1_000), ("cold", 3_000)]);
    sampled["app_starts"][0]["sample_rate"] = json!(0.25);
    let asked = Asked::of(&[sampled]).await;
    for (period, rest, source) in [
        (HOURLY, "", "hourly"),
        (DAILY, "", "daily"),
        (HOURLY, "&locale=", "raw"),
    ] {
        let measures = "measure=count&measure=samples&measure=mean_ms";
        let path = format!("query/app_starts?by=kind&{measures}&{period}{rest}");
        let answer = asked.ask(&path).await.body;
        assert_eq!(answer["source"], source);
        assert_eq!(values(&answer), [5.0, 2.0, 1_400.0], "{source}");
    }
    let phases = format!("query/start_phases?by=phase&phase=process&measure=count&{HOURLY}");
    assert_eq!(values(&asked.ask(&phases).await.body), [5.0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_roll_up_of_an_older_server_counts_each_start_once() {
    let asked = Asked::of(&[]).await;
    let older = "INSERT INTO app_starts_hourly (project, kind, hour, count) VALUES ('older', 'cold', '2026-11-20 11:00:00', 3)";
    asked.server.query(older).await;
    for table in ["app_starts_hourly", "app_starts_daily"] {
        let counts =
            format!("SELECT sum(count), sum(samples) FROM {table} WHERE project = 'older'");
        assert_eq!(asked.server.query(&counts).await, "3\t3", "{table}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn single_starts_come_latest_first_slowest_first_or_nearest_to_a_duration() {
    let asked = Asked::of(&[
        starts(
            "4.12.0",
            &[
                ("cold", 900),
                ("cold", 4_000),
                ("cold", 1_500),
                ("hot", 9_000),
            ],
        ),
        starts("4.11.0", &[("cold", 8_000)]),
    ])
    .await;
    let durations = async |rest: &str| {
        let path = format!("app-starts?kind=cold&app_version=4.12.0&{HOURLY}{rest}");
        let answer = asked.ask(&path).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let starts = answer.body["starts"].as_array().unwrap().clone();
        starts
            .iter()
            .map(|start| start["duration_ms"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(durations("").await, [1_500, 4_000, 900]);
    assert_eq!(durations("&order=-start&limit=1").await, [1_500]);
    assert_eq!(durations("&order=-duration_ms").await, [4_000, 1_500, 900]);
    assert_eq!(durations("&near_us=1400000").await, [1_500, 900, 4_000]);
    let one = asked
        .ask(&format!("app-starts?order=-duration_ms&limit=1&{HOURLY}"))
        .await
        .body;
    let start = &one["starts"][0];
    assert_eq!(
        (&start["kind"], &start["page"], &start["start"]),
        (
            &json!("hot"),
            &json!("Feed"),
            &json!("2026-11-20T11:59:03Z")
        )
    );
    assert_eq!(
        start["phases"],
        json!([{"name": "process", "duration_ms": 300}, {"name": "first_frame", "duration_ms": 8_700}])
    );
    for wrong in ["order=duration_ms", "order=-start&near_us=5", "by=nothing"] {
        let answer = asked.ask(&format!("app-starts?{wrong}&{HOURLY}")).await;
        assert_eq!(
            answer.outcome(),
            (422, "question_unfit".to_owned()),
            "{wrong}"
        );
    }
}
