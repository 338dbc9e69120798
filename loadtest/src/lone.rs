//! Measures how soon the rows of a single batch can be queried while the server is otherwise idle.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use reqwest::Client;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use crate::clickhouse::ClickHouse;
use crate::clock;
use crate::server::{KEY, Server};
use crate::tally::{Latencies, Spread};

const BATCHES: u32 = 12;
/// Long enough for the server to become idle again.
const PAUSE: Duration = Duration::from_secs(3);
const PATIENCE: Duration = Duration::from_secs(30);

/// Time from the acknowledgment until a query returns the rows.
#[derive(Debug, Serialize)]
pub(crate) struct Freshness {
    pub(crate) batches: u32,
    pub(crate) raw: Latencies,
    pub(crate) rolled_up: Latencies,
}

pub(crate) async fn measure(server: &Server, clickhouse: &ClickHouse) -> Result<Freshness> {
    let client = Client::builder().no_proxy().build()?;
    let (mut raw, mut rolled_up) = (Spread::new()?, Spread::new()?);
    for _ in 0..BATCHES {
        tokio::time::sleep(PAUSE).await;
        let name = format!("lone-{}", Uuid::new_v4().simple());
        let sent = client
            .post(format!("{}/v1/ingest", server.url()))
            .bearer_auth(KEY)
            .json(&batch(&name))
            .send();
        sent.await?
            .error_for_status()
            .context("sending a single batch")?;
        let begun = Instant::now();
        let spans = format!("SELECT count() FROM unjank.spans WHERE name = '{name}'");
        let daily = format!("SELECT sum(samples) FROM unjank.spans_daily WHERE name = '{name}'");
        raw.record(until_seen(clickhouse, &spans, begun).await?);
        rolled_up.record(until_seen(clickhouse, &daily, begun).await?);
    }
    Ok(Freshness {
        batches: BATCHES,
        raw: raw.latencies(),
        rolled_up: rolled_up.latencies(),
    })
}

async fn until_seen(clickhouse: &ClickHouse, sql: &str, begun: Instant) -> Result<Duration> {
    while clickhouse.value::<u64>(sql).await? == 0 {
        if begun.elapsed() > PATIENCE {
            bail!("the rows of a single batch did not appear within {PATIENCE:?}: {sql}");
        }
    }
    Ok(begun.elapsed())
}

/// Returns a batch with one span.
pub(crate) fn batch(name: &str) -> serde_json::Value {
    let id = Uuid::new_v4();
    json!({
        "batch_id": id,
        "resource": {"app_id": "com.example.lone", "app_version": "1.0", "install_id": id},
        "spans": [{
            "trace_id": id.simple().to_string(),
            "span_id": "00f067aa0ba902b7",
            "name": name,
            "start": clock::now().to_string(),
            "duration_us": 5,
        }],
    })
}
