//! `unjank-loadtest alerts`: measures on simulated fleets whether alert rules find slow-downs, and whether they stay quiet
//! otherwise.
//!
//! The server evaluates the rules on past data (`unjank alerts simulate`), with the same verdicts and the same state machine as
//! in production, where it evaluates them every minute.

mod cost;
mod quiet;
mod rules;
mod simulate;
mod trials;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;
use serde_json::Value;

use crate::clickhouse::{Access, ClickHouse};
use crate::console;
use crate::server::Server;

use self::cost::Meter;
use self::simulate::Simulator;

#[derive(Debug, Args)]
pub(crate) struct AlertsArgs {
    /// Path of the `unjank` binary.
    #[arg(long)]
    server_bin: PathBuf,
    /// Folder of the filled store, which is kept so that later runs need not fill it again.
    #[arg(long)]
    data_dir: PathBuf,
    /// Number of roll-outs of each kind, each with another fleet at another time. 0 skips this part.
    #[arg(long, default_value_t = 10)]
    trials: u64,
    /// Only try roll-outs of this kind. Can be repeated.
    #[arg(long, value_name = "WHAT")]
    kind: Vec<String>,
    /// Minutes between two evaluations in those roll-outs.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=45))]
    trial_step: u64,
    /// Number of days without a change. 0 skips this part. Eight more days are filled as the baseline.
    #[arg(long, default_value_t = 30)]
    days: u64,
    /// Minutes between two evaluations in those days.
    #[arg(long, default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..=720))]
    step: u64,
    /// Sessions per day. Each produces about ten rows.
    #[arg(long, default_value_t = 20_000)]
    sessions: u64,
    /// Number of rules to evaluate in those days, starting with the first.
    #[arg(long, default_value_t = 50)]
    rules: usize,
}

/// State that all parts share.
struct Bench {
    clickhouse: ClickHouse,
    simulator: Simulator,
    templates: Vec<Value>,
}

/// Returns whether all results are as required.
pub(crate) async fn run(args: &AlertsArgs) -> Result<bool> {
    let mut server = Server::start(&args.server_bin, &args.data_dir)?;
    server.ready().await?;
    let clickhouse = ClickHouse::new(Access::Engine(args.data_dir.clone()))?;
    // A new store accepts batches before it answers queries.
    for _ in 0..10 {
        if clickhouse.value::<u64>("SELECT 1").await.is_ok() {
            break;
        }
    }
    let bench = Bench {
        clickhouse,
        simulator: Simulator::new(&args.server_bin, &args.data_dir)?,
        templates: rules::templates(&server).await?,
    };
    let mut well = true;
    if args.trials > 0 {
        let meter = Meter::start(&bench, &args.data_dir).await?;
        let rollouts = trials::Rollouts {
            trials: args.trials,
            step: args.trial_step,
            only: &args.kind,
        };
        let (text, found, evaluations) = trials::report(&bench, &rollouts).await?;
        console::print(&text);
        console::print(&meter.report(&bench, evaluations).await?);
        well &= found;
    }
    if args.days > 0 {
        let month = quiet::Month {
            days: args.days,
            step: args.step,
            sessions: args.sessions,
            rules: args.rules,
        };
        let meter = Meter::start(&bench, &args.data_dir).await?;
        let (text, quiet, evaluations) = quiet::report(&bench, &month).await?;
        console::print(&text);
        console::print(&meter.report(&bench, evaluations).await?);
        well &= quiet;
    }
    server.stop().await?;
    Ok(well)
}
