//! Logins with an identity provider, which lies in most tests.

mod provider;
mod roles;
mod unreachable;

use std::collections::HashMap;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, Method, Response, Url};
use serde_json::{Value, json};

use self::provider::{CLIENT, Provider, SECRET, Signed};
use crate::people::{self, EMAIL, PASSWORD, as_person, log_in, request};
use crate::server::{Answer, Server};

/// The URL at which people open unjank. The tests call the server directly.
const PUBLIC: &str = "http://127.0.0.1:1";

async fn server(provider: &Provider, more: &[&str]) -> Server {
    let mut arguments = vec!["--public-url", PUBLIC];
    arguments.extend(["--oidc-issuer", provider.issuer()]);
    arguments.extend(["--oidc-client-id", CLIENT, "--oidc-client-secret", SECRET]);
    arguments.extend(more);
    Server::away(&arguments).await
}

/// A browser with cookies of its own.
struct Browser<'s> {
    server: &'s Server,
    client: Client,
    cookies: HashMap<String, String>,
}

impl<'s> Browser<'s> {
    fn new(server: &'s Server) -> Self {
        Self {
            server,
            client: Client::builder().redirect(Policy::none()).build().unwrap(),
            cookies: HashMap::new(),
        }
    }

    fn cookie_header(&self) -> String {
        let cookies = self.cookies.iter();
        let cookies: Vec<_> = cookies
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        cookies.join("; ")
    }

    /// Opens a URL as a link on the provider's site does, and keeps the cookies of the response.
    async fn open(&mut self, path: &str, query: &[(&str, &str)]) -> Response {
        let url = format!("{}/api/v1/session{path}", self.server.url);
        let request = self.client.get(url).query(query);
        let request = request
            .header("cookie", self.cookie_header())
            .header("sec-fetch-site", "cross-site");
        let response = request.send().await.unwrap();
        for cookie in response.headers().get_all("set-cookie") {
            let cookie = cookie.to_str().unwrap();
            let (name, value) = cookie.split(';').next().unwrap().split_once('=').unwrap();
            for attribute in ["HttpOnly", "Secure", "SameSite"] {
                assert!(cookie.contains(attribute), "{cookie}");
            }
            if cookie.contains("Max-Age=0") {
                self.cookies.remove(name);
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned());
            }
        }
        response
    }

    /// Begins a login. Returns the provider's URL.
    async fn start(&mut self, to: &str) -> Url {
        let response = self.open("/oidc", &[("to", to)]).await;
        assert_eq!(response.status(), 303);
        location(&response).parse().unwrap()
    }

    /// Follows the redirect from the provider. Returns the page that opens.
    async fn come_back(&mut self, address: &Url, code: &str) -> String {
        let state = parameter(address, "state");
        let query = [("state", state.as_str()), ("code", code)];
        let response = self.open("/oidc/callback", &query).await;
        assert_eq!(response.status(), 303);
        location(&response)
    }

    /// Logs in. Returns the page that opens.
    async fn log_in(&mut self, provider: &Provider) -> String {
        let address = self.start("/").await;
        let code = provider.code(&address);
        self.come_back(&address, &code).await
    }

    fn has_session(&self) -> bool {
        self.cookies.contains_key("__Host-unjank")
    }

    async fn me(&self) -> Answer {
        let request = request(self.server, Method::GET, "/me");
        let request = request.header("cookie", self.cookie_header());
        Answer::of(request.send().await.unwrap()).await
    }

    async fn refresh(&self) -> u16 {
        let request = request(self.server, Method::POST, "/session/refresh");
        let request = request.header("cookie", self.cookie_header());
        request.send().await.unwrap().status().as_u16()
    }
}

fn location(response: &Response) -> String {
    let location = response.headers()["location"].to_str().unwrap();
    location.to_owned()
}

fn parameter(url: &Url, name: &str) -> String {
    let mut pairs = url.query_pairs();
    pairs.find(|(key, _)| key == name).unwrap().1.into_owned()
}

async fn users(server: &Server) -> Vec<Value> {
    let token = server.token("admin").await;
    let answer = server
        .call(&token, Method::GET, "/api/v1/users", None)
        .await;
    answer.body["users"].as_array().unwrap().clone()
}

const CREATES: [&str; 2] = ["--oidc-create-people", "on"];

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_twice_and_is_the_same_person() {
    let provider = Provider::start().await;
    let server = server(
        &provider,
        &["--oidc-name", "Acme", "--oidc-create-people", "on"],
    )
    .await;
    let methods = request(&server, Method::GET, "/session/methods");
    let methods = Answer::of(methods.send().await.unwrap()).await;
    assert_eq!(methods.body["openid_connect"], "Acme");
    let mut browser = Browser::new(&server);
    let address = browser.start("/config?project=shop#top").await;
    assert!(address.as_str().starts_with(provider.issuer()));
    let redirect = parameter(&address, "redirect_uri");
    assert_eq!(redirect, format!("{PUBLIC}/api/v1/session/oidc/callback"));
    let code = provider.code(&address);
    let page = browser.come_back(&address, &code).await;
    assert_eq!(page, "/config?project=shop#top");
    assert!(!browser.cookies.contains_key("__Host-unjank-oidc"));
    let me = browser.me().await.body;
    let facts = [&me["email"], &me["name"], &me["is_admin"], &me["roles"]];
    assert_eq!(
        facts,
        [
            &json!("ann@example.com"),
            &json!("Ann"),
            &json!(false),
            &json!([])
        ]
    );
    let login = [&me["has_password"], &me["identity_provider"]];
    assert_eq!(login, [&json!(false), &json!("Acme")]);
    assert_eq!(browser.refresh().await, 200);
    // The subject identifies the person, even if the e-mail address has changed.
    provider.change(|manners| {
        manners.claims = json!({"email": "other@example.com", "email_verified": false});
    });
    let mut second = Browser::new(&server);
    assert_eq!(second.log_in(&provider).await, "/");
    assert_eq!(second.me().await.body["id"], me["id"]);
    let users = users(&server).await;
    assert_eq!(users.len(), 1);
    assert_eq!(
        [&users[0]["has_password"], &users[0]["has_identity"]],
        [false, true]
    );
    // After a day, another login at the provider is required, however often the session is used.
    server.pass(Duration::from_secs(23 * 3_600));
    let mut third = Browser::new(&server);
    third.cookies = second.cookies.clone();
    assert_eq!(third.refresh().await, 200);
    server.pass(Duration::from_secs(3_601));
    assert_eq!(second.refresh().await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_provider_there_is_nothing_to_start() {
    let server = Server::start().await;
    let mut browser = Browser::new(&server);
    let methods = request(&server, Method::GET, "/session/methods");
    let methods = Answer::of(methods.send().await.unwrap()).await;
    assert_eq!(methods.body["openid_connect"], json!(null));
    for path in ["/oidc", "/oidc/callback"] {
        assert_eq!(browser.open(path, &[]).await.status(), 404);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_token_that_is_not_for_this_login_is_refused() {
    let provider = Provider::start().await;
    let server = server(&provider, &CREATES).await;
    let expired = crate::server::NOW / 1_000_000;
    for claims in [
        json!({"nonce": "another"}),
        json!({"nonce": null}),
        json!({"aud": "another-client"}),
        json!({"aud": [CLIENT, "another-client"]}),
        json!({"aud": null}),
        json!({"iss": "http://127.0.0.1:1"}),
        json!({"iss": null}),
        json!({"exp": expired}),
        json!({"exp": null}),
        json!({"sub": null}),
        json!({"sub": ""}),
        json!({"sub": "s".repeat(256)}),
    ] {
        provider.change(|manners| manners.claims = claims.clone());
        let mut browser = Browser::new(&server);
        let page = browser.log_in(&provider).await;
        assert!(!browser.has_session(), "{claims}");
        assert!(page.starts_with("/?login_error="), "{claims}: {page}");
    }
    provider.change(|manners| manners.claims = json!({}));
    for signed in [
        Signed::NotAtAll,
        Signed::WithTheClientSecret,
        Signed::WithAnotherKey,
    ] {
        provider.change(|manners| manners.signed = signed);
        let mut browser = Browser::new(&server);
        let page = browser.log_in(&provider).await;
        assert_eq!(page, "/?login_error=invalid", "{signed:?}");
        assert!(!browser.has_session());
    }
    provider.change(|manners| manners.signed = Signed::Right);
    for answer in [
        json!({"id_token": null}),
        json!({"id_token": "no.token"}),
        json!({"access_token": "line\nbreak"}),
        json!({"access_token": null}),
    ] {
        let asks_user_info = json!({"name": null});
        provider.change(|manners| {
            manners.answer = answer.clone();
            manners.claims = asks_user_info;
            manners.user_info = Some(json!({"sub": "subject-1"}));
        });
        // The server forgets the cached discovery, which has no user info endpoint.
        server.pass(Duration::from_secs(3_600));
        provider.change(|manners| {
            let later = crate::server::NOW / 1_000_000 + 86_400;
            manners.claims["exp"] = json!(later);
        });
        let mut browser = Browser::new(&server);
        let page = browser.log_in(&provider).await;
        assert_eq!(page, "/?login_error=invalid", "{answer}");
    }
    assert_eq!(users(&server).await, Vec::<Value>::new());
    provider.change(|manners| manners.answer = json!({}));
    assert_eq!(Browser::new(&server).log_in(&provider).await, "/");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unverified_address_takes_over_no_account() {
    let provider = Provider::start().await;
    let server = server(&provider, &CREATES).await;
    let operator = people::admin(&server).await;
    for (claims, code) in [
        (json!({"email_verified": false}), "unverified_email"),
        (json!({"email_verified": null}), "unverified_email"),
        (json!({"email": null}), "no_email"),
        (json!({"email": "no address"}), "no_email"),
        (json!({"email": ["ann@example.com"]}), "invalid"),
    ] {
        provider.change(|manners| manners.claims = claims.clone());
        let mut browser = Browser::new(&server);
        let page = browser.log_in(&provider).await;
        assert_eq!(page, format!("/?login_error={code}"), "{claims}");
        assert!(!browser.has_session());
    }
    // With a verified address, it is the same person, who keeps the password and the sessions.
    provider.change(|manners| manners.claims = json!({"email": "ANN@example.com"}));
    let mut browser = Browser::new(&server);
    assert_eq!(browser.log_in(&provider).await, "/");
    let me = browser.me().await.body;
    assert_eq!(
        [&me["is_admin"], &me["has_password"]],
        [&json!(true), &json!(true)]
    );
    let other = as_person(&server, &operator, Method::GET, "/me", json!(null)).await;
    assert_eq!(other.body["id"], me["id"]);
    assert_eq!(log_in(&server, EMAIL, PASSWORD).await.status(), 200);
    // The address is now linked to the first account of the provider.
    provider.change(|manners| manners.claims = json!({"sub": "subject-2"}));
    let mut thief = Browser::new(&server);
    let page = thief.log_in(&provider).await;
    assert_eq!(page, "/?login_error=linked_elsewhere");
    assert!(!thief.has_session());
    server.command(&["user", "unlink", "--email", EMAIL]).await;
    assert_eq!(browser.me().await.status, 401);
    assert_eq!(thief.log_in(&provider).await, "/");
}

#[tokio::test(flavor = "multi_thread")]
async fn people_who_are_not_invited_are_refused_unless_the_setting_admits_them() {
    let provider = Provider::start().await;
    let server = server(&provider, &[]).await;
    let mut browser = Browser::new(&server);
    let page = browser.log_in(&provider).await;
    assert_eq!(page, "/?login_error=no_account");
    let add = ["user", "add", "--email", EMAIL, "--name", "Ann"];
    let invitation = server.command(&add).await;
    assert_eq!(browser.log_in(&provider).await, "/");
    // The invitation is no longer valid.
    let body = json!({"token": invitation, "password": PASSWORD});
    let accepted = request(&server, Method::POST, "/invitation").json(&body);
    assert_eq!(accepted.send().await.unwrap().status(), 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_callback_works_once_and_only_in_the_browser_that_started() {
    let provider = Provider::start().await;
    let server = server(&provider, &CREATES).await;
    let refused = "/?login_error=not_started";
    let mut browser = Browser::new(&server);
    // The browser has started no login.
    let nowhere: Url = "http://127.0.0.1:1/?state=made-up".parse().unwrap();
    assert_eq!(browser.come_back(&nowhere, "code").await, refused);
    let response = browser.open("/oidc/callback", &[]).await;
    assert_eq!(location(&response), refused);
    // An attacker gives a victim a callback link. The victim's browser has started no login, or another one.
    let address = browser.start("/").await;
    let code = provider.code(&address);
    let mut victim = Browser::new(&server);
    assert_eq!(victim.come_back(&address, &code).await, refused);
    let own = victim.start("/").await;
    assert_eq!(victim.come_back(&address, &code).await, refused);
    // The code of another login is refused.
    assert_eq!(victim.come_back(&own, &code).await, "/?login_error=invalid");
    assert!(!victim.has_session());
    // The cookie was changed.
    let address = browser.start("/").await;
    let kept = browser.cookies.clone();
    for cookie in browser.cookies.values_mut() {
        let middle = cookie.len() / 2;
        let other = if cookie.as_bytes()[middle] == b'A' {
            "B"
        } else {
            "A"
        };
        cookie.replace_range(middle..=middle, other);
    }
    let code = provider.code(&address);
    assert_eq!(browser.come_back(&address, &code).await, refused);
    // A callback works once, because the provider refuses a used code.
    browser.cookies = kept.clone();
    assert_eq!(browser.come_back(&address, &code).await, "/");
    browser.cookies = kept;
    assert_eq!(
        browser.come_back(&address, &code).await,
        "/?login_error=invalid"
    );
    // A login expires after ten minutes.
    let mut slow = Browser::new(&server);
    let address = slow.start("/").await;
    let code = provider.code(&address);
    server.pass(Duration::from_secs(600));
    assert_eq!(slow.come_back(&address, &code).await, refused);
    assert_eq!(provider.calls("token"), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_or_a_response_of_another_provider_ends_the_login() {
    let provider = Provider::start().await;
    let server = server(&provider, &CREATES).await;
    for (more, code) in [
        (("error", "access_denied"), "denied"),
        (("iss", "http://127.0.0.1:1"), "invalid"),
    ] {
        let mut browser = Browser::new(&server);
        let address = browser.start("/spans?project=shop").await;
        let state = parameter(&address, "state");
        let given = provider.code(&address);
        let query = [("state", state.as_str()), ("code", given.as_str()), more];
        let response = browser.open("/oidc/callback", &query).await;
        let wanted = format!("/spans?project=shop&login_error={code}");
        assert_eq!(location(&response), wanted);
        assert!(browser.cookies.is_empty());
    }
    assert_eq!(provider.calls("token"), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_leads_to_no_other_server() {
    let provider = Provider::start().await;
    let server = server(&provider, &CREATES).await;
    for to in [
        "https://evil.example",
        "//evil.example",
        "/\\evil.example",
        "/.//evil.example",
        "/\t/evil.example",
        "/\r\nset-cookie: a=b",
        "/api/v1/session/oidc",
    ] {
        let mut browser = Browser::new(&server);
        let address = browser.start(to).await;
        let code = provider.code(&address);
        let page = browser.come_back(&address, &code).await;
        assert!(
            page == "/" || page == "/set-cookie:%20a=b",
            "{to:?}: {page}"
        );
        let mut browser = Browser::new(&server);
        let address = browser.start(to).await;
        let page = browser.come_back(&address, "wrong").await;
        assert!(page.ends_with("?login_error=invalid"), "{to:?}: {page}");
        assert!(!page.contains("evil"), "{to:?}: {page}");
    }
}
