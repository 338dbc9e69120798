//! User accounts: invitations, logins, sessions and roles.

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};

use crate::server::{Answer, Server};

pub(crate) const EMAIL: &str = "ann@example.com";
pub(crate) const PASSWORD: &str = "correct horse battery";

/// The cookies of a browser session.
#[derive(Clone, Debug)]
pub(crate) struct Cookies {
    /// `name=value`.
    pub(crate) session: String,
    refresh: String,
}

impl Cookies {
    pub(crate) fn of(response: &Response) -> Self {
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

    /// The cookie that marks a browser as known.
    pub(crate) fn device_of(response: &Response) -> String {
        let all = response.headers().get_all("set-cookie");
        let mut values = all.iter().map(|value| value.to_str().unwrap());
        let cookie = values.find(|value| value.starts_with("__Host-unjank-device="));
        cookie.unwrap().split(';').next().unwrap().to_owned()
    }
}

pub(crate) fn request(server: &Server, method: Method, path: &str) -> RequestBuilder {
    server
        .client
        .request(method, format!("{}/api/v1{path}", server.url))
}

pub(crate) async fn log_in(server: &Server, email: &str, password: &str) -> Response {
    let body = json!({"email": email, "password": password});
    request(server, Method::POST, "/login")
        .json(&body)
        .send()
        .await
        .unwrap()
}

/// Creates an admin, who accepts the invitation that `unjank user add` prints.
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

pub(crate) async fn as_person(
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
async fn an_invitation_works_once_and_a_new_password_ends_open_sessions() {
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
    // A new password ends the open sessions.
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
async fn unknown_users_and_wrong_passwords_get_the_same_answer_and_are_throttled() {
    let server = Server::away(&[]).await;
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

/// Makes 33 failing attempts with the `X-Forwarded-For` values of `from`, and returns the statuses. Most try an invitation with a password
/// that is too short, which costs no hash.
async fn attempts(server: &Server, from: impl Fn(usize) -> String) -> Vec<u16> {
    let mut statuses = Vec::new();
    for n in 0..33 {
        let (path, body) = if n % 10 == 0 {
            let email = format!("{n}@example.com");
            (
                "/login",
                json!({"email": email, "password": "wrong wrong wrong"}),
            )
        } else {
            (
                "/invitation",
                json!({"token": "uji_guessed", "password": "short"}),
            )
        };
        let request = request(server, Method::POST, path).json(&body);
        let answer = request.header("x-forwarded-for", from(n)).send().await;
        statuses.push(answer.unwrap().status().as_u16());
    }
    statuses
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_tries_many_accounts_is_throttled_and_others_are_not() {
    let server = Server::with(&["--trusted-proxies", "127.0.0.0/8"]).await;
    let _cookies = admin(&server).await;
    // The client forges the first address, which does not help. The second is one of the many in the client's IPv6 network.
    let statuses = attempts(&server, |n| format!("1.1.1.{n}, 2001:db8:1:2::{n:x}")).await;
    // Two were delayed, by two and four seconds.
    assert!(!statuses[..32].contains(&429), "{statuses:?}");
    assert_eq!(statuses[32], 429);
    let log_in_from = async |from: &str| {
        let body = json!({"email": EMAIL, "password": PASSWORD});
        let request = request(&server, Method::POST, "/login").json(&body);
        let answer = request.header("x-forwarded-for", from).send().await;
        Answer::of(answer.unwrap()).await
    };
    let slowed = log_in_from("2001:db8:1:2:3::4").await;
    assert_eq!(slowed.outcome(), (429, "too_many_logins".to_owned()));
    let wait: u64 = slowed.retry_after.unwrap().parse().unwrap();
    assert!((1..=11).contains(&wait), "{wait}");
    assert_eq!(log_in_from("192.0.2.7").await.status, 200);
    server.pass(Duration::from_secs(wait));
    // Successful logins do not count.
    for _ in 0..2 {
        assert_eq!(log_in_from("2001:db8:1:2::1").await.status, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_header_does_not_bypass_the_throttle() {
    let server = Server::away(&[]).await;
    let statuses = attempts(&server, |n| format!("192.0.2.{n}")).await;
    // Two were delayed, by two and four seconds.
    assert!(!statuses[..32].contains(&429), "{statuses:?}");
    assert_eq!(statuses[32], 429);
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
    server.pass(Duration::from_secs(30));
    assert_eq!(refresh(&first).await.status(), 401);
    assert_eq!(refresh(&second).await.status(), 401);
    let me = as_person(&server, &second, Method::GET, "/me", json!(null)).await;
    assert_eq!(me.outcome(), (401, "session_ended".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tabs_that_refresh_at_once_both_stay_logged_in() {
    let server = Server::start().await;
    let first = admin(&server).await;
    let refresh = async |cookies: &Cookies| {
        request(&server, Method::POST, "/session/refresh")
            .header("cookie", &cookies.refresh)
            .send()
            .await
            .unwrap()
    };
    let (one, other) = tokio::join!(refresh(&first), refresh(&first));
    assert_eq!((one.status().as_u16(), other.status().as_u16()), (200, 200));
    let (one, other) = (Cookies::of(&one), Cookies::of(&other));
    for tab in [&one, &other] {
        let me = as_person(&server, tab, Method::GET, "/me", json!(null)).await;
        assert_eq!(me.status, 200);
    }
    // The next refresh works with either response, and a refresh can be repeated if its response was lost.
    assert_eq!(one.refresh, other.refresh);
    server.pass(Duration::from_secs(600));
    assert_eq!(refresh(&one).await.status(), 200);
    server.pass(Duration::from_secs(29));
    let third = refresh(&other).await;
    assert_eq!(third.status(), 200);
    let third = Cookies::of(&third);
    // The late reuse of a token is detected as theft.
    server.pass(Duration::from_secs(1));
    assert_eq!(refresh(&one).await.status(), 401);
    assert_eq!(refresh(&third).await.status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_logout_ends_the_session_at_once() {
    let server = Server::away(&[]).await;
    let cookies = admin(&server).await;
    let out = as_person(&server, &cookies, Method::DELETE, "/session", json!(null)).await;
    assert_eq!(out.status, 204);
    let me = as_person(&server, &cookies, Method::GET, "/me", json!(null)).await;
    assert_eq!(me.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn cross_site_requests_with_a_users_cookies_are_refused() {
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
async fn a_viewer_can_read_the_project_and_change_nothing() {
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
