//! Numbers, booleans, ids and texts in notations that other languages have for them. They store the same rows as those of the protocol.

use reqwest::Method;
use serde_json::{Value, json};

use crate::alerts::{self, Watched, slow_checkout};
use crate::columns;
use crate::postgres::postgres;
use crate::server::{Server, batch, span};

/// Fields whose numbers may have a fraction, and the build, which is no measured number.
const EXACT: [&str; 5] = ["value", "min", "max", "sample_rate", "build"];

/// As PHP, Gson and the JSON of protobuf write numbers, and Python the text of a boolean.
fn as_text(_: &str, value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.to_string()),
        Value::Bool(true) => json!("True"),
        Value::Bool(false) => json!("false"),
        other => other.clone(),
    }
}

/// As `performance.now()` has numbers, and PHP, Perl and SQLite booleans.
fn with_fraction(name: &str, value: &Value) -> Value {
    match (value, value.as_i64()) {
        (Value::Bool(is), _) => json!(u8::from(*is)),
        (_, Some(whole)) if !EXACT.contains(&name) => {
            serde_json::from_str(&format!("{whole}.4")).unwrap()
        }
        _ => value.clone(),
    }
}

/// Numbers as texts with a fraction, and booleans as texts of digits.
fn as_text_with_fraction(name: &str, value: &Value) -> Value {
    as_text(name, &with_fraction(name, value))
}

/// Changes all numbers and booleans of a batch, except those of attributes, which are texts.
fn changed(name: &str, value: &Value, notation: fn(&str, &Value) -> Value) -> Value {
    match value {
        Value::Object(_) if name == "attributes" => value.clone(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), changed(name, value, notation)))
            .collect(),
        Value::Array(items) => items
            .iter()
            .map(|item| changed(name, item, notation))
            .collect(),
        scalar => notation(name, scalar),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_and_booleans_in_other_notations_store_the_same_rows() {
    let plain: Value = serde_json::from_str(columns::JSON).unwrap();
    let reference = Server::start().await;
    let answer = reference.send(&plain).await;
    assert_eq!(answer.status, 202, "{}", answer.body);
    assert_eq!(answer.body["rejected"], json!([]));
    let rows = columns::rows(&reference).await;
    for notation in [as_text, with_fraction, as_text_with_fraction] {
        let server = Server::start().await;
        let sent = changed("", &plain, notation);
        assert_ne!(sent, plain);
        let other = server.send(&sent).await;
        assert_eq!(
            (&other.body["accepted"], &other.body["rejected"]),
            (&answer.body["accepted"], &json!([]))
        );
        assert_eq!(columns::rows(&server).await, rows);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_that_is_neither_a_number_nor_its_text_costs_its_event() {
    let server = Server::away(&[]).await;
    let metric = |value: Value, count: Value| json!({"name": "load", "time": "2026-11-20T11:59:00Z", "value": value, "count": count});
    let mut sent = batch();
    sent["metrics"] = json!([
        metric(json!("half"), json!(1)),
        metric(json!(true), json!(1)),
        metric(json!(""), json!(1)),
        metric(json!(0.5), json!(-1)),
        metric(json!(0.5), json!("1,5")),
        metric(json!(0.5), json!("")),
    ]);
    sent["janks"] =
        json!([{"start": "2026-11-20T11:59:00Z", "duration_ms": 900, "foreground": "maybe"}]);
    let answer = server.send(&sent).await;
    assert_eq!(answer.outcome(), (202, "accepted 1 rejected 6".to_owned()));
    let details = answer.body["rejected"].as_array().unwrap().iter();
    let details: Vec<_> = details.filter_map(|one| one["detail"].as_str()).collect();
    insta::assert_snapshot!(details.join("\n"), @r#"
    `foreground` must be true or false, is the text "maybe"
    `value` must be a number, is the text "half"
    `value` must be a number, is `true`
    `value` must be a number, is the text ""
    `count` must be a whole number from 0 on, is the number `-1`
    `count` must be a whole number from 0 on, is the text "1,5"
    "#);
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_of_traces_and_spans_may_be_uuids() {
    const TRACE: &str = "4BF92F35-77B3-4DA6-A3CE-929D0E0E4736";
    const ROOT: &str = "5C0C7E0E-6C6B-4A3E-8A0E-0F6F8D3B2A11";
    const NONE: &str = "00000000-0000-0000-0000-000000000000";
    let server = Server::start().await;
    let traced = |name: &str, trace: &str, id: &str, parent: &str| {
        let mut span = span();
        span["name"] = json!(name);
        span["trace_id"] = json!(trace);
        span["span_id"] = json!(id);
        span["parent_span_id"] = json!(parent);
        span
    };
    let (small, plain) = (TRACE.to_lowercase(), TRACE.replace('-', ""));
    let braces = format!("{{{TRACE}}}");
    let mut sent = batch();
    sent["spans"] = json!([
        traced("root", TRACE, ROOT, NONE),
        traced("child", &small, "00f067aa0ba902b7", &ROOT.to_lowercase()),
        traced("child", &plain, "00F067AA0BA902B8", ROOT),
        traced("child", &braces, "00f067aa0ba902b9", &format!("{{{ROOT}}}")),
        traced("no id", NONE, ROOT, ""),
        traced("no id", TRACE, NONE, ""),
        traced("no id", "4BF92F35-77B3-4DA6", ROOT, ""),
    ]);
    let answer = server.send(&sent).await;
    assert_eq!(answer.outcome(), (202, "accepted 4 rejected 3".to_owned()));
    let trace = "SELECT DISTINCT toString(trace_id) FROM spans";
    assert_eq!(server.stored(trace).await, small);
    let parents = "SELECT name, uniqExact(span_id), any(parent_span_id) = (SELECT span_id FROM spans WHERE name = 'root') \
        FROM spans GROUP BY name ORDER BY name";
    assert_eq!(server.stored(parents).await, "child\t3\t1\nroot\t1\t0");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nul_in_a_text_of_a_device_costs_no_incident_on_postgresql() {
    let url = postgres().database().await;
    let watched = Watched::with(&["--database-url", url.as_str()]).await;
    let named = |name: &str| {
        let mut sent = alerts::spans("4.12.0", &[800; 20]);
        for span in sent["spans"].as_array_mut().unwrap() {
            span["name"] = json!(name);
            span["page"] = json!("Cart\0");
        }
        sent["resource"]["user_id"] = json!("ann\0");
        sent
    };
    watched.send(named("json\0")).await;
    let of_columns = columns::columns(&named("columns\u{1}"));
    let with_nul: Vec<_> = of_columns
        .windows(8)
        .position(|bytes| bytes == b"columns\x01")
        .map(|at| [&of_columns[..at + 7], &[0], &of_columns[at + 8..]].concat())
        .unwrap();
    let answer = columns::send(&watched.server, with_nul).await;
    assert_eq!(answer.outcome().1, "accepted 20 rejected 0");
    watched.server.drained().await;
    let mut rule = slow_checkout();
    rule["metric"]["by"] = json!(["name", "page"]);
    watched.rule(rule).await;
    let found = watched.incidents(|all| all.len() == 2).await;
    let mut names: Vec<_> = found
        .iter()
        .map(|one| {
            assert_eq!(one["group"]["page"], "Cart\u{fffd}");
            one["group"]["name"].as_str().unwrap()
        })
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["columns\u{fffd}", "json\u{fffd}"]);
    // The management of the server says what is wrong, on every database.
    let sqlite = Server::start().await;
    for server in [&watched.server, &sqlite] {
        let admin = server.token("admin").await;
        let erase = async |user: &str| {
            let path = format!("/api/v1/projects/default/data?user_id={user}");
            server.call(&admin, Method::DELETE, &path, None).await
        };
        let refused = erase("ann%00").await;
        assert_eq!(refused.outcome(), (422, "invalid".to_owned()));
        let detail = refused.body["detail"].as_str().unwrap();
        assert!(
            detail.contains("NUL") && detail.contains("U+FFFD"),
            "{detail}"
        );
        assert_eq!(erase("ann%EF%BF%BD").await.status, 202);
    }
}
