//! `POST /v1/ingest` with columns: the same as the batch in JSON, and no damaged body costs more than itself.

use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use unjank_columns::MEDIA_TYPE;
use unjank_protocol::{Batch, Signal, Timestamp, TraceId};
use uuid::Uuid;

use crate::quotas;
use crate::server::{Answer, KEY, Server, spans};

/// A batch with every signal and every field, in both forms.
pub(crate) const JSON: &str =
    include_str!("../../../client-sdk/columns/tests/golden/batch_v2.json");
const COLUMNS: &[u8] = include_bytes!("../../../client-sdk/columns/tests/golden/batch_v2.bin");

fn request(server: &Server, key: &str) -> RequestBuilder {
    let request = server.client.post(format!("{}/v1/ingest", server.url));
    request.bearer_auth(key).header(CONTENT_TYPE, MEDIA_TYPE)
}

pub(crate) async fn send(server: &Server, body: impl Into<Vec<u8>>) -> Answer {
    let request = request(server, KEY).body(body.into());
    Answer::of(request.send().await.unwrap()).await
}

/// Returns a batch as columns after a change.
fn edited(batch: &Value, edit: impl FnOnce(&mut Batch<'_>)) -> Vec<u8> {
    let json = batch.to_string();
    let mut batch: Batch<'_> = serde_json::from_str(&json).unwrap();
    edit(&mut batch);
    unjank_columns::write(&batch)
}

pub(crate) fn columns(batch: &Value) -> Vec<u8> {
    edited(batch, |_| ())
}

/// Returns a receipt without the tag of the configuration, which is that of a server.
fn receipt(mut answer: Answer) -> Value {
    assert_eq!(answer.status, 202, "{answer:?}");
    answer.body.as_object_mut().unwrap().remove("config_etag");
    answer.body
}

/// Returns all rows of events without the columns that say how and when they were stored.
pub(crate) async fn rows(server: &Server) -> String {
    server.drained().await;
    let events = Signal::ALL.iter().map(|signal| signal.as_str());
    let events = events.filter(|name| *name != Signal::Other.as_str());
    let mut all = String::new();
    for table in events.chain(["batches", "stacks"]) {
        let sql = format!(
            "SELECT * EXCEPT (fold, range_id, wire_bytes) FROM {table} FORMAT TSVWithNames"
        );
        let rows = server.query(&sql).await;
        let mut rows: Vec<_> = rows.lines().collect();
        assert!(rows.len() > 1, "{table} has no rows");
        rows[1..].sort_unstable();
        all += &format!("# {table}\n{}\n", rows.join("\n"));
    }
    let outcomes = "SELECT signal, outcome, reason, sum(count) FROM outcomes WHERE project != '' AND outcome != 'duplicate' \
        GROUP BY ALL ORDER BY ALL";
    format!("{all}{}", server.query(outcomes).await)
}

#[tokio::test(flavor = "multi_thread")]
async fn both_forms_of_a_batch_store_the_same_rows_and_get_the_same_receipt() {
    let (one, other) = (Server::start().await, Server::start().await);
    let of_json = receipt(one.send_bytes(JSON).await);
    let of_columns = receipt(send(&other, COLUMNS).await);
    assert_eq!(of_json, of_columns);
    let stored = rows(&one).await;
    assert_eq!(stored, rows(&other).await);

    // The other form of the same batch is a duplicate.
    let of_columns = receipt(send(&one, COLUMNS).await);
    let of_json = receipt(other.send_bytes(JSON).await);
    assert_eq!(of_json, of_columns);
    assert_eq!(of_json["duplicate"], true);
    assert_eq!(rows(&one).await, stored);
    assert_eq!(rows(&other).await, stored);
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_may_be_compressed_and_the_time_of_sending_may_follow_them() {
    let server = Server::start().await;
    let zstd = |bytes: &[u8]| zstd::bulk::compress(bytes, 1).unwrap();
    let whole = zstd(&columns(&spans(2)));
    let unsent = zstd(&edited(&spans(3), |batch| batch.sent_at = None));
    let sent_at = Timestamp::from_micros(1_795_175_999_000_000);
    let attempt = [unsent, zstd(&unjank_columns::sent(sent_at))].concat();
    for (body, events) in [(whole, 2), (attempt, 3)] {
        let request = request(&server, KEY).header("content-encoding", "zstd");
        let answer = Answer::of(request.body(body).send().await.unwrap()).await;
        assert_eq!(answer.outcome().1, format!("accepted {events} rejected 0"));
    }
    assert_eq!(
        server
            .stored("SELECT accepted, sent_at FROM batches ORDER BY accepted")
            .await,
        "2\t2026-11-20 12:00:00.000000\n3\t2026-11-20 11:59:59.000000"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_event_of_columns_costs_one_event() {
    let server = Server::start().await;
    let body = edited(&spans(6), |batch| {
        batch.spans[1].trace_id = TraceId(0);
        batch.spans[2].duration_us = -1;
        batch.spans[4].start = Timestamp::from_micros(i64::MAX);
        batch.spans[5].name = "".into();
    });
    let answer = send(&server, body).await;
    assert_eq!(answer.outcome(), (202, "accepted 2 rejected 4".to_owned()));
    let rejected = answer.body["rejected"].as_array().unwrap().iter();
    let rejected = rejected.map(|one| {
        let code = one["code"].as_str().unwrap();
        let detail = one["detail"].as_str().filter(|_| code == "invalid_event");
        let line = format!(
            "{} {} {code} {}",
            one["signal"],
            one["index"],
            detail.unwrap_or_default()
        );
        line.trim_end().replace('"', "")
    });
    insta::assert_snapshot!(rejected.collect::<Vec<_>>().join("\n"), @r"
    spans 1 invalid_event `trace_id`: the id is missing or zero
    spans 2 duration_out_of_range
    spans 4 invalid_event `start`: the value is out of range
    spans 5 name_missing
    ");
    assert_eq!(server.stored("SELECT count() FROM spans").await, "2");
    let outcomes = "SELECT outcome, reason, sum(count) FROM outcomes WHERE project != '' GROUP BY ALL ORDER BY ALL";
    insta::assert_snapshot!(server.query(outcomes).await, @r"
    rejected	duration_out_of_range	1
    rejected	invalid_event	2
    rejected	name_missing	1
    stored		2
    ");
}

/// Bodies that are wrong, each in its own way.
fn bad_bodies() -> Vec<(&'static str, Vec<u8>)> {
    let good = columns(&spans(1));
    // The column gets the number of a field that no version has.
    let install = [12 << 2, 16, 0x5c, 0x0c];
    let at = good.windows(4).position(|bytes| bytes == install);
    let mut no_install = good.clone();
    no_install[at.unwrap()] = 31 << 2;
    let empty_table_of_spans = [8, 1, 0];
    vec![
        ("empty", Vec::new()),
        ("JSON", spans(1).to_string().into_bytes()),
        ("cut off", good[..good.len() - 1].to_vec()),
        ("only the magic", b"uj2\xff".to_vec()),
        (
            "two tables",
            [good.as_slice(), &empty_table_of_spans].concat(),
        ),
        ("no install", no_install),
        (
            "nil batch id",
            edited(&spans(1), |batch| batch.batch_id = Uuid::nil()),
        ),
        (
            "no app",
            edited(&spans(1), |batch| batch.resource.app_id = "".into()),
        ),
        (
            "another app",
            edited(&spans(1), |batch| {
                batch.resource.app_id = "com.example.other".into();
            }),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn every_bad_body_gets_its_documented_answer_and_costs_no_other_batch() {
    let server = Server::start().await;
    let mut answers = String::new();
    for (name, body) in bad_bodies() {
        let answer = send(&server, body).await;
        let (status, code) = answer.outcome();
        let detail = answer.body["detail"].as_str().unwrap();
        answers += &format!("{name}: {status} {code}: {detail}\n");
        assert_eq!(send(&server, columns(&spans(1))).await.status, 202);
    }
    insta::assert_snapshot!(answers, @r"
    empty: 400 invalid_columns: the body does not begin as a columnar batch does
    JSON: 400 invalid_columns: the body does not begin as a columnar batch does
    cut off: 400 invalid_columns: the body is damaged: a length or a number of rows does not match
    only the magic: 400 invalid_columns: the section of the envelope is missing
    two tables: 400 invalid_columns: section 8 occurs twice
    no install: 422 invalid_resource: `resource` is not valid: `install_id`: the column is missing
    nil batch id: 400 invalid_envelope: the envelope is not valid: `batch_id` is the nil UUID: give the batch an id of its own
    no app: 422 invalid_resource: `resource` is not valid: `app_id` is empty
    another app: 403 key_not_for_app: this ingest key is not for the app `com.example.other`
    ");
    let bad = bad_bodies().len().to_string();
    assert_eq!(server.stored("SELECT count() FROM spans").await, bad);
}

/// Returns a batch whose texts `CUT?` have this byte in place of the question mark.
fn cut(batch: &Value, byte: u8) -> Vec<u8> {
    let mut body = columns(batch);
    let texts = body.windows(4).enumerate();
    let texts = texts.filter(|(_, text)| *text == b"CUT?");
    let places: Vec<_> = texts.map(|(at, _)| at + 3).collect();
    assert_eq!(places.len(), 1, "the dictionary has each text once");
    for at in places {
        body[at] = byte;
    }
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_character_of_columns_costs_a_character() {
    let server = Server::start().await;
    // Half a character, a byte that no character has, and a NUL.
    for byte in [0xc3, 0xff, 0] {
        let mut batch = spans(2);
        batch["resource"]["device_model"] = json!("CUT?");
        batch["spans"][0]["name"] = json!("CUT?");
        batch["spans"][0]["attributes"] = json!({"cart": "CUT?"});
        batch["spans"][0]["code"] = json!({"class": "CUT?", "function": "pay"});
        let answer = send(&server, cut(&batch, byte)).await;
        assert_eq!(answer.outcome().1, "accepted 2 rejected 0", "{byte:x}");
    }
    // Before it is mended, a body is checked, and a damaged one stays damaged.
    let mut damaged = cut(&json_with("CUT?"), 0xff);
    damaged.pop();
    let (status, code) = send(&server, damaged).await.outcome();
    assert_eq!((status, code.as_str()), (400, "invalid_columns"));
    let texts = "SELECT DISTINCT name, device_model, attributes['cart'], code_class FROM spans WHERE name LIKE 'CUT%'";
    assert_eq!(
        server.stored(texts).await,
        "CUT\u{fffd}\tCUT\u{fffd}\tCUT\u{fffd}\tCUT\u{fffd}"
    );
}

fn json_with(name: &str) -> Value {
    let mut batch = spans(1);
    batch["spans"][0]["name"] = json!(name);
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn every_beginning_of_a_body_is_refused_or_read() {
    let server = Server::away(&[]).await;
    for end in (0..COLUMNS.len()).step_by(17) {
        let (status, code) = send(&server, &COLUMNS[..end]).await.outcome();
        let is_read = status == 202 && code.starts_with("accepted");
        assert!(
            is_read || (status, code.as_str()) == (400, "invalid_columns"),
            "{end} bytes: {status} {code}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn columns_have_the_limits_and_quotas_of_batches() {
    let server = Server::with(&["--max-batch-events", "20"]).await;
    let token = server.token("admin").await;
    let key = quotas::key(&server, &token, json!({"events_per_second": 1})).await;
    let send = async |batch: &Value| {
        let request = request(&server, &key).body(columns(batch));
        Answer::of(request.send().await.unwrap()).await.outcome()
    };
    let too_many = columns(&spans(21));
    let too_many = self::send(&server, too_many).await.outcome();
    assert_eq!(too_many, (413, "too_many_events".to_owned()));
    let first = send(&spans(20)).await;
    assert_eq!(first, (202, "accepted 20 rejected 0".to_owned()));
    // Both forms take from the same quota.
    let over = (429, "quota_events".to_owned());
    assert_eq!(send(&spans(5)).await, over);
    let in_json = quotas::send(&server, &key, &spans(5)).await;
    assert_eq!(in_json.outcome(), over);
    assert_eq!(server.stored("SELECT count() FROM spans").await, "20");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_small_body_that_stands_for_a_large_batch_is_stored_unless_it_is_too_large() {
    let server = Server::start().await;
    let lengthen = |batch: &mut Batch<'_>| {
        for span in &mut batch.spans {
            span.name = "a".repeat(10_000).into();
        }
    };
    let long = |count| edited(&spans(count), lengthen);
    let (large, too_large) = (long(500), long(2_000));
    assert!(too_large.len() < 128 << 10, "{}", too_large.len());
    let stored = receipt(send(&server, large).await);
    assert_eq!(
        (&stored["accepted"], &stored["truncated"]),
        (&json!(500), &json!(500))
    );
    let refused = send(&server, too_large).await.outcome();
    assert_eq!(refused, (413, "decompressed_too_large".to_owned()));
    assert_eq!(server.stored("SELECT count() FROM spans").await, "500");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_answer_names_the_forms_that_the_server_reads() {
    let server = Server::away(&[]).await;
    let body = columns(&spans(1));
    let upper_case = "Application/Vnd.Unjank.Batch.V2; version=2";
    for (method, content_type, status) in [
        (Method::POST, MEDIA_TYPE, 202),
        (Method::POST, upper_case, 202),
        (Method::POST, "application/json", 400),
        (Method::POST, "application/octet-stream", 415),
        (Method::GET, MEDIA_TYPE, 405),
        (Method::OPTIONS, MEDIA_TYPE, 200),
    ] {
        let request = server
            .client
            .request(method, format!("{}/v1/ingest", server.url));
        let request = request.bearer_auth(KEY).header(CONTENT_TYPE, content_type);
        let answer = request.body(body.clone()).send().await.unwrap();
        assert_eq!(answer.status(), status, "{content_type}");
        let forms = answer.headers()["accept-post"].to_str().unwrap();
        let forms: Vec<_> = forms.split(", ").collect();
        assert_eq!(forms, ["application/json", MEDIA_TYPE]);
        if status == 415 {
            let refused = Answer::of(answer).await;
            let detail = refused.body["detail"].as_str().unwrap();
            let names_both = ["application/json", MEDIA_TYPE].map(|form| detail.contains(form));
            assert_eq!(names_both, [true; 2], "{detail}");
        }
    }
    let url = format!("{}/v1/config", server.url);
    let config = server
        .client
        .get(url)
        .bearer_auth(KEY)
        .send()
        .await
        .unwrap();
    assert!(!config.headers().contains_key("accept-post"));
}
