//! The list of sessions, and the timeline of one.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::asked::Asked;
use crate::erasures::finished;
use crate::server::{Server, batch, span, spans};

const SESSION: &str = "7b1e4f02-9d1f-4f7e-8a52-51e0a9c9a001";
const INSTALL: &str = "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11";

fn at(second: u32) -> String {
    format!("2026-11-20T11:50:{second:02}Z")
}

/// A batch of a session with every kind of event on its timeline.
fn whole_session() -> Value {
    let mut batch = batch();
    batch["session_id"] = json!(SESSION);
    batch["resource"]["user_id"] = json!("ann");
    batch["resource"]["build"] = json!(41_200);
    batch["resource"]["device_model"] = json!("Pixel 8");
    batch["resource"]["device_class"] = json!("high");
    batch["config_revision"] = json!(7);
    batch["resource"]["mode"] = json!("test");
    batch["app_starts"] = json!([{"kind": "cold", "start": at(0), "duration_ms": 700, "page": "Feed",
        "phases": [{"name": "di", "duration_ms": 210}]}]);
    batch["page_loads"] = json!([{"page": "Cart", "start": at(2), "t1_ms": 60, "t2_ms": 300, "total_ms": 500, "uptime_ms": 2_000,
        "requests": [{"path": "/cart", "offset_ms": 20, "duration_ms": 280, "status": 200}]}]);
    batch["frame_windows"] = json!([
        {"page": "Feed", "start": at(0), "duration_ms": 2_000, "frames_drawn": 120, "slow_frames": 4, "uptime_ms": 1},
        {"page": "Cart", "start": at(2), "duration_ms": 8_000, "frames_drawn": 400, "slow_frames": 30, "frozen_frames": 2, "jank_ms": 1_500, "uptime_ms": 1},
    ]);
    batch["janks"] = json!([{"start": at(5), "duration_ms": 2_500, "kind": "jank", "page": "Cart", "uptime_ms": 5_000,
        "stack": [{"class": "com.example.CartDao", "function": "total"}],
        "run_log": [{"time": at(4), "message": "cart opened"}, {"time": at(4), "message": "cart opened"}]}]);
    let mut outer = span();
    outer["start"] = json!(at(3));
    outer["on_main_thread"] = json!(true);
    outer["events"] = json!([{"time": at(4), "name": "validated"}]);
    let mut request = span();
    request["trace_id"] = outer["trace_id"].clone();
    request["parent_span_id"] = outer["span_id"].clone();
    request["name"] = json!("POST /cart/17");
    request["start"] = json!(at(3));
    request["attributes"] =
        json!({"server.address": "api.example.com", "http.response.status_code": "503"});
    batch["spans"] = json!([outer, request]);
    batch["metrics"] = json!([
        {"name": "memory_used_bytes", "time": at(1), "value": 1e8},
        {"name": "memory_used_bytes", "time": at(9), "value": 3e8, "min": 2e8, "max": 4e8, "count": 4},
        {"name": "cpu_percent", "time": at(9), "value": 12.5},
    ]);
    batch["recompositions"] = json!([{"function": "CartList", "page": "Cart", "start": at(6), "window_ms": 1_000, "count": 58, "cause": "items"}]);
    batch
}

/// A batch with one span, of a session, install and user.
fn short_session(number: u32, start: &str) -> Value {
    let mut batch = spans(1);
    batch["session_id"] = json!(format!("7b1e4f02-9d1f-4f7e-8a52-{number:012}"));
    batch["resource"]["install_id"] = json!(format!("5c0c7e0e-0000-4a3e-8a0e-{:012}", number % 3));
    batch["resource"]["user_id"] = json!(format!("user-{}", number % 2));
    batch["resource"]["build"] = json!(100 + number);
    batch["spans"][0]["start"] = json!(start);
    batch["spans"][0]["uptime_ms"] = json!(60_000);
    batch
}

fn texts<'v>(list: &'v Value, field: &str) -> Vec<&'v str> {
    let events = list.as_array().unwrap_or_else(|| panic!("{list}")).iter();
    events.map(|one| one[field].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeline_has_everything_that_the_session_sent() {
    let mut other = whole_session();
    other["session_id"] = json!(Uuid::new_v4());
    let asked = Asked::of(&[whole_session(), other]).await;
    let near = asked
        .ask(&format!("sessions/{SESSION}?at=2026-11-20T12:00:00Z"))
        .await;
    let found = &near.body;
    assert_eq!(near.status, 200, "{found}");
    let session = &found["session"];
    assert_eq!(session["config_revision"], 7);
    assert_eq!(
        [
            "install_id",
            "user_id",
            "mode",
            "device_model",
            "device_class",
            "start",
            "last",
            "end"
        ]
        .map(|field| session[field].as_str().unwrap()),
        [
            INSTALL,
            "ann",
            "test",
            "Pixel 8",
            "high",
            "2026-11-20T11:50:00Z",
            "2026-11-20T11:50:09Z",
            "2026-11-20T11:50:10Z"
        ]
    );
    assert_eq!(
        [
            "build",
            "janks",
            "jank_ms",
            "slow_frames",
            "frozen_frames",
            "spans",
            "requests",
            "metrics"
        ]
        .map(|field| session[field].as_u64().unwrap()),
        [41_200, 1, 2_500, 34, 2, 2, 1, 3]
    );
    assert_eq!(found["app_starts"][0]["phases"][0]["name"], "di");
    assert_eq!(found["page_loads"][0]["t1_ms"], 60);
    assert_eq!(found["page_loads"][0]["t3_ms"], json!(null));
    assert_eq!(found["page_loads"][0]["requests"][0]["path"], "/cart");
    // The windows with the most jank come first.
    assert_eq!(texts(&found["frame_windows"], "page"), ["Cart", "Feed"]);
    let jank = &found["janks"][0];
    assert_eq!(jank["culprit"], "com.example.CartDao.total");
    assert!(jank["group_id"].as_str().unwrap().parse::<u64>().unwrap() > 0);
    assert_eq!(texts(&found["spans"], "name"), ["checkout"]);
    let request = &found["requests"][0];
    assert_eq!(
        ["method", "host", "path", "http_status"].map(|field| request[field].as_str().unwrap()),
        ["POST", "api.example.com", "/cart/{id}", "503"]
    );
    assert_eq!(request["trace_id"], found["spans"][0]["trace_id"]);
    let memory = &found["metrics"][1];
    assert_eq!(memory["name"], "memory_used_bytes");
    assert_eq!(
        memory["points"][1],
        json!({"time": at(9), "value": 3e8, "min": 2e8, "max": 4e8})
    );
    assert_eq!(found["recompositions"][0]["count"], 58);
    // A line that was sent twice is listed once.
    assert_eq!(
        texts(&found["log"], "message"),
        ["cart opened", "validated"]
    );
    assert_eq!(texts(&found["log"], "source"), ["jank", "span"]);
    let left_out = found["left_out"].as_object().unwrap();
    assert!(left_out.values().all(|count| count == 0), "{left_out:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_found_without_a_hint_and_not_by_a_wrong_one() {
    let asked = Asked::of(&[whole_session()]).await;
    let near = asked
        .ask(&format!("sessions/{SESSION}?at=2026-11-20T12:00:00Z"))
        .await;
    let found = &near.body;
    let mut anywhere = asked.ask(&format!("sessions/{SESSION}")).await.body;
    for field in ["searched_from", "searched_to"] {
        anywhere[field] = found[field].clone();
    }
    assert_eq!(&anywhere, found);
    let away = asked
        .ask(&format!("sessions/{SESSION}?at=2026-11-12T12:00:00Z"))
        .await;
    assert_eq!(away.outcome(), (404, "not_found".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_a_timeline_has_the_events_of_its_period() {
    let asked = Asked::of(&[whole_session()]).await;
    let part = format!("sessions/{SESSION}?from={}&to={}", at(2), at(5));
    let found = asked.ask(&part).await.body;
    assert_eq!(texts(&found["frame_windows"], "page"), ["Cart"]);
    assert_eq!(found["janks"], json!([]));
    assert_eq!(found["app_starts"], json!([]));
    assert_eq!(found["session"]["janks"], 1);
    assert_eq!(found["left_out"]["janks"], 0);
    let nothing = format!("sessions/{SESSION}?from={}&to={}", at(11), at(12));
    let found = asked.ask(&nothing).await.body;
    assert_eq!(
        (&found["spans"], &found["left_out"]["spans"]),
        (&json!([]), &json!(0))
    );
    let turned = format!("sessions/{SESSION}?from={}&to={}", at(5), at(2));
    assert_eq!(asked.ask(&turned).await.outcome().0, 422);
    assert_eq!(
        asked
            .ask(&format!("sessions/{SESSION}?at=now"))
            .await
            .outcome()
            .0,
        422
    );
    for unreadable in ["1", "nothing", "7b1e4f02"] {
        assert_eq!(
            asked.ask(&format!("sessions/{unreadable}")).await.status,
            404
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeline_is_bounded_and_says_how_much_it_leaves_out() {
    let mut batch = spans(2_100);
    batch["session_id"] = json!(SESSION);
    for (place, span) in batch["spans"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .enumerate()
    {
        span["duration_us"] = json!(1_000 + place);
    }
    let line = |number: usize| json!({"time": at(4), "message": format!("line {number}")});
    batch["janks"] = (0..45)
        .map(|jank| {
            let lines: Vec<_> = (0..50).map(|place| line(jank * 50 + place)).collect();
            json!({"start": at(5), "duration_ms": 900, "run_log": lines,
                "stack": [{"class": "com.example.CartDao", "function": "total"}]})
        })
        .collect();
    batch["metrics"] = (0..32)
        .flat_map(|name| {
            (0..1 + name / 31).map(
                move |_| json!({"name": format!("metric_{name:02}"), "time": at(1), "value": 1}),
            )
        })
        .collect();
    let asked = Asked::of(&[batch]).await;
    let found = asked.ask(&format!("sessions/{SESSION}")).await.body;
    let spans = found["spans"].as_array().unwrap();
    assert_eq!(
        (spans.len(), &found["left_out"]["spans"]),
        (2_000, &json!(100))
    );
    // Those that are left out are the shortest.
    let shortest = spans
        .iter()
        .map(|span| span["duration_us"].as_u64().unwrap())
        .min();
    assert_eq!(shortest, Some(1_100));
    let lines = found["log"].as_array().unwrap().len() as u64;
    assert_eq!(lines, 2_000);
    assert_eq!(found["left_out"]["log"], 45 * 50 - 2_000);
    assert_eq!(found["metrics"].as_array().unwrap().len(), 30);
    assert_eq!(found["left_out"]["metrics"], 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_another_project_does_not_exist() {
    let asked = Asked::of(&[whole_session()]).await;
    let server = &asked.server;
    let admin = server.token("admin").await;
    let made = json!({"id": "other"});
    let made = server
        .call(&admin, Method::POST, "/api/v1/projects", Some(made))
        .await;
    assert_eq!(made.status, 201, "{}", made.body);
    for path in [
        format!("sessions/{SESSION}"),
        format!("sessions/{SESSION}?at={}", at(0)),
    ] {
        let path = format!("/api/v1/projects/other/{path}");
        let other = server.call(&admin, Method::GET, &path, None).await;
        assert_eq!(other.outcome(), (404, "not_found".to_owned()));
    }
    let path = format!("/api/v1/projects/other/sessions?session_id={SESSION}");
    let other = server.call(&admin, Method::GET, &path, None).await;
    assert_eq!(other.body, json!({"sessions": []}));
    // The token of a project cannot ask another one.
    let path = format!("/api/v1/projects/other/sessions/{SESSION}");
    let refused = server.call(&asked.token, Method::GET, &path, None).await;
    assert_eq!(refused.outcome(), (404, "project_unknown".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn erased_sessions_are_gone_from_the_list_and_as_timelines() {
    let kept = short_session(7, "2026-11-20T11:00:00Z");
    let asked = Asked::of(&[whole_session(), kept.clone()]).await;
    let server = &asked.server;
    let admin = server.token("admin").await;
    let path = format!("/api/v1/projects/default/data?install_id={INSTALL}");
    let erasure = server.call(&admin, Method::DELETE, &path, None).await;
    assert_eq!(erasure.status, 202, "{}", erasure.body);
    server.pass(Duration::from_secs(3));
    finished(server, erasure.body["id"].as_str().unwrap()).await;
    for path in [
        format!("sessions/{SESSION}"),
        format!("sessions/{SESSION}?at={}", at(0)),
    ] {
        assert_eq!(asked.ask(&path).await.status, 404);
    }
    let left = asked.ask("sessions").await.body;
    assert_eq!(
        texts(&left["sessions"], "session_id"),
        [kept["session_id"].as_str().unwrap()]
    );
}

/// Returns the ids of all pages of a list.
async fn pages(asked: &Asked, path: &str) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = asked.ask(&format!("{path}{cursor}")).await;
        assert_eq!(page.status, 200, "{}", page.body);
        let ids = texts(&page.body["sessions"], "session_id");
        pages.push(ids.iter().map(|id| (*id).to_owned()).collect());
        match page.body["next"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return pages,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_of_the_list_have_every_session_once_with_the_latest_first() {
    let mut batches: Vec<_> = (0..13)
        .map(|number| {
            // Spread over days, some at the same time.
            let day = 20 - number / 3;
            short_session(number, &format!("2026-11-{day:02}T10:00:00Z"))
        })
        .collect();
    // An event of an old session that is the latest of all.
    batches.push(short_session(12, "2026-11-20T11:59:00Z"));
    let asked = Asked::of(&batches).await;
    let pages = pages(&asked, "sessions?limit=4").await;
    assert_eq!(pages.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 4, 1]);
    let listed: Vec<_> = pages.concat();
    assert_eq!(listed.iter().collect::<BTreeSet<_>>().len(), 13);
    let number = |id: &String| id.get(24..).unwrap().parse::<u32>().unwrap();
    let order: Vec<_> = listed.iter().map(number).collect();
    assert_eq!(order, [12, 2, 1, 0, 5, 4, 3, 8, 7, 6, 11, 10, 9]);

    // The numbers of a session do not depend on the other sessions of the page.
    let alone = asked.ask("sessions?limit=1").await.body;
    let among_all = asked.ask("sessions").await.body;
    assert_eq!(alone["sessions"][0]["spans"], 1);
    assert_eq!(alone["sessions"][0], among_all["sessions"][0]);

    for cursor in ["", "1", "x.y", "-1.00000000000000000000000000000001"] {
        let answer = asked.ask(&format!("sessions?cursor={cursor}")).await;
        assert_eq!(answer.outcome(), (422, "question_unfit".to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_found_by_session_install_user_and_build() {
    let batches: Vec<_> = (0..6)
        .map(|number| short_session(number, "2026-11-20T11:00:00Z"))
        .collect();
    let asked = Asked::of(&batches).await;
    for (filter, numbers) in [
        ("session_id=7b1e4f02-9d1f-4f7e-8a52-000000000004", &[4][..]),
        ("session_id=nothing", &[]),
        ("install_id=5c0c7e0e-0000-4a3e-8a0e-000000000001", &[4, 1]),
        ("user_id=user-0", &[4, 2, 0]),
        ("contains.user_id=USER-1", &[5, 3, 1]),
        ("build=103&build=105", &[5, 3]),
        ("app_version=4.12.0&build=103&user_id=user-1", &[3]),
        ("from=2026-11-20T11:00:01Z", &[]),
    ] {
        let found = asked.ask(&format!("sessions?{filter}")).await;
        assert_eq!(found.status, 200, "{filter}: {}", found.body);
        let found = texts(&found.body["sessions"], "session_id");
        let found: Vec<u32> = found
            .iter()
            .map(|id| id.get(24..).unwrap().parse().unwrap())
            .collect();
        assert_eq!(found, numbers, "{filter}");
    }
    let refused = asked.ask("sessions?page=Cart").await;
    assert_eq!(refused.outcome(), (422, "question_unfit".to_owned()));
    let detail = refused.body["detail"].as_str().unwrap();
    assert!(detail.contains("`page`: use one of app_id"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_can_be_limited_to_sessions_with_an_event_of_a_signal() {
    let asked = Asked::of(&[whole_session(), short_session(1, "2026-11-20T11:00:00Z")]).await;
    let found = asked.ask("sessions?with=janks&page=Cart").await.body;
    assert_eq!(texts(&found["sessions"], "session_id"), [SESSION]);
    // The numbers are of the whole session, and its last event came after its last jank.
    let session = &found["sessions"][0];
    assert_eq!(
        (&session["last"], &session["frozen_frames"]),
        (&json!(at(9)), &json!(2))
    );
    let timeline = asked.ask(&format!("sessions/{SESSION}")).await.body;
    let group = timeline["janks"][0]["group_id"].as_str().unwrap();
    let found = asked
        .ask(&format!("sessions?with=janks&group_id={group}"))
        .await
        .body;
    assert_eq!(texts(&found["sessions"], "session_id"), [SESSION]);
    let none = asked.ask("sessions?with=janks&page=Feed").await.body;
    assert_eq!(none, json!({"sessions": []}));
    let unknown = asked.ask("sessions?with=traffic").await;
    assert_eq!(unknown.outcome(), (422, "question_unfit".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_session_shows_its_new_events_and_when_they_arrived() {
    let server = Server::start().await;
    server.ready().await;
    let token = server.token("viewer").await;
    let mut first = short_session(1, "2026-11-20T11:59:00Z");
    let session = first["session_id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/projects/default/sessions/{session}?at=2026-11-20T11:59:00Z");
    let mut seen = Vec::new();
    for second in [0, 20] {
        first["batch_id"] = json!(Uuid::new_v4());
        first["spans"][0]["start"] = json!(format!("2026-11-20T11:59:{second:02}Z"));
        first["spans"][0]["span_id"] = span()["span_id"].clone();
        server.send(&first).await;
        server.drained().await;
        let found = server.call(&token, Method::GET, &path, None).await.body;
        let session = &found["session"];
        seen.push((
            session["spans"].as_u64().unwrap(),
            session["last"].as_str().unwrap().to_owned(),
            session["received"].as_str().unwrap().to_owned(),
        ));
        server.pass(Duration::from_secs(20));
    }
    let seen: Vec<_> = seen
        .iter()
        .map(|(spans, last, received)| (*spans, last.as_str(), received.as_str()))
        .collect();
    assert_eq!(
        seen,
        [
            (1, "2026-11-20T11:59:00Z", "2026-11-20T12:00:00Z"),
            (2, "2026-11-20T11:59:20Z", "2026-11-20T12:00:20Z"),
        ]
    );
}
