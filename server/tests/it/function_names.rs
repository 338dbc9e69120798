//! Spans of obfuscated functions: named by mappings that arrive before or after them, wherever spans are read.

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Server, batch, span};
use crate::symbols::{MAP_ID, mapping, upload_to};

const PERIOD: &str = "from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z";
const NAMES: &str = "SELECT class, function, file, name FROM function_names FINAL ORDER BY name";

/// Spans of two functions of a build, and one with a name of its own. A tracer names spans after functions in several ways.
pub(crate) fn traced(map_id: &str) -> Value {
    let of = |name: &str, class: &str, function: &str, duration_us: u64| {
        let mut span = span();
        span["name"] = json!(name);
        span["kind"] = json!("method");
        span["duration_us"] = json!(duration_us);
        span["code"] = json!({
            "class": class, "function": function, "file": format!("r8-map-id-{map_id}"), "line": 3,
        });
        span
    };
    let mut batch = batch();
    batch["spans"] = json!([
        of("a.b.a", "a.b", "a", 1_000),
        of("b.b", "a.b", "b", 2_000),
        of("Load the cart", "a.b", "b", 4_000),
        span(),
    ]);
    batch
}

async fn get(server: &Server, token: &str, path: &str) -> Value {
    let path = format!("/api/v1/projects/default/{path}");
    let answer = server.call(token, Method::GET, &path, None).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.body);
    answer.body
}

/// The groups of a query with their numbers of spans, by name.
async fn groups(server: &Server, token: &str, question: &str) -> Vec<String> {
    let answer = get(server, token, &format!("query/spans?{question}&{PERIOD}")).await;
    let rows = answer["rows"].as_array().unwrap().iter();
    let mut groups: Vec<String> = rows
        .map(|row| {
            format!(
                "{} {}",
                row["keys"][0].as_str().unwrap_or_default(),
                row["values"][0]
            )
        })
        .collect();
    groups.sort();
    groups
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_mapping_names_stored_spans_everywhere() {
    let server = Server::start().await;
    server.ready().await;
    assert_eq!(server.send(&traced(MAP_ID)).await.body["accepted"], 4);
    server
        .answers(NAMES, "\t\t\ta.b.a@3ac4769becd3\n\t\t\ta.b.b@63293199ece6")
        .await;
    let viewer = server.token("viewer --project default").await;
    let names = groups(&server, &viewer, "by=name").await;
    let before = [
        "Load the cart 1.0",
        "a.b.a@3ac4769becd3 1.0",
        "a.b.b@63293199ece6 1.0",
        "checkout 1.0",
    ];
    assert_eq!(names, before);
    assert_eq!(
        groups(&server, &viewer, "by=code_class").await,
        [" 1.0", "a.b 3.0"]
    );
    let waiting = &get(&server, &viewer, "symbols/missing").await["missing"][0];
    assert_eq!(waiting["id"], MAP_ID);
    assert_eq!(
        (&waiting["stacks"], &waiting["events"]),
        (&json!(2), &json!(2.0)),
        "{waiting}"
    );

    let uploads = server
        .token("editor --project default --only-symbols")
        .await;
    let state = upload_to(&server, (&uploads, "default"), &mapping()).await;
    assert_eq!(state["state"], "ok", "{state}");
    server
        .answers(
            NAMES,
            "com.example.shop.Cart\tpay\tCart.kt\ta.b.a@3ac4769becd3\n\
             com.example.shop.Cart\tclear\tCart.kt\ta.b.b@63293199ece6",
        )
        .await;
    for (question, expected) in [
        (
            "by=name",
            &[
                "Load the cart 1.0",
                "checkout 1.0",
                "com.example.shop.Cart.clear 1.0",
                "com.example.shop.Cart.pay 1.0",
            ][..],
        ),
        ("by=code_class", &[" 1.0", "com.example.shop.Cart 3.0"]),
        ("by=code_function", &[" 1.0", "clear 2.0", "pay 1.0"]),
        ("by=package", &[" 1.0", "com.example.shop 3.0"]),
        ("by=kind&name=com.example.shop.Cart.pay", &["method 1.0"]),
        ("by=kind&name=a.b.a@3ac4769becd3", &["method 1.0"]),
        (
            "by=name&contains.name=cart.CLE",
            &["com.example.shop.Cart.clear 1.0"],
        ),
        (
            "by=kind&package=com.example.shop&code_function=clear",
            &["method 2.0"],
        ),
        (
            "by=name&locale=&exact=true&contains.name=Cart.p",
            &["com.example.shop.Cart.pay 1.0"],
        ),
    ] {
        assert_eq!(
            groups(&server, &viewer, question).await,
            expected,
            "{question}"
        );
    }
    assert_eq!(
        get(&server, &viewer, "symbols/missing").await["missing"],
        json!([])
    );
    assert_is_readable_elsewhere(&server, &viewer).await;
}

async fn assert_is_readable_elsewhere(server: &Server, viewer: &str) {
    let path = format!("traces?name=com.example.shop.Cart.pay&{PERIOD}");
    let found = get(server, viewer, &path).await;
    let span = &found["spans"][0];
    assert_eq!(span["name"], "com.example.shop.Cart.pay", "{found}");
    let code =
        json!({"class": "com.example.shop.Cart", "function": "pay", "file": "Cart.kt", "line": 0});
    for (name, value) in code.as_object().unwrap() {
        assert_eq!(&span[name], value, "{span}");
    }
    let dash = "SELECT readable_name, sum(count) FROM dash_spans GROUP BY readable_name ORDER BY readable_name";
    assert_eq!(
        server.query(dash).await,
        "Load the cart\t1\ncheckout\t1\ncom.example.shop.Cart.clear\t1\ncom.example.shop.Cart.pay\t1"
    );
    let dash = "SELECT readable_name FROM dash_span_durations WHERE name = 'a.b.a@3ac4769becd3'";
    assert_eq!(server.query(dash).await, "com.example.shop.Cart.pay");
}

#[tokio::test(flavor = "multi_thread")]
async fn builds_of_one_function_are_one_group() {
    let server = Server::start().await;
    server.ready().await;
    let uploads = server
        .token("editor --project default --only-symbols")
        .await;
    let next_id = MAP_ID.replace("5a7d", "6b8e");
    let next = String::from_utf8(mapping())
        .unwrap()
        .replace(MAP_ID, &next_id);
    for file in [mapping(), next.into_bytes()] {
        let state = upload_to(&server, (&uploads, "default"), &file).await;
        assert_eq!(state["state"], "ok", "{state}");
    }
    server.send(&traced(MAP_ID)).await;
    server.send(&traced(&next_id)).await;
    let named = "SELECT countIf(function != '') FROM function_names FINAL";
    server.answers(named, "4").await;
    server.drained().await;
    let viewer = server.token("viewer --project default").await;
    let expected = [
        "Load the cart 2.0",
        "checkout 2.0",
        "com.example.shop.Cart.clear 2.0",
        "com.example.shop.Cart.pay 2.0",
    ];
    assert_eq!(groups(&server, &viewer, "by=name").await, expected);
}
