//! Rules about rates: a higher ANR rate fires, and more ANRs in more sessions do not.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::alerts::Watched;
use crate::server::batch;

/// An app, the number of its sessions, and how many of them have an ANR.
type Use = (&'static str, usize, usize);

/// Sends one session per install, ten minutes past noon.
async fn sessions(watched: &Watched, day: &str, uses: &[Use]) {
    for (app, sessions, anrs) in uses {
        for place in 0..*sessions {
            let mut batch = batch();
            batch["sent_at"] = json!(format!("{day}T12:10:00Z"));
            batch["resource"]["app_id"] = json!(app);
            batch["resource"]["install_id"] = json!(Uuid::new_v4());
            if place < *anrs {
                // Two ANRs of a session count once.
                let anr = |minute: u8| json!({"kind": "anr", "start": format!("{day}T12:0{minute}:00Z"), "duration_ms": 6_000});
                batch["janks"] = json!([anr(5), anr(6)]);
            } else {
                let start = format!("{day}T12:05:00Z");
                batch["janks"] = json!([{"kind": "jank", "start": start, "duration_ms": 900}]);
            }
            // This key is for any app.
            let request = watched.server.request_with("any-key");
            let answer = request.body(batch.to_string()).send().await.unwrap();
            assert_eq!(answer.status(), 202);
        }
    }
    watched.server.drained().await;
}

/// Two weeks: both apps have more ANRs in the second one, and only the maps have a higher rate.
async fn two_weeks() -> Watched {
    let watched = Watched::start().await;
    watched.server.pass(Duration::from_mins(10));
    let before = [("com.example.shop", 100, 5), ("com.example.maps", 100, 5)];
    sessions(&watched, "2026-11-20", &before).await;
    watched.server.pass(Duration::from_hours(7 * 24));
    let now = [("com.example.shop", 200, 10), ("com.example.maps", 100, 30)];
    sessions(&watched, "2026-11-27", &now).await;
    watched.server.pass(Duration::from_hours(1));
    watched
}

async fn template(watched: &Watched) -> Value {
    let answer = watched.get("alert-rules/templates").await;
    let templates = answer["templates"].as_array().unwrap();
    let name = "A higher ANR rate than last week";
    let found = templates.iter().find(|one| one["name"] == name);
    found.unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn more_anrs_in_more_sessions_do_not_fire_and_a_higher_rate_does() {
    let watched = two_weeks().await;
    let template = template(&watched).await;
    let asked = json!({"rule": template, "days": 1});
    let preview = watched.call(Method::POST, "alert-rules/preview", Some(asked));
    let preview = preview.await.body;
    let fired = preview["transitions"].as_array().unwrap();
    assert_eq!(fired.len(), 1, "{preview}");
    assert_eq!(fired[0]["group"], json!({"app_id": "com.example.maps"}));

    watched.rule(template).await;
    let found = watched.incidents(|all| all.len() == 1).await;
    let incident = &found[0];
    assert_eq!(incident["group"], json!({"app_id": "com.example.maps"}));
    let summary = "Share of sessions with an ANR in com.example.maps rose from 5.00 % a week earlier to 30.00 % (+500 %)";
    assert_eq!(incident["summary"], summary);
    let link = incident["link"].as_str().unwrap();
    assert!(link.starts_with("/hangs?project=default&"), "{link}");
    assert!(
        link.ends_with("&hangs=anr&app_id=com.example.maps"),
        "{link}"
    );
    let evidence = &incident["evidence"];
    let numbers = &evidence["numbers"];
    assert_eq!(
        (&numbers["value"], &numbers["base"]),
        (&json!(0.3), &json!(0.05))
    );
    assert_eq!(
        (&numbers["samples"], &numbers["installs"]),
        (&json!(100.0), &json!([100, 100]))
    );
    // Two binomial shares of a hundred sessions each: z = 4.9.
    let p = numbers["p"].as_f64().unwrap();
    assert!((1e-7..1e-5).contains(&p), "{p}");
    let question = evidence["question"].as_str().unwrap();
    let token = &watched.token;
    let answer = watched.server.call(token, Method::GET, question, None);
    let answer = answer.await.body;
    assert_eq!(answer["rows"][0]["values"][0], numbers["value"]);
    assert_eq!(answer["rows"][0]["base"][0], numbers["base"]);
    watched.two_rounds().await;
    assert_eq!(watched.incidents(|_| true).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rate_of_a_rule_is_the_rate_on_the_overview() {
    let watched = two_weeks().await;
    let value = async |question: &str, period: &str| {
        let path = format!("query/{question}&by=app_id&order=-installs&{period}");
        let answer = watched.get(&path).await;
        let value = answer["rows"][0]["values"][0].as_f64();
        value.unwrap_or_else(|| panic!("{path}: {answer}"))
    };
    // Read from hourly roll-ups, from daily ones, from raw rows, and from all of them.
    for period in [
        "from=2026-11-27T10:00:00Z&to=2026-11-27T13:00:00Z",
        "from=2026-11-22T10:00:00Z&to=2026-11-27T13:00:00Z",
        "from=2026-11-27T10:00:00Z&to=2026-11-27T13:00:00Z&locale=",
        "from=2026-11-22T10:00:00Z&to=2026-11-27T12:30:00Z&exact=true",
    ] {
        let filters = "app_id=com.example.maps&kind=anr&not_a_cause=false";
        let with_anr = value(&format!("janks?measure=sessions&{filters}"), period).await;
        let all = value("usage?measure=sessions&app_id=com.example.maps", period).await;
        assert_eq!((with_anr, all), (30.0, 100.0), "{period}");
        let rate = "sessions?measure=anr_share&app_id=com.example.maps";
        assert_eq!(value(rate, period).await.to_string(), "0.3", "{period}");
        let count = "sessions?measure=anr_sessions&app_id=com.example.maps";
        assert_eq!(value(count, period).await.to_string(), "30", "{period}");
    }
    let steps = "from=2026-11-27T11:00:00Z&to=2026-11-27T13:00:00Z&app_id=com.example.maps";
    let path = format!("query/sessions/series?measure=anr_share&{steps}");
    let series = watched.get(&path).await;
    let values = &series["series"][0]["values"]["anr_share"];
    assert_eq!(*values, json!([null, 0.3]), "{series}");
    let bases = "base_from=2026-11-20T12:00:00Z&base_to=2026-11-20T13:00:00Z";
    let periods = format!("from=2026-11-27T12:00:00Z&to=2026-11-27T13:00:00Z&{bases}");
    let path = format!("query/sessions/significance?measure=anr_share&by=app_id&{periods}");
    let tested = watched.get(&path).await;
    let p = |app: &str| {
        let rows = tested["rows"].as_array().unwrap();
        let row = rows.iter().find(|row| row["keys"][0] == app).unwrap();
        row["p"][0].as_f64().unwrap()
    };
    assert!(p("com.example.maps") < 0.001, "{tested}");
    assert!(p("com.example.shop") > 0.5, "{tested}");
}
