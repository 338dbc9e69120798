//! People: from the first invitation to the end of a session.

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::server::{Answer, Server};

const EMAIL: &str = "ann@example.com";
const PASSWORD: &str = "correct horse battery";

/// What a browser keeps.
#[derive(Clone, Debug)]
pub(crate) struct Cookies {
    /// `name=value`.
    pub(crate) session: String,
    refresh: String,
}

impl Cookies {
    fn of(response: &Response) -> Self {
        let value = |name: &str| {
            let all = response.headers().get_all("set-cookie");
            let mut values = all.iter().map(|value| value.to_str().unwrap());
            let cookie = values.find(|value| value.starts_with(name)).unwrap();
            for attribute in ["HttpOnly", "Secure", "SameSite"] {
                assert!(cookie.contains(attribute), "{cookie}");
            }
            cookie.split(';').next().unwrap().to_owned()
        };
        Self {
            session: value("__Host-unjank="),
            refresh: value("__Secure-unjank-refresh="),
        }
    }
}

fn request(server: &Server, method: Method, path: &str) -> RequestBuilder {
    server
        .client
        .request(method, format!("{}/api/v1{path}", server.url))
}

async fn log_in(server: &Server, email: &str, password: &str) -> Response {
    let body = json!({"email": email, "password": password});
    request(server, Method::POST, "/login")
        .json(&body)
        .send()
        .await
        .unwrap()
}

/// An admin who took the invitation that the command line prints.
pub(crate) async fn admin(server: &Server) -> Cookies {
    let add = ["user", "add", "--email", EMAIL, "--name", "Ann", "--admin"];
    let invitation = server.command(&add).await;
    let body = json!({"token": invitation, "password": PASSWORD});
    let accepted = request(server, Method::POST, "/invitation")
        .json(&body)
        .send()
        .await
        .unwrap();
    assert_eq!(accepted.status(), 200);
    Cookies::of(&accepted)
}

async fn as_person(
    server: &Server,
    cookies: &Cookies,
    method: Method,
    path: &str,
    body: Value,
) -> Answer {
    let request = request(server, method, path).header("cookie", &cookies.session);
    Answer::of(request.json(&body).send().await.unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_admin_takes_an_invitation_once_and_logs_in() {
    let server = Server::start().await;
    let cookies = admin(&server).await;
    let me = as_person(&server, &cookies, Method::GET, "/me", json!(null)).await;
    assert_eq!(
        (&me.body["email"], &me.body["is_admin"]),
        (&json!(EMAIL), &json!(true))
    );
    let invitation = server.command(&["user", "invite", "--email", EMAIL]).await;
    let take = async |token: &str, password: &str| {
        let body = json!({"token": token, "password": password});
        let request = request(&server, Method::POST, "/invitation").json(&body);
        Answer::of(request.send().await.unwrap()).await.outcome()
    };
    assert_eq!(
        take(&invitation, "short").await,
        (422, "password_unfit".to_owned())
    );
    assert_eq!(take(&invitation, "another long password").await.0, 200);
    assert_eq!(
        take(&invitation, "another long password").await,
        (404, "invitation_unknown".to_owned())
    );
    // A new password ends what was open.
    let me = as_person(&server, &cookies, Method::GET, "/me", json!(null)).await;
    assert_eq!(me.outcome(), (401, "session_ended".to_owned()));
    assert_eq!(log_in(&server, EMAIL, PASSWORD).await.status(), 401);
    assert_eq!(
        log_in(&server, "ANN@example.com", "another long password")
            .await
            .status(),
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_user_and_a_wrong_password_get_the_same_answer_and_then_none() {
    let server = Server::start().await;
    let _cookies = admin(&server).await;
    for email in [EMAIL, "nobody@example.com"] {
        for _ in 0..10 {
            let answer = Answer::of(log_in(&server, email, "wrong wrong wrong").await).await;
            assert_eq!(answer.outcome(), (401, "login_refused".to_owned()));
            assert_eq!(
                answer.body["detail"],
                "the e-mail address or the password is wrong"
            );
        }
        let answer = Answer::of(log_in(&server, email, PASSWORD).await).await;
        assert_eq!(answer.outcome(), (429, "too_many_logins".to_owned()));
        assert!(answer.retry_after.is_some());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refresh_token_works_once_and_a_stolen_one_ends_the_session() {
    let server = Server::start().await;
    let first = admin(&server).await;
    let refresh = async |cookies: &Cookies| {
        request(&server, Method::POST, "/session/refresh")
            .header("cookie", &cookies.refresh)
            .send()
            .await
            .unwrap()
    };
    let second = refresh(&first).await;
    assert_eq!(second.status(), 200);
    let second = Cookies::of(&second);
    assert_ne!(second.refresh, first.refresh);
    assert_eq!(refresh(&first).await.status(), 401);
    assert_eq!(refresh(&second).await.status(), 401);
    let me = as_person(&server, &second, Method::GET, "/me", json!(null)).await;
    assert_eq!(me.outcome(), (401, "session_ended".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_logs_out_is_out_at_once() {
    let server = Server::start().await;
    let cookies = admin(&server).await;
    let out = as_person(&server, &cookies, Method::DELETE, "/session", json!(null)).await;
    assert_eq!(out.status, 204);
    let me = as_person(&server, &cookies, Method::GET, "/me", json!(null)).await;
    assert_eq!(me.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_site_cannot_act_with_a_persons_cookies() {
    let server = Server::start().await;
    let cookies = admin(&server).await;
    for (name, value) in [
        ("origin", "https://evil.example"),
        ("sec-fetch-site", "cross-site"),
    ] {
        let answer = request(&server, Method::POST, "/projects")
            .header("cookie", &cookies.session)
            .header(name, value)
            .json(&json!({"id": "stolen"}))
            .send()
            .await
            .unwrap();
        assert_eq!(
            Answer::of(answer).await.outcome(),
            (403, "cross_site".to_owned())
        );
    }
    let own = as_person(
        &server,
        &cookies,
        Method::POST,
        "/projects",
        json!({"id": "mine"}),
    )
    .await;
    assert_eq!(own.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_opens_its_project_and_no_other() {
    let server = Server::start().await;
    let boss = admin(&server).await;
    let new = json!({"email": "bob@example.com", "name": "Bob"});
    let bob = as_person(&server, &boss, Method::POST, "/users", new).await;
    assert_eq!(bob.status, 201, "{:?}", bob.body);
    let token = bob.body["invitation"].clone();
    let accepted = request(&server, Method::POST, "/invitation")
        .json(&json!({"token": token, "password": PASSWORD}))
        .send()
        .await
        .unwrap();
    let bobs = Cookies::of(&accepted);
    let config = "/projects/default/config";
    let look = async || {
        as_person(&server, &bobs, Method::GET, config, json!(null))
            .await
            .status
    };
    assert_eq!(look().await, 404);
    let member = format!(
        "/projects/default/members/{}",
        bob.body["id"].as_str().unwrap()
    );
    let made = as_person(
        &server,
        &boss,
        Method::PUT,
        &member,
        json!({"role": "viewer"}),
    )
    .await;
    assert_eq!(made.status, 204, "{:?}", made.body);
    assert_eq!(look().await, 200);
    let save = json!({"expected_revision": 0, "configuration": {"base": {}}});
    let saved = as_person(&server, &bobs, Method::PUT, config, save).await;
    assert_eq!(saved.outcome(), (403, "role".to_owned()));
    assert_eq!(
        as_person(&server, &bobs, Method::GET, "/users", json!(null))
            .await
            .status,
        403
    );
    let user = format!("/users/{}", bob.body["id"].as_str().unwrap());
    assert_eq!(
        as_person(&server, &boss, Method::DELETE, &user, json!(null))
            .await
            .status,
        204
    );
    assert_eq!(look().await, 401);
}
