//! Addresses and security headers of the web interface, whether or not it was built.

use reqwest::Method;

use crate::server::Server;

#[tokio::test(flavor = "multi_thread")]
async fn browsers_get_the_web_interface_at_unknown_paths_and_api_clients_get_problems() {
    let server = Server::start().await;
    let ask = async |method: Method, path: &str, accept: &str| {
        let request = server
            .client
            .request(method, format!("{}{path}", server.url))
            .header("accept", accept);
        request.send().await.unwrap()
    };
    let browser = "text/html,application/xhtml+xml,*/*;q=0.8";
    for path in ["/", "/config", "/jank/deep/link?project=shop", "/apis"] {
        let page = ask(Method::GET, path, browser).await;
        assert_eq!(page.status(), 200, "{path}");
        let header = |name: &str| page.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-type"), "text/html; charset=utf-8");
        assert_ne!(header("cache-control"), "");
        assert_eq!(header("x-content-type-options"), "nosniff");
        let policy = header("content-security-policy");
        assert!(policy.contains("default-src 'self'"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        // This policy lets a page pass a trace to the viewer that it opens.
        let opener = header("cross-origin-opener-policy");
        assert_eq!(opener, "same-origin-allow-popups");
    }
    for (method, path, accept) in [
        (Method::GET, "/api/v1/nothing", browser),
        (Method::GET, "/api", browser),
        (Method::GET, "/v1/nothing", browser),
        (Method::GET, "/ofrep/v1/nothing", browser),
        (Method::GET, "/nothing", "application/json"),
        (Method::GET, "/assets/nothing.js", "*/*"),
        (Method::GET, "/../Cargo.toml", "*/*"),
        (Method::POST, "/", browser),
    ] {
        let answer = ask(method.clone(), path, accept).await;
        assert_eq!(answer.status(), 404, "{method} {path}");
        let kind = &answer.headers()["content-type"];
        assert_eq!(kind, "application/problem+json", "{method} {path}");
    }
}
