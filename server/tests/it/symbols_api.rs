//! The API of symbol files: lists, removal, and the builds whose files are missing or wrong.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Server, batch};
use crate::symbols::{MAP_ID, mapping, upload_to};
use crate::wait;

const SYMBOLS: &str = "/api/v1/projects/default/symbols";
/// A GNU build id, and the debug id that tools derive from it.
const BUILD_ID: &str = "0102030405060708090a0b0c0d0e0f1011121314";
const CULPRITS: &str = "SELECT culprit FROM stack_class_current";

/// Sends stalls of a version.
async fn stall(server: &Server, version: &str, stack: &Value, times: usize) {
    let mut batch = batch();
    batch["resource"]["app_version"] = json!(version);
    let jank = json!({
        "kind": "jank", "start": "2026-11-20T11:59:50Z", "duration_ms": 2300, "thread": "main", "stack": stack,
    });
    batch["janks"] = json!(vec![jank; times]);
    assert_eq!(server.send(&batch).await.status, 202);
}

fn obfuscated() -> Value {
    json!([{"class": "a.b", "function": "a", "file": format!("r8-map-id-{MAP_ID}"), "line": 1}])
}

fn native() -> Value {
    json!([{"module": "libshop.so", "build_id": BUILD_ID, "offset": 0x1010}])
}

/// Symbols of the library without lines.
fn names_only() -> Vec<u8> {
    let id = "0403020106050807090A0B0C0D0E0F100";
    format!("MODULE Linux x86_64 {id} libshop.so\nINFO CODE_ID {BUILD_ID} libshop.so\nPUBLIC 1000 0 checkout\n")
        .into_bytes()
}

async fn get(server: &Server, token: &str, path: &str) -> Value {
    let path = format!("{SYMBOLS}/{path}");
    let answer = server.call(token, Method::GET, &path, None).await;
    assert_eq!(answer.status, 200, "{path}: {:?}", answer.body);
    answer.body
}

async fn upload(server: &Server, file: &[u8]) -> Value {
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    let state = upload_to(server, (&token, "default"), file).await;
    assert_eq!(state["state"], "ok", "{state}");
    state
}

/// Id and state of each missing build, with its numbers of stacks and events.
fn states(missing: &Value) -> Vec<String> {
    let builds = missing["missing"].as_array().unwrap().iter();
    builds
        .map(|build| {
            let state = build["state"].as_str().unwrap();
            let modules = &build["modules"];
            format!(
                "{:.4} {state} {modules} {} {}",
                build["id"].as_str().unwrap(),
                build["stacks"],
                build["events"]
            )
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_files_are_listed_until_they_are_uploaded() {
    let server = Server::start().await;
    server.ready().await;
    stall(&server, "4.12.0", &obfuscated(), 3).await;
    stall(&server, "4.13.0", &obfuscated(), 1).await;
    stall(&server, "4.13.0", &native(), 2).await;
    let symbolicated = "SELECT count() FROM stacks_symbolicated FINAL";
    server.answers(symbolicated, "2").await;
    let viewer = server.token("viewer --project default").await;
    let missing = get(&server, &viewer, "missing").await;
    assert_eq!(
        states(&missing),
        [
            "5a7d missing [] 1 4.0",
            "0102 missing [\"libshop.so\"] 1 2.0"
        ]
    );
    assert_eq!(
        missing["missing"][0]["versions"],
        json!([{"app_version": "4.12.0", "events": 3.0}, {"app_version": "4.13.0", "events": 1.0}])
    );
    let start = 1_795_175_990_000_000_i64;
    assert_eq!(missing["missing"][0]["first_seen"], start);
    assert_eq!(missing["missing"][0]["last_seen"], start);
    let earlier = "missing?from=2026-11-19T00:00:00Z&to=2026-11-20T00:00:00Z";
    let earlier = get(&server, &viewer, earlier).await;
    assert_eq!(earlier["missing"], json!([]));

    upload(&server, &names_only()).await;
    upload(&server, &mapping()).await;
    wait::until("stored stacks are repaired", async || {
        let missing = get(&server, &viewer, "missing").await;
        missing["repair"]["pending"] == false && missing["missing"].as_array().unwrap().len() == 1
    })
    .await;
    let missing = get(&server, &viewer, "missing").await;
    assert_eq!(states(&missing), ["0102 no_lines [\"libshop.so\"] 1 2.0"]);

    let check = async |version: &str| {
        let check = get(&server, &viewer, &format!("check?app_version={version}")).await;
        let builds = check["builds"].as_array().unwrap().iter();
        let states: Vec<_> = builds.map(|build| build["state"].clone()).collect();
        (
            check["stacks"].clone(),
            check["complete"].clone(),
            json!(states),
        )
    };
    assert_eq!(
        check("4.13.0").await,
        (json!(2), json!(true), json!(["no_lines", "complete"]))
    );
    assert_eq!(
        check("9.9%5C%27%09").await,
        (json!(0), json!(true), json!([]))
    );
    // The file belongs to another build: it has none of the frames.
    server
        .query("INSERT INTO stacks_symbolicated SELECT * REPLACE (now64(6) + INTERVAL 10 YEAR AS symbolicated_at, ids AS mismatched) \
                FROM stacks_symbolicated FINAL WHERE has(ids, '5a7d1b0c9e8f70615243342516078f9eadbccbda0f1e2d3c4b5a69788796a5b4')")
        .await;
    assert_eq!(
        check("4.12.0").await,
        (json!(1), json!(false), json!(["mismatched"]))
    );
    let missing = get(&server, &viewer, "missing").await;
    assert_eq!(missing["missing"][0]["state"], "mismatched");

    let editor = server.token("editor --project default").await;
    let files = get(&server, &viewer, &format!("files?symbol_id={MAP_ID}")).await;
    let file = files["files"][0]["id"].as_str().unwrap();
    let file = format!("{SYMBOLS}/files/{file}");
    let removed = server.call(&editor, Method::DELETE, &file, None).await;
    assert_eq!(removed.status, 204);
    let missing = get(&server, &viewer, "missing").await;
    assert_eq!(missing["missing"][0]["state"], "missing");

    // As if the stacks had just arrived.
    server.query("TRUNCATE TABLE stacks_symbolicated").await;
    for (version, unread) in [("4.12.0", 1), ("4.13.0", 2)] {
        let check = get(&server, &viewer, &format!("check?app_version={version}")).await;
        let read = [&check["unread_stacks"], &check["complete"]];
        assert_eq!(read, [&json!(unread), &json!(false)], "{version}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_listed_and_a_removed_one_gives_way_to_an_older_one() {
    let server = Server::start().await;
    server.ready().await;
    let viewer = server.token("viewer --project default").await;
    let editor = server.token("editor --project default").await;
    upload(&server, &mapping()).await;
    stall(&server, "4.12.0", &obfuscated(), 1).await;
    server
        .answers(CULPRITS, "com.example.shop.Prices.sum")
        .await;
    // Ids of files are sorted by time.
    server.pass(Duration::from_secs(1));
    let wrong = String::from_utf8(mapping())
        .unwrap()
        .replace("sum", "wrong");
    let state = upload(&server, wrong.as_bytes()).await;
    assert_eq!(state["dif"]["replaces"], 1);
    server
        .answers(CULPRITS, "com.example.shop.Prices.wrong")
        .await;

    let list = get(&server, &viewer, "files").await;
    let files = list["files"].as_array().unwrap();
    assert_eq!(files.len(), 2);
    assert_eq!(
        [&files[0]["replaces"], &files[1]["replaces"]],
        [&json!(1), &json!(0)]
    );
    assert_eq!(list["bytes"], 2 + 2 * mapping().len());
    assert_eq!(list["max_bytes"], 20_u64 << 30);
    assert_eq!(list["next"], Value::Null);
    let build = &files[0]["builds"][0];
    assert_eq!(
        [
            &build["format"],
            &build["has_functions"],
            &build["has_lines"]
        ],
        [&json!("r8"), &json!(true), &json!(true)]
    );
    let first = get(&server, &viewer, "files?limit=1").await;
    let next = first["next"].as_str().unwrap();
    let second = get(&server, &viewer, &format!("files?limit=1&before={next}")).await;
    assert_eq!(second["files"][0]["id"], files[1]["id"]);
    let by_id = get(&server, &viewer, &format!("files?symbol_id={MAP_ID}")).await;
    assert_eq!(by_id["files"][0]["builds"][0]["id"], MAP_ID);
    let none = get(&server, &viewer, &format!("files?symbol_id={BUILD_ID}")).await;
    assert_eq!(none["files"], json!([]));

    let file = format!("{SYMBOLS}/files/{}", files[0]["id"].as_str().unwrap());
    let remove = async |token: &str| server.call(token, Method::DELETE, &file, None).await.status;
    assert_eq!(remove(&viewer).await, 403);
    assert_eq!(remove(&editor).await, 204);
    assert_eq!(remove(&editor).await, 404);
    server
        .answers(CULPRITS, "com.example.shop.Prices.sum")
        .await;
    let folder = server.data_dir().join("symbols/files/default");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_symbol_files_reads_only_the_data_that_ci_needs() {
    let server = Server::start().await;
    server.ready().await;
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    for (path, status) in [
        ("default/symbols/files", 200),
        ("default/symbols/check?app_version=4.12.0", 200),
        ("default/symbols/missing", 403),
        ("other/symbols/files", 404),
        ("default/symbols/files?symbol_id=main.js", 422),
        ("default/symbols/files?limit=201", 400),
        ("default/symbols/check", 400),
    ] {
        let path = format!("/api/v1/projects/{path}");
        let answer = server.call(&token, Method::GET, &path, None).await;
        assert_eq!(answer.status, status, "{path}: {:?}", answer.body);
    }
    let file = format!("{SYMBOLS}/files/{}", uuid::Uuid::nil());
    let removed = server.call(&token, Method::DELETE, &file, None).await;
    assert_eq!(removed.status, 403);
}
