//! Groups of janks: owners, and decisions that hold until a later version has the group.

use reqwest::Method;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::rules::{OWN, janks};
use crate::server::{Answer, Server};
use crate::wait::until;

const APP: &str = "com.example.shop";
const PROJECT: &str = "/api/v1/projects/default";
const CART: &str = "com.example.Cart";
const FEED: &str = "com.example.Feed";

struct Groups {
    server: Server,
    editor: String,
}

impl Groups {
    /// Starts a server whose rules know the app's code.
    async fn start() -> Self {
        let server = Server::start().await;
        server.ready().await;
        let editor = server.token("editor --project default").await;
        let groups = Self { server, editor };
        let rules =
            json!({"expected_revision": 0, "rules": format!("built_in = true\n{OWN}"), "note": ""});
        let saved = groups.call(Method::PUT, "rules", Some(rules)).await;
        assert_eq!(saved.status, 201, "{}", saved.body);
        until("the rules are in force", async || {
            groups.get("rules/owners").await == json!({"owners": ["team-shop"]})
        })
        .await;
        groups
    }

    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Answer {
        let path = format!("{PROJECT}/{path}");
        self.server.call(&self.editor, method, &path, body).await
    }

    async fn get(&self, path: &str) -> Value {
        self.call(Method::GET, path, None).await.body
    }

    /// Sends a jank per class with a version of the app, and waits until they are stored.
    async fn send(&self, version: &str, classes: &[&str]) {
        let classes: Vec<String> = classes.iter().map(|class| (*class).to_owned()).collect();
        let mut batch = janks(&classes);
        batch["resource"]["app_version"] = json!(version);
        batch["resource"]["install_id"] = json!(Uuid::new_v4());
        let answer = self.server.send(&batch).await;
        assert_eq!(answer.body["accepted"], classes.len(), "{answer:?}");
        self.server.drained().await;
    }

    async fn id_of(&self, class: &str) -> String {
        let sql =
            format!("SELECT group_id FROM stack_class_current WHERE culprit = '{class}.open'");
        self.server.query(&sql).await
    }

    async fn decide(&self, group: &str, state: &str, version: &str, revision: i64) -> Answer {
        let body = json!({"state": state, "app_id": APP, "app_version": version, "expected_revision": revision});
        let path = format!("janks/groups/{group}/handling");
        self.call(Method::PUT, &path, Some(body)).await
    }

    /// The titles of the groups with a status, in alphabetical order.
    async fn titles(&self, status: &str) -> Vec<String> {
        let path = format!("query/janks?by=title&measure=count&to=2026-11-20T12:00:00Z{status}");
        let answer = self.get(&path).await;
        let rows = answer["rows"].as_array();
        let rows = rows.unwrap_or_else(|| panic!("{answer}"));
        let titles = rows.iter().map(|row| row["keys"][0].as_str().unwrap());
        let mut titles: Vec<String> = titles.map(str::to_owned).collect();
        titles.sort();
        titles
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_group_leaves_the_open_ones_until_a_later_version_has_it() {
    let groups = Groups::start().await;
    groups.send("4.9.0", &[CART, FEED]).await;
    let (cart, feed) = (groups.id_of(CART).await, groups.id_of(FEED).await);
    let resolved = groups.decide(&cart, "resolved", "4.9.0", 0).await;
    assert_eq!(resolved.status, 200, "{}", resolved.body);
    let ignored = groups.decide(&feed, "ignored", "4.10.0", 0).await;
    assert_eq!(ignored.status, 200, "{}", ignored.body);
    let open = "&group_status=open";
    assert_eq!(groups.titles(open).await, [""; 0]);
    assert_eq!(groups.titles("").await, ["Cart.open", "Feed.open"]);
    assert_eq!(groups.titles("&group_status=resolved").await, ["Cart.open"]);
    assert_eq!(groups.titles("&group_status=ignored").await, ["Feed.open"]);

    // By number, 4.10.0 is later than 4.9.0, but not later than itself.
    groups.send("4.10.0", &[CART, FEED]).await;
    until("the group came back", async || {
        groups.titles(open).await == ["Cart.open"]
    })
    .await;
    groups.send("4.11.0", &[CART]).await;
    let path = format!("janks/handling?group_id={cart}&group_id={feed}&group_id=1");
    let handling = groups.get(&path).await;
    let of = |id: &str| {
        let all = handling["groups"].as_array().unwrap();
        all.iter()
            .find(|one| one["group_id"] == id)
            .unwrap()
            .clone()
    };
    assert_eq!(
        handling["groups"].as_array().unwrap().len(),
        2,
        "{handling}"
    );
    // The first later version counts.
    assert_eq!(of(&cart)["came_back_in"], "4.10.0");
    assert_eq!(of(&feed)["came_back_in"], Value::Null);
    assert_eq!(groups.titles("&group_status=resolved").await, [""; 0]);

    let reopened = groups.decide(&cart, "open", "", 1).await;
    assert_eq!(reopened.body["state"], "open", "{}", reopened.body);
    assert_eq!(groups.titles(open).await, ["Cart.open"]);
    let other_signal = groups.call(Method::GET, "query/spans?group_status=open", None);
    assert_eq!(other_signal.await.status, 422);
    let unknown = groups.call(Method::GET, "query/janks?group_status=done", None);
    assert_eq!(unknown.await.status, 422);
    let elsewhere = groups.call(Method::GET, "export/janks.csv?group_status=open", None);
    assert_eq!(elsewhere.await.status, 422);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_of_two_editors_gets_a_conflict() {
    let groups = Groups::start().await;
    groups.send("4.9.0", &[CART]).await;
    let cart = groups.id_of(CART).await;
    let first = groups.decide(&cart, "resolved", "4.9.0", 0).await;
    assert_eq!(first.body["revision"], 1, "{}", first.body);
    let second = groups.decide(&cart, "ignored", "4.9.0", 0).await;
    assert_eq!(second.outcome(), (409, "conflict".to_owned()));
    assert_eq!(second.body["current_revision"], 1);
    let path = format!("janks/groups/{cart}/handling");
    assert_eq!(groups.get(&path).await["handling"]["state"], "resolved");
}

#[tokio::test(flavor = "multi_thread")]
async fn comments_are_text_of_the_project_and_only_authors_and_admins_delete_them() {
    let groups = Groups::start().await;
    groups.send("4.9.0", &[CART]).await;
    let cart = groups.id_of(CART).await;
    let comments = format!("janks/groups/{cart}/comments");
    let text = "<img src=x onerror=alert(1)> 'a' OR 1=1 --";
    let made = groups.call(Method::POST, &comments, Some(json!({"text": text})));
    let made = made.await;
    assert_eq!(
        (made.status.as_u16(), &made.body["text"]),
        (201, &json!(text))
    );
    let long = json!({"text": "x".repeat(2_001)});
    let long = groups.call(Method::POST, &comments, Some(long)).await;
    assert_eq!(long.outcome(), (422, "invalid".to_owned()));
    let path = format!("{comments}/{}", made.body["id"].as_str().unwrap());
    let other = groups.server.token("editor --project default").await;
    let admin = groups.server.token("admin --project default").await;
    let delete = async |token: &str, path: &str| {
        let path = format!("{PROJECT}/{path}");
        let answer = groups.server.call(token, Method::DELETE, &path, None);
        answer.await.status
    };
    assert_eq!(delete(&other, &path).await, 404);
    assert_eq!(delete(&groups.editor, &path).await, 204);
    let second = groups.call(Method::POST, &comments, Some(json!({"text": text})));
    let second = second.await.body["id"].as_str().unwrap().to_owned();
    let path = format!("{comments}/{second}");
    let path_of_other_group = format!("janks/groups/12/comments/{second}");
    assert_eq!(delete(&admin, &path_of_other_group).await, 404);
    assert_eq!(delete(&admin, &path).await, 204);
    assert_eq!(delete(&admin, &path).await, 404);
    let audit = format!("{PROJECT}/audit?subject={cart}");
    let audit = groups.server.call(&admin, Method::GET, &audit, None).await;
    let entries = audit.body["entries"].as_array().unwrap().clone();
    let entry = |entry: &Value| format!("{} {}", entry["action"], entry["detail"]["name"]);
    // The entries have the same time, so their order is random.
    let mut entries: Vec<String> = entries.iter().map(entry).collect();
    entries.sort();
    assert_eq!(
        entries,
        [
            "\"jank_group.comment_deleted\" null",
            "\"jank_group.comment_deleted\" null",
            "\"jank_group.commented\" \"Cart.open\"",
            "\"jank_group.commented\" \"Cart.open\""
        ]
    );
    // A group without stacks in the project is not found, even if another project has it.
    let unknown = groups.decide("12", "resolved", "4.9.0", 0).await;
    assert_eq!(unknown.status, 404);
    let unknown = json!({"text": "hot"});
    let unknown = groups.call(Method::POST, "janks/groups/12/comments", Some(unknown));
    assert_eq!(unknown.await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_assigned_owner_moves_no_group_and_comes_before_broader_rules() {
    let groups = Groups::start().await;
    groups.send("4.9.0", &[CART, FEED]).await;
    let cart = groups.id_of(CART).await;
    let path = format!("janks/groups/{cart}/owner-rule");
    let proposed = groups.call(Method::POST, &path, Some(json!({"owner": " team-cart "})));
    let proposed = proposed.await.body;
    assert_eq!(
        (&proposed["stacks"], &proposed["owned"]),
        (&json!(1), &json!(1)),
        "{proposed}"
    );
    assert_eq!(
        proposed["rule"],
        "[[rule]]\nglob = \"com.example.Cart\"\non = \"class\"\nfunction = \"open\"\nmeans = \"in_app\"\n\
         owner = \"team-cart\"\nnote = \"Owner of the jank group: Cart.open\"\n"
    );
    let body = json!({
        "expected_revision": proposed["expected_revision"], "rules": proposed["rules"], "note": "Owner of Cart.open",
    });
    let saved = groups.call(Method::PUT, "rules", Some(body.clone())).await;
    assert_eq!(saved.status, 201, "{}", saved.body);
    let again = groups.call(Method::PUT, "rules", Some(body)).await;
    assert_eq!(again.outcome(), (409, "conflict".to_owned()));
    let owners = "SELECT owner, title FROM stack_class_current ORDER BY title";
    let expected = "team-cart\tCart.open\nteam-shop\tFeed.open";
    groups.server.answers(owners, expected).await;
    assert_eq!(groups.id_of(CART).await, cart);
    for owner in ["", " ", "a\nb", &"x".repeat(101)] {
        let refused = groups.call(Method::POST, &path, Some(json!({"owner": owner})));
        assert_eq!(refused.await.status, 422, "{owner:?}");
    }
    let hostile = json!({"owner": "\"\nmeans = 'ignore' # '''"});
    let hostile = groups.call(Method::POST, &path, Some(hostile)).await;
    assert_eq!(hostile.status, 422);
    let quoted = json!({"owner": "a \"b\" 'c' ''' \\ \"\"\""});
    let quoted = groups.call(Method::POST, &path, Some(quoted)).await;
    assert_eq!(quoted.body["owned"], 1, "{}", quoted.body);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_rules_of_its_own_a_project_keeps_following_the_built_in_ones() {
    let server = Server::start().await;
    server.ready().await;
    let editor = server.token("editor --project default").await;
    let groups = Groups { server, editor };
    groups.send("4.9.0", &[CART]).await;
    let group = groups
        .server
        .query("SELECT group_id FROM stack_class_current")
        .await;
    let path = format!("janks/groups/{group}/owner-rule");
    let proposed = groups.call(Method::POST, &path, Some(json!({"owner": "team-a"})));
    let proposed = proposed.await.body;
    let rule = proposed["rule"].as_str().unwrap();
    assert_eq!(
        proposed["rules"].as_str().unwrap(),
        format!("built_in = true\n\nassume_in_app = true\n\n{rule}")
    );
    assert_eq!(proposed["owned"], 1, "{proposed}");
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_and_comments_follow_a_group_that_rules_move() {
    let groups = Groups::start().await;
    groups.send("4.9.0", &[CART]).await;
    let before = groups.id_of(CART).await;
    groups.decide(&before, "resolved", "4.9.0", 0).await;
    let comments = format!("janks/groups/{before}/comments");
    groups
        .call(Method::POST, &comments, Some(json!({"text": "hot"})))
        .await;
    // Another category moves the stacks to another group.
    let category =
        "[[rule]]\nmatch = \"com.library.\"\nmeans = \"category\"\ncategory = \"codec\"\n";
    let rules = json!({"expected_revision": 1, "rules": format!("built_in = true\n{category}{OWN}"), "note": ""});
    let saved = groups.call(Method::PUT, "rules", Some(rules)).await;
    assert_eq!(saved.status, 201, "{}", saved.body);
    until("the group has moved", async || {
        groups.id_of(CART).await != before
    })
    .await;
    let after = groups.id_of(CART).await;
    let path = format!("janks/groups/{after}/handling");
    until("the decision has followed", async || {
        groups.get(&path).await["handling"]["state"] == "resolved"
    })
    .await;
    let followed = groups.get(&path).await;
    assert_eq!(followed["handling"]["app_version"], "4.9.0");
    assert_eq!(followed["comments"][0]["text"], "hot");
    assert_eq!(groups.titles("&group_status=open").await, [""; 0]);
}
