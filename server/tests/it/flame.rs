//! Flame graphs that compare two versions, including functions that only the earlier version has.

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Server, batch};

fn stalled(version: &str, function: &str, duration_ms: u64) -> Value {
    let mut batch = batch();
    batch["resource"]["app_version"] = json!(version);
    batch["janks"] = json!([{
        "kind": "jank", "start": "2026-11-20T11:59:50Z", "duration_ms": duration_ms, "thread": "main",
        "stack": [
            {"class": "com.example.shop.Cart", "function": function},
            {"class": "android.os.Looper", "function": "loop"},
        ],
    }]);
    batch
}

#[tokio::test(flavor = "multi_thread")]
async fn functions_of_the_base_alone_are_in_the_flame_graph_but_not_in_the_stacks() {
    let server = Server::start().await;
    server.ready().await;
    for (version, function, ms) in [
        ("4.11.0", "load", 1_000),
        ("4.11.0", "validate", 400),
        ("4.12.0", "load", 2_000),
        ("4.12.0", "render", 700),
    ] {
        let answer = server.send(&stalled(version, function, ms)).await;
        assert_eq!(answer.outcome(), (202, "accepted 1 rejected 0".to_owned()));
    }
    server.drained().await;
    let token = server.token("viewer --project default").await;
    let ask = async |path: &str| {
        let path = format!("/api/v1/projects/default/janks/{path}");
        server.call(&token, Method::GET, &path, None).await.body
    };
    for base in [
        "app_version=4.12.0&base_app_version=4.11.0",
        "app_version=4.12.0&base_app_version=4.11.0&from=2026-11-20T00:00:00Z",
    ] {
        let flame = ask(&format!("flame?{base}")).await;
        let children = flame["root"]["children"][0]["children"].as_array().unwrap();
        let weights: Vec<_> = children
            .iter()
            .map(|node| {
                (
                    node["name"]
                        .as_str()
                        .unwrap()
                        .trim_start_matches("com.example.shop."),
                    node["value"].as_f64().unwrap(),
                    node["base"].as_f64().unwrap(),
                )
            })
            .collect();
        assert_eq!(
            weights,
            [
                ("Cart.load", 2_000.0, 1_000.0),
                ("Cart.render", 700.0, 0.0),
                ("Cart.validate", 0.0, 400.0)
            ]
        );
        assert_eq!(
            (flame["root"]["base"].clone(), flame["stacks"].clone()),
            (json!(1_400.0), json!(2))
        );
        let folded = ask(&format!("folded?{base}")).await;
        assert_eq!(folded.as_str().unwrap().lines().count(), 2, "{folded}");
        let stacks = ask(&format!("stacks?{base}")).await;
        assert_eq!(stacks["stacks"].as_array().unwrap().len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_top_level_code_of_a_script_has_its_name() {
    let server = Server::start().await;
    server.ready().await;
    let mut sent = batch();
    let jank = |file: &str, line: u32, ms: u32| {
        json!({
            "kind": "jank", "start": "2026-11-20T11:59:50Z", "duration_ms": ms, "thread": "main",
            "stack": [{"file": file, "line": line}],
        })
    };
    sent["janks"] = json!([
        jank("https://shop.example/js/a.js", 1, 300),
        jank("/app/b.js", 7, 200),
    ]);
    let answer = server.send(&sent).await;
    assert_eq!(answer.outcome(), (202, "accepted 2 rejected 0".to_owned()));
    server.drained().await;
    let token = server.token("viewer --project default").await;
    let ask = async |path: &str| {
        let path = format!("/api/v1/projects/default/{path}");
        server.call(&token, Method::GET, &path, None).await.body
    };
    let names = ["top-level code (a.js)", "top-level code (b.js)"];
    let folded = ask("janks/folded?app_version=4.12.0").await;
    let mut lines: Vec<_> = folded.as_str().unwrap().lines().collect();
    lines.sort_unstable();
    let [a, b] = names;
    assert_eq!(lines, [format!("{a} 300"), format!("{b} 200")]);
    let groups = ask("query/janks?by=title&measure=count&to=2026-11-20T12:00:00Z").await;
    let rows = groups["rows"].as_array().unwrap().iter();
    let mut titles: Vec<_> = rows.map(|row| row["keys"][0].as_str().unwrap()).collect();
    titles.sort_unstable();
    assert_eq!(titles, names);
}
