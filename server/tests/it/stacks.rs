//! Janks: each distinct stack is stored once, with its class.

use reqwest::Method;
use serde_json::{Value, json};

use crate::engine::UNJANK;
use crate::server::{Server, batch};

fn jank(line: u32) -> Value {
    json!({
        "kind": "jank", "start": "2026-11-20T11:59:50Z", "duration_ms": 2300, "thread": "main",
        "stack": [
            {"class": "android.database.sqlite.SQLiteConnection", "function": "nativeExecute", "native": true},
            {"class": "com.example.shop.db.OrderDao", "function": "insert", "file": "OrderDao.java", "line": line},
        ],
    })
}

const RULES: &str = r#"
version = 7

[[rule]]
match = "com.example."
means = "in_app"
owner = "team-orders"

[[rule]]
match = "android.database."
means = "category"
category = "database on main thread"
"#;

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_is_stored_once_and_classified_by_the_rules() {
    let rules = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(rules.path(), RULES).unwrap();
    let server = Server::with(&["--rules", rules.path().to_str().unwrap()]).await;
    for _ in 0..3 {
        let mut batch = batch();
        batch["janks"] = json!([jank(25), jank(25), jank(26)]);
        assert_eq!(
            server.send(&batch).await.outcome().1,
            "accepted 3 rejected 0"
        );
    }
    assert_eq!(
        server
            .stored("SELECT count(), uniqExact(stack_hash) FROM janks")
            .await,
        "9\t2"
    );
    assert_eq!(server.query("SELECT count() FROM stacks").await, "2");
    // Lines differ, the group does not.
    let classes = "SELECT count(), uniqExact(group_id), any(category), any(culprit), any(owner), any(rules_version) FROM stack_classes";
    assert_eq!(
        server.query(classes).await,
        "2\t1\tdatabase on main thread\tcom.example.shop.db.OrderDao.insert\tteam-orders\t0"
    );
    let joined = "SELECT count() FROM janks JOIN stack_classes USING (project, stack_hash) JOIN stacks USING (project, stack_hash)";
    assert_eq!(server.query(joined).await, "9");
}

const LEGACY: &str = "_ZN4shop4cart4Cart3pay17h0123456789abcdefE";
const V0: &str = "_RNvNtC4shop4main3run";

/// The batch of a Rust app whose stacks have mangled names.
fn mangled() -> Value {
    let stack = json!([
        {"module": "shop", "function": LEGACY, "native": true},
        {"module": "shop", "function": V0, "native": true},
    ]);
    let mut batch = batch();
    batch["janks"] = json!([{
        "kind": "jank", "start": "2026-11-20T11:59:50Z", "duration_ms": 2300, "thread": "main", "stack": stack,
        "samples": [{"offset_ms": 500, "stack": stack}],
    }]);
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn every_reader_shows_mangled_functions_demangled() {
    let server = Server::start().await;
    server.ready().await;
    let sent = server.send(&mangled()).await;
    assert_eq!(sent.outcome().1, "accepted 1 rejected 0");
    server.drained().await;
    let stored = server
        .query("SELECT arrayJoin(frames.function) FROM stacks")
        .await;
    assert_eq!(stored, format!("{LEGACY}\n{V0}"), "the raw names are kept");
    let culprit = server.query("SELECT any(culprit) FROM stack_classes").await;
    assert_eq!(culprit, "shop::cart::Cart::pay");

    let token = server.token("viewer --project default").await;
    let ask = async |path: &str| {
        let path = format!("/api/v1/projects/default/{path}");
        let answer = server.call(&token, Method::GET, &path, None).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.body);
        answer.body
    };
    let names = ["shop::cart::Cart::pay", "shop::main::run"];
    let shown = |frames: &Value| -> Vec<[String; 2]> {
        let frames = frames.as_array().unwrap().iter();
        let texts = |frame: &Value| {
            ["label", "function"].map(|field| frame[field].as_str().unwrap().to_owned())
        };
        frames.map(texts).collect()
    };
    let expected = names.map(|name| [name.to_owned(), name.to_owned()]);
    let stacks = ask("janks/stacks").await;
    assert_eq!(shown(&stacks["stacks"][0]["frames"]), expected);
    let events = ask("janks/events").await;
    assert_eq!(shown(&events["events"][0]["stack"]), expected);
    assert_eq!(shown(&events["events"][0]["samples"][0]["stack"]), expected);
    let folded = ask("janks/folded").await;
    assert_eq!(folded, format!("{};{} 2300\n", names[1], names[0]));
    let flame = ask("janks/flame").await;
    let outermost = &flame["root"]["children"][0];
    assert_eq!(outermost["name"], names[1]);
    assert_eq!(outermost["children"][0]["name"], names[0]);
    let speedscope = ask("janks/speedscope").await;
    assert_eq!(speedscope["shared"]["frames"][0]["name"], names[1]);
    let report = ask("report").await;
    let html = report.as_str().unwrap();
    assert!(html.contains(names[0]) && html.contains(names[1]), "{html}");
    assert!(!html.contains(LEGACY) && !html.contains(V0));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_report_of_a_file_shows_mangled_functions_demangled() {
    let batch = mangled();
    let lines = [
        json!({"signal": "resource", "event": batch["resource"]}),
        json!({"signal": "jank", "event": batch["janks"][0]}),
    ];
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("run.jsonl");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&file, text).unwrap();
    let output = tokio::process::Command::new(UNJANK)
        .args(["export", "report", "--file"])
        .arg(&file)
        .output()
        .await
        .unwrap();
    let html = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(html.contains("shop::cart::Cart::pay"), "{error}{html}");
    assert!(!html.contains(LEGACY));
}
