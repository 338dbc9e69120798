//! The first run: a fresh server is set up in the browser, with the code that it printed.

use std::process::Stdio;
use std::time::Duration;

use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::people::{Cookies, EMAIL, PASSWORD, admin, as_person, log_in, request};
use crate::postgres::postgres;
use crate::server::{Answer, KEY, Server};
use crate::wait;

/// Makes a set-up code as `unjank serve` does when it starts. Returns `None` if the server is set up.
async fn offer(server: &Server) -> Option<String> {
    server.ready().await;
    let app = server.app();
    let code = app.logins.offer_set_up(&app.control).await.unwrap();
    code.map(|code| code.reveal().to_owned())
}

async fn set_up_from(server: &Server, code: &str, from: &str) -> Response {
    let body = json!({"code": code, "email": EMAIL, "name": "Ann", "password": PASSWORD});
    let request = request(server, Method::POST, "/setup").header("x-forwarded-for", from);
    request.json(&body).send().await.unwrap()
}

async fn set_up(server: &Server, code: &str) -> Response {
    set_up_from(server, code, "192.0.2.1").await
}

async fn outcome(answer: Response) -> (u16, String) {
    Answer::of(answer).await.outcome()
}

async fn needs_setup(server: &Server) -> Value {
    let methods = request(server, Method::GET, "/session/methods");
    let answer = Answer::of(methods.send().await.unwrap()).await;
    answer.body["needs_setup"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_code_of_a_fresh_server_creates_one_admin_who_is_logged_in() {
    let server = Server::start().await;
    let refused = (403, "setup_code_wrong".to_owned());
    assert_eq!(needs_setup(&server).await, json!(true));
    // Before the server has made a code, none is valid.
    assert_eq!(outcome(set_up(&server, "").await).await, refused);
    let code = offer(&server).await.unwrap();
    assert_eq!(code.len(), 4 + 43);
    for wrong in [
        "",
        "ujs_guessed",
        code.get(..46).unwrap(),
        &format!("{code}x"),
    ] {
        assert_eq!(outcome(set_up(&server, wrong).await).await, refused);
    }
    // A password that is too short does not use up the code.
    let short = json!({"code": code, "email": EMAIL, "name": "Ann", "password": "short"});
    let short = request(&server, Method::POST, "/setup").json(&short);
    let short = outcome(short.send().await.unwrap()).await;
    assert_eq!(short, (422, "password_unfit".to_owned()));
    let done = set_up(&server, &code).await;
    assert_eq!(done.status(), 200);
    let cookies = Cookies::of(&done);
    let me = as_person(&server, &cookies, Method::GET, "/me", json!(null)).await;
    assert_eq!(
        (&me.body["email"], &me.body["is_admin"]),
        (&json!(EMAIL), &json!(true))
    );
    let log = as_person(&server, &cookies, Method::GET, "/audit", json!(null)).await;
    let entries = log.body["entries"].as_array().unwrap();
    let created = entries.iter().find(|one| one["action"] == "user.created");
    assert_eq!(created.unwrap()["actor"], json!("system:set-up"));
    assert_eq!(needs_setup(&server).await, json!(false));
    let again = outcome(set_up(&server, &code).await).await;
    assert_eq!(again, (409, "already_set_up".to_owned()));
    assert_eq!(offer(&server).await, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_user_of_the_command_line_ends_the_set_up_and_a_restart_makes_another_code() {
    let mut server = Server::start().await;
    let first = offer(&server).await.unwrap();
    server.restart().await;
    let second = offer(&server).await.unwrap();
    assert_ne!(first, second);
    let old = outcome(set_up(&server, &first).await).await;
    assert_eq!(old, (403, "setup_code_wrong".to_owned()));
    let _cookies = admin(&server).await;
    let late = outcome(set_up(&server, &second).await).await;
    assert_eq!(late, (409, "already_set_up".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_set_ups_on_two_servers_with_one_database_one_wins() {
    let postgres = tokio::task::spawn_blocking(postgres).await.unwrap();
    let database = postgres.database().await;
    let secret = "one secret for all servers of this test";
    let one = Server::with(&["--database-url", &database, "--secret", secret]).await;
    one.ready().await;
    let other = one.beside().await;
    other.ready().await;
    let codes = (offer(&one).await.unwrap(), offer(&other).await.unwrap());
    // Each server knows its own code only.
    let crossed = outcome(set_up(&one, &codes.1).await).await;
    assert_eq!(crossed, (403, "setup_code_wrong".to_owned()));
    let answers = futures_util::future::join_all((0..8).map(async |n| {
        let (server, code) = match n % 2 {
            0 => (&one, &codes.0),
            _ => (&other, &codes.1),
        };
        let body = json!({"code": code, "email": format!("{n}@example.com"), "name": "Ann", "password": PASSWORD});
        let request = request(server, Method::POST, "/setup").json(&body);
        request.send().await.unwrap().status().as_u16()
    }));
    let mut answers = answers.await;
    answers.sort_unstable();
    assert_eq!(answers, [200, 409, 409, 409, 409, 409, 409, 409]);
}

#[tokio::test(flavor = "multi_thread")]
async fn guesses_of_the_code_are_throttled_by_address_and_in_all() {
    let server = Server::with(&["--trusted-proxies", "127.0.0.0/8"]).await;
    let code = offer(&server).await.unwrap();
    let guess = async |from: &str| set_up_from(&server, "ujs_guessed", from).await.status();
    let mut of_one = Vec::new();
    for _ in 0..33 {
        of_one.push(guess("192.0.2.1").await.as_u16());
    }
    // Two attempts were delayed, by two and four seconds.
    assert!(!of_one[..32].contains(&429), "{of_one:?}");
    assert_eq!(of_one[32], 429);
    for n in 0..40 {
        let _refused = guess(&format!("198.51.100.{n}")).await;
    }
    assert_eq!(guess("203.0.113.1").await, 429);
    // After some seconds, the holder of the code gets in.
    server.pass(Duration::from_secs(10));
    assert_eq!(
        set_up_from(&server, &code, "203.0.113.2").await.status(),
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_program_prints_the_link_of_the_set_up_until_there_is_a_user() {
    let folder = tempfile::tempdir().unwrap();
    let link = async || {
        let serves = folder.path().join("server.json");
        let _there = std::fs::remove_file(&serves).is_ok();
        let mut child = Command::new(env!("CARGO_BIN_EXE_unjank"))
            .args([
                "serve",
                "--listen",
                "127.0.0.1:0",
                "--admin-listen",
                "127.0.0.1:0",
            ])
            .args(["--clickhouse-url", "http://127.0.0.1:9", "--data-dir"])
            .arg(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        wait::until("the program serves", async || serves.exists()).await;
        child.start_kill().unwrap();
        let printed = child.wait_with_output().await.unwrap().stdout;
        let printed = String::from_utf8(printed).unwrap();
        let mut lines = printed.lines();
        let link = lines.find(|line| line.contains("/setup#code="));
        link.map(|line| line.trim().to_owned())
    };
    let first = link().await.unwrap();
    assert!(first.starts_with("http://127.0.0.1:"), "{first}");
    assert!(first.contains("/setup#code=ujs_"), "{first}");
    assert_ne!(link().await.unwrap(), first);
    let add = [
        "user",
        "add",
        "--email",
        EMAIL,
        "--name",
        "Ann",
        "--data-dir",
    ];
    let added = Command::new(env!("CARGO_BIN_EXE_unjank"))
        .args(add)
        .arg(folder.path())
        .output();
    assert!(added.await.unwrap().status.success());
    assert_eq!(link().await, None);
}

/// Returns when the listed invitation of Bob expires.
async fn listed_expiry(server: &Server, boss: &Cookies) -> Value {
    let users = as_person(server, boss, Method::GET, "/users", json!(null)).await;
    let mut users = users.body["users"].as_array().unwrap().iter();
    let bob = users.find(|one| one["name"] == "Bob").unwrap();
    bob["invitation_expires_at"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_open_invitation_of_a_person_is_listed_and_can_be_cancelled() {
    let server = Server::start().await;
    let boss = admin(&server).await;
    let new = json!({"email": "bob@example.com", "name": "Bob"});
    let bob = as_person(&server, &boss, Method::POST, "/users", new).await;
    let path = format!("/users/{}/invitation", bob.body["id"].as_str().unwrap());
    let expiry = bob.body["invitation_expires_at"].clone();
    assert!(expiry.is_i64());
    assert_eq!(listed_expiry(&server, &boss).await, expiry);
    // An expired invitation is still listed, until another one replaces it.
    server.pass(Duration::from_secs(8 * 86_400));
    let take = async |token: &Value| {
        let body = json!({"token": token, "password": PASSWORD});
        let request = request(&server, Method::POST, "/invitation").json(&body);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(take(&bob.body["invitation"]).await, 404);
    let boss = Cookies::of(&log_in(&server, EMAIL, PASSWORD).await);
    let call = async |method| as_person(&server, &boss, method, &path, json!(null)).await;
    assert_eq!(listed_expiry(&server, &boss).await, expiry);
    let second = call(Method::POST).await;
    assert!(second.body["invitation_expires_at"].as_i64() > expiry.as_i64());
    assert_eq!(call(Method::DELETE).await.status, 204);
    assert_eq!(take(&second.body["invitation"]).await, 404);
    assert_eq!(listed_expiry(&server, &boss).await, json!(null));
    let twice = call(Method::DELETE).await;
    assert_eq!(twice.outcome(), (404, "not_found".to_owned()));
    let third = call(Method::POST).await;
    assert_eq!(take(&third.body["invitation"]).await, 200);
    assert_eq!(listed_expiry(&server, &boss).await, json!(null));
}

#[tokio::test(flavor = "multi_thread")]
async fn admins_of_a_project_see_the_keys_that_were_refused() {
    let server = Server::start().await;
    let operator = server.token("admin").await;
    let call = async |method, path: &str, body| server.call(&operator, method, path, body).await;
    for project in ["shop", "bank"] {
        let made = call(
            Method::POST,
            "/api/v1/projects",
            Some(json!({"id": project})),
        )
        .await;
        assert_eq!(made.status, 201);
    }
    // A key of the shop that is revoked.
    let keys = "/api/v1/projects/shop/keys";
    let key = call(Method::POST, keys, Some(json!({"name": "old"}))).await;
    let (id, secret) = (&key.body["id"], key.body["key"].as_str().unwrap());
    let path = format!("{keys}/{}", id.as_str().unwrap());
    assert_eq!(call(Method::DELETE, &path, None).await.status, 204);
    server.pass(Duration::from_secs(1));
    let send = async |key: &str| {
        let request = server.request_with(key).body("{}");
        request.send().await.unwrap().status().as_u16()
    };
    wait::until("the key is revoked", async || send(secret).await == 401).await;
    for _ in 0..2 {
        assert_eq!(
            send("ujt_a-token-of-the-api-by-mistake-0123456789012").await,
            401
        );
    }
    let keyless = server.client.post(format!("{}/v1/ingest", server.url));
    assert_eq!(keyless.send().await.unwrap().status(), 401);
    // An accepted key is not listed.
    assert_ne!(send(KEY).await, 401);
    let seen = async |project: &str| {
        let path = format!("/api/v1/projects/{project}/keys/refused");
        let answer = call(Method::GET, &path, None).await;
        let refused = answer.body["refused"].as_array().unwrap().clone();
        let fields = |one: &Value| json!([one["code"], one["prefix"], one["key"]]);
        Value::from(refused.iter().map(fields).collect::<Vec<_>>())
    };
    let everyones = [
        json!(["key_missing", "", null]),
        json!(["key_unknown", "ujt_a-to…", null]),
    ];
    assert_eq!(seen("bank").await, json!(everyones));
    let prefix = format!("{}…", secret.get(..8).unwrap());
    let own = json!(["key_unknown", prefix, id]);
    assert_eq!(
        seen("shop").await,
        json!([&everyones[0], &everyones[1], own])
    );
}
