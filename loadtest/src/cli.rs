//! The command line. Its comments are the `--help`.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};

use crate::alerts::AlertsArgs;
use crate::clickhouse::{Access, Login};
use crate::delivery::Backoff;
use crate::events::Mix;
use crate::faults::FaultsArgs;
use crate::parcel::Encoding;
use crate::plan::{Arrivals, Rate};
use crate::queries::QueriesArgs;
use crate::soak::SoakArgs;

/// Simulates devices that send to unjank, and verifies that what arrived is what was acknowledged.
///
/// The load is an open loop: every batch has an intended start, and its latency counts from there, so that a server that
/// stalls is charged for everything it delayed. A batch is retried with the same batch id as the SDK does it, until it is
/// acknowledged, refused or given up.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send a load to a server that runs already.
    ///
    /// Examples:
    ///   unjank-loadtest run --key K --rate 500 --duration 30s --data-dir ./data --verify
    ///   unjank-loadtest run --key K --rate max --duration 20s --connections 32
    ///   unjank-loadtest run --key K --replay recorded/ --data-dir ./data --verify
    #[command(verbatim_doc_comment)]
    Run(Box<RunArgs>),
    /// Start a server with an empty store, send it recorded batches, each twice, and verify.
    ///
    /// For a server that runs already: `run --replay`.
    Replay(Box<ReplayArgs>),
    /// Start a server, kill it and its engine at random moments under load, and verify that nothing is lost or doubled.
    ///
    /// Only processes that this command has started are killed: the server by its process, the engine by the process id in
    /// the `engine.json` of the data folder when that process is an unjank engine.
    Chaos(Box<ChaosArgs>),
    /// Break one thing at a time and verify that nothing is lost or doubled: kills at single system calls, power cuts, full and
    /// failing disks, a hanging engine, lost files. A line each; exit code 1 when one falls short.
    ///
    /// Needs strace for some faults, and root with a loop device for others. What cannot be tried here is printed as not checked.
    Faults(Box<FaultsArgs>),
    /// Measure a server from scratch: highest rate, latency at half of it, memory, bytes per row on disk.
    Bench(Box<BenchArgs>),
    /// Keep up a steady load for a long time: what an event costs over time and by table, what waits, how soon rows can be queried.
    /// Exit code 1 when the server does not keep up.
    ///
    /// Examples:
    ///   unjank-loadtest soak --server-bin target/release/unjank --minutes 30 --rate 1250
    ///   unjank-loadtest soak --server-bin target/release/unjank --minutes 5 --rate 1000 --find-rate
    #[command(verbatim_doc_comment)]
    Soak(Box<SoakArgs>),
    /// Measure the questions of the screens on a large store, filled once and kept: a row for each, with what it read.
    Queries(Box<QueriesArgs>),
    /// Try alert rules on simulated fleets: how soon a slow-down is found, and how often rules fire falsely. Exit code 1 when it is
    /// too late or too often.
    Alerts(Box<AlertsArgs>),
}

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The server, without a path. Plain HTTP.
    #[arg(long, default_value = "http://127.0.0.1:8080")]
    pub(crate) url: String,
    /// The ingest key.
    #[arg(long)]
    pub(crate) key: String,
    #[command(flatten)]
    pub(crate) load: LoadArgs,
    /// For how long batches start.
    #[arg(long, default_value = "30s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Stop after so many batches.
    #[arg(long)]
    pub(crate) batches: Option<u64>,
    /// Build and compress the whole load before the start: the generator then takes no CPU time from the server.
    /// In a closed loop, say how many with --batches.
    #[arg(long)]
    pub(crate) prepare: bool,
    /// Send the recorded batches of this folder, one JSON file each, byte for byte, each twice, instead of a made-up load.
    #[arg(long, value_name = "DIR")]
    pub(crate) replay: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) retry: RetryArgs,
    /// After the load, compare what was acknowledged with what ClickHouse holds. Exit code 1 when they differ.
    #[arg(long)]
    pub(crate) verify: bool,
    #[command(flatten)]
    pub(crate) store: StoreArgs,
    /// Process id of the server, for its CPU time and memory. Known by itself with --data-dir.
    #[arg(long)]
    pub(crate) server_pid: Option<u32>,
    /// Process id of the embedded engine. Known by itself with --data-dir.
    #[arg(long)]
    pub(crate) engine_pid: Option<u32>,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct LoadArgs {
    /// Batches a second, or `max` for a closed loop: each connection sends its next batch when the last is answered.
    #[arg(long, default_value = "100", value_parser = rate)]
    pub(crate) rate: Rate,
    /// How the gaps between batches vary.
    #[arg(long, value_enum, default_value = "poisson")]
    pub(crate) arrivals: Arrivals,
    /// How many installs there are.
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) devices: u64,
    /// The same seed makes the same devices, sessions and events. Times, and the ids that name the run, differ.
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Events of a batch.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) events_per_batch: u64,
    /// Which signals the batches hold.
    #[arg(long, value_enum, default_value = "realistic")]
    pub(crate) mix: Mix,
    /// How bodies are compressed.
    #[arg(long, value_enum, default_value = "zstd")]
    pub(crate) encoding: Encoding,
    /// Connections, each with one request at a time.
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) connections: u16,
    /// Batches under way at once in an open loop, waiting for a connection or a retry included.
    #[arg(long, default_value_t = 20_000)]
    pub(crate) outstanding: usize,
    /// Threads that build batches.
    #[arg(long, default_value_t = 2)]
    pub(crate) generators: usize,
    /// Share of batches that waited hours or days on the device.
    #[arg(long, default_value_t = 0.02)]
    pub(crate) late: f64,
    /// Share of batches with one event that the server has to reject.
    #[arg(long, default_value_t = 0.0)]
    pub(crate) spoilt: f64,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct RetryArgs {
    /// The first wait before a retry; doubled each time, with jitter. The SDK's is 15s.
    #[arg(long, default_value = "500ms", value_parser = duration)]
    pub(crate) retry_first: Duration,
    /// The longest wait before a retry.
    #[arg(long, default_value = "15s", value_parser = duration)]
    pub(crate) retry_longest: Duration,
    /// What the server's `Retry-After` is multiplied by: 1 obeys it to the second.
    #[arg(long, default_value_t = 1.0)]
    pub(crate) retry_after_scale: f64,
    /// Give a batch up after so many attempts.
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) attempts: u32,
    /// Never give a batch up.
    #[arg(long)]
    pub(crate) batch_retries_forever: bool,
    /// How long an attempt may take.
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
    /// The server's data folder: tells where its embedded engine and its admin listener are.
    #[arg(long)]
    pub(crate) data_dir: Option<PathBuf>,
    /// A ClickHouse server, instead of the embedded engine.
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
    /// The server's admin listener, asked whether its log is drained.
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
    /// Write the report as JSON.
    #[arg(long, value_name = "FILE")]
    pub(crate) report_json: Option<PathBuf>,
    /// Write the report as Markdown. It is printed in any case.
    #[arg(long, value_name = "FILE")]
    pub(crate) report_md: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// The `unjank` binary.
    #[arg(long)]
    pub(crate) server_bin: PathBuf,
    /// The folder of the recorded batches, one JSON file each.
    #[arg(long)]
    pub(crate) dir: PathBuf,
    /// How bodies are compressed.
    #[arg(long, value_enum, default_value = "zstd")]
    pub(crate) encoding: Encoding,
    /// Connections, each with one request at a time.
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) connections: u16,
    #[command(flatten)]
    pub(crate) retry: RetryArgs,
    /// Compare what was acknowledged with what ClickHouse holds. Exit code 1 when they differ.
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
    /// The `unjank` binary.
    #[arg(long)]
    pub(crate) server_bin: PathBuf,
    /// An empty folder for the server's data, made when it is not there; kept. Without it: a temporary folder.
    #[arg(long)]
    pub(crate) data_dir: Option<PathBuf>,
    /// How often the server is killed (SIGKILL) and started again.
    #[arg(long, default_value_t = 20)]
    pub(crate) kills: u32,
    /// How often its engine is killed.
    #[arg(long, default_value_t = 20)]
    pub(crate) engine_kills: u32,
    /// The mean time from one kill to the next.
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
    /// The `unjank` binary: a release build.
    #[arg(long)]
    pub(crate) server_bin: PathBuf,
    /// How long each of the two measurements of batches takes; each of the four of polls takes a quarter.
    #[arg(long, default_value = "20s", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Connections of the closed loop.
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) connections: u16,
    /// Spans of a batch.
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) events_per_batch: u64,
    /// Most memory for batches built ahead, in MiB.
    #[arg(long, default_value_t = 3_072)]
    pub(crate) memory_mib: u64,
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
        .map_err(|_| "a number with a unit, as 30s".to_owned())?;
    let seconds = match unit {
        "ms" => number / 1_000.0,
        "s" => number,
        "m" => number * 60.0,
        "h" => number * 3_600.0,
        _ => return Err("one of the units ms, s, m, h, as in 30s".to_owned()),
    };
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

fn rate(text: &str) -> Result<Rate, String> {
    if text == "max" {
        return Ok(Rate::Max);
    }
    match text.parse::<f64>() {
        Ok(rate) if rate.is_finite() && rate > 0.0 => Ok(Rate::PerSecond(rate)),
        _ => Err("batches a second, or max".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn durations_and_rates_are_read() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert!(duration("30").is_err());
        assert!(duration("-1s").is_err());
        assert_eq!(rate("max"), Ok(Rate::Max));
        assert_eq!(rate("12.5"), Ok(Rate::PerSecond(12.5)));
        assert!(rate("0").is_err());
    }
}
