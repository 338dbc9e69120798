//! `unjank-loadtest soak`: observes a server under a steady load for a long time.
//!
//! Short runs miss merges, growth and a log that fills up. The soak therefore takes samples at intervals, and its verdict
//! compares the last third with the first.

mod engine;
mod probe;
mod sample;
mod text;
mod verdict;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Serialize;

use self::engine::TableWork;
use self::probe::Probe;
use self::sample::{Sample, Sampler};
use self::verdict::Verdict;
use crate::arguments::{LoadArgs, duration};
use crate::clock;
use crate::console;
use crate::delivery::Backoff;
use crate::fingerprint::Times;
use crate::load::Stops;
use crate::plan::Rate;
use crate::processes::Machine;
use crate::server::{KEY, Server};
use crate::server_and_store::ServerAndStore;
use crate::stages::Stage;
use crate::tally::{Latencies, Recent};
use crate::workload::{Destination, Workload, new_tag};

#[derive(Debug, Args)]
pub(crate) struct SoakArgs {
    /// Path of the `unjank` binary. Use a release build.
    #[arg(long)]
    server_bin: PathBuf,
    /// Folder for the server's data. Must not contain a store. Kept afterwards, except with --find-rate. Defaults to a temporary
    /// folder.
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// Duration of the load, in minutes.
    #[arg(long, default_value_t = 30.0)]
    minutes: f64,
    /// Interval between two printed samples.
    #[arg(long, default_value = "30s", value_parser = duration)]
    every: Duration,
    /// Find the highest rate that the server can sustain, by bisection between a rate that it sustained and one that it did not.
    /// Each try takes `--minutes` and starts with an empty store.
    #[arg(long)]
    find_rate: bool,
    /// Number of rates to try with `--find-rate`.
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(1..=20))]
    tries: u32,
    /// How long the server may take to drain its log after the load.
    #[arg(long, default_value = "300s", value_parser = duration)]
    drain_timeout: Duration,
    #[command(flatten)]
    load: LoadArgs,
    /// Write the report as JSON to this file.
    #[arg(long, value_name = "FILE")]
    report_json: Option<PathBuf>,
}

/// The results of a soak at one rate.
#[derive(Debug, Serialize)]
pub(crate) struct Soak {
    started_at: String,
    machine: Machine,
    server_version: Option<String>,
    form: &'static str,
    events_per_batch: u64,
    batches_per_s: f64,
    samples: Vec<Sample>,
    /// Latency over the whole run.
    latency: Latencies,
    /// Time from the end of the load until all events were stored and rolled up, in seconds.
    drain_s: f64,
    stages: Vec<Stage>,
    /// Work per table, the most expensive first.
    tables: Vec<TableWork>,
    verdict: Verdict,
}

/// Returns whether the server sustained up.
pub(crate) async fn run(args: &SoakArgs) -> Result<bool> {
    let Rate::PerSecond(rate) = args.load.rate else {
        anyhow::bail!("a soak needs a fixed rate in batches per second, for example --rate 1250");
    };
    ensure!(args.minutes > 0.0, "--minutes must be greater than 0");
    let soak = if args.find_rate {
        find_rate(args, rate).await?
    } else {
        at_rate(args, rate).await?
    };
    if let Some(path) = &args.report_json {
        let text = serde_json::to_string_pretty(&soak).context("encoding the report")?;
        std::fs::write(path, text + "\n").with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(soak.verdict.kept_up())
}

/// Bisects between a sustained rate and a rate that was too high. Returns the last soak that sustained up, or the last one if none
/// did.
async fn find_rate(args: &SoakArgs, first: f64) -> Result<Soak> {
    let (mut sustained, mut too_high): (Option<Soak>, Option<f64>) = (None, None);
    let mut rate = first;
    let mut last = None;
    for _ in 0..args.tries {
        let soak = at_rate(args, rate).await?;
        if soak.verdict.kept_up() {
            sustained = Some(soak);
        } else {
            too_high = Some(rate);
            last = Some(soak);
        }
        let floor = sustained.as_ref().map_or(0.0, |soak| soak.batches_per_s);
        rate = match too_high {
            Some(too_high) => f64::midpoint(floor, too_high),
            None => floor * 1.5,
        };
    }
    let events = args.load.events_per_batch as f64;
    match (sustained, last) {
        (Some(soak), _) => {
            let above = too_high.map_or("the limit was not reached".to_owned(), |too_high| {
                format!("{:.0} events/s are too many", too_high * events)
            });
            console::print(&format!(
                "\nHighest sustained rate: {:.0} events/s; {above}.",
                soak.batches_per_s * events
            ));
            Ok(soak)
        }
        (None, Some(soak)) => Ok(soak),
        (None, None) => anyhow::bail!("no rate was tried"),
    }
}

async fn at_rate(args: &SoakArgs, rate: f64) -> Result<Soak> {
    let folder = tempfile::tempdir().context("creating a folder for the server's data")?;
    let data_dir = match &args.data_dir {
        Some(dir) => dir.clone(),
        None => folder.path().join("data"),
    };
    ensure!(
        !data_dir.join("engine").exists(),
        "{} already contains a store: a soak needs an empty folder",
        data_dir.display()
    );
    let mut server = Server::start(&args.server_bin, &data_dir)?;
    server.ready().await?;
    let soak = with_server(args, rate, &server, &data_dir).await;
    server.stop().await?;
    if args.data_dir.is_some() && args.find_rate {
        std::fs::remove_dir_all(&data_dir).context("emptying the data folder for the next rate")?;
    }
    soak
}

async fn with_server(args: &SoakArgs, rate: f64, server: &Server, data_dir: &Path) -> Result<Soak> {
    let length = Duration::from_secs_f64(args.minutes * 60.0);
    let mut load = args.load.clone();
    load.rate = Rate::PerSecond(rate);
    let (events_per_batch, form) = (load.events_per_batch, load.format.name());
    let workload = Workload {
        load,
        tag: new_tag(),
        duration: Some(length),
        batches: None,
        verify: false,
        times: Times::Ignored,
    };
    let destination = Destination {
        url: server.url(),
        key: KEY.to_owned(),
        backoff: Backoff {
            first: Duration::from_millis(500),
            longest: Duration::from_secs(15),
            retry_after_scale: 1.0,
            attempts: Some(8),
        },
        timeout: Duration::from_secs(30),
    };
    let place = ServerAndStore::own(data_dir, &server.admin_url(), args.drain_timeout)?;
    let recent = Recent::default();
    let probe = Probe::start(server)?;
    let mut sampler = Sampler::begin(server, data_dir, recent.clone()).await?;
    console::say(&format!(
        "{:.0} events/s as {form} for {:.1} minutes ...",
        rate * events_per_batch as f64,
        args.minutes
    ));
    console::print(&text::head());
    let stops = Stops::default();
    let mut sending = Box::pin(workload.stream_to(&destination, &stops, Some(recent)));
    let mut samples = Vec::new();
    let mut ticks = tokio::time::interval(args.every);
    ticks.tick().await;
    let outcome = loop {
        tokio::select! {
            outcome = &mut sending => break outcome?,
            _ = ticks.tick() => {
                let sample = sampler.sample(&probe).await?;
                console::print(&text::line(&sample));
                samples.push(sample);
            }
        }
    };
    probe.stop();
    let drain_s = place.drain().await?.unwrap_or_default();
    if let Some(clickhouse) = place.clickhouse() {
        crate::store::merged(clickhouse).await?;
    }
    let last = sampler.sample(&probe).await?;
    console::print(&text::line(&last));
    let verdict = Verdict::new(&samples, &last, &outcome, rate * events_per_batch as f64);
    let soak = Soak {
        started_at: clock::now().to_string(),
        machine: Machine::here(),
        server_version: server.version(),
        form,
        events_per_batch,
        batches_per_s: rate,
        latency: outcome.tally.latency(),
        samples,
        drain_s,
        stages: sampler.stages().await?,
        tables: sampler.tables(),
        verdict,
    };
    console::print(&text::summary(&soak));
    Ok(soak)
}
