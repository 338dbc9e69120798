//! Scrubbing: personal data and secrets in texts are counted and never stored.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{NOW, Server, spans};

/// Returns whether a file in the folder contains the text.
fn holds(folder: &Path, text: &str) -> bool {
    std::fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return holds(&path, text);
        }
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
    })
}

fn private() -> Value {
    let start = unjank_protocol::Timestamp::from_micros(NOW);
    let mut batch = spans(2);
    let span = &mut batch["spans"][0];
    span["name"] = json!("GET https://bob:marker1@shop.example/pay?token=marker2");
    span["page"] = json!("/orders?user=marker3");
    span["attributes"] = json!({
        "password": "marker4", "note": "ask marker5@example.com, card 4111 1111 1111 1111", "plain": "kept as it is",
        "userPassword": "marker14", "request": "/cart;jsessionid=marker15", "frame": "MainActivity$1@5f2e1a.run",
        "form": {"password": "marker10", "user": {"api_key": "marker11", "cvv": "marker12"}},
    });
    span["events"] = json!([{"time": start, "name": "sent Bearer marker6marker6"}]);
    batch["janks"] = json!([{
        "start": start, "duration_ms": 900, "run_log": [
            {"time": start, "message": "login as marker7@example.com"}, {"time": start, "message": "login {\"password\":\"marker13\"}"},
        ],
    }]);
    batch["page_loads"] = json!([{
        "page": "Cart", "start": start, "total_ms": 1, "requests": [{"path": "/api/cart?id=marker8"}],
    }]);
    batch["resource"]["user_id"] = json!("marker9@example.com");
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn private_data_never_reaches_the_disk_and_is_counted() {
    let mut server = Server::away(&["--shutdown-timeout-ms", "100"]).await;
    let batch = private();
    assert_eq!(server.send(&batch).await.body["accepted"], 4);
    // The batch waits in the log for ClickHouse. No file contains private data.
    assert!(holds(server.data_dir(), "kept as it is"));
    assert!(!holds(server.data_dir(), "marker"));
    server.point_at_the_engine().await;
    let span = "SELECT name, page, attributes['password'], attributes['note'], attributes['form'], events.name[1], user_id FROM spans ORDER BY name LIMIT 1";
    assert_eq!(
        server.stored(span).await,
        "GET https://[user]@shop.example/pay?[query]\t/orders?[query]\t[secret]\task [email], card [card]\t\
         {\"password\":\"[secret]\",\"user\":{\"api_key\":\"[secret]\",\"cvv\":\"[secret]\"}}\tsent Bearer [secret]\t[email]"
    );
    let others =
        "SELECT (SELECT run_log.message[1] FROM janks), (SELECT requests.path[1] FROM page_loads)";
    assert_eq!(
        server.query(others).await,
        "login as [email]\t/api/cart?[query]"
    );
    let counted = "SELECT signal, reason, sum(count) FROM outcomes WHERE outcome = 'scrubbed' AND project = 'default' \
                   GROUP BY ALL ORDER BY ALL";
    server
        .answers(
            counted,
            "janks\temail\t1\njanks\tsecret\t1\nother\temail\t1\npage_loads\tquery_string\t1\nspans\tcard_number\t1\nspans\temail\t1\n\
             spans\tquery_string\t2\nspans\tsecret\t6\nspans\turl_user\t1",
        )
        .await;
    // A duplicate is not counted a second time.
    assert_eq!(server.send(&batch).await.body["duplicate"], true);
}

const SCRUBBING: &str = "/api/v1/projects/default/scrubbing";

fn with_customer(name: &str) -> Value {
    let mut batch = spans(1);
    batch["sent_at"] = json!("2026-11-20T12:00:00Z");
    batch["spans"][0]["name"] = json!(name);
    batch["spans"][0]["attributes"] = json!({
        "customer": "CU-1234", "nickname": "bob", "order_id": "4111 1111 1111 1111", "note": "for bob@example.com",
    });
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_can_dry_run_and_save_its_own_rules() {
    let server = Server::start().await;
    server.ready().await;
    let admin = server.token("admin").await;
    server.send(&with_customer("open CU-1234")).await;
    server.drained().await;
    let rules = json!({
        "rules": [{"name": "customer", "pattern": "CU-[0-9]{4}"}], "secret_attributes": ["nickname"], "plain_attributes": ["order_id"],
    });
    let path = format!("{SCRUBBING}/dry-run");
    let tried = server
        .call(&admin, Method::POST, &path, Some(rules.clone()))
        .await;
    let tried = tried.body;
    assert_eq!(tried["changed"], 3, "{tried}");
    let examples: Vec<String> = tried["examples"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            format!("{} {} {}", one["place"], one["attribute"], one["after"]).replace('"', "")
        })
        .collect();
    for expected in [
        "span  open [customer]",
        "attribute customer [customer]",
        "attribute nickname [secret]",
    ] {
        assert!(examples.iter().any(|one| one == expected), "{examples:?}");
    }
    // A dry run saves nothing.
    let kept = server.call(&admin, Method::GET, SCRUBBING, None).await.body;
    assert_eq!(
        (&kept["built_in"], &kept["rules"]),
        (&json!(true), &json!([]))
    );

    let saved = server
        .call(&admin, Method::PUT, SCRUBBING, Some(rules))
        .await;
    assert_eq!(saved.status.as_u16(), 204, "{}", saved.body);
    // The new rules also apply to a name that was already stored in this hour.
    let newest = "SELECT name, attributes['customer'], attributes['nickname'], attributes['order_id'], attributes['note'] FROM spans \
                  ORDER BY range_id DESC LIMIT 1";
    let expected = "open [customer]\t[customer]\t[secret]\t4111 1111 1111 1111\tfor [email]";
    wait_for_newest_row(&server, newest, expected).await;
    let counted =
        "SELECT sum(count) FROM outcomes WHERE outcome = 'scrubbed' AND reason = 'own_rule'";
    assert_ne!(server.stored(counted).await, "0");

    let off = json!({"built_in": false});
    server.call(&admin, Method::PUT, SCRUBBING, Some(off)).await;
    let expected = "open CU-1234\tCU-1234\tbob\t4111 1111 1111 1111\tfor bob@example.com";
    wait_for_newest_row(&server, newest, expected).await;
}

/// Sends batches until the newest row is scrubbed by the saved rules, which take effect with the next snapshot.
async fn wait_for_newest_row(server: &Server, newest: &str, expected: &str) {
    for _ in 0..50 {
        server.send(&with_customer("open CU-1234")).await;
        server.drained().await;
        if server.query(newest).await == expected {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!(server.query(newest).await, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_rules_are_refused_and_only_an_admin_can_save_rules() {
    let server = Server::start().await;
    server.ready().await;
    let (admin, editor) = (server.token("admin").await, server.token("editor").await);
    let rule = |name: &str, pattern: &str| json!({"rules": [{"name": name, "pattern": pattern}]});
    let many: Vec<Value> = (0..21)
        .map(|n| json!({"name": format!("r{n}"), "pattern": "x"}))
        .collect();
    for wrong in [
        rule("a", "("),
        rule("a", r"(\w{40}){40}"),
        rule("a", "x*"),
        rule("A", "x"),
        json!({"rules": many}),
        json!({"secret_attributes": [""]}),
        json!({"built_in": "no"}),
    ] {
        for (method, path) in [
            (Method::PUT, SCRUBBING.to_owned()),
            (Method::POST, format!("{SCRUBBING}/dry-run")),
        ] {
            let answer = server
                .call(&admin, method, &path, Some(wrong.clone()))
                .await;
            assert_eq!(answer.status.as_u16(), 422, "{wrong}: {}", answer.body);
        }
    }
    let refused = server
        .call(
            &editor,
            Method::PUT,
            SCRUBBING,
            Some(json!({"built_in": false})),
        )
        .await;
    assert_eq!(refused.status.as_u16(), 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_from_apps_are_stored_as_they_are() {
    let server = Server::start().await;
    server.ready().await;
    let names = [
        "/assets/logo@2x.png",
        "Cart@a1b2c3.pay",
        "bootstrap@5.3.0-alpha1.min.css",
        "login(password: String, token: String?)",
        "cart?.total==null",
        "onPress@main.jsbundle:1:2345",
        "git+ssh://git@github.com/acme/shop.git",
    ];
    let time = unjank_protocol::Timestamp::from_micros(NOW);
    let mut batch = spans(names.len());
    for (place, name) in names.into_iter().enumerate() {
        let span = &mut batch["spans"][place];
        span["name"] = json!(name);
        span["attributes"] = json!({"asset": name});
        span["events"] = json!([{"time": time, "name": name}]);
    }
    batch["janks"] = json!([{"start": time, "duration_ms": 900, "page": names[0],
        "run_log": [{"time": time, "message": names[1]}], "stack": [{"function": names[2], "file": names[0]}]}]);
    batch["spans"][0]["page"] = json!("bob@shop.example");
    batch["spans"][1]["attributes"]["bob@shop.example"] = json!("3");
    batch["spans"][1]["attributes"]["logo@2x.png"] = json!("4");
    assert_eq!(server.send(&batch).await.status, 202);
    server.drained().await;
    let stored = server
        .query("SELECT name, attributes['asset'], `events.name`[1] FROM spans ORDER BY name")
        .await;
    let mut expected = names.map(|name| format!("{name}\t{name}\t{name}"));
    expected.sort();
    assert_eq!(stored, expected.join("\n"));
    let jank = "SELECT page, `run_log.message`[1] FROM janks";
    assert_eq!(
        server.query(jank).await,
        format!("{}\t{}", names[0], names[1])
    );
    let names = "SELECT arraySort(mapKeys(attributes)) FROM spans WHERE length(attributes) = 3";
    assert_eq!(
        server.query(names).await,
        "['[email]','asset','logo@2x.png']"
    );
    let page = "SELECT toString(page) FROM spans WHERE page != ''";
    assert_eq!(server.query(page).await, "[email]");
}
