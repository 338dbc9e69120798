//! Frames of obfuscated apps that stand for several functions, or that a mapping names more often than it should.

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Server, batch, span};
use crate::symbols::{CULPRITS, MAP_ID, READABLE, janks, upload_to};

/// `a.b.a` is three functions of one class, `a.c.a` functions of two classes of the app, and `a.d.a` one of the app and one of a library.
const AMBIGUOUS: &str = "\
com.example.shop.Cart -> a.b:
    void add() -> a
    void remove() -> a
    void clear() -> a
com.example.shop.Page -> a.c:
    void com.example.shop.Search.open() -> a
    void com.example.shop.Start.open() -> a
com.example.shop.Job -> a.d:
    void com.example.shop.Sync.run() -> a
    void org.bank.Transfer.send() -> a
";

const REPEATED: &str = "\
com.example.shop.Cart -> a.b:
    1:1:int com.example.shop.Prices.sum(int):12:12 -> a
    1:1:void pay():30 -> a
    1:1:int com.example.shop.Prices.sum(int):12:12 -> a
    1:1:void pay():30 -> a
    1:1:int com.example.shop.Prices.sum(int):12:12 -> a
    1:1:void pay():30 -> a
";

const RULES: &str = "
[[rule]]
match = [\"com.example.shop.Cart\", \"com.example.shop.Search\", \"com.example.shop.Sync\", \"org.bank.\"]
means = \"in_app\"
owner = \"team-one\"
[[rule]]
match = \"com.example.\"
means = \"in_app\"
owner = \"team-shop\"
";

async fn server_with(mapping: &str) -> Server {
    let server = Server::start().await;
    server.ready().await;
    let token = server
        .token("editor --project default --only-symbols")
        .await;
    let file = format!("# compiler: R8\n# pg_map_id: {MAP_ID}\n{mapping}");
    let state = upload_to(&server, (&token, "default"), file.as_bytes()).await;
    assert_eq!(state["state"], "ok", "{state}");
    server
}

fn stack(class: &str, line: u32) -> Value {
    json!([
        {"class": class, "function": "a", "file": format!("r8-map-id-{MAP_ID}"), "line": line},
        {"class": "com.example.Main", "function": "run"},
    ])
}

async fn get(server: &Server, path: &str) -> Value {
    let token = server.token("viewer --project default").await;
    let period = "from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z";
    let path = format!("/api/v1/projects/default/janks/{path}?{period}");
    server.call(&token, Method::GET, &path, None).await.body
}

#[tokio::test(flavor = "multi_thread")]
async fn several_functions_of_one_frame_are_one_node_that_names_all() {
    let server = server_with(AMBIGUOUS).await;
    server.send(&janks(&stack("a.b", 0))).await;
    let name = "com.example.shop.Cart.add or clear or remove";
    let frames = format!("{name} Cart.java:0 3, com.example.Main.run :0 0");
    server.answers(READABLE, &frames).await;
    server.answers(CULPRITS, name).await;

    let titles = "SELECT title FROM stack_class_current";
    assert!(
        server
            .query(titles)
            .await
            .contains("add or clear or remove")
    );
    let stacks = get(&server, "stacks").await;
    let frames = stacks["stacks"][0]["frames"].as_array().unwrap();
    assert_eq!(frames.len(), 2, "{frames:?}");
    assert_eq!(
        (&frames[0]["label"], &frames[0]["origin"]),
        (&json!(name), &json!("ambiguous"))
    );
    let flame = get(&server, "flame").await;
    let main = &flame["root"]["children"][0];
    assert_eq!(main["children"].as_array().unwrap().len(), 1, "{flame}");
    assert_eq!(main["children"][0]["name"], name, "{flame}");
    assert_eq!(main["children"][0]["children"], Value::Null, "{flame}");
    let folded = get(&server, "folded").await;
    assert_eq!(folded, json!(format!("com.example.Main.run;{name} 2300\n")));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_owner_of_one_of_several_classes_is_blamed() {
    let server = server_with(AMBIGUOUS).await;
    let editor = server.token("editor --project default").await;
    let rules = json!({"expected_revision": 0, "rules": RULES, "note": "owners"});
    let path = "/api/v1/projects/default/rules";
    let saved = server.call(&editor, Method::PUT, path, Some(rules)).await;
    assert_eq!(saved.status, 201, "{:?}", saved.body);
    for class in ["a.b", "a.c", "a.d"] {
        server.send(&janks(&stack(class, 0))).await;
    }
    let titles = "SELECT title FROM stack_class_current WHERE title LIKE '%{%'";
    server.answers(titles, "{Search, Start}.open").await;
    let owners = "SELECT culprit, owner FROM stack_class_current ORDER BY ALL";
    // The frame of two teams is not the app's by any rule, so its caller is the culprit.
    let expected = "com.example.Main.run\tteam-shop\n\
        com.example.shop.Cart.add or clear or remove\tteam-one\n\
        com.example.shop.{Search, Start}.open\tteam-shop";
    server.answers(owners, expected).await;

    let mut spans = batch();
    let mut span = span();
    span["code"] = json!({"class": "a.d", "function": "a", "file": format!("r8-map-id-{MAP_ID}")});
    spans["spans"] = json!([span]);
    server.send(&spans).await;
    let named = "SELECT countIf(function != '') FROM function_names FINAL";
    server.answers(named, "1").await;
    server.drained().await;
    let period = "from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z";
    let path = format!("/api/v1/projects/default/query/spans?by=package&{period}");
    let packages = server.call(&editor, Method::GET, &path, None).await.body;
    assert_eq!(packages["rows"][0]["keys"], json!([""]), "{packages}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_pair_of_inlined_functions_is_two_frames() {
    let server = server_with(REPEATED).await;
    server.send(&janks(&stack("a.b", 1))).await;
    let frames = "com.example.shop.Prices.sum Prices.java:12 2, com.example.shop.Cart.pay Cart.java:30 1, com.example.Main.run :0 0";
    server.answers(READABLE, frames).await;
}
