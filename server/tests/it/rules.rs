//! A project's classification rules: a change applies to new stacks and reclassifies stored ones.

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Answer, Server, batch};
use crate::wait;

const RULES: &str = "/api/v1/projects/default/rules";

/// Rules that assign the app's code to a team.
pub(crate) const OWN: &str =
    "[[rule]]\nmatch = \"com.example.\"\nmeans = \"in_app\"\nowner = \"team-shop\"\n";

/// A batch with a jank per class. In each stack, the app's class calls a library.
pub(crate) fn janks(classes: &[String]) -> Value {
    let jank = |class: &String| {
        json!({
            "kind": "jank", "start": "2026-11-20T11:59:50Z", "duration_ms": 2300, "thread": "main", "sample_rate": 0.5,
            "stack": [{"class": "com.library.Codec", "function": "read"}, {"class": class, "function": "open"}],
        })
    };
    let mut batch = batch();
    batch["janks"] = classes.iter().map(jank).collect();
    batch
}

async fn send(server: &Server, classes: &[&str]) {
    let classes: Vec<String> = classes.iter().map(|class| (*class).to_owned()).collect();
    let answer = server.send(&janks(&classes)).await;
    assert_eq!(answer.body["accepted"], classes.len(), "{answer:?}");
}

async fn save(server: &Server, token: &str, expected: u32, rules: &str) -> Answer {
    let body = json!({"expected_revision": expected, "rules": rules, "note": "try"});
    server.call(token, Method::PUT, RULES, Some(body)).await
}

async fn progress(server: &Server, token: &str) -> Value {
    let path = format!("{RULES}/reclassification");
    server.call(token, Method::GET, &path, None).await.body
}

/// Waits until history is classified by this revision.
async fn reclassified(server: &Server, token: &str, revision: u32) -> Value {
    let mut now = Value::Null;
    wait::until("history is reclassified", async || {
        now = progress(server, token).await;
        now["state"] == "done" && now["rules_version"] == revision
    })
    .await;
    now
}

const CURRENT: &str = "SELECT rules_version, owner, culprit, count() FROM janks \
    JOIN stack_class_current USING (project, stack_hash) GROUP BY ALL ORDER BY ALL";

#[tokio::test(flavor = "multi_thread")]
async fn saved_rules_classify_new_stacks_and_reclassify_stored_ones() {
    let server = Server::start().await;
    let token = server.token("editor").await;
    let before = server.call(&token, Method::GET, RULES, None).await.body;
    assert_eq!(before["revision"], 0);
    assert!(before["rules"].as_str().unwrap().contains("[[rule]]"));
    send(&server, &["com.example.Cart", "com.example.Cart"]).await;
    assert_eq!(
        server.stored(CURRENT).await,
        "0\t\tcom.library.Codec.read\t2"
    );
    let saved = save(&server, &token, 0, OWN).await;
    assert_eq!(
        (saved.status.as_u16(), &saved.body["revision"]),
        (201, &json!(1))
    );
    let done = reclassified(&server, &token, 1).await;
    assert_eq!((&done["total"], &done["done"]), (&json!(1), &json!(1)));
    assert_eq!(
        server.query(CURRENT).await,
        "1\tteam-shop\tcom.example.Cart.open\t2"
    );
    // The new rules classify both a known stack and a new one. Stored janks are unchanged.
    send(&server, &["com.example.Cart", "com.example.Feed"]).await;
    assert_eq!(
        server.stored(CURRENT).await,
        "1\tteam-shop\tcom.example.Cart.open\t3\n1\tteam-shop\tcom.example.Feed.open\t1"
    );
    assert_eq!(server.query("SELECT count() FROM janks").await, "4");
    assert!(server.metric("unjank_reclassified_stacks_total").await >= 1.0);
    assert!(
        server
            .metric("unjank_reclassification_pending_stacks")
            .await
            .abs()
            < 0.5
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rollback_creates_a_revision_and_reclassifies_history() {
    let server = Server::start().await;
    let token = server.token("editor").await;
    send(&server, &["com.example.Cart"]).await;
    server.drained().await;
    save(&server, &token, 0, OWN).await;
    save(&server, &token, 1, &OWN.replace("team-shop", "team-cart")).await;
    reclassified(&server, &token, 2).await;
    assert_eq!(
        server.query(CURRENT).await,
        "2\tteam-cart\tcom.example.Cart.open\t1"
    );
    let back = json!({"revision": 1, "expected_revision": 2});
    let path = format!("{RULES}/rollback");
    let back = server.call(&token, Method::POST, &path, Some(back)).await;
    assert_eq!(
        (back.status.as_u16(), &back.body["revision"]),
        (201, &json!(3))
    );
    reclassified(&server, &token, 3).await;
    assert_eq!(
        server.query(CURRENT).await,
        "3\tteam-shop\tcom.example.Cart.open\t1"
    );
    let path = format!("{RULES}/revisions");
    let history = server.call(&token, Method::GET, &path, None).await.body;
    let notes = history["revisions"].as_array().unwrap().iter();
    let notes: Vec<_> = notes.map(|one| one["note"].clone()).collect();
    assert_eq!(notes, ["back to revision 1", "try", "try"]);
    let path = format!("{RULES}/revisions/1");
    let first = server.call(&token, Method::GET, &path, None).await.body;
    assert_eq!(first["rules"], OWN);
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_rules_are_refused_with_their_line_and_concurrent_edits_conflict() {
    let server = Server::away(&[]).await;
    let token = server.token("editor").await;
    let no_meaning = format!("{OWN}\n[[rule]]\nmatch = \"com.other.\"\n");
    let bad = save(&server, &token, 0, &no_meaning).await;
    assert_eq!(bad.outcome(), (422, "rules_invalid".to_owned()));
    let fault = &bad.body["faults"][0];
    assert_eq!((&fault["rule"], &fault["line"]), (&json!(2), &json!(6)));
    assert!(
        fault["message"].as_str().unwrap().contains("add means"),
        "{fault}"
    );
    let no_toml = save(&server, &token, 0, "version = 1\n[[rule\n").await;
    assert_eq!(no_toml.body["faults"][0]["line"], 2, "{:?}", no_toml.body);
    let check = format!("{RULES}/check");
    let shadowed = format!("{OWN}\n[[rule]]\nmatch = \"com.example.ui.\"\nmeans = \"ignore\"\n");
    for (rules, valid) in [(&shadowed, true), (&no_meaning, false)] {
        let body = json!({"rules": rules});
        let verdict = server
            .call(&token, Method::POST, &check, Some(body))
            .await
            .body;
        assert_eq!(verdict["valid"], valid);
        let list = if valid { "warnings" } else { "faults" };
        assert_eq!(verdict[list].as_array().unwrap().len(), 1, "{verdict}");
    }
    let saved = save(&server, &token, 0, &shadowed).await;
    assert_eq!(saved.body["warnings"].as_array().unwrap().len(), 1);
    let late = save(&server, &token, 0, OWN).await;
    assert_eq!(late.outcome(), (409, "conflict".to_owned()));
    assert_eq!(late.body["current_revision"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_reports_merged_split_and_renamed_groups() {
    let server = Server::start().await;
    let token = server.token("editor").await;
    // These rules skip `Codec`, so the culprit is the caller and each caller has its own group.
    save(&server, &token, 0, OWN).await;
    reclassified(&server, &token, 1).await;
    send(
        &server,
        &["com.example.Cart", "com.example.Cart", "com.example.Feed"],
    )
    .await;
    server.drained().await;
    let try_out = async |rules: &str, days: u32| {
        let body = json!({"rules": rules, "days": days});
        let path = format!("{RULES}/dry-run");
        server.call(&token, Method::POST, &path, Some(body)).await
    };
    // These rules make the library the culprit, so the groups of the callers merge.
    let merging = "[[rule]]\nmatch = \"com.library.\"\nmeans = \"in_app\"\n";
    let merged = try_out(merging, 7).await.body;
    assert_eq!(
        (&merged["stacks"], &merged["changed_stacks"]),
        (&json!(2), &json!(2)),
        "{merged}"
    );
    // The sample rate is 0.5, so three janks represent six.
    assert_eq!(
        (&merged["occurrences"], &merged["changed_occurrences"]),
        (&json!(6.0), &json!(6.0))
    );
    assert_eq!(
        (&merged["merged"]["total"], &merged["truncated"]),
        (&json!(1), &json!(false))
    );
    let merge = &merged["merged"]["top"][0];
    assert_eq!(
        (&merge["into"]["title"], &merge["into"]["installs"]),
        (&json!("Codec.read"), &json!(1))
    );
    let from = merge["from"]["top"].as_array().unwrap().iter();
    let from: Vec<_> = from
        .map(|one| (one["title"].clone(), one["occurrences"].clone()))
        .collect();
    assert_eq!(
        from,
        [
            (json!("Cart.open"), json!(4.0)),
            (json!("Feed.open"), json!(2.0))
        ]
    );
    assert!(merge["into"]["group_id"].is_string());
    // Once these rules are saved, the previous ones would split the group into two.
    save(&server, &token, 1, merging).await;
    reclassified(&server, &token, 2).await;
    let split = try_out(OWN, 7).await.body;
    assert_eq!(
        (&split["split"]["total"], &split["merged"]["total"]),
        (&json!(1), &json!(0))
    );
    assert_eq!(split["split"]["top"][0]["into"]["total"], 2);
    let renamed = try_out(&format!("{merging}owner = \"team-codec\"\n"), 7)
        .await
        .body;
    let rename = &renamed["renamed"]["top"][0];
    assert_eq!(
        (&rename["from"]["owner"], &rename["into"]["owner"]),
        (&json!(""), &json!("team-codec"))
    );
    let same = try_out(merging, 7).await.body;
    assert_eq!(
        (&same["changed_stacks"], &same["unchanged_groups"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(try_out(merging, 0).await.outcome().1, "days_out_of_range");
    assert_eq!(try_out("rule = 7", 7).await.outcome().1, "rules_invalid");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unfinished_reclassification_continues_at_the_next_start() {
    let mut server = Server::start().await;
    let token = server.token("editor").await;
    let classes: Vec<String> = (0..2_500)
        .map(|number| format!("com.example.Page{number}x"))
        .collect();
    assert_eq!(server.send(&janks(&classes)).await.status, 202);
    server.drained().await;
    save(&server, &token, 0, OWN).await;
    reclassified(&server, &token, 1).await;
    let count = "SELECT count() FROM stack_class_current WHERE rules_version = 1";
    assert_eq!(server.query(count).await, "2500");
    server.end().await;
    // Simulate a server that was killed after a third of the stacks.
    let third = "DELETE FROM stack_classes WHERE rules_version = 1 AND stack_hash % 3 > 0 SETTINGS mutations_sync = 2";
    server.query(third).await;
    assert_ne!(server.query(count).await, "2500");
    server.start_again().await;
    reclassified(&server, &token, 1).await;
    assert_eq!(server.query(count).await, "2500");
    let rows =
        "SELECT count(), uniqExact(stack_hash) FROM stack_classes FINAL WHERE rules_version = 1";
    assert_eq!(server.query(rows).await, "2500\t2500");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_that_arrives_late_under_older_rules_is_reclassified() {
    let server = Server::with(&["--late-stacks-interval-ms", "50"]).await;
    let token = server.token("editor").await;
    save(&server, &token, 0, OWN).await;
    reclassified(&server, &token, 1).await;
    // The rows of a server that does not have revision 1 yet.
    server
        .query("INSERT INTO stacks (project, stack_hash, received_at, `frames.class`, `frames.module`, `frames.function`, \
            `frames.file`, `frames.build_id`, `frames.line`, `frames.offset`) \
            VALUES ('default', 77, now64(6), ['com.example.Late'], [''], ['open'], [''], [''], [0], [0])")
        .await;
    server
        .query("INSERT INTO stack_classes (project, rules_version, stack_hash, group_id, title) VALUES ('default', 0, 77, 1, 'old')")
        .await;
    let class = "SELECT rules_version, title FROM stack_class_current WHERE stack_hash = 77";
    server.answers(class, "1\tLate.open").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_changed_rule_file_reclassifies_history_at_the_next_start() {
    let rules = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(rules.path(), OWN).unwrap();
    let mut server = Server::with(&["--rules", rules.path().to_str().unwrap()]).await;
    send(&server, &["com.example.Cart"]).await;
    assert_eq!(
        server.stored(CURRENT).await,
        "0\tteam-shop\tcom.example.Cart.open\t1"
    );
    std::fs::write(rules.path(), OWN.replace("team-shop", "team-cart")).unwrap();
    server.restart().await;
    server
        .answers(CURRENT, "0\tteam-cart\tcom.example.Cart.open\t1")
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_apply_only_to_their_project() {
    let server = Server::start().await;
    let token = server.token("admin").await;
    let project = json!({"id": "other"});
    let made = server
        .call(&token, Method::POST, "/api/v1/projects", Some(project))
        .await;
    assert_eq!(made.status, 201, "{made:?}");
    let key = json!({"name": "all", "app_ids": ["com.example.shop"]});
    let keys = "/api/v1/projects/other/keys";
    let key = server.call(&token, Method::POST, keys, Some(key)).await;
    let key = key.body["key"].as_str().unwrap().to_owned();
    send(&server, &["com.example.Cart"]).await;
    let batch = janks(&["com.example.Cart".to_owned()]).to_string();
    wait::until("the new key works", async || {
        let request = server.request_with(&key).body(batch.clone());
        request.send().await.unwrap().status() == 202
    })
    .await;
    server.drained().await;
    save(&server, &token, 0, OWN).await;
    reclassified(&server, &token, 1).await;
    let classes = "SELECT project, owner, rules_version FROM stack_class_current ORDER BY project";
    assert_eq!(
        server.query(classes).await,
        "default\tteam-shop\t1\nother\t\t0"
    );
    let path = "/api/v1/projects/other/rules";
    let other = server.call(&token, Method::GET, path, None).await;
    assert_eq!(other.body["revision"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn reclassification_reports_an_unreachable_clickhouse_and_covers_pending_stacks_later() {
    let patient = [
        "--late-stacks-interval-ms",
        "50",
        "--shutdown-timeout-ms",
        "100",
    ];
    let mut server = Server::away(&patient).await;
    let token = server.token("editor").await;
    // This stack waits in the log under revision 0.
    send(&server, &["com.example.Cart"]).await;
    save(&server, &token, 0, OWN).await;
    wait::until("the failure is reported", async || {
        progress(&server, &token).await["state"] == "failed"
    })
    .await;
    assert!(progress(&server, &token).await["error"].is_string());
    let body = json!({"rules": OWN});
    let path = format!("{RULES}/dry-run");
    let tried = server.call(&token, Method::POST, &path, Some(body)).await;
    assert_eq!(tried.outcome(), (503, "store_unavailable".to_owned()));
    server.point_at_the_engine().await;
    server.ready().await;
    server
        .answers(CURRENT, "1\tteam-shop\tcom.example.Cart.open\t1")
        .await;
    reclassified(&server, &token, 1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_on_the_same_stores_keep_one_class_per_stack() {
    let url = crate::postgres::postgres().database().await;
    let one = Server::with(&["--database-url", &url]).await;
    one.ready().await;
    let shared = [
        "--database-url",
        &url,
        "--clickhouse-database",
        one.database(),
    ];
    let other = Server::with(&shared).await;
    let token = one.token("editor").await;
    let classes: Vec<String> = (0..2_000)
        .map(|number| format!("com.example.Page{number}x"))
        .collect();
    assert_eq!(one.send(&janks(&classes)).await.status, 202);
    one.drained().await;
    // The second revision is saved while the first is being applied.
    save(&one, &token, 0, &OWN.replace("team-shop", "team-cart")).await;
    save(&other, &token, 1, OWN).await;
    for server in [&one, &other] {
        assert_eq!(reclassified(server, &token, 2).await["total"], 2_000);
    }
    let owners = "SELECT owner, rules_version, count() FROM stack_class_current GROUP BY ALL";
    assert_eq!(one.query(owners).await, "team-shop\t2\t2000");
}
