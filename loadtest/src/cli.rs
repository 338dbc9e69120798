//! The command line. The doc comments are the `--help` texts.

use clap::{Parser, Subcommand};

use crate::alerts::AlertsArgs;
use crate::arguments::{BenchArgs, ChaosArgs, ReplayArgs, RunArgs};
use crate::changes::ChangesArgs;
use crate::cold_start::ColdStartArgs;
use crate::faults::FaultsArgs;
use crate::idle::IdleArgs;
use crate::queries::QueriesArgs;
use crate::soak::SoakArgs;
use crate::symbols::SymbolsArgs;

/// Simulates devices that send to an unjank server, and verifies that the server stored what it acknowledged.
///
/// The load is an open loop: every batch has a scheduled start, and its latency counts from there. A server that stalls is
/// therefore charged for every batch it delays. Like the SDK, the tool retries a batch with the same batch id until the batch is
/// acknowledged, rejected or given up.
#[derive(Debug, Parser)]
#[command(version, max_term_width = 110)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send a load to a running server.
    ///
    /// Examples:
    ///   unjank-loadtest run --key K --rate 500 --duration 30s --data-dir ./data --verify
    ///   unjank-loadtest run --key K --rate max --duration 20s --connections 32
    ///   unjank-loadtest run --key K --replay recorded/ --data-dir ./data --verify
    #[command(verbatim_doc_comment)]
    Run(Box<RunArgs>),
    /// Start a server with an empty store, send it recorded batches twice each, and verify.
    ///
    /// To replay to a running server, use `run --replay`.
    Replay(Box<ReplayArgs>),
    /// Start a server, kill it and its engine at random moments under load, and verify that nothing is lost or duplicated.
    ///
    /// Only processes that this command started are killed: the server that it spawned, and the engine whose process id is in
    /// `engine.json` of the data folder, if that process is an unjank engine.
    Chaos(Box<ChaosArgs>),
    /// Break one thing at a time and verify that nothing is lost or duplicated: kills at single system calls, power cuts, full
    /// and failing disks, a hanging engine, lost files. Prints one line per fault; the exit code is 1 if one falls short.
    ///
    /// Some faults need strace, others need root and a loop device. Faults that cannot run on this machine are printed as not
    /// checked.
    Faults(Box<FaultsArgs>),
    /// Measure a server with an empty store: highest rate, latency at half that rate, memory, bytes per row on disk.
    Bench(Box<BenchArgs>),
    /// Keep up a steady load for a long time and measure the cost of an event over time and by table, the backlog, and how soon
    /// rows can be queried. The exit code is 1 if the server does not keep up.
    ///
    /// Examples:
    ///   unjank-loadtest soak --server-bin target/release/unjank --minutes 30 --rate 1250
    ///   unjank-loadtest soak --server-bin target/release/unjank --minutes 5 --rate 1000 --find-rate
    #[command(verbatim_doc_comment)]
    Soak(Box<SoakArgs>),
    /// Measure the queries of the dashboard's screens on a large store, which is filled once and kept: prints latency and rows
    /// read of each.
    Queries(Box<QueriesArgs>),
    /// Measure how soon a server with a large store acknowledges a batch, answers a query and stops. The exit code is 1 if a batch
    /// takes more than 1 s, or a query more than 5 s.
    ColdStart(Box<ColdStartArgs>),
    /// Measure CPU time, memory, wake-ups and writes of a server and its engine while nobody talks to them. The exit code is 1 if
    /// they take more than 1 % of a core or 350 MB.
    Idle(Box<IdleArgs>),
    /// Measure how fast stacks become readable with large R8 mappings, how much memory that takes, and whether ingest gets slower.
    Symbols(Box<SymbolsArgs>),
    /// Measure how soon a change by an operator is in force on a server: a configuration, a key, a limit. Also how long a stop takes.
    Changes(Box<ChangesArgs>),
    /// Try alert rules on simulated fleets: how soon a slow-down is found, and how often rules fire falsely. The exit code is 1
    /// if alerts fire too late or too often.
    Alerts(Box<AlertsArgs>),
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
