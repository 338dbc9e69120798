//! `unjank-loadtest`: simulates devices that send to an unjank server, and verifies what the server stored.
//!
//! Read top-down: `run`, `replay`, `chaos`, `faults`, `bench`, `soak`, `queries`, `cold-start`, `idle`, `symbols`, `changes` and `alerts` are
//! the commands.
//! `workload` assembles a load from `plan` (who sends when), `parcel` (what is sent), `generator` and `pacing` (build ahead, release on
//! time), and `delivery` and `post` (retry and send). `ledger` records what the devices sent, and `verify` compares it with the
//! store.

mod alerts;
mod arguments;
mod bench;
mod buckets;
mod changes;
mod chaos;
mod cli;
mod clickhouse;
mod clock;
mod cold_start;
mod console;
mod delivery;
mod drain;
mod events;
mod faults;
mod fill;
mod fingerprint;
mod fleet;
mod format;
mod idle;
mod ledger;
mod load;
mod lone;
mod otlp;
mod outcomes;
mod pacing;
mod parcel;
mod parcel_threads;
mod plan;
mod polls;
mod population;
mod post;
mod processes;
mod progress;
mod queries;
mod replay;
mod report;
mod run;
mod run_tag;
mod server;
mod server_and_store;
mod soak;
mod stages;
mod store;
mod symbols;
mod tally;
mod verify;
mod vocabulary;
mod watch;
mod workload;

use std::process::ExitCode;

use anyhow::{Result, anyhow};
use clap::Parser;

use crate::arguments::OutputArgs;
use crate::cli::{Cli, Command};
use crate::report::Report;

#[tokio::main]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    if let Command::Queries(args) = &cli.command {
        return exit_code(queries::run(args).await.map(|()| true));
    }
    if let Command::Alerts(args) = &cli.command {
        return exit_code(alerts::run(args).await);
    }
    if let Command::Faults(args) = &cli.command {
        return exit_code(faults::run(args).await);
    }
    if let Command::Soak(args) = &cli.command {
        return exit_code(soak::run(args).await);
    }
    if let Command::ColdStart(args) = &cli.command {
        return exit_code(cold_start::run(args).await);
    }
    if let Command::Idle(args) = &cli.command {
        return exit_code(idle::run(args).await);
    }
    if let Command::Symbols(args) = &cli.command {
        return exit_code(symbols::run(args).await);
    }
    if let Command::Changes(args) = &cli.command {
        return exit_code(changes::run(args).await);
    }
    let output = match &cli.command {
        Command::Run(args) => &args.output,
        Command::Replay(args) => &args.output,
        Command::Chaos(args) => &args.output,
        Command::Bench(args) => &args.output,
        Command::Queries(_)
        | Command::Alerts(_)
        | Command::Faults(_)
        | Command::Soak(_)
        | Command::ColdStart(_)
        | Command::Idle(_)
        | Command::Symbols(_)
        | Command::Changes(_) => {
            return ExitCode::SUCCESS;
        }
    };
    let result = tokio::select! {
        result = work(&cli.command) => result,
        () = interrupted_twice() => Err(anyhow!("interrupted")),
    };
    exit_code(result.and_then(|report| publish(&report, output)))
}

fn exit_code(result: Result<bool>) -> ExitCode {
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            console::say(&format!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}

async fn work(command: &Command) -> Result<Report> {
    match command {
        Command::Run(args) => run::run(args).await,
        Command::Replay(args) => replay::run_alone(args).await,
        Command::Chaos(args) => chaos::run(args).await,
        Command::Bench(args) => bench::run(args).await,
        Command::Queries(_)
        | Command::Alerts(_)
        | Command::Faults(_)
        | Command::Soak(_)
        | Command::ColdStart(_)
        | Command::Idle(_)
        | Command::Symbols(_)
        | Command::Changes(_) => Err(anyhow!("no load")),
    }
}

/// The first Ctrl-C ends the load and still produces a report; the second ends the tool.
async fn interrupted_twice() {
    if tokio::signal::ctrl_c().await.is_ok() {
        console::say("ending the load; press Ctrl-C again to quit immediately");
    }
    if tokio::signal::ctrl_c().await.is_err() {
        // Signals are not available: wait forever, so that only finished work ends the tool.
        std::future::pending::<()>().await;
    }
}

/// Prints the report and writes it to the requested files. Returns `false` if verification failed.
fn publish(report: &Report, output: &OutputArgs) -> Result<bool> {
    console::print(&report::markdown::text(report));
    if let Some(path) = &output.report_json {
        report::json::write(report, path)?;
    }
    if let Some(path) = &output.report_md {
        report::markdown::write(report, path)?;
    }
    Ok(report
        .verification
        .as_ref()
        .is_none_or(|verification| verification.holds))
}
