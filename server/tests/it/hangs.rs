//! Hangs: janks by the step of their duration, by how they ended, and by the strategy that reported them.

use serde_json::{Value, json};

use crate::asked::Asked;
use crate::server::batch;

const PERIOD: &str = "from=2026-11-20T10:00:00Z&to=2026-11-20T13:00:00Z";

fn jank((second, (ms, ended)): (usize, &(u32, &str))) -> Value {
    let strategy = match *ms {
        ..2_000 => json!({"threshold_ms": 200, "count": 5, "period_ms": 60_000}),
        2_000..5_000 => json!({"threshold_ms": 2_000, "count": 1}),
        // As ANRs from OpenTelemetry are stored.
        _ => json!({"threshold_ms": 5_000}),
    };
    json!({
        "kind": if *ms < 5_000 { "jank" } else { "anr" }, "page": "Checkout", "ended": ended,
        "start": format!("2026-11-20T11:59:{second:02}Z"), "duration_ms": ms,
        "strategy": strategy,
        "stack": [{"class": "com.example.shop.OrderDao", "function": "insert"}],
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn janks_are_grouped_and_filtered_by_duration_end_and_strategy() {
    let janks = [
        (249, "finished"),
        (250, "finished"),
        (499, "finished"),
        (500, "finished"),
        (1_999, "finished"),
        (2_000, "finished"),
        (4_999, "killed"),
        (5_000, "finished"),
        (60_000, "killed"),
    ];
    let mut batch = batch();
    batch["janks"] = janks.iter().enumerate().map(jank).collect();
    let asked = Asked::of(&[batch]).await;
    let counts = async |rest: &str| {
        let path = format!("query/janks?measure=count&{PERIOD}&{rest}");
        let answer = asked.ask(&path).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let mut rows: Vec<_> = answer.body["rows"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| format!("{} {}", row["keys"], row["values"]))
            .collect();
        rows.sort_unstable();
        rows
    };
    assert_eq!(
        counts("by=duration").await,
        [
            "[\"250ms_500ms\"] [2.0]",
            "[\"2s_5s\"] [2.0]",
            "[\"500ms_2s\"] [2.0]",
            "[\"over_5s\"] [2.0]",
            "[\"under_250ms\"] [1.0]",
        ]
    );
    assert_eq!(
        counts("duration=2s_5s&duration=over_5s").await,
        ["[] [4.0]"]
    );
    assert_eq!(
        counts("duration=2s_5s&duration=over_5s&ended=killed").await,
        ["[] [2.0]"]
    );
    assert_eq!(counts("duration=over_5s&kind=anr").await, ["[] [2.0]"]);
    assert_eq!(
        counts("by=strategy").await,
        [
            "[\"\"] [2.0]",
            "[\"1x2000ms\"] [2.0]",
            "[\"5x200ms\"] [5.0]"
        ]
    );
    assert_eq!(counts("strategy=1x2000ms&ended=killed").await, ["[] [1.0]"]);
}
