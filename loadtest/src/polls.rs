//! Measures polls of the remote configuration: the server's cost per poll, and how soon a change reaches a device.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, HOST, HeaderValue, IF_NONE_MATCH};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use crate::processes::Cost;
use crate::server::{KEY, Server};
use crate::server_and_store::ServerAndStore;
use crate::tally::{Latencies, Spread};

const CONFIG: &str = "/api/v1/projects/default/config";
const CHANGES: usize = 50;
const OVERRIDES: usize = 200;

/// Results of the poll measurements.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Polls {
    pub(crate) phases: Vec<PollPhase>,
    /// Time from sending a change until the first device has it, over [`CHANGES`] changes.
    pub(crate) until_first_device: Latencies,
}

/// The results of one kind of poll.
#[derive(Debug, Serialize)]
pub(crate) struct PollPhase {
    pub(crate) name: &'static str,
    pub(crate) polls: u64,
    pub(crate) polls_per_s: f64,
    /// CPU time of the server per poll, in microseconds.
    pub(crate) server_cpu_us: f64,
    /// Polls that one core can answer per second: 1 / CPU time per poll.
    pub(crate) polls_per_s_and_core: f64,
    pub(crate) latency: Latencies,
}

pub(crate) struct Setting<'s> {
    pub(crate) server: &'s Server,
    pub(crate) place: &'s ServerAndStore,
    pub(crate) connections: u16,
    pub(crate) duration: Duration,
}

impl Setting<'_> {
    pub(crate) async fn measure(&self) -> Result<Polls> {
        let operator = Operator {
            token: self.server.api_token()?,
            address: self.server.address().to_owned(),
        };
        let mut polls = Polls::default();
        operator.save(0, &json!({})).await?;
        let quick = [
            ("304, no overrides", StatusCode::NOT_MODIFIED),
            ("200, no overrides", StatusCode::OK),
        ];
        for (name, status) in quick {
            polls.phases.push(self.phase(name, status).await?);
        }
        operator.save(1, &overrides()).await?;
        let many = [
            ("304, 200 overrides", StatusCode::NOT_MODIFIED),
            ("200, 200 overrides", StatusCode::OK),
        ];
        for (name, status) in many {
            polls.phases.push(self.phase(name, status).await?);
        }
        polls.until_first_device = operator.changes(2).await?;
        Ok(polls)
    }

    /// Every connection sends its next poll as soon as the last one is answered.
    async fn phase(&self, name: &'static str, expected: StatusCode) -> Result<PollPhase> {
        let address: Arc<str> = Arc::from(self.server.address());
        let mut devices = Vec::new();
        for number in 0..self.connections {
            devices.push(Device::connect(&address, number, expected).await?);
        }
        let watch = self.place.watch();
        let begun = Instant::now();
        let end = begun + self.duration;
        let mut tasks: JoinSet<Result<Spread>> = JoinSet::new();
        for device in devices {
            tasks.spawn(device.poll_until(end, expected));
        }
        let mut spread = Spread::new()?;
        while let Some(polled) = tasks.join_next().await {
            spread.add(&polled.context("a poller panicked")??)?;
        }
        let took = begun.elapsed().as_secs_f64();
        let polls = spread.count();
        let costs = watch.costs(polls);
        let cost: Cost = *costs
            .get("server")
            .context("the server's CPU time is unknown")?;
        Ok(PollPhase {
            name,
            polls,
            polls_per_s: polls as f64 / took,
            server_cpu_us: cost.cpu_us_per_event,
            polls_per_s_and_core: 1e6 / cost.cpu_us_per_event.max(0.001),
            latency: spread.latencies(),
        })
    }
}

/// A device that keeps a connection of its own.
struct Device {
    connection: SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
}

impl Device {
    /// Connects, and polls once to learn the `ETag`.
    async fn connect(address: &str, number: u16, expected: StatusCode) -> Result<Self> {
        let mut device = Self {
            connection: connect(address).await?,
            request: poll_of(address, number)?,
        };
        let response = device.poll().await?;
        let etag = response.headers().get(ETAG).cloned();
        let etag = etag.context("the response to a poll has no ETag")?;
        if expected == StatusCode::NOT_MODIFIED {
            device.request.headers_mut().insert(IF_NONE_MATCH, etag);
        }
        Ok(device)
    }

    async fn poll(&mut self) -> Result<Response<Bytes>> {
        exchange(&mut self.connection, self.request.clone()).await
    }

    async fn poll_until(mut self, end: Instant, expected: StatusCode) -> Result<Spread> {
        let mut spread = Spread::new()?;
        loop {
            let begun = Instant::now();
            if begun >= end {
                return Ok(spread);
            }
            let status = self.poll().await?.status();
            ensure!(
                status == expected,
                "a poll returned {status} instead of {expected}"
            );
            spread.record(begun.elapsed());
        }
    }

    /// Returns when the device received the revision.
    async fn poll_until_revision(&mut self, revision: u64) -> Result<Instant> {
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end {
            let answer = self.poll().await?;
            let document: Value = serde_json::from_slice(answer.body())?;
            if document["revision"] == revision {
                return Ok(Instant::now());
            }
        }
        bail!("revision {revision} was saved but not served within 10 s")
    }
}

fn poll_of(address: &str, number: u16) -> Result<Request<Full<Bytes>>> {
    let uri = format!(
        "/v1/config?app_id=com.example.shop&app_version=4.12.0&build=41200&os_name=android&os_version=15\
         &device_model=Pixel%208&device_class=high&locale=de-DE&network=wifi&sdk_version=0.1.0\
         &install_id=5c0c7e0e-6c6b-4a3e-8a0e-{number:012}"
    );
    let request = Request::get(uri)
        .header(HOST, address)
        .header(AUTHORIZATION, format!("Bearer {KEY}"));
    Ok(request.body(Full::default())?)
}

async fn connect(address: &str) -> Result<SendRequest<Full<Bytes>>> {
    let stream = TcpStream::connect(address)
        .await
        .context("connecting to the server")?;
    stream.set_nodelay(true)?;
    let (connection, driver) = handshake(TokioIo::new(stream)).await?;
    #[expect(
        clippy::disallowed_methods,
        reason = "the task ends with its connection"
    )]
    tokio::spawn(async move { driver.await.unwrap_or_default() });
    Ok(connection)
}

async fn exchange(
    connection: &mut SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<Response<Bytes>> {
    connection.ready().await?;
    let (head, body) = connection.send_request(request).await?.into_parts();
    let body = body.collect().await?.to_bytes();
    Ok(Response::from_parts(head, body))
}

/// Changes the configuration.
struct Operator {
    token: String,
    address: String,
}

impl Operator {
    /// Saves the configuration, and returns how long it took until a device received it.
    async fn save(&self, expected_revision: u64, configuration: &Value) -> Result<Duration> {
        let mut device = Device::connect(&self.address, 0, StatusCode::OK).await?;
        let mut connection = connect(&self.address).await?;
        let body = json!({"expected_revision": expected_revision, "configuration": configuration});
        let request = Request::put(CONFIG)
            .header(HOST, &self.address)
            .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .header(AUTHORIZATION, format!("Bearer {}", self.token))
            .body(Full::from(body.to_string()))?;
        let begun = Instant::now();
        let saving = exchange(&mut connection, request);
        let seen = device.poll_until_revision(expected_revision + 1);
        let (saved, seen) = tokio::join!(saving, seen);
        let (saved, seen) = (saved?, seen?);
        ensure!(
            saved.status() == StatusCode::CREATED,
            "saving a configuration failed with {}: {}",
            saved.status(),
            String::from_utf8_lossy(saved.body())
        );
        Ok(seen.duration_since(begun))
    }

    async fn changes(&self, from: u64) -> Result<Latencies> {
        let mut spread = Spread::new()?;
        for revision in (from..).take(CHANGES) {
            let mut changed = overrides();
            changed["base"]["toggles"] = json!({"change": revision});
            spread.record(self.save(revision, &changed).await?);
        }
        Ok(spread.latencies())
    }
}

/// Conditions as teams write them: a version, a model, a region, a percentage, or a combination.
fn overrides() -> Value {
    let condition = |index: usize| match index % 5 {
        0 => json!({"app_version": format!(">=4.{}, <5", index % 20)}),
        1 => json!({"device_model": [format!("SM-G9{index}*"), "Pixel 4*"]}),
        2 => json!({"percentage": {"percent": 5.0}}),
        3 => json!({"any": [{"locale": ["fr", "it", "de-CH"]}, {"os_name": ["ios"]}]}),
        _ => json!({"all": [{"percentage": {"percent": 10.0}}, {"app_version": "^4.10"}]}),
    };
    let one = |index: usize| {
        json!({"id": format!("override-{index}"), "when": condition(index),
               "patch": {"toggles": {format!("toggle_{index}"): true}}})
    };
    json!({"base": {}, "overrides": (0..OVERRIDES).map(one).collect::<Vec<_>>()})
}
