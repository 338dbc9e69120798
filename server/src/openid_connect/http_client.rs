//! Calls the identity provider: no redirects or proxies, strict limits on time and size, and only over TLS or on this
//! machine.

use std::error::Error;
use std::pin::Pin;
use std::time::Duration;

use openidconnect::http::{Error as HttpError, Response};
use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use reqwest::redirect::Policy;
use reqwest::{Client, Request, Url};

use super::OidcError;

const LONGEST: Duration = Duration::from_secs(10);
const LONGEST_CONNECT: Duration = Duration::from_secs(5);
/// The maximum size of a response. Key sets and tokens of large organizations take some tens of KiB.
const MOST_READ: usize = 256 << 10;

#[derive(Debug, thiserror::Error)]
pub(super) enum CallError {
    #[error("{0} is not reached by https://")]
    Unsafe(String),
    #[error("the response of {0} is larger than {MOST_READ} bytes")]
    TooLarge(String),
    #[error(transparent)]
    Request(#[from] reqwest::Error),
    #[error(transparent)]
    Http(#[from] HttpError),
}

pub(super) struct HttpClient(Client);

impl HttpClient {
    pub(super) fn new() -> anyhow::Result<Self> {
        let client = Client::builder()
            // A redirect could lead into this server's network.
            .redirect(Policy::none())
            .no_proxy()
            .timeout(LONGEST)
            .connect_timeout(LONGEST_CONNECT)
            .pool_max_idle_per_host(1)
            .user_agent(concat!("unjank/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self(client))
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, CallError> {
        let request: Request = request.try_into()?;
        let place = request.url().host_str().unwrap_or_default().to_owned();
        if !is_safe(request.url()) {
            return Err(CallError::Unsafe(place));
        }
        let mut response = self.0.execute(request).await.map_err(without_url)?;
        let mut answer = Response::builder().status(response.status());
        for (name, value) in response.headers() {
            answer = answer.header(name, value);
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(without_url)? {
            if body.len() + chunk.len() > MOST_READ {
                return Err(CallError::TooLarge(place));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(answer.body(body)?)
    }
}

/// Removes the URL from an error, because errors are logged.
fn without_url(error: reqwest::Error) -> CallError {
    CallError::Request(error.without_url())
}

/// The error if the provider cannot be called. Includes all causes, because the innermost one is the most specific.
pub(super) fn unreachable(error: &dyn Error) -> OidcError {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(one) = cause {
        text = format!("{text}: {one}");
        cause = one.source();
    }
    OidcError::Unreachable(text)
}

impl<'c> AsyncHttpClient<'c> for HttpClient {
    type Error = CallError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, CallError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}

/// Whether traffic to a URL is protected from others on the network: it uses TLS or stays on this machine.
pub(crate) fn is_safe(url: &Url) -> bool {
    match url.scheme() {
        "https" => true,
        "http" => is_loopback(url),
        _ => false,
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || address
            .parse()
            .is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_http_stays_on_this_machine() {
        for (url, safe) in [
            ("https://sso.example.com", true),
            ("http://127.0.0.1:8080/realms/a", true),
            ("http://[::1]:8080", true),
            ("http://localhost:3000", true),
            ("http://sso.example.com", false),
            ("http://localhost.example.com", false),
            ("http://127.0.0.1.example.com", false),
            ("http://10.0.0.1", false),
            ("ftp://127.0.0.1", false),
        ] {
            assert_eq!(is_safe(&url.parse().unwrap()), safe, "{url}");
        }
    }
}
