//! Comparisons of versions at the same age, and the significance of their changes.

use std::time::Duration;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::asked::Asked;
use crate::server::{batch, span};

const VERSIONS: &str = "app_version=4.12.0&base_app_version=4.11.0";

/// The batch of a new install, sent at this time. For each name and duration, it has three spans of about that duration.
fn install(version: &str, sent_at: &str, spans: &[(&str, u64)]) -> Value {
    let mut batch = batch();
    batch["sent_at"] = json!(sent_at);
    let resource = &mut batch["resource"];
    resource["app_version"] = json!(version);
    resource["install_id"] = json!(Uuid::new_v4());
    batch["spans"] = spans
        .iter()
        .flat_map(|(name, millis)| {
            [90, 100, 110].map(|percent| {
                let mut span = span();
                span["name"] = json!(name);
                span["start"] = json!(sent_at);
                span["duration_us"] = json!(millis * percent * 10);
                span
            })
        })
        .collect();
    batch
}

/// A server on which 4.12.0 appeared ten days after 4.11.0.
async fn ten_days_apart(head: &[(&str, u64)], installs: u64) -> Asked {
    let asked = Asked::of(&[]).await;
    let send = async |version: &str, at: &str, spans: &[(&str, u64)]| {
        for place in 0..installs {
            let spans: Vec<_> = spans
                .iter()
                .map(|(name, millis)| (*name, millis * (80 + place * 37 % 41) / 100))
                .collect();
            let answer = asked.server.send(&install(version, at, &spans)).await;
            assert_eq!(answer.body["rejected"], json!([]));
        }
        asked.server.drained().await;
    };
    let base = [("checkout", 100), ("search", 100)];
    send("4.11.0", "2026-11-20T12:00:00Z", &base).await;
    asked.server.pass(Duration::from_secs(10 * 86_400));
    send("4.12.0", "2026-11-30T12:00:00Z", head).await;
    asked
}

async fn table(asked: &Asked, path: &str) -> Value {
    let answer = asked.ask(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    answer.body
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_same_age_the_base_has_its_own_period() {
    let asked = ten_days_apart(&[("checkout", 200)], 1).await;
    let base = json!([3.0]);
    // Roll-ups by day, roll-ups by hour, and raw rows in either unit.
    for (period, from, base_from) in [
        (
            "from=2026-11-24T12:30:00Z&to=2026-11-30T12:30:00Z",
            "2026-11-30T00:00:00",
            "2026-11-20T00:00:00",
        ),
        (
            "from=2026-11-29T12:30:00Z&to=2026-11-30T12:30:00Z",
            "2026-11-30T12:00:00",
            "2026-11-20T12:00:00",
        ),
        (
            "from=2026-11-29T12:30:00Z&to=2026-11-30T12:30:00Z&locale=",
            "2026-11-30T12:00:00",
            "2026-11-20T12:00:00",
        ),
        (
            "from=2026-11-24T12:30:00Z&to=2026-11-30T12:30:00Z&locale=",
            "2026-11-30T00:00:00",
            "2026-11-20T00:00:00",
        ),
    ] {
        let path = format!("query/spans?by=name&measure=count&{VERSIONS}&{period}");
        let same_days = table(&asked, &path).await;
        assert_eq!(same_days["rows"][0]["base"], Value::Null);
        assert_eq!(same_days["base_from"], Value::Null);
        let found = table(&asked, &format!("{path}&compare=same_age")).await;
        assert_eq!(found["rows"].as_array().unwrap().len(), 1, "{found}");
        assert_eq!(
            (&found["rows"][0]["values"], &found["rows"][0]["base"]),
            (&base, &base)
        );
        assert!(found["from"].as_str().unwrap().starts_with(from), "{found}");
        assert!(
            found["base_from"].as_str().unwrap().starts_with(base_from),
            "{found}"
        );
    }
    // The period of the base can also be set.
    let path = format!(
        "query/spans?by=name&measure=count&{VERSIONS}&from=2026-11-30T00:00:00Z&to=2026-12-01T00:00:00Z\
         &base_from=2026-11-20T12:00:00Z&base_to=2026-11-20T13:00:00Z"
    );
    assert_eq!(table(&asked, &path).await["rows"][0]["base"], base);
    // Calls inside a span are compared at the same age, too.
    let path = format!(
        "spans/inside?name=checkout&{VERSIONS}&from=2026-11-29T00:00:00Z&to=2026-12-01T00:00:00Z&compare=same_age"
    );
    assert_eq!(table(&asked, &path).await["base_spans"], 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn versions_of_unknown_age_are_compared_on_the_same_days() {
    let asked = ten_days_apart(&[("checkout", 200)], 1).await;
    let period = "from=2026-11-24T00:00:00Z&to=2026-12-01T00:00:00Z&compare=same_age";
    for versions in [
        "base_app_version=4.11.0",
        "app_version=4.12.0&app_version=4.13.0&base_app_version=4.11.0",
        "app_version=4.12.0&base_app_version=4.10.0",
    ] {
        let found = table(
            &asked,
            &format!("query/spans?by=name&measure=count&{versions}&{period}"),
        )
        .await;
        assert_eq!(found["base_from"], Value::Null, "{found}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_change_is_significant_and_chance_is_not() {
    let asked = ten_days_apart(&[("checkout", 200), ("search", 100)], 30).await;
    let period = "from=2026-11-24T00:00:00Z&to=2026-12-01T00:00:00Z&compare=same_age";
    let path = format!(
        "query/spans/significance?by=name&measure=p75_us&measure=installs&measure=p95_us&measure=mean_us&{VERSIONS}&{period}"
    );
    let found = table(&asked, &path).await;
    let p = |name: &str| {
        let rows = found["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["keys"][0] == name);
        row.unwrap_or_else(|| panic!("{found}"))["p"].clone()
    };
    let level = found["level"].as_f64().unwrap();
    assert!(p("checkout")[0].as_f64().unwrap() < level / 10.0, "{found}");
    assert!(p("search")[0].as_f64().unwrap() > 0.5, "{found}");
    // The number of installs has no test, and few installs are not tested.
    assert_eq!(p("checkout")[1], Value::Null);
    // All percentiles have the same test, the mean has its own.
    assert_eq!(p("checkout")[2], p("checkout")[0]);
    assert!(p("checkout")[3].is_number(), "{found}");
    let few = ten_days_apart(&[("checkout", 200)], 5).await;
    assert_eq!(table(&few, &path).await["rows"], json!([]));
}
