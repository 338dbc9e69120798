//! `unjank-loadtest alerts`: whether alert rules find what is slower and keep quiet about what is not, on simulated fleets.
//!
//! The server's own evaluation is tried on the past (`unjank alerts simulate`): the same verdicts and the same state machine as every
//! minute in production.

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
    /// The server to start.
    #[arg(long)]
    server_bin: PathBuf,
    /// Where the filled store is kept, so that the next run need not fill it again.
    #[arg(long)]
    data_dir: PathBuf,
    /// Roll-outs of each kind, each another fleet at another time; 0: none.
    #[arg(long, default_value_t = 10)]
    trials: u64,
    /// Only roll-outs that bring this; may repeat.
    #[arg(long, value_name = "WHAT")]
    kind: Vec<String>,
    /// Days without a change; 0: none. A week more is filled in, to be compared with.
    #[arg(long, default_value_t = 30)]
    days: u64,
    /// Minutes from one evaluation to the next in those days.
    #[arg(long, default_value_t = 180, value_parser = clap::value_parser!(u64).range(1..=720))]
    step: u64,
    /// Sessions of a day: ten rows each.
    #[arg(long, default_value_t = 20_000)]
    sessions: u64,
    /// Only so many of the rules in those days, from the first on.
    #[arg(long, default_value_t = 50)]
    rules: usize,
}

/// What all parts of it need.
struct Bench {
    clickhouse: ClickHouse,
    simulator: Simulator,
    templates: Vec<Value>,
}

/// Answers whether everything is as wanted.
pub(crate) async fn run(args: &AlertsArgs) -> Result<bool> {
    let mut server = Server::start(&args.server_bin, &args.data_dir)?;
    server.ready().await?;
    let clickhouse = ClickHouse::new(Access::Engine(args.data_dir.clone()))?;
    // A new store is ready for questions later than for batches.
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
        let (text, found, evaluations) = trials::report(&bench, args.trials, &args.kind).await?;
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
