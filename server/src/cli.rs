//! The command line: one module per command. Only this module prints.

mod alerts;
mod api_client;
mod backup;
mod byte_bar;
mod classify;
mod cluster;
mod compare;
mod dead_letter;
mod demo;
mod engine;
mod erase;
mod event_filters;
mod export;
mod healthcheck;
mod log;
mod mcp;
mod openapi;
mod output;
mod reference;
mod restore;
mod rollups;
mod server;
mod sql;
mod store_in_use;
mod symbol_parser;
mod symbols;
mod time_arguments;
mod token;
mod user;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use tracing_subscriber::EnvFilter;

use self::store_in_use::{DEFAULT_WAIT, store_in_use};
use crate::config::{Serve, Shared};

/// Performance monitoring for apps in production: stores and classifies what devices report, and serves queries.
#[derive(Parser, Debug)]
#[command(
    name = "unjank",
    version,
    max_term_width = 120,
    propagate_version = true,
    args_override_self = true
)]
#[command(
    after_help = "Start with `unjank serve`. Every setting can be a flag, an environment variable (UNJANK_…) or a line of a TOML file (--config)."
)]
pub struct Cli {
    #[command(flatten)]
    shared: Shared,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run the server: accept batches, make them durable, and store them in ClickHouse. While there is no user, it prints a link for creating
    /// the first one to standard output at each start.
    Serve(Box<Serve>),
    /// Fill a fresh data folder with a month of data from a made-up shop, print a login to standard output, and serve it.
    Demo(Box<demo::DemoArgs>),
    /// Run only the embedded ClickHouse, for use with any ClickHouse client.
    Engine(engine::EngineArgs),
    /// Internal: the process that runs ClickHouse.
    #[command(hide = true, name = "clickhouse")]
    Host(engine::HostArgs),
    /// Bring ClickHouse's schema up to date and exit. `serve` does the same at startup. With --clickhouse-cluster, do it on all hosts of the cluster.
    Migrate,
    /// Internal: the process that parses a symbol file.
    #[command(hide = true)]
    SymbolParser(symbol_parser::SymbolParserArgs),
    /// Run one read-only query against the server's store. The default output is tab-separated.
    Sql(sql::SqlArgs),
    /// Check whether a running server can accept batches. If so, the exit code is 0.
    Healthcheck(healthcheck::HealthcheckArgs),
    /// Replay alert rules on past data.
    #[command(hide = true)]
    Alerts(alerts::AlertsArgs),
    Backup(backup::BackupArgs),
    Classify(classify::ClassifyArgs),
    Cluster(cluster::ClusterArgs),
    Compare(Box<compare::CompareArgs>),
    /// List, retry or drop rows that ClickHouse rejected because of their content.
    DeadLetter(dead_letter::DeadLetterArgs),
    Erase(erase::EraseArgs),
    Export(Box<export::ExportArgs>),
    Log(log::LogArgs),
    Mcp(mcp::McpArgs),
    Restore(restore::RestoreArgs),
    Rollups(rollups::RollupsArgs),
    Symbols(symbols::SymbolsArgs),
    /// Create, list and revoke API tokens.
    Token(token::TokenArgs),
    /// Print the API document (OpenAPI 3.1). A server returns the same document at `/openapi.json`.
    Openapi,
    /// Internal: print a page of docs/reference.
    #[command(hide = true)]
    Reference(reference::ReferenceArgs),
    /// Add users, invite them again, enable and list them.
    User(user::UserArgs),
}

/// Runs the command and turns its result into an exit code.
pub fn run(cli: Cli) -> ExitCode {
    let Cli { shared, command } = cli;
    // For `compare`, exit code 1 means that the gate failed. For `symbols`, it means that a file is missing.
    let failure = match &command {
        Command::Compare(_) => compare::NOT_COMPARED,
        Command::Symbols(_) => symbols::FAILED,
        _ => 1,
    };
    if let Err(error) = start_logging(&shared) {
        return fail(&error, failure);
    }
    let result = match command {
        Command::Serve(serve) => server::run(&shared, &serve),
        Command::Demo(demo) => demo::run(&shared, &demo),
        Command::Engine(engine) => engine::run(&shared, &engine),
        Command::Host(host) => engine::host(&host),
        Command::SymbolParser(parser) => symbol_parser::run(&parser),
        Command::Migrate => server::migrate(&shared),
        Command::Sql(sql) => sql::run(&shared, &sql),
        Command::Healthcheck(healthcheck) => healthcheck::run(&shared, &healthcheck),
        Command::Alerts(alerts) => alerts::run(&shared, &alerts, std::io::stdout().lock()),
        Command::Backup(backup) => backup::run(&shared, backup),
        Command::Classify(classify) => {
            classify::run(&classify, std::io::stdin().lock(), std::io::stdout().lock())
        }
        Command::Cluster(cluster) => cluster::run(&shared, &cluster),
        Command::Compare(compare) => {
            return compare::run(&shared, &compare).unwrap_or_else(|error| fail(&error, failure));
        }
        Command::DeadLetter(dead_letter) => dead_letter::run(&shared, &dead_letter),
        Command::Erase(erase) => erase::run(&shared, &erase),
        Command::Export(export) => export::run(&shared, &export),
        Command::Log(log) => log::run(&shared, log),
        Command::Restore(restore) => restore::run(&shared, restore),
        Command::Rollups(rollups) => {
            return rollups::run(&shared, &rollups).unwrap_or_else(|error| fail(&error, failure));
        }
        Command::Symbols(symbols) => {
            return symbols::run(&symbols).unwrap_or_else(|error| fail(&error, failure));
        }
        Command::Token(token) => token::run(&shared, &token),
        Command::Mcp(mcp) => mcp::run(&mcp),
        Command::Openapi => openapi::run(std::io::stdout().lock()),
        Command::Reference(reference) => reference::run(&reference, std::io::stdout().lock()),
        Command::User(user) => user::run(&shared, &user),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&error, failure),
    }
}

fn fail(error: &anyhow::Error, code: u8) -> ExitCode {
    // Fails if the pipe is closed (`unjank sql … | head`), which is normal.
    let _unheard = writeln!(std::io::stderr(), "error: {}", explained(error)).is_err();
    ExitCode::from(code)
}

/// Joins the texts of an error and its causes. Some errors end with the text of their cause already.
fn explained(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    text
}

/// Logs go to standard error: JSON for programs, plain text for a terminal.
fn start_logging(shared: &Shared) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&shared.log)
        .map_err(|error| anyhow::anyhow!("--log `{}`: {error}", shared.log))?;
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // Otherwise, a log that nobody reads any longer would make every task that logs panic.
        .log_internal_errors(false)
        .with_writer(std::io::stderr);
    let started = match (std::io::stderr().is_terminal(), shared.log_plain) {
        (true, _) => builder.with_target(false).try_init(),
        (false, true) => builder.with_target(false).with_ansi(false).try_init(),
        (false, false) => builder.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| anyhow::anyhow!("cannot start logging: {error}"))
}

fn runtime() -> anyhow::Result<tokio::runtime::Runtime> {
    Ok(tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?)
}

#[cfg(test)]
mod tests {
    use super::explained;

    #[test]
    fn a_cause_that_its_error_has_quoted_is_not_repeated() {
        let cause = || anyhow::anyhow!("no permission");
        let quoted = cause().context("cannot open x: no permission");
        assert_eq!(explained(&quoted), "cannot open x: no permission");
        let plain = cause().context("cannot open x");
        assert_eq!(explained(&plain), "cannot open x: no permission");
    }
}
