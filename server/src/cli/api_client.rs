//! A client of a running server's API: over HTTP, with a token. For commands that may run on other machines.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Args;
use reqwest::header::{CONTENT_TYPE, LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, StatusCode, Url};
use serde::de::DeserializeOwned;
use unjank_foundation::secret::Secret;

/// The maximum number of attempts per request. With the pauses, they take a minute and a half.
const ATTEMPTS: u32 = 10;
/// The maximum number of attempts to reach a server that has never answered. Its address may be wrong.
const FIRST_ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The maximum pause that the server may request.
const LONGEST_ASKED_PAUSE: Duration = Duration::from_secs(300);
const CONNECT: Duration = Duration::from_secs(10);
/// The maximum time without a byte from the server.
const SILENCE: Duration = Duration::from_secs(120);

#[derive(Args, Debug)]
pub(super) struct ServerArgs {
    /// The address of the server, such as <https://unjank.example.com>
    #[arg(long, env = "UNJANK_URL", value_name = "URL")]
    url: Option<String>,

    /// The API token. Prefer the environment variable, because other users of the machine can see flags
    #[arg(
        long,
        env = "UNJANK_TOKEN",
        value_name = "TOKEN",
        hide_env_values = true
    )]
    token: Option<Secret>,

    /// The project
    #[arg(
        long,
        env = "UNJANK_PROJECT",
        value_name = "PROJECT",
        default_value = "default"
    )]
    pub(super) project: String,
}

pub(super) struct Server {
    client: Client,
    url: Url,
    token: Secret,
    pub(super) project: String,
    /// Whether the server has ever answered.
    is_reached: AtomicBool,
}

/// A failed attempt that may succeed later.
struct Postponed {
    reason: String,
    /// The pause that the server requests.
    pause: Option<Duration>,
    is_unreachable: bool,
}

impl Server {
    pub(super) fn new(args: &ServerArgs) -> anyhow::Result<Self> {
        // If a CI lacks a secret, its variable is empty.
        let url = args.url.as_deref().filter(|url| !url.is_empty());
        let url = url.context("set the address of the server: --url or UNJANK_URL")?;
        let url = Url::parse(url).with_context(|| {
            format!("--url `{url}` is not an address such as https://unjank.example.com")
        })?;
        let token = args.token.clone();
        let token = token.filter(|token| !token.reveal().is_empty());
        Ok(Self {
            client: Client::builder()
                .connect_timeout(CONNECT)
                .read_timeout(SILENCE)
                // A redirected POST would become a GET.
                .redirect(Policy::none())
                .build()?,
            url,
            token: token.context("set an API token: UNJANK_TOKEN or --token")?,
            project: args.project.clone(),
            is_reached: AtomicBool::new(false),
        })
    }

    /// Returns the URL of an API path.
    pub(super) fn path(&self, segments: &[&str]) -> anyhow::Result<Url> {
        let mut url = self.url.clone();
        url.path_segments_mut()
            .map_err(|()| anyhow::anyhow!("{} is not the address of a server", self.url))?
            .pop_if_empty()
            .extend(segments);
        Ok(url)
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, url: Url) -> anyhow::Result<T> {
        self.json(|client| client.get(url.clone())).await
    }

    /// Sends a request with retries, and parses the response.
    pub(super) async fn json<T: DeserializeOwned>(
        &self,
        request: impl Fn(&Client) -> RequestBuilder,
    ) -> anyhow::Result<T> {
        let answer = self.send(request).await?;
        serde_json::from_slice(&answer)
            .with_context(|| format!("{} is not an unjank server of this version", self.url))
    }

    /// Sends a GET request once.
    pub(super) async fn get_once(&self, url: Url) -> anyhow::Result<Bytes> {
        let request = self.client.get(url).bearer_auth(self.token.reveal());
        let answer = self.attempt(request).await?;
        answer.map_err(|postponed| anyhow::anyhow!("{}: {}", self.url, postponed.reason))
    }

    /// Sends a request. Retries it as long as a later attempt can succeed.
    pub(super) async fn send(
        &self,
        request: impl Fn(&Client) -> RequestBuilder,
    ) -> anyhow::Result<Bytes> {
        let mut pause = FIRST_PAUSE;
        for attempt in 1.. {
            let request = request(&self.client).bearer_auth(self.token.reveal());
            let postponed = match self.attempt(request).await? {
                Ok(answer) => return Ok(answer),
                Err(postponed) => postponed,
            };
            let is_new = postponed.is_unreachable && !self.is_reached.load(Ordering::Relaxed);
            let attempts = if is_new { FIRST_ATTEMPTS } else { ATTEMPTS };
            if attempt >= attempts {
                bail!(
                    "{}: {} (after {attempt} attempts). Run the command again later: it continues where it stopped",
                    self.url,
                    postponed.reason
                );
            }
            tracing::debug!(reason = postponed.reason, attempt, "retrying a request");
            let asked = postponed.pause.map(|asked| asked.min(LONGEST_ASKED_PAUSE));
            tokio::time::sleep(asked.unwrap_or(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        bail!("the request was never sent")
    }

    /// Sends a request once. Returns an error if a retry cannot succeed.
    async fn attempt(&self, request: RequestBuilder) -> anyhow::Result<Result<Bytes, Postponed>> {
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) if error.is_builder() => return Err(error.into()),
            Err(error) => {
                return Ok(Err(Postponed {
                    is_unreachable: error.is_connect(),
                    pause: None,
                    reason: causes(&error),
                }));
            }
        };
        self.is_reached.store(true, Ordering::Relaxed);
        let status = response.status();
        let header = |name| response.headers().get(name)?.to_str().ok();
        if status.is_redirection() {
            let to = header(LOCATION).unwrap_or("another address");
            bail!(
                "{} redirects to {to}: set the address of the server to the one behind the redirection",
                self.url
            );
        }
        // The server never answers these requests with a page for people.
        let is_page = header(CONTENT_TYPE).is_none_or(|kind| kind.starts_with("text/html"));
        let pause = header(RETRY_AFTER).and_then(|seconds| seconds.parse().ok());
        let later = |reason| Postponed {
            reason,
            pause: pause.map(Duration::from_secs),
            is_unreachable: false,
        };
        let answer = match response.bytes().await {
            Ok(answer) => answer,
            Err(error) => return Ok(Err(later(causes(&error)))),
        };
        if status.is_success() {
            return Ok(Ok(answer));
        }
        let reason = reason(status, &answer);
        if status == StatusCode::PAYLOAD_TOO_LARGE && is_page {
            bail!(
                "{}: {reason}. This is the answer of a proxy in front of the server: let it accept larger requests (docs/operations.md, Proxies)",
                self.url
            );
        }
        let is_passing = status.is_server_error()
            || status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::REQUEST_TIMEOUT;
        if is_passing {
            return Ok(Err(later(reason)));
        }
        bail!("{}: {reason}", self.url)
    }
}

/// Returns the reason of a failure: the server's own text if the response is a problem, otherwise the status.
fn reason(status: StatusCode, answer: &[u8]) -> String {
    let problem: Option<serde_json::Value> = serde_json::from_slice(answer).ok();
    let detail = problem
        .as_ref()
        .and_then(|problem| problem["detail"].as_str());
    detail.map_or_else(|| status.to_string(), str::to_owned)
}

/// Returns the text of an error with all of its causes.
fn causes(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
