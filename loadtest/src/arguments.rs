//! The arguments of commands. The doc comments are the `--help` texts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::clickhouse::{Access, Login};
use crate::delivery::Backoff;
use crate::events::Mix;
use crate::format::Format;
use crate::parcel::Encoding;
use crate::plan::{Arrivals, Rate};

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// URL of the server, without a path. Plain HTTP only.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    pub(crate) url: String,
    /// The ingest key.
    #[arg(long)]
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    /// How long new batches start.
    #[arg(long, default_value = "30s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Stop after this many batches.
    #[arg(long)]
    pub(crate) batches: Option<u64>,
    /// Build and compress the whole load before the start, so that the generator takes no CPU time from the server. With `--rate
    /// max`, also set --batches.
    #[arg(long)]
    pub(crate) prepare: bool,
    /// Send the recorded batches of this folder instead of a generated load: one JSON file per batch, sent unchanged, twice each.
    #[arg(long, value_name = "DIR", conflicts_with = "format")]
    pub(crate) replay: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) retry: RetryArgs,
    /// After the load, compare the acknowledged events with those in ClickHouse. The exit code is 1 if they differ.
    #[arg(long)]
    pub(crate) verify: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Process id of the server, to measure its CPU time and memory. Found automatically with --data-dir.
    #[arg(long)]
    pub(crate) server_pid: Option<u32>,
    /// Process id of the embedded engine. Found automatically with --data-dir.
    #[arg(long)]
    pub(crate) engine_pid: Option<u32>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LoadArgs {
    /// Batches per second, or `max` for a closed loop in which each connection sends its next batch as soon as the last one is
    /// answered.
    #[arg(long, default_value = "100", value_parser = rate)]
    pub(crate) rate: Rate,
    /// Distribution of the gaps between batches.
    #[arg(long, value_enum, default_value = "poisson")]
    pub(crate) arrivals: Arrivals,
    /// Number of installs.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) devices: u64,
    /// Seed of the generator. The same seed produces the same devices, sessions and events; times and the ids of the run still
    /// differ.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Events per batch.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) events_per_batch: u64,
    /// Signals that the batches contain.
    #[arg(long, value_enum, default_value = "realistic")]
    pub(crate) mix: Mix,
    /// Compression of the request bodies.
    #[arg(long, value_enum, default_value = "zstd")]
    pub(crate) encoding: Encoding,
    /// Form of the batches.
    #[arg(long = "form", value_enum, default_value = "json")]
    pub(crate) format: Format,
    /// Number of connections, each with one request at a time.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) connections: u16,
    /// Maximum number of batches in flight in an open loop, including batches that wait for a connection or a retry.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) outstanding: usize,
    /// Number of threads that build batches.
    #[arg(long, default_value_t = 2)]
    pub(crate) generators: usize,
    /// Share of batches that waited hours or days on the device, from 0 to 1.
    #[arg(long, default_value_t = 0.02)]
    pub(crate) late: f64,
    /// Share of batches that contain one event the server has to reject, from 0 to 1.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) invalid: f64,
}

impl LoadArgs {
    /// Returns the settings to show in a report.
    pub(crate) fn settings(&self) -> BTreeMap<&'static str, String> {
        BTreeMap::from([
            ("devices", self.devices.to_string()),
            ("seed", self.seed.to_string()),
            ("events per batch", self.events_per_batch.to_string()),
            ("mix", format!("{:?}", self.mix).to_lowercase()),
            ("form", self.format.name().to_owned()),
            ("encoding", format!("{:?}", self.encoding).to_lowercase()),
            ("arrivals", format!("{:?}", self.arrivals).to_lowercase()),
            ("connections", self.connections.to_string()),
        ])
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RetryArgs {
    /// Wait before the first retry. Doubles with each retry, with jitter. The SDK uses 15s.
    #[arg(long, default_value = "500ms", value_parser = duration)]
    pub(crate) retry_first: Duration,
    /// Longest wait before a retry.
    #[arg(long, default_value = "15s", value_parser = duration)]
    pub(crate) retry_longest: Duration,
    /// Factor applied to the server's `Retry-After`: with 1, retries wait exactly as long as the server asks.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) retry_after_scale: f64,
    /// Number of attempts before a batch is given up.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) attempts: u32,
    /// Never give up a batch.
    #[arg(long)]
    pub(crate) batch_retries_forever: bool,
    /// Timeout of one attempt.
    #[arg(long, default_value = "30s", value_parser = duration)]
    pub(crate) timeout: Duration,
}

impl RetryArgs {
    pub(crate) fn backoff(&self) -> Backoff {
        Backoff {
            first: self.retry_first,
            longest: self.retry_longest,
            retry_after_scale: self.retry_after_scale,
            attempts: (!self.batch_retries_forever).then_some(self.attempts),
        }
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct StoreArgs {
    /// Data folder of the server: locates its embedded engine and its admin listener.
    #[arg(long)]
    pub(crate) data_dir: Option<PathBuf>,
    /// URL of a ClickHouse server to use instead of the embedded engine.
    #[arg(long)]
    pub(crate) clickhouse_url: Option<String>,
    #[arg(long, default_value = "default")]
    pub(crate) clickhouse_user: String,
    #[arg(
        long,
        default_value = "",
        env = "UNJANK_LOADTEST_CLICKHOUSE_PASSWORD",
        hide_env_values = true
    )]
    pub(crate) clickhouse_password: String,
    /// URL of the server's admin listener, which reports whether the log is drained.
    #[arg(long)]
    pub(crate) admin_url: Option<String>,
    /// How long the server may take to drain its log.
    #[arg(long, default_value = "120s", value_parser = duration)]
    pub(crate) drain_timeout: Duration,
}

impl StoreArgs {
    pub(crate) fn access(&self) -> Option<Access> {
        let server = self.clickhouse_url.clone().map(|url| {
            Access::Server(Login {
                url,
                user: self.clickhouse_user.clone(),
                password: self.clickhouse_password.clone(),
                pid: None,
            })
        });
        server.or_else(|| self.data_dir.clone().map(Access::Engine))
    }
}

#[derive(Clone, Debug, Args)]
pub(crate) struct OutputArgs {
    /// Write the report as JSON to this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) report_json: Option<PathBuf>,
    /// Write the report as Markdown to this file. The report is also printed.
    #[arg(long, value_name = "FILE")]
    pub(crate) report_md: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Path of the `unjank` binary.
    #[arg(long)]
    pub(crate) server_bin: PathBuf,
    /// Folder of the recorded batches, one JSON file per batch.
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// Compression of the request bodies.
    #[arg(long, value_enum, default_value = "zstd")]
    pub(crate) encoding: Encoding,
    /// Number of connections, each with one request at a time.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) connections: u16,
    #[command(flatten)]
    pub(crate) retry: RetryArgs,
    /// Compare the acknowledged events with those in ClickHouse. The exit code is 1 if they differ.
    #[arg(long)]
    pub(crate) verify: bool,
    /// How long the server may take to drain its log.
    #[arg(long, default_value = "120s", value_parser = duration)]
    pub(crate) drain_timeout: Duration,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ChaosArgs {
    /// Path of the `unjank` binary.
    #[arg(long)]
    pub(crate) server_bin: PathBuf,
    /// Folder for the server's data. Must be empty or missing, and is kept afterwards. Defaults to a temporary folder.
    #[arg(long)]
    pub(crate) data_dir: Option<PathBuf>,
    /// How often the server is killed (SIGKILL) and restarted.
    #[arg(long, default_value_t = 20)]
    pub(crate) kills: u32,
    /// How often its engine is killed.
    #[arg(long, default_value_t = 20)]
    pub(crate) engine_kills: u32,
    /// Mean time between two kills.
    #[arg(long, default_value = "2s", value_parser = duration)]
    pub(crate) kill_every: Duration,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    /// How long the server may take to drain its log.
    #[arg(long, default_value = "300s", value_parser = duration)]
    pub(crate) drain_timeout: Duration,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    /// Path of the `unjank` binary. Use a release build.
    #[arg(long)]
    pub(crate) server_bin: PathBuf,
    /// Duration of each of the two batch measurements. Each of the four poll measurements takes a quarter of it.
    #[arg(long, default_value = "20s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Number of connections of the closed loop.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) connections: u16,
    /// Spans per batch.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) events_per_batch: u64,
    /// Form of the batches. Requests of OpenTelemetry are measured, too.
    #[arg(long, value_enum, default_value = "json")]
    pub(crate) form: Format,
    /// Maximum memory for batches built ahead, in MiB.
    #[arg(long, default_value_t = 3_072)]
    pub(crate) memory_mib: u64,
    /// How long to measure the server while nobody talks to it, in minutes, at the end. 0 leaves that out.
    #[arg(long, default_value_t = 10.0)]
    pub(crate) idle_minutes: f64,
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = text.strip_prefix(digits).unwrap_or_default();
    let number: f64 = digits
        .parse()
        .map_err(|_| "expected a number with a unit, for example 30s".to_owned())?;
    let seconds = match unit {
        "ms" => number / 1_000.0,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3_600.0,
        _ => return Err("expected one of the units ms, s, m, h, for example 30s".to_owned()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn rate(text: &str) -> Result<Rate, String> {
    if text == "max" {
        return Ok(Rate::Max);
    }
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(Rate::PerSecond(rate)),
        _ => Err("expected batches per second as a positive number, or max".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_and_rates_are_parsed() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert!(duration("30").is_err());
        assert!(duration("-1s").is_err());
        assert_eq!(rate("max"), Ok(Rate::Max));
        assert_eq!(rate("12.5"), Ok(Rate::PerSecond(12.5)));
        assert!(rate("0").is_err());
    }
}
