//! Every share is between 0 and 1 and is what its name says, whatever devices report.

use serde_json::{Value, json};
use unjank_server::store::reads::{SUBJECTS, Unit};

use crate::asked::Asked;
use crate::server::{batch, span};

const HOURLY: &str = "from=2026-11-20T10:00:00Z&to=2026-11-20T13:00:00Z";
const DAILY: &str = "from=2026-11-15T10:00:00Z&to=2026-11-20T13:00:00Z";

/// A batch whose numbers vary with the seed and contradict each other, as those of a faulty device do.
fn contradictory(seed: u64) -> Value {
    let number = |place: u64, most: u64| {
        let mixed = (seed * 31 + place).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 33) % (most + 1)
    };
    let time = "2026-11-20T11:59:00Z";
    let mut batch = batch();
    batch["frame_windows"] = json!([{
        "page": "Cart", "start": time, "duration_ms": number(1, 1_000), "frames_drawn": number(2, 60),
        "frames_dropped": number(3, 600), "slow_frames": number(4, 300), "frozen_frames": number(5, 300),
        "jank_ms": number(6, 9_000), "sample_rate": 0.5,
    }]);
    batch["traffic"] = json!([{
        "day": "2026-11-20", "source": "api", "requests": number(7, 10), "failed_requests": number(8, 100),
    }]);
    batch["spans"] = json!([span(), span()]);
    batch["spans"][0]["on_main_thread"] = json!(true);
    batch["spans"][1]["status"] = json!("error");
    batch["spans"][1]["kind"] = json!("network");
    batch["app_starts"] = json!([{"start": time, "duration_ms": number(9, 9_000), "kind": "cold"}]);
    batch["page_loads"] = json!([{"page": "Cart", "start": time, "total_ms": number(10, 900),
        "requests": [{"path": "/a", "status": 500}, {"path": "/a", "status": 200}]}]);
    batch["metrics"] = json!([{"name": "load", "time": time, "value": 0.5}]);
    batch["recompositions"] = json!([{"function": "Cart", "start": time, "count": number(11, 9)}]);
    batch["janks"] = json!([{"start": time, "duration_ms": 900}]);
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn every_share_is_from_0_to_1() {
    let batches: Vec<Value> = (0..30).map(contradictory).collect();
    let asked = Asked::of(&batches).await;
    let mut shares = 0;
    let measures = SUBJECTS.iter().flat_map(|subject| {
        let measures = subject
            .measures
            .iter()
            .filter(|one| one.unit == Unit::Share);
        measures.map(|measure| (subject.name, measure.name))
    });
    for (subject, measure) in measures {
        for (period, rest) in [(HOURLY, ""), (DAILY, ""), (HOURLY, "&locale=")] {
            let path = format!("query/{subject}?measure={measure}&{period}{rest}");
            let answer = asked.ask(&path).await;
            assert_eq!(answer.status, 200, "{path}: {}", answer.body);
            let share = answer.body["rows"][0]["values"][0].as_f64();
            assert!(
                share.is_none_or(|share| (0.0..=1.0).contains(&share)),
                "{path}: {share:?}"
            );
            shares += usize::from(share.is_some());
        }
    }
    assert!(shares > 30, "{shares}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_share_of_dropped_frames_is_that_of_all_frames() {
    let mut sent = batch();
    sent["frame_windows"] = json!([{
        "page": "Cart", "start": "2026-11-20T11:59:00Z", "duration_ms": 5_000, "frames_drawn": 10,
        "frames_dropped": 290, "slow_frames": 3,
    }]);
    let asked = Asked::of(&[sent]).await;
    for (period, rest) in [(HOURLY, ""), (DAILY, ""), (HOURLY, "&locale=")] {
        let path =
            format!("query/frame_windows?measure=dropped_share&measure=slow_share&{period}{rest}");
        let values = asked.ask(&path).await.body["rows"][0]["values"].clone();
        let dropped = values[0].as_f64().unwrap();
        assert!((dropped - 290.0 / 300.0).abs() < 1e-9, "{dropped}");
        assert_eq!(values[1], 0.3);
    }
}
