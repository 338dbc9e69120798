//! `unjank-loadtest changes`: measures how soon a change by an operator is in force, and how long a stop takes.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Args;
use reqwest::{Client, Method, StatusCode};
use serde_json::{Value, json};

use crate::console;
use crate::server::{KEY, Server};
use crate::tally::Spread;

/// How long a change may take before the measurement gives up.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often the measurement looks whether a change is in force.
const LOOK: Duration = Duration::from_millis(5);
const PROJECT: &str = "/api/v1/projects/default";

#[derive(Args, Debug)]
pub(crate) struct ChangesArgs {
    /// The program `unjank`.
    #[arg(long, value_name = "FILE")]
    server_bin: PathBuf,

    /// How often to make each change.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    times: u32,
}

pub(crate) async fn run(args: &ChangesArgs) -> Result<bool> {
    let folder = tempfile::tempdir().context("creating a folder for the server's data")?;
    let mut server = Server::start(&args.server_bin, &folder.path().join("data"))?;
    server.ready().await?;
    let operator = Operator {
        client: Client::builder().no_proxy().build()?,
        url: server.url(),
        token: server.api_token()?,
    };
    let mut spreads = [
        Spread::new()?,
        Spread::new()?,
        Spread::new()?,
        Spread::new()?,
    ];
    for time in 0..args.times {
        spreads[0].record(operator.configuration(time).await?);
        let (id, key, took) = operator.key(time).await?;
        spreads[1].record(took);
        spreads[2].record(operator.revoked(&id, &key).await?);
        spreads[3].record(operator.quota(time).await?);
    }
    let names = [
        "a configuration",
        "a new key",
        "a revoked key",
        "a limit of a signal",
    ];
    for (name, spread) in names.iter().zip(&spreads) {
        let [p50, most] = [0.5, 1.0].map(|quantile| spread.quantile_ms(quantile));
        let name = format!("{name} is in force after");
        console::print(&format!("{name:<60} p50 {p50:.0} ms, at most {most:.0} ms"));
    }
    let begun = Instant::now();
    server.stop().await?;
    let name = "an idle server stops within";
    console::print(&format!("{name:<60} {} ms", begun.elapsed().as_millis()));
    Ok(true)
}

struct Operator {
    client: Client,
    url: String,
    token: String,
}

impl Operator {
    async fn call(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
        let request = self.client.request(method, format!("{}{path}", self.url));
        let request = request.bearer_auth(&self.token);
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        let answer = request.send().await?.error_for_status()?;
        let text = answer.text().await?;
        Ok(serde_json::from_str(&text).unwrap_or_default())
    }

    /// Polls as a device does.
    async fn poll(&self, key: &str) -> Result<(StatusCode, Value)> {
        let request = self.client.get(format!("{}/v1/config", self.url));
        let answer = request.bearer_auth(key).send().await?;
        let status = answer.status();
        let text = answer.text().await?;
        Ok((status, serde_json::from_str(&text).unwrap_or_default()))
    }

    async fn configuration(&self, time: u32) -> Result<Duration> {
        let path = format!("{PROJECT}/config");
        let current = self.call(Method::GET, &path, None).await?;
        let body = json!({
            "expected_revision": current["revision"],
            "configuration": {"base": {"poll_interval_s": 300 + time}},
        });
        let saved = self.call(Method::PUT, &path, Some(body)).await?;
        after(async || Ok(self.poll(KEY).await?.1["revision"] == saved["revision"])).await
    }

    /// Returns the id of a new key, the key, and after which time a device may use it.
    async fn key(&self, time: u32) -> Result<(String, String, Duration)> {
        let body = json!({"name": format!("key {time}")});
        let path = format!("{PROJECT}/keys");
        let made = self.call(Method::POST, &path, Some(body)).await?;
        let text = |member: &str| made[member].as_str().unwrap_or_default().to_owned();
        let (id, key) = (text("id"), text("key"));
        let took = after(async || Ok(self.poll(&key).await?.0 == StatusCode::OK)).await?;
        Ok((id, key, took))
    }

    async fn revoked(&self, id: &str, key: &str) -> Result<Duration> {
        let path = format!("{PROJECT}/keys/{id}");
        self.call(Method::DELETE, &path, None).await?;
        after(async || Ok(self.poll(key).await?.0 == StatusCode::UNAUTHORIZED)).await
    }

    /// Switches the limit of a signal on and off in turns.
    async fn quota(&self, time: u32) -> Result<Duration> {
        let is_limited = time.is_multiple_of(2);
        let quotas = if is_limited {
            json!({"metrics": 0})
        } else {
            json!({})
        };
        let body = json!({ "signal_quotas": quotas });
        self.call(Method::PATCH, PROJECT, Some(body)).await?;
        after(async || {
            let id = uuid::Uuid::now_v7();
            let batch = json!({
                "batch_id": id, "resource": {"app_id": "com.example.shop", "install_id": id},
                "metrics": [{"name": "m", "time": crate::clock::now().to_string(), "value": 1.0}],
            });
            let request = self.client.post(format!("{}/v1/ingest", self.url));
            let answer = request.bearer_auth(KEY).json(&batch).send().await?;
            let receipt: Value = answer.error_for_status()?.json().await?;
            Ok((receipt["accepted"] == 0) == is_limited)
        })
        .await
    }
}

/// Returns after which time a condition holds.
async fn after(mut holds: impl AsyncFnMut() -> Result<bool>) -> Result<Duration> {
    let begun = Instant::now();
    while !holds().await? {
        if begun.elapsed() > PATIENCE {
            bail!("a change was not in force within {PATIENCE:?}");
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(begun.elapsed())
}
