//! Outgoing HTTP: one connection to a checked address, no redirects, no proxies, short timeouts, and little of the response is read.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Response, Url};
use tokio::net::lookup_host;
use tokio::time::timeout;

use super::address_guard::AllowedTargets;
use super::back_off::Wait;
use super::outcome::Outcome;

const LONGEST: Duration = Duration::from_secs(10);
const LONGEST_CONNECT: Duration = Duration::from_secs(5);
/// How much of an error response is read.
const MOST_READ: usize = 4 << 10;
const MOST_QUOTED: usize = 200;

/// Sends requests to allowed targets only.
#[derive(Clone, Debug)]
pub struct Outbound {
    client: Client,
    allowed: Arc<AllowedTargets>,
}

/// Resolves and checks the hosts of URLs. There is no other resolver, so a connection always goes to a checked address.
struct Guard(Arc<AllowedTargets>);

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = Arc::clone(&self.0);
        Box::pin(async move {
            let found = timeout(LONGEST_CONNECT, lookup_host((name.as_str(), 0))).await??;
            let fit = found.filter(|one| allowed.allows(name.as_str(), one.ip()));
            let fit: Vec<SocketAddr> = fit.collect();
            if fit.is_empty() {
                // Do not reveal the address, which may be internal.
                return Err(Refused::Name(name.as_str().to_owned()).into());
            }
            Ok(Box::new(fit.into_iter()) as Addrs)
        })
    }
}

/// A target that is not allowed.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("{0} is not a public address: ask the operator to allow it with --notify-allow")]
    Address(IpAddr),
    #[error("{0} has no public address: ask the operator to allow it with --notify-allow")]
    Name(String),
}

impl Outbound {
    pub fn new(allowed: AllowedTargets) -> anyhow::Result<Self> {
        let allowed = Arc::new(allowed);
        let client = Client::builder()
            .dns_resolver(Arc::new(Guard(Arc::clone(&allowed))))
            .redirect(Policy::none())
            .no_proxy()
            .timeout(LONGEST)
            .connect_timeout(LONGEST_CONNECT)
            // Deliveries are rare, so an idle connection would most likely break before it is used again.
            .pool_max_idle_per_host(0)
            .user_agent(concat!("unjank/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { client, allowed })
    }

    /// Parses a URL and checks whether its target is allowed, without resolving its host.
    pub fn target(&self, url: &str) -> Result<Url, String> {
        let url: Url = url
            .parse()
            .map_err(|error| format!("the URL is invalid: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("the URL must begin with https:// or http://".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "the URL must not contain a user name or password: use `username` and `password`"
                    .to_owned(),
            );
        }
        let host = url.host_str().ok_or("the URL has no host")?;
        // A literal address is not resolved, so check it here. The parser has normalized odd spellings (`0x7f.1`).
        let literal = host.trim_start_matches('[').trim_end_matches(']').parse();
        match literal {
            Ok(address) if !self.allowed.allows(host, address) => {
                Err(Refused::Address(address).to_string())
            }
            Err(_) if !self.allowed.resolves(host) => {
                Err(Refused::Name(host.to_owned()).to_string())
            }
            _ => Ok(url),
        }
    }

    pub(super) fn post(&self, url: Url, key: &str, body: Vec<u8>) -> RequestBuilder {
        self.request(url, "application/json", body)
            .header("idempotency-key", key)
    }

    /// Builds a request to a [`target`](Self::target).
    pub fn request(&self, url: Url, content_type: &str, body: Vec<u8>) -> RequestBuilder {
        let request = self.client.post(url);
        request.header("content-type", content_type).body(body)
    }
}

/// Sends a request and returns the outcome.
pub async fn send(request: RequestBuilder) -> Outcome {
    let mut response = match respond(request).await {
        Ok(response) => response,
        Err(outcome) => return outcome,
    };
    let status = response.status().as_u16();
    if (200..300).contains(&status) {
        return Outcome::Delivered;
    }
    let body = start_of(&mut response, MOST_READ).await;
    let is_retryable = matches!(status, 408 | 425 | 429 | 500..);
    unsuccessful(&response, &String::from_utf8_lossy(&body), is_retryable)
}

/// Sends a request and returns the head of the response, or the outcome if there is none.
pub async fn respond(request: RequestBuilder) -> Result<Response, Outcome> {
    request.send().await.map_err(|error| failed(&error))
}

fn failed(error: &reqwest::Error) -> Outcome {
    // The outermost error quotes the URL, which may contain a secret. The innermost names the cause.
    let mut text = "the request failed".to_owned();
    let mut cause = std::error::Error::source(error);
    while let Some(one) = cause {
        if one.is::<Refused>() {
            return Outcome::Never(one.to_string());
        }
        text = one.to_string();
        cause = one.source();
    }
    if error.is_timeout() {
        return Outcome::later("the receiver did not respond in time");
    }
    Outcome::later(format!("the receiver cannot be reached: {text}"))
}

/// Returns the outcome of a request with a response that is no success. Quotes the start of `said`.
pub fn unsuccessful(response: &Response, said: &str, is_retryable: bool) -> Outcome {
    let status = response.status().as_u16();
    if (300..400).contains(&status) {
        return Outcome::Never(format!(
            "the receiver responded with {status}, a redirect: use the URL that it leads to"
        ));
    }
    let error = match quoted(said).as_str() {
        "" => format!("the receiver responded with {status}"),
        line => format!("the receiver responded with {status}: {line}"),
    };
    if !is_retryable {
        return Outcome::Never(error);
    }
    let wait = response.headers().get("retry-after");
    Outcome::Later {
        error,
        retry_after: wait.and_then(|value| Wait::parse(value.to_str().ok()?)),
    }
}

/// Reads the start of a response body.
pub async fn start_of(response: &mut Response, most: usize) -> Vec<u8> {
    let mut read = Vec::new();
    while read.len() < most {
        match response.chunk().await {
            Ok(Some(chunk)) => read.extend_from_slice(&chunk),
            _ => break,
        }
    }
    read.truncate(most);
    read
}

/// Returns the start of a receiver's text as one line.
#[must_use]
pub fn quoted(text: &str) -> String {
    let line: String = text
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .take(MOST_QUOTED)
        .collect();
    line.trim().to_owned()
}
