//! Previews of configuration changes, computed from installs that have sent batches.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::remote_config::save;
use crate::server::{Answer, Server, batch, span};

const PREVIEW: &str = "/api/v1/projects/default/config/preview";

async fn preview(server: &Server, token: &str, configuration: Value) -> Answer {
    server
        .call(token, Method::POST, PREVIEW, Some(configuration))
        .await
}

/// 40 installs, every fourth of them on iOS. Each sends a span `checkout`, two spans `scroll` and a page load, sampled at a tenth.
async fn fleet(server: &Server) {
    for number in 0..40_u32 {
        let mut batch = batch();
        let ios = number % 4 == 0;
        batch["resource"]["install_id"] = json!(Uuid::from_u128(u128::from(number)));
        batch["resource"]["os_name"] = json!(if ios { "ios" } else { "android" });
        batch["resource"]["device_model"] = json!(if ios { "iPhone15,2" } else { "Pixel 8" });
        let named = |name: &str| {
            let mut span = span();
            span["name"] = json!(name);
            span["sample_rate"] = json!(0.1);
            span
        };
        batch["spans"] = json!([named("checkout"), named("scroll"), named("scroll")]);
        batch["page_loads"] = json!([{"page": "Cart", "start": "2026-11-20T11:59:00Z", "total_ms": 300, "sample_rate": 0.1}]);
        assert_eq!(server.send(&batch).await.body["accepted"], 4);
    }
    server.drained().await;
}

/// Spans and page loads at a tenth.
fn tenth() -> Value {
    json!({"sampling": {"spans": {"default": 0.1}, "page_loads": 0.1}})
}

fn events(answer: &Answer, signal: &str) -> Value {
    let events = answer.body["events"].as_array().unwrap();
    let of_signal = events.iter().find(|one| one["signal"] == signal);
    let mut of_signal = of_signal.unwrap().clone();
    of_signal.as_object_mut().unwrap().remove("signal");
    of_signal
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_counts_matching_installs_and_expected_events() {
    let server = Server::start().await;
    server.ready().await;
    let token = server.token("viewer").await;
    let editor = server.token("editor").await;
    fleet(&server).await;
    assert_eq!(
        save(&server, &editor, json!({"base": tenth()}))
            .await
            .status,
        201
    );
    let proposed = json!({"base": tenth(), "overrides": [
        {"id": "android-checkout", "when": {"os_name": ["android"]},
         "patch": {"sampling": {"spans": {"overrides": [{"name": "check*", "rate": 1.0}]}}}},
        {"id": "pixels", "when": {"device_model": ["Pixel*"]}, "patch": {"toggles": {"pixel": true}}},
        {"id": "nobody", "when": {"os_name": ["symbian"]}, "patch": {"jank": {"anr_ms": 9000}}},
        {"id": "off", "enabled": false, "when": {"all": []}, "patch": {"enabled": false}}
    ]});
    let answer = preview(&server, &token, proposed).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert_eq!(
        answer.body["overrides"],
        json!([
            {"id": "android-checkout", "installs": 30, "share": 0.75, "installs_in_week": null,
             "versions": [{"value": "4.12.0", "installs": 30}], "devices": [{"value": "Pixel 8", "installs": 30}],
             "earlier": []},
            {"id": "pixels", "installs": 30, "share": 0.75, "installs_in_week": null,
             "versions": [{"value": "4.12.0", "installs": 30}], "devices": [{"value": "Pixel 8", "installs": 30}],
             "earlier": [{"value": "android-checkout", "installs": 30}]},
            {"id": "nobody", "installs": 0, "share": 0.0, "installs_in_week": 0, "versions": [], "devices": [],
             "earlier": []},
            {"id": "off", "installs": 0, "share": 0.0, "installs_in_week": null, "versions": [], "devices": [],
             "earlier": []}
        ])
    );
    assert_eq!(
        (
            &answer.body["installs"],
            &answer.body["sampled"],
            &answer.body["changed"]
        ),
        (&json!(40), &json!(40), &json!(30))
    );
    // The 30 stored `checkout` spans of Android represent 300, and the server would receive all of them. The other 90 spans stay.
    assert_eq!(
        events(&answer, "spans"),
        json!({"last_day": 120, "current": 120, "proposed": 390})
    );
    assert_eq!(
        events(&answer, "page_loads"),
        json!({"last_day": 40, "current": 40, "proposed": 40})
    );
    // A preview saves nothing.
    let config = "/api/v1/projects/default/config";
    let latest = server.call(&token, Method::GET, config, None).await;
    assert_eq!(latest.body["revision"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_agrees_with_the_documents_of_devices_after_saving() {
    let server = Server::start().await;
    server.ready().await;
    let editor = server.token("editor").await;
    fleet(&server).await;
    let proposed = json!({"base": {}, "overrides": [
        {"id": "third", "when": {"percentage": {"percent": 30.0}}, "patch": {"toggles": {"third": true}}}]});
    let answer = preview(&server, &editor, proposed.clone()).await;
    save(&server, &editor, proposed).await;
    let mut matched = 0;
    for number in 0..40_u32 {
        let id = Uuid::from_u128(u128::from(number));
        let url = format!("{}/v1/config?install_id={id}", server.url);
        let request = server.client.get(url).bearer_auth(crate::server::KEY);
        let body = Answer::of(request.send().await.unwrap()).await.body;
        matched += u64::from(body["toggles"]["third"] == true);
    }
    assert!(
        (4..=20).contains(&matched),
        "{matched} of 40 for 30 percent"
    );
    assert_eq!(answer.body["overrides"][0]["installs"], matched);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_covers_the_last_day_and_notes_unknown_conditions() {
    let server = Server::start().await;
    server.ready().await;
    let token = server.token("viewer").await;
    fleet(&server).await;
    server.pass(std::time::Duration::from_secs(25 * 3600));
    let proposed = json!({"overrides": [{"id": "wifi", "when": {"network": ["wifi"]}, "patch": {"jank": {"anr_ms": 9000}}}]});
    let answer = preview(&server, &token, proposed).await;
    assert_eq!(answer.body["installs"], 0);
    let notes = answer.body["notes"].to_string();
    assert!(
        notes.contains("network") && notes.contains("no install"),
        "{notes}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_lists_faults_and_fails_without_clickhouse() {
    let server = Server::away(&[]).await;
    let token = server.token("viewer").await;
    let faulty = json!({"base": {"sampling": {"janks": 2}}});
    let answer = preview(&server, &token, faulty).await;
    assert_eq!(answer.outcome(), (422, "configuration_invalid".to_owned()));
    assert_eq!(
        answer.body["faults"][0]["path"], "base.sampling.janks",
        "{:?}",
        answer.body
    );
    let answer = preview(&server, &token, json!({})).await;
    assert_eq!(answer.outcome(), (503, "store_unavailable".to_owned()));
    assert_eq!(answer.retry_after.as_deref(), Some("15"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_preview_estimates_the_bytes_that_are_uploaded_each_day() {
    let server = Server::start().await;
    server.ready().await;
    let editor = server.token("editor").await;
    fleet(&server).await;
    save(&server, &editor, json!({"base": tenth()})).await;
    let same = preview(&server, &editor, json!({"base": tenth()})).await;
    let traffic = &same.body["traffic"];
    let measured = server.query("SELECT sum(wire_bytes) FROM batches").await;
    assert_eq!(traffic["last_day"].to_string(), measured.trim());
    assert_eq!(traffic["current"], traffic["last_day"]);
    assert_eq!(traffic["proposed"], traffic["current"]);
    let all = json!({"sampling": {"spans": {"default": 1.0}, "page_loads": 1.0}});
    let all = preview(&server, &editor, json!({"base": all})).await;
    let bytes = |name: &str| all.body["traffic"][name].as_f64().unwrap();
    assert!(
        (bytes("proposed") / bytes("current") - 10.0).abs() < 0.1,
        "{:?}",
        all.body
    );
    let off = preview(&server, &editor, json!({"base": {"enabled": false}})).await;
    assert_eq!(off.body["traffic"]["proposed"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_override_without_a_match_today_is_tried_on_the_installs_of_a_week() {
    let server = Server::start().await;
    server.ready().await;
    let token = server.token("viewer").await;
    fleet(&server).await;
    server.pass(std::time::Duration::from_secs(25 * 3600));
    let proposed = json!({"overrides": [
        {"id": "ios", "when": {"os_name": ["ios"]}, "patch": {"poll_interval_s": 60}},
        {"id": "nobody", "when": {"os_name": ["symbian"]}, "patch": {"poll_interval_s": 61}}]});
    let answer = preview(&server, &token, proposed).await;
    let week = |index: usize| answer.body["overrides"][index]["installs_in_week"].clone();
    assert_eq!((week(0), week(1)), (json!(10), json!(0)));
}
