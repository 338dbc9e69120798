//! Accounts: invitations, passwords and sessions. Tokens end with the account or role behind them, and cannot create anything that
//! outlives them.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use crate::people::{Cookies, EMAIL, PASSWORD, admin, as_person, log_in, request};
use crate::server::{NOW, Server};

const SECOND: i64 = 1_000_000;

/// Creates a person with a role in the default project, and accepts the invitation for them.
async fn person(server: &Server, operator: &str, email: &str, role: &str) -> (String, Cookies) {
    let new = json!({"email": email, "name": "Bob"});
    let made = server
        .call(operator, Method::POST, "/api/v1/users", Some(new))
        .await;
    let id = made.body["id"].as_str().unwrap().to_owned();
    let member = format!("/api/v1/projects/default/members/{id}");
    let role = Some(json!({"role": role}));
    let given = server.call(operator, Method::PUT, &member, role).await;
    assert_eq!(given.status, 204);
    let taken = take(server, &made.body["invitation"]).await;
    (id, taken.unwrap())
}

/// Accepts an invitation. Returns the cookies of the new session, or `None` if the server refuses.
async fn take(server: &Server, invitation: &Value) -> Option<Cookies> {
    let body = json!({"token": invitation, "password": PASSWORD});
    let request = request(server, Method::POST, "/invitation").json(&body);
    let response = request.send().await.unwrap();
    (response.status() == 200).then(|| Cookies::of(&response))
}

/// Makes an API token for the default project.
async fn token_of(server: &Server, cookies: &Cookies) -> String {
    let new = json!({"name": "ci", "role": "admin"});
    let path = "/projects/default/tokens";
    let made = as_person(server, cookies, Method::POST, path, new).await;
    made.body["token"].as_str().unwrap().to_owned()
}

async fn works(server: &Server, token: &str) -> bool {
    let path = "/api/v1/projects/default/keys";
    server.call(token, Method::GET, path, None).await.status == 200
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_passwords_of_others_do_not_lock_out_a_browser_that_logged_in_before() {
    let server = Server::away(&["--trusted-proxies", "127.0.0.0/8"]).await;
    let _cookies = admin(&server).await;
    let from = async |address: &str, password: &str, cookie: &str| {
        let body = json!({"email": EMAIL, "password": password});
        let request = request(&server, Method::POST, "/login").json(&body);
        let request = request.header("x-forwarded-for", address);
        request.header("cookie", cookie).send().await.unwrap()
    };
    let home = "192.0.2.1";
    let known = from(home, PASSWORD, "").await;
    let cookie = Cookies::device_of(&known);
    for _ in 0..10 {
        assert_eq!(from(home, "wrong wrong wrong", "").await.status(), 401);
    }
    // From this address even the right password has to wait, unless a known browser sends it. Other addresses need not wait.
    assert_eq!(from(home, PASSWORD, "").await.status(), 429);
    assert_eq!(from(home, PASSWORD, &cookie).await.status(), 200);
    assert_eq!(from("192.0.2.2", PASSWORD, "").await.status(), 200);
    let forged = format!("{cookie}x");
    assert_eq!(from(home, PASSWORD, &forged).await.status(), 429);
    // After some seconds, the right password is accepted from this address too.
    server.pass(Duration::from_secs(8));
    assert_eq!(from(home, PASSWORD, "").await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn disabling_a_person_revokes_their_tokens_unless_the_operator_takes_them_over() {
    let server = Server::away(&[]).await;
    let operator = server.token("admin").await;
    for (query, survives) in [("", false), ("?tokens=take_over", true)] {
        let email = format!("bob{survives}@example.com");
        let (bob, cookies) = person(&server, &operator, &email, "admin").await;
        let token = token_of(&server, &cookies).await;
        let more = json!({"name": "made by a token", "role": "viewer"});
        let path = "/api/v1/projects/default/tokens";
        let made = server.call(&token, Method::POST, path, Some(more)).await;
        let grandchild = made.body["token"].as_str().unwrap().to_owned();
        assert!(works(&server, &token).await && works(&server, &grandchild).await);
        let path = format!("/api/v1/users/{bob}{query}");
        let gone = server.call(&operator, Method::DELETE, &path, None).await;
        assert_eq!(gone.status, 204);
        assert_eq!(works(&server, &token).await, survives);
        assert_eq!(works(&server, &grandchild).await, survives);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lowering_or_removing_a_role_revokes_the_tokens_made_with_it() {
    let server = Server::away(&[]).await;
    let operator = server.token("admin").await;
    for new_role in [Some("editor"), None] {
        let email = format!("{}@example.com", new_role.unwrap_or("none"));
        let (bob, cookies) = person(&server, &operator, &email, "admin").await;
        let token = token_of(&server, &cookies).await;
        assert!(works(&server, &token).await);
        let path = format!("/api/v1/projects/default/members/{bob}");
        let (method, body) = match new_role {
            Some(role) => (Method::PUT, Some(json!({"role": role}))),
            None => (Method::DELETE, None),
        };
        let changed = server.call(&operator, method, &path, body).await;
        assert_eq!(changed.status, 204);
        assert!(!works(&server, &token).await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_creates_nothing_that_outlives_it() {
    let server = Server::away(&[]).await;
    let operator = server.token("admin").await;
    let end = NOW + 60 * SECOND;
    let short = json!({"name": "a minute", "role": "admin", "expires_at": end});
    let made = server
        .call(&operator, Method::POST, "/api/v1/tokens", Some(short))
        .await;
    let (id, short) = (&made.body["id"], made.body["token"].as_str().unwrap());
    let post = async |path: &str, body: Value| {
        let path = format!("/api/v1{path}");
        server.call(short, Method::POST, &path, Some(body)).await
    };
    // A token that expires cannot create anything that never expires.
    let secret =
        json!({"algorithm": "HS256", "material": "a-secret-of-the-shop-that-is-long-enough"});
    let eve = json!({"email": "eve@example.com", "name": "Eve", "is_admin": true});
    for (path, body) in [
        ("/users", eve),
        ("/users", json!({"email": "eve@example.com", "name": "Eve"})),
        ("/projects/default/device-keys", secret),
    ] {
        let refused = post(path, body).await;
        let expected = (403, "token_outlives_its_maker".to_owned());
        assert_eq!(refused.outcome(), expected, "{path}");
    }
    let (bob, _) = person(&server, &operator, "bob@example.com", "viewer").await;
    let member = format!("/api/v1/projects/default/members/{bob}");
    let role = Some(json!({"role": "admin"}));
    let refused = server.call(short, Method::PUT, &member, role).await;
    assert_eq!(refused.status, 403);
    // It can create a key or a token, but none that expires later than itself.
    let key = post("/projects/default/keys", json!({"name": "k"})).await;
    assert_eq!(
        (key.status.as_u16(), &key.body["expires_at"]),
        (201, &json!(end))
    );
    let later = json!({"name": "k", "expires_at": end + 1});
    assert_eq!(post("/projects/default/keys", later).await.status, 403);
    let path = format!(
        "/api/v1/projects/default/keys/{}",
        key.body["id"].as_str().unwrap()
    );
    for expiry in [json!(null), json!(end + 1)] {
        let patch = Some(json!({"expires_at": expiry}));
        assert_eq!(
            server.call(short, Method::PATCH, &path, patch).await.status,
            403
        );
    }
    let child = post("/tokens", json!({"name": "child", "role": "admin"})).await;
    assert_eq!(child.body["expires_at"], json!(end));
    // Revoking a token also revokes the tokens that it created.
    let child = child.body["token"].as_str().unwrap();
    assert!(works(&server, child).await);
    let path = format!("/api/v1/tokens/{}", id.as_str().unwrap());
    server.call(&operator, Method::DELETE, &path, None).await;
    assert!(!works(&server, child).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_latest_invitation_works_until_a_new_password_or_disabling() {
    let server = Server::away(&[]).await;
    let operator = server.token("admin").await;
    let new = json!({"email": "bob@example.com", "name": "Bob"});
    let made = server
        .call(&operator, Method::POST, "/api/v1/users", Some(new))
        .await;
    let id = made.body["id"].as_str().unwrap();
    let again = async || {
        let path = format!("/api/v1/users/{id}/invitation");
        let again = server.call(&operator, Method::POST, &path, None).await;
        assert_eq!(again.status, 201);
        again.body["invitation"].clone()
    };
    let second = again().await;
    assert!(take(&server, &made.body["invitation"]).await.is_none());
    let cookies = take(&server, &second).await.unwrap();
    // An unused invitation becomes invalid when the person sets a password, and when the person is disabled.
    let third = again().await;
    let change = json!({"password": PASSWORD, "new_password": "another long password"});
    let changed = as_person(&server, &cookies, Method::POST, "/me/password", change).await;
    assert_eq!(changed.status, 200);
    assert!(take(&server, &third).await.is_none());
    let fourth = again().await;
    let path = format!("/api/v1/users/{id}");
    server.call(&operator, Method::DELETE, &path, None).await;
    assert!(take(&server, &fourth).await.is_none());
    assert_eq!(
        log_in(&server, "bob@example.com", "another long password")
            .await
            .status(),
        401
    );
    let path = format!("/api/v1/users/{id}/enable");
    assert_eq!(
        server
            .call(&operator, Method::POST, &path, None)
            .await
            .status,
        204
    );
    assert_eq!(
        log_in(&server, "bob@example.com", "another long password")
            .await
            .status(),
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn people_change_their_password_and_see_and_end_their_sessions() {
    let server = Server::away(&[]).await;
    let first = admin(&server).await;
    let second = Cookies::of(&log_in(&server, EMAIL, PASSWORD).await);
    let get = async |cookies: &Cookies, path: &str| {
        as_person(&server, cookies, Method::GET, path, json!(null)).await
    };
    let sessions = get(&first, "/me/sessions").await.body["sessions"].clone();
    let sessions = sessions.as_array().unwrap();
    let own: Vec<_> = sessions.iter().map(|one| one["is_this"] == true).collect();
    assert_eq!((own.len(), own.iter().filter(|own| **own).count()), (2, 1));
    let other = sessions.iter().find(|one| one["is_this"] == false).unwrap();
    let path = format!("/me/sessions/{}", other["id"].as_str().unwrap());
    let ended = as_person(&server, &first, Method::DELETE, &path, json!(null)).await;
    assert_eq!(ended.status, 204);
    assert_eq!(get(&second, "/me").await.status, 401);
    let again = as_person(&server, &first, Method::DELETE, &path, json!(null)).await;
    assert_eq!(again.status, 404);

    let change = async |present: &str, new: &str| {
        let body = json!({"password": present, "new_password": new});
        as_person(&server, &first, Method::POST, "/me/password", body).await
    };
    assert_eq!(
        change("not the present one", "another long password")
            .await
            .status,
        401
    );
    assert_eq!(
        change(PASSWORD, "short").await.outcome(),
        (422, "password_unfit".to_owned())
    );
    assert_eq!(change(PASSWORD, "another long password").await.status, 200);
    assert_eq!(get(&first, "/me").await.status, 401);
    let third = Cookies::of(&log_in(&server, EMAIL, "another long password").await);
    let out = as_person(&server, &third, Method::DELETE, "/me/sessions", json!(null)).await;
    assert_eq!(out.status, 204);
    assert_eq!(get(&third, "/me").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_installation_has_an_audit_log() {
    let server = Server::away(&[]).await;
    let operator = server.token("admin").await;
    let (_, cookies) = person(&server, &operator, "bob@example.com", "admin").await;
    let all = server
        .call(&operator, Method::GET, "/api/v1/audit", None)
        .await;
    let entries = all.body["entries"].as_array().unwrap();
    let of = |action: &str| entries.iter().find(|one| one["action"] == action).unwrap();
    assert_eq!(of("user.created")["project"], json!(null));
    assert_eq!(of("membership.set")["project"], "default");
    let refused = as_person(&server, &cookies, Method::GET, "/audit", json!(null)).await;
    assert_eq!(refused.outcome(), (403, "role".to_owned()));
}
