//! `unjank-loadtest symbols`: measures how fast stacks become readable, what that costs in memory, and whether ingest notices.

mod mapping;

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use reqwest::Client;
use serde_json::{Value, json};
use tokio::process::Command;
use uuid::Uuid;

use self::mapping::{FRAMES, Mapping};
use crate::clickhouse::ClickHouse;
use crate::clock;
use crate::console;
use crate::processes;
use crate::server::{KEY, Server, Settings};
use crate::server_and_store::ServerAndStore;
use crate::tally::Spread;

/// Distinct stacks of each mapping in one round.
const STACKS: usize = 100;
/// How long one measurement of the latency of ingest takes.
const PROBED: Duration = Duration::from_secs(10);
/// One probe is sent at each interval, whether the last one was answered or not.
const PROBE_EVERY: Duration = Duration::from_millis(20);
/// During the measurement, so many batches of [`STACKS`] new stacks arrive in a second.
const STALLS_A_SECOND: u32 = 5;
const PATIENCE: Duration = Duration::from_secs(900);

#[derive(Args, Debug)]
pub(crate) struct SymbolsArgs {
    /// The program `unjank`.
    #[arg(long, value_name = "FILE")]
    server_bin: PathBuf,

    /// The number of R8 mappings.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    mappings: u32,

    /// The size of each mapping, in MB.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    megabytes: u32,
}

pub(crate) async fn run(args: &SymbolsArgs) -> Result<bool> {
    let folder = tempfile::tempdir().context("creating a folder for the server's data")?;
    let data_dir = folder.path().join("data");
    // Each stack of this load is a new one.
    let settings = Settings::from([("UNJANK_MAX_NAMES_PER_HOUR", "1000000".to_owned())]);
    let mut server = Server::start_with(&args.server_bin, &data_dir, settings)?;
    server.ready().await?;
    let place = ServerAndStore::own(&data_dir, &server.admin_url(), PATIENCE)?;
    let clickhouse = place.clickhouse().context("the server has no engine")?;
    let mut bench = Bench {
        args,
        client: Client::builder().no_proxy().build()?,
        url: server.url(),
        clickhouse,
        mappings: Vec::new(),
        rounds: 0,
    };
    bench.upload(&server).await?;
    bench
        .measure_stacks("stacks/s, lookup files just made")
        .await?;
    report_memory(&server, args);
    server.kill()?;
    server.start_again()?;
    server.ready().await?;
    let place = ServerAndStore::own(&data_dir, &server.admin_url(), PATIENCE)?;
    bench.clickhouse = place.clickhouse().context("the server has no engine")?;
    bench
        .measure_stacks("stacks/s, cold: the server has just started")
        .await?;
    bench.measure_stacks("stacks/s, warm").await?;
    report_memory(&server, args);
    bench.measure_ingest().await?;
    server.stop().await?;
    Ok(true)
}

fn print(name: &str, value: &str) {
    console::print(&format!("{name:<60} {value}"));
}

fn report_memory(server: &Server, args: &SymbolsArgs) {
    let Some(memory) = processes::resident(server.pid()) else {
        return;
    };
    let name = format!(
        "memory with {} mappings of {} MB",
        args.mappings, args.megabytes
    );
    let mib = |bytes: u64| bytes >> 20;
    let (own, mapped) = (mib(memory.own), mib(memory.of_files));
    print(
        &name,
        &format!("{own} MiB, and {mapped} MiB of mapped files that the system can drop"),
    );
}

struct Bench<'b> {
    args: &'b SymbolsArgs,
    client: Client,
    url: String,
    clickhouse: &'b ClickHouse,
    mappings: Vec<Mapping>,
    /// Rounds of stacks sent so far. Each has other stacks.
    rounds: usize,
}

impl Bench<'_> {
    /// Uploads all mappings, and measures meanwhile how soon the server answers the checks of its health.
    async fn upload(&mut self, server: &Server) -> Result<()> {
        let (client, url) = (
            self.client.clone(),
            format!("{}/healthz", server.admin_url()),
        );
        let mut spread = Spread::new()?;
        let check = async {
            loop {
                let begun = Instant::now();
                client.get(&url).send().await?.error_for_status()?;
                spread.record(begun.elapsed());
                tokio::time::sleep(PROBE_EVERY).await;
            }
        };
        tokio::select! {
            uploaded = self.upload_all(server) => uploaded?,
            failed = check => return failed,
        }
        let [p99, most] = [0.99, 1.0].map(|quantile| spread.quantile_ms(quantile));
        let name = "/healthz while mappings are uploaded";
        print(name, &format!("p99 {p99:.1} ms, at most {most:.0} ms"));
        Ok(())
    }

    /// Uploads all mappings with the command for it.
    async fn upload_all(&mut self, server: &Server) -> Result<()> {
        let token = server.api_token()?;
        let folder = tempfile::tempdir()?;
        let begun = Instant::now();
        for number in 0..self.args.mappings {
            let mapping = Mapping::new(number);
            let path = folder.path().join(format!("mapping-{number}.txt"));
            std::fs::write(&path, mapping.text((self.args.megabytes as usize) << 20)?)?;
            let uploaded = Command::new(&self.args.server_bin)
                .args(["symbols", "upload"])
                .arg(&path)
                .env("UNJANK_URL", &self.url)
                .env("UNJANK_TOKEN", &token)
                .env("UNJANK_PROJECT", "default")
                .stdout(Stdio::null())
                .status();
            ensure!(uploaded.await?.success(), "the upload of a mapping failed");
            std::fs::remove_file(&path)?;
            self.mappings.push(mapping);
            console::say(&format!(
                "uploaded {} of {} mappings",
                number + 1,
                self.args.mappings
            ));
        }
        let each = begun.elapsed().as_secs_f64() / f64::from(self.args.mappings);
        print(
            "s to make, upload and check one mapping",
            &format!("{each:.1}"),
        );
        Ok(())
    }

    /// Sends new stacks of every mapping, and waits until all of them are readable.
    async fn measure_stacks(&mut self, name: &str) -> Result<()> {
        let begun = Instant::now();
        let mut sent = 0;
        for mapping in &self.mappings {
            let round = self.rounds * STACKS;
            let stacks = (round..round + STACKS).map(|stack| mapping.stack(stack));
            self.send(&stalls(stacks)).await?;
            sent += STACKS;
        }
        self.rounds += 1;
        let expected = self.rounds * self.mappings.len() * STACKS;
        self.readable(expected).await?;
        let seconds = begun.elapsed().as_secs_f64();
        let rate = sent as f64 / seconds;
        let frames = sent * FRAMES;
        print(
            name,
            &format!(
                "{rate:.0} ({sent} stacks, {frames} frames, in {seconds:.1} s, from sending on)"
            ),
        );
        Ok(())
    }

    async fn readable(&self, expected: usize) -> Result<()> {
        let begun = Instant::now();
        let sql = "SELECT countIf(notEmpty(`frames.class`)) FROM unjank.stacks_symbolicated FINAL";
        while self.clickhouse.value::<usize>(sql).await? < expected {
            if begun.elapsed() > PATIENCE {
                bail!("stacks were not readable within {PATIENCE:?}");
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    async fn send(&self, batch: &Value) -> Result<()> {
        let sent = self.client.post(format!("{}/v1/ingest", self.url));
        let sent = sent.bearer_auth(KEY).json(batch).send().await?;
        sent.error_for_status().context("sending a batch")?;
        Ok(())
    }

    /// Compares the latency of batches while stacks arrive that need symbols, and while as many arrive that need none.
    async fn measure_ingest(&mut self) -> Result<()> {
        for (name, needs_symbols) in [
            (
                "ingest latency while stacks arrive that need no symbols",
                false,
            ),
            (
                "ingest latency while stacks arrive and are symbolicated",
                true,
            ),
        ] {
            self.rounds += 1;
            let (probed, sent) = tokio::join!(self.probe(), self.send_stalls(needs_symbols));
            sent?;
            let spread = probed?;
            let [p50, p99] = [0.5, 0.99].map(|quantile| spread.quantile_ms(quantile));
            print(name, &format!("p50 {p50:.2} ms, p99 {p99:.2} ms"));
        }
        Ok(())
    }

    async fn probe(&self) -> Result<Spread> {
        let mut spread = Spread::new()?;
        let mut probes = tokio::task::JoinSet::new();
        let mut every = tokio::time::interval(PROBE_EVERY);
        let begun = Instant::now();
        while begun.elapsed() < PROBED {
            every.tick().await;
            let request = self.client.post(format!("{}/v1/ingest", self.url));
            let request = request.bearer_auth(KEY).json(&span());
            probes.spawn(async move {
                let begun = Instant::now();
                request.send().await?.error_for_status()?;
                anyhow::Ok(begun.elapsed())
            });
        }
        while let Some(took) = probes.join_next().await {
            spread.record(took??);
        }
        Ok(spread)
    }

    async fn send_stalls(&self, needs_symbols: bool) -> Result<()> {
        let begun = Instant::now();
        let mut every = tokio::time::interval(Duration::from_secs(1) / STALLS_A_SECOND);
        let mut next = self.rounds * 1_000_000;
        let mut mappings = self.mappings.iter().cycle();
        while begun.elapsed() < PROBED {
            every.tick().await;
            let mapping = mappings.next().context("there are no mappings")?;
            let stacks = (next..next + STACKS).map(|stack| match needs_symbols {
                true => mapping.stack(stack),
                false => mapping.readable_stack(stack),
            });
            self.send(&stalls(stacks)).await?;
            next += STACKS;
        }
        Ok(())
    }
}

fn stalls(stacks: impl Iterator<Item = Value>) -> Value {
    let start = clock::now().to_string();
    let stalls: Vec<Value> = stacks
        .map(|stack| json!({"kind": "jank", "start": start, "duration_ms": 2_100, "thread": "main", "stack": stack}))
        .collect();
    batch("janks", &json!(stalls))
}

fn span() -> Value {
    let id = Uuid::new_v4().simple().to_string();
    let span = json!({
        "trace_id": id, "span_id": "00f067aa0ba902b7", "name": "checkout", "start": clock::now().to_string(), "duration_us": 5,
    });
    batch("spans", &json!([span]))
}

fn batch(signal: &str, events: &Value) -> Value {
    let id = Uuid::now_v7();
    json!({
        "batch_id": id,
        "resource": {"app_id": "com.example.shop", "app_version": "1.0", "install_id": id},
        signal: events,
    })
}
