//! The server as these commands reach it: over HTTP, with a token. Requests that fail for a passing reason are repeated.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Args;
use reqwest::header::{LOCATION, RETRY_AFTER};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::clock::UnixTime;
use crate::secret::Secret;

/// The maximum number of attempts of one request: with the pauses, a minute and a half.
const ATTEMPTS: u32 = 10;
/// The maximum number of attempts to reach a server that has never answered. Its address may be wrong.
const FIRST_ATTEMPTS: u32 = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// The server may ask for a longer pause, but not for more than this.
const LONGEST_ASKED_PAUSE: Duration = Duration::from_secs(300);
const CONNECT: Duration = Duration::from_secs(10);
/// The longest time without a byte from the server.
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

/// A symbol file that the server has.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct RemoteFile {
    pub(super) id: Uuid,
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) uploaded_at: UnixTime,
    pub(super) last_used_at: Option<UnixTime>,
    pub(super) builds: Vec<RemoteBuild>,
    pub(super) builds_total: u64,
}

#[derive(Clone, Debug, Deserialize)]
pub(super) struct RemoteBuild {
    pub(super) id: String,
    pub(super) format: String,
    pub(super) arch: String,
    pub(super) has_functions: bool,
    pub(super) has_lines: bool,
}

#[derive(Deserialize)]
pub(super) struct RemoteFiles {
    pub(super) files: Vec<RemoteFile>,
    pub(super) next: Option<Uuid>,
    pub(super) bytes: u64,
    pub(super) max_bytes: u64,
}

/// A failed attempt that may succeed later.
struct Postponed {
    reason: String,
    /// The pause that the server asks for.
    pause: Option<Duration>,
    is_unreachable: bool,
}

impl Server {
    pub(super) fn new(args: &ServerArgs) -> anyhow::Result<Self> {
        // An empty variable is a secret that the CI does not have.
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

    /// Returns the address of a path of the API.
    pub(super) fn path(&self, segments: &[&str]) -> anyhow::Result<Url> {
        let mut url = self.url.clone();
        url.path_segments_mut()
            .map_err(|()| anyhow::anyhow!("{} is not the address of a server", self.url))?
            .pop_if_empty()
            .extend(segments);
        Ok(url)
    }

    /// Returns the address of a path below the symbols of the project.
    pub(super) fn symbols(&self, rest: &[&str]) -> anyhow::Result<Url> {
        let start = ["api", "v1", "projects", &self.project, "symbols"];
        self.path(&[&start, rest].concat())
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, url: Url) -> anyhow::Result<T> {
        self.json(|client| client.get(url.clone())).await
    }

    /// Sends a request until it succeeds, and reads its answer.
    pub(super) async fn json<T: DeserializeOwned>(
        &self,
        request: impl Fn(&Client) -> RequestBuilder,
    ) -> anyhow::Result<T> {
        let answer = self.send(request).await?;
        serde_json::from_slice(&answer)
            .with_context(|| format!("{} is not an unjank server of this version", self.url))
    }

    /// Sends a request until it succeeds.
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
            tracing::debug!(reason = postponed.reason, attempt, "a request is repeated");
            let asked = postponed.pause.map(|asked| asked.min(LONGEST_ASKED_PAUSE));
            tokio::time::sleep(asked.unwrap_or(pause)).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        bail!("the request was never sent")
    }

    /// Sends a request once. Fails if a repetition cannot succeed.
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
        let is_passing = status.is_server_error()
            || status == StatusCode::TOO_MANY_REQUESTS
            || status == StatusCode::REQUEST_TIMEOUT;
        if is_passing {
            return Ok(Err(later(reason)));
        }
        bail!("{}: {reason}", self.url)
    }

    /// Returns a page of the files of the project, latest first.
    pub(super) async fn files(&self, before: Option<Uuid>) -> anyhow::Result<RemoteFiles> {
        let mut url = self.symbols(&["files"])?;
        if let Some(before) = before {
            url.query_pairs_mut()
                .append_pair("before", &before.to_string());
        }
        self.get(url).await
    }

    /// Returns the latest files with symbols of a build, each with this build only.
    pub(super) async fn files_of(&self, symbol_id: &str) -> anyhow::Result<Vec<RemoteFile>> {
        let mut url = self.symbols(&["files"])?;
        url.query_pairs_mut().append_pair("symbol_id", symbol_id);
        let files: RemoteFiles = self.get(url).await?;
        Ok(files.files)
    }
}

/// The reason in an answer: of the server if it is one of its problems, otherwise the status.
fn reason(status: StatusCode, answer: &[u8]) -> String {
    let problem: Option<serde_json::Value> = serde_json::from_slice(answer).ok();
    let detail = problem
        .as_ref()
        .and_then(|problem| problem["detail"].as_str());
    detail.map_or_else(|| status.to_string(), str::to_owned)
}

/// An error with all of its causes.
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
