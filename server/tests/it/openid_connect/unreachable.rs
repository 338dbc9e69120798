//! A provider that fails, hangs or rotates its keys, and callers that try to flood it.

use std::cell::Cell;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;

use super::provider::{Discovery, Provider};
use super::{Browser, CREATES, location, parameter, server};
use crate::people::{self, EMAIL, PASSWORD, log_in};
use crate::wait;

#[tokio::test(flavor = "multi_thread")]
async fn rotated_keys_are_fetched_at_most_once_a_minute() {
    let provider = Provider::start().await;
    let server = server(&provider, &CREATES).await;
    assert_eq!(Browser::new(&server).log_in(&provider).await, "/");
    assert_eq!(provider.calls("jwks"), 1);
    provider.rotate();
    // The keys were fetched a moment ago.
    let page = Browser::new(&server).log_in(&provider).await;
    assert_eq!(page, "/?login_error=invalid");
    assert_eq!(provider.calls("jwks"), 1);
    server.pass(Duration::from_secs(60));
    for _ in 0..5 {
        assert_eq!(Browser::new(&server).log_in(&provider).await, "/");
    }
    assert_eq!(
        (provider.calls("discovery"), provider.calls("jwks")),
        (2, 2)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failing_provider_is_not_retried_for_a_few_seconds() {
    let provider = Provider::start().await;
    let server = server(&provider, &CREATES).await;
    let mut tries = 0;
    for (discovery, code) in [
        (Discovery::Huge, "unreachable"),
        (Discovery::Fails, "invalid"),
        (Discovery::OfAnotherIssuer, "invalid"),
    ] {
        provider.change(|manners| manners.discovery = discovery);
        for expected in [code, "unreachable", "unreachable"] {
            let mut browser = Browser::new(&server);
            let response = browser.open("/oidc", &[("to", "/jank")]).await;
            let page = format!("/jank?login_error={expected}");
            assert_eq!(location(&response), page, "{discovery:?}");
        }
        tries += 1;
        assert_eq!(provider.calls("discovery"), tries);
        server.pass(Duration::from_secs(5));
    }
    provider.change(|manners| manners.discovery = Discovery::Right);
    assert_eq!(Browser::new(&server).log_in(&provider).await, "/");
    // Cached metadata stays valid while the provider is down.
    server.pass(Duration::from_secs(3_600));
    provider.change(|manners| {
        manners.discovery = Discovery::Fails;
        let later = crate::server::NOW / 1_000_000 + 7_200;
        manners.claims = json!({"exp": later});
    });
    assert_eq!(Browser::new(&server).log_in(&provider).await, "/");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hanging_provider_does_not_delay_password_logins() {
    let provider = Provider::start().await;
    let server = server(&provider, &CREATES).await;
    let _operator = people::admin(&server).await;
    let mut browsers: Vec<_> = (0..40).map(|_| Browser::new(&server)).collect();
    provider.change(|manners| manners.discovery = Discovery::Hangs);
    let hangs = Cell::new(true);
    let hanging = async {
        let browsers = browsers.iter_mut();
        let answers = join_all(browsers.map(|browser| browser.open("/oidc", &[]))).await;
        hangs.set(false);
        answers
    };
    let working = async {
        wait::until("the hanging request", async || {
            provider.calls("discovery") == 1
        })
        .await;
        assert_eq!(log_in(&server, EMAIL, PASSWORD).await.status(), 200);
        hangs.get()
    };
    let (answers, logged_in_meanwhile) = tokio::join!(hanging, working);
    assert!(logged_in_meanwhile, "the login waited for the provider");
    let pages: Vec<_> = answers.iter().map(location).collect();
    let count = |code: &str| pages.iter().filter(|page| page.ends_with(code)).count();
    assert_eq!((count("unreachable"), count("busy")), (16, 24), "{pages:?}");
    assert_eq!(provider.calls("discovery"), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_times_out_if_the_token_endpoint_hangs() {
    let provider = Provider::start().await;
    let server = server(&provider, &CREATES).await;
    provider.change(|manners| manners.token_hangs = true);
    let page = Browser::new(&server).log_in(&provider).await;
    assert_eq!(page, "/?login_error=unreachable");
}

#[tokio::test(flavor = "multi_thread")]
async fn anonymous_callers_cannot_flood_the_provider() {
    let provider = Provider::start().await;
    let server = server(&provider, &CREATES).await;
    for _ in 0..40 {
        let mut browser = Browser::new(&server);
        let address = browser.start("/").await;
        let state = parameter(&address, "state");
        let query = [("state", state.as_str()), ("code", "made-up")];
        // The last ones are delayed, then refused.
        let answer = browser.open("/oidc/callback", &query);
        let _late = tokio::time::timeout(Duration::from_millis(500), answer).await;
    }
    let calls = provider.calls("token");
    assert!((30..=33).contains(&calls), "{calls}");
    assert_eq!(provider.calls("discovery"), 1);
    // Password logins are counted separately.
    let _operator = people::admin(&server).await;
    assert_eq!(log_in(&server, EMAIL, PASSWORD).await.status(), 200);
}
