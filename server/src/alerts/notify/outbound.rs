//! HTTP to the outside: one connection to an address that was checked, no redirects, no proxies, little time, little read.

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
use super::sending::Outcome;

const LONGEST: Duration = Duration::from_secs(10);
const LONGEST_CONNECT: Duration = Duration::from_secs(5);
/// As much of an answer is read to say what is wrong.
const MOST_READ: usize = 4 << 10;
const MOST_QUOTED: usize = 200;

/// Sends requests only where that is allowed.
#[derive(Clone, Debug)]
pub struct Outbound {
    client: Client,
    allowed: Arc<AllowedTargets>,
}

/// The names that a URL may have are resolved here, and nowhere else: what is connected to is what was checked.
struct Guard(Arc<AllowedTargets>);

impl Resolve for Guard {
    fn resolve(&self, name: Name) -> Resolving {
        let allowed = Arc::clone(&self.0);
        Box::pin(async move {
            let found = timeout(LONGEST_CONNECT, lookup_host((name.as_str(), 0))).await??;
            let fit = found.filter(|one| allowed.allows(name.as_str(), one.ip()));
            let fit: Vec<SocketAddr> = fit.collect();
            if fit.is_empty() {
                // The address is not said: it may be one of an internal network.
                return Err(Refused::Name(name.as_str().to_owned()).into());
            }
            Ok(Box::new(fit.into_iter()) as Addrs)
        })
    }
}

/// A target that is not allowed.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error(
        "{0} is not a public address: nothing is sent there unless the operator allows it (--notify-allow)"
    )]
    Address(IpAddr),
    #[error(
        "{0} has no public address: nothing is sent there unless the operator allows it (--notify-allow)"
    )]
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
            // Deliveries are rare: a connection that is kept would only be one that breaks.
            .pool_max_idle_per_host(0)
            .user_agent(concat!("unjank/", env!("CARGO_PKG_VERSION")))
            .build()?;
        Ok(Self { client, allowed })
    }

    /// A URL that something may be sent to, as far as the URL itself tells.
    pub fn target(&self, url: &str) -> Result<Url, String> {
        let url: Url = url.parse().map_err(|error| format!("the URL: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("the URL begins with https:// or http://".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err("the URL has a name and password in it: give them apart".to_owned());
        }
        let host = url.host_str().ok_or("the URL names no host")?;
        // An address is not resolved, so it is checked here. Odd spellings (`0x7f.1`) were made plain by the parser.
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
        self.client
            .post(url)
            .header("content-type", "application/json")
            .header("idempotency-key", key)
            .body(body)
    }
}

/// Sends it, and says what came of it.
pub(super) async fn send(request: RequestBuilder) -> Outcome {
    match request.send().await {
        Ok(response) => answered(response).await,
        Err(error) => failed(&error),
    }
}

fn failed(error: &reqwest::Error) -> Outcome {
    // The outermost text quotes the URL, which may hold a secret; the innermost says what happened.
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
        return Outcome::later("it did not answer in time");
    }
    Outcome::later(format!("it cannot be reached: {text}"))
}

async fn answered(mut response: Response) -> Outcome {
    let status = response.status().as_u16();
    if (200..300).contains(&status) {
        return Outcome::Delivered;
    }
    if (300..400).contains(&status) {
        return Outcome::Never(format!(
            "it answered {status}, a redirect: give the address that it leads to"
        ));
    }
    let wait = response
        .headers()
        .get("retry-after")
        .and_then(|value| Wait::parse(value.to_str().ok()?));
    let error = format!("it answered {status}{}", quoted(&mut response).await);
    if matches!(status, 408 | 425 | 429 | 500..) {
        Outcome::Later {
            error,
            retry_after: wait,
        }
    } else {
        Outcome::Never(error)
    }
}

/// The beginning of an answer, as one line.
async fn quoted(response: &mut Response) -> String {
    let mut read = Vec::new();
    while read.len() < MOST_READ {
        match response.chunk().await {
            Ok(Some(chunk)) => read.extend_from_slice(&chunk),
            _ => break,
        }
    }
    let text = String::from_utf8_lossy(&read);
    let line: String = text
        .chars()
        .map(|char| if char.is_control() { ' ' } else { char })
        .take(MOST_QUOTED)
        .collect();
    match line.trim() {
        "" => String::new(),
        line => format!(": {line}"),
    }
}
