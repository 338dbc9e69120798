//! Bodies that are small on the wire, and large or slow to decode.

use std::io::Write;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::future::join_all;
use serde_json::json;
use unjank_protocol::Batch;
use uuid::Uuid;

use super::target::Target;

const LASTS: Duration = Duration::from_secs(3);

/// A compressed batch with `list`, a text in JSON, in the field `member`.
fn batch(member: &str, list: &str) -> Vec<u8> {
    let resource = json!({"app_id": "a", "install_id": Uuid::new_v4()});
    let id = Uuid::new_v4();
    let text = format!(r#"{{"batch_id":"{id}","resource":{resource},"{member}":{list}}}"#);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(text.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

/// Sends the body again and again over several connections. Returns the last status and code that is not 503.
async fn send(target: &Target, body: &[u8]) -> (u16, String) {
    send_as(target, ["application/json", "gzip"], body).await
}

async fn send_as(
    target: &Target,
    [content_type, encoding]: [&str; 2],
    body: &[u8],
) -> (u16, String) {
    let until = Instant::now() + LASTS;
    let senders = (0..8).map(|_| async {
        let mut last = (0, String::new());
        while Instant::now() < until {
            let request = target.client.post(format!("{}/v1/ingest", target.url()));
            let request = request.bearer_auth(&target.key);
            let request = request.header("content-type", content_type);
            let request = request.header("content-encoding", encoding);
            let response = request.body(body.to_vec()).send().await.unwrap();
            let status = response.status().as_u16();
            let answer: serde_json::Value = response.json().await.unwrap();
            if status != 503 {
                last = (
                    status,
                    answer["code"].as_str().unwrap_or_default().to_owned(),
                );
            }
        }
        last
    });
    let last = join_all(senders).await;
    last.into_iter().find(|last| last.0 != 0).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_kilobytes_with_millions_of_events_do_not_disturb_others() {
    let target = Target::start().await;
    let body = batch("spans", &format!("[{}1]", "1,".repeat(5_000_000)));
    assert!(body.len() < 12 << 10, "{}", body.len());
    let (answer, others) = target.others_during(send(&target, &body)).await;
    assert_eq!(answer, (413, "too_many_events".to_owned()));
    others.are_served();
}

#[tokio::test(flavor = "multi_thread")]
async fn small_columns_that_stand_for_large_batches_do_not_disturb_others() {
    let target = Target::start().await;
    for (name_bytes, expected) in [(1_000, (202, "")), (2_000, (413, "decompressed_too_large"))] {
        let span = json!({
            "trace_id": "4bf92f3577b34da6a3ce929d0e0e4736", "span_id": "00f067aa0ba902b7", "name": "a".repeat(name_bytes),
            "start": "2026-11-20T12:00:00Z", "duration_us": 1,
        });
        let resource = json!({"app_id": "a", "install_id": Uuid::new_v4()});
        let json = json!({"batch_id": Uuid::new_v4(), "resource": resource, "spans": [span]});
        let json = json.to_string();
        let mut batch: Batch<'_> = serde_json::from_str(&json).unwrap();
        batch.spans = vec![batch.spans[0].clone(); 10_000];
        let body = zstd::bulk::compress(&unjank_columns::write(&batch), 3).unwrap();
        assert!(body.len() < 4 << 10, "{}", body.len());
        let form = [unjank_columns::MEDIA_TYPE, "zstd"];
        let (answer, others) = target.others_during(send_as(&target, form, &body)).await;
        assert_eq!((answer.0, answer.1.as_str()), expected);
        others.are_served();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn huge_stacks_and_many_samples_do_not_disturb_others() {
    let target = Target::start().await;
    let stack = format!("[{}{{}}]", "{},".repeat(3_400_000));
    let one = r#""start":"2026-11-20T12:00:00Z","duration_ms":1"#;
    let endless = batch("janks", &format!(r#"[{{{one},"stack":{stack}}}]"#));
    let (answer, others) = target.others_during(send(&target, &endless)).await;
    // The server truncates the stack. Whether it accepts the time of the jank does not matter here.
    assert_eq!(answer, (202, String::new()));
    others.are_served();

    let stack = format!("[{}{{}}]", "{},".repeat(127));
    let sample = format!(r#"{{"offset_ms":1,"stack":{stack}}},"#);
    let samples = format!("[{}]", sample.repeat(64).trim_end_matches(','));
    let jank = format!(r#"{{{one},"samples":{samples}}},"#);
    let many = format!("[{}]", jank.repeat(380).trim_end_matches(','));
    let (answer, others) = target
        .others_during(send(&target, &batch("janks", &many)))
        .await;
    assert_eq!(answer, (413, "too_many_events".to_owned()));
    others.are_served();
}
