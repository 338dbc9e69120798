//! A user's roles follow the claims of each login.

use reqwest::Method;
use serde_json::{Value, json};

use super::provider::Provider;
use super::{Browser, server, users};
use crate::people::{self, EMAIL, as_person, request};
use crate::server::{Answer, Server};

const MAPPED: [&str; 2] = [
    "--oidc-role",
    "leads=default:admin;devs=default:editor;devs=shop:viewer;ops=operator;ghosts=no-such-project:viewer",
];

async fn mapped(provider: &Provider) -> Server {
    let server = server(provider, &MAPPED).await;
    let token = server.token("admin").await;
    let shop = Some(json!({"id": "shop"}));
    let made = server.call(&token, Method::POST, "/api/v1/projects", shop);
    assert_eq!(made.await.status, 201);
    server
}

fn give(provider: &Provider, groups: &Value) {
    provider
        .change(|manners| manners.claims = json!({"groups": groups, "email": "bob@example.com"}));
}

impl Browser<'_> {
    async fn ask(&self, method: Method, path: &str, body: Value) -> Answer {
        let request = request(self.server, method, path);
        let request = request.header("cookie", self.cookie_header());
        Answer::of(request.json(&body).send().await.unwrap()).await
    }

    async fn make_token(&self, path: &str) -> String {
        let body = json!({"name": "nightly", "role": "viewer"});
        let made = self.ask(Method::POST, path, body).await;
        assert_eq!(made.status, 201, "{:?}", made.body);
        made.body["token"].as_str().unwrap().to_owned()
    }

    async fn roles(&self) -> Value {
        let me = self.me().await.body;
        json!([me["is_admin"], me["roles"]])
    }
}

async fn opens(server: &Server, token: &str, project: &str) -> bool {
    let path = format!("/api/v1/projects/{project}/keys");
    let answer = server.call(token, Method::GET, &path, None).await;
    answer.status == 200
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_follow_the_claim_and_tokens_lose_access_with_them() {
    let provider = Provider::start().await;
    let server = mapped(&provider).await;
    let _boss = people::admin(&server).await;
    give(&provider, &json!(["devs", "leads", "unknown"]));
    let mut browser = Browser::new(&server);
    assert_eq!(browser.log_in(&provider).await, "/");
    let both = json!([false, [{"project": "default", "role": "admin"}, {"project": "shop", "role": "viewer"}]]);
    assert_eq!(browser.roles().await, both);
    let token = browser.make_token("/projects/default/tokens").await;
    assert!(opens(&server, &token, "default").await);
    // A string counts as a list of one. The earlier session has the new roles, too.
    give(&provider, &json!("devs"));
    let mut second = Browser::new(&server);
    assert_eq!(second.log_in(&provider).await, "/");
    let devs = json!([false, [{"project": "default", "role": "editor"}, {"project": "shop", "role": "viewer"}]]);
    assert_eq!(second.roles().await, devs);
    assert_eq!(browser.roles().await, devs);
    assert!(!opens(&server, &token, "default").await);
    // The user becomes an operator and then loses the role.
    give(&provider, &json!(["ops", "leads"]));
    assert_eq!(second.log_in(&provider).await, "/");
    let tokens = [
        second.make_token("/tokens").await,
        second.make_token("/projects/shop/tokens").await,
        second.make_token("/projects/default/tokens").await,
    ];
    let audit = second.ask(Method::GET, "/audit", json!(null)).await;
    let entries = audit.body["entries"].as_array().unwrap();
    let set = entries
        .iter()
        .find(|entry| entry["action"] == "user.operator_set");
    let actor = format!("system:openid-connect {}", provider.issuer());
    assert_eq!(set.unwrap()["actor"], json!(actor));
    give(&provider, &json!(["leads"]));
    assert_eq!(second.log_in(&provider).await, "/");
    let leads = json!([false, [{"project": "default", "role": "admin"}]]);
    assert_eq!(second.roles().await, leads);
    for token in &tokens {
        assert!(!opens(&server, token, "shop").await);
        assert!(!opens(&server, token, "default").await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_without_a_role_cannot_log_in_and_loses_all_sessions() {
    let provider = Provider::start().await;
    let server = mapped(&provider).await;
    let _boss = people::admin(&server).await;
    for groups in [
        json!([]),
        json!(["unknown"]),
        json!(null),
        json!({"devs": true}),
        json!(["ghosts"]),
    ] {
        give(&provider, &groups);
        let page = Browser::new(&server).log_in(&provider).await;
        assert_eq!(page, "/?login_error=no_role", "{groups}");
    }
    give(&provider, &json!(["devs"]));
    let mut browser = Browser::new(&server);
    assert_eq!(browser.log_in(&provider).await, "/");
    give(&provider, &json!([]));
    let page = Browser::new(&server).log_in(&provider).await;
    assert_eq!(page, "/?login_error=no_role");
    // Every session ends at once.
    assert_eq!(browser.me().await.status, 401);
    assert_eq!(browser.refresh().await, 401);
    let bob = users(&server).await;
    let bob = bob.iter().find(|user| user["email"] == "bob@example.com");
    assert_eq!(bob.unwrap()["disabled_at"], json!(null));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_claim_can_come_from_the_user_info_of_the_same_subject() {
    let provider = Provider::start().await;
    provider.change(|manners| {
        manners.claims = json!({"email": null, "email_verified": null, "name": null});
        manners.user_info = Some(json!({
            "sub": "subject-1", "groups": ["devs"], "email": "bob@example.com", "email_verified": "true", "updated_at": "2026-11-01T00:00:00Z",
        }));
    });
    let server = mapped(&provider).await;
    let mut browser = Browser::new(&server);
    assert_eq!(browser.log_in(&provider).await, "/");
    assert_eq!(browser.me().await.body["name"], "bob@example.com");
    // A failed login removes no role.
    for wrong in [
        json!({"sub": "subject-2", "groups": ["ops"]}),
        json!({"groups": ["ops"]}),
        json!([]),
    ] {
        provider.change(|manners| manners.user_info = Some(wrong));
        let page = Browser::new(&server).log_in(&provider).await;
        assert_eq!(page, "/?login_error=invalid");
    }
    provider.change(|manners| manners.user_info = None);
    let page = Browser::new(&server).log_in(&provider).await;
    assert_eq!(page, "/?login_error=invalid");
    assert_eq!(browser.roles().await[1].as_array().unwrap().len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_user_is_refused() {
    let provider = Provider::start().await;
    let server = mapped(&provider).await;
    let boss = people::admin(&server).await;
    give(&provider, &json!(["devs"]));
    let mut browser = Browser::new(&server);
    assert_eq!(browser.log_in(&provider).await, "/");
    let id = browser.me().await.body["id"].as_str().unwrap().to_owned();
    let path = format!("/users/{id}");
    let disabled = as_person(&server, &boss, Method::DELETE, &path, json!(null)).await;
    assert_eq!(disabled.status, 204);
    let page = Browser::new(&server).log_in(&provider).await;
    assert_eq!(page, "/?login_error=disabled");
    assert_eq!(browser.me().await.status, 401);
    // So is a disabled user who was never linked to the provider.
    let disable = ["user", "add", "--email", "eve@example.com", "--name", "Eve"];
    server.command(&disable).await;
    let all = users(&server).await;
    let eve = all.iter().find(|user| user["email"] == "eve@example.com");
    let path = format!("/users/{}", eve.unwrap()["id"].as_str().unwrap());
    as_person(&server, &boss, Method::DELETE, &path, json!(null)).await;
    provider.change(|manners| {
        manners.claims = json!({"sub": "eve", "email": "eve@example.com", "groups": ["ops"]});
    });
    let page = Browser::new(&server).log_in(&provider).await;
    assert_eq!(page, "/?login_error=disabled");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_operator_with_a_password_keeps_the_role() {
    let provider = Provider::start().await;
    let server = mapped(&provider).await;
    let boss = people::admin(&server).await;
    // An operator without a password does not count, because that operator cannot log in while the provider is down.
    provider.change(|manners| {
        manners.claims = json!({"sub": "bob", "email": "bob@example.com", "groups": ["ops"]});
    });
    assert_eq!(Browser::new(&server).log_in(&provider).await, "/");
    provider.change(|manners| manners.claims = json!({"groups": ["devs"]}));
    let mut browser = Browser::new(&server);
    assert_eq!(browser.log_in(&provider).await, "/");
    assert_eq!(browser.roles().await[0], json!(true));
    // With another such operator, the claim decides.
    let add = [
        "user",
        "add",
        "--email",
        "zoe@example.com",
        "--name",
        "Zoe",
        "--admin",
    ];
    let invitation = server.command(&add).await;
    let body = json!({"token": invitation, "password": people::PASSWORD});
    let accepted = request(&server, Method::POST, "/invitation").json(&body);
    assert_eq!(accepted.send().await.unwrap().status(), 200);
    assert_eq!(browser.log_in(&provider).await, "/");
    assert_eq!(browser.roles().await[0], json!(false));
    let me = as_person(&server, &boss, Method::GET, "/me", json!(null)).await;
    assert_eq!(me.body["email"], EMAIL);
    assert_eq!(me.body["is_admin"], json!(false));
}
