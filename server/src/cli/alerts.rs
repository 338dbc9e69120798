//! `unjank alerts simulate`: replays rules on a store's past data, without a server. For benchmarks.

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tokio::time::Instant;
use unjank_foundation::clock::UnixTime;
use unjank_protocol::Timestamp;

use super::{DEFAULT_WAIT, runtime, store_in_use};
use crate::alerts::{Judge, Replay, Rule, replay};
use crate::config::Shared;

#[derive(Args, Debug)]
pub(super) struct AlertsArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Evaluate rules at each step of a period, and print each transition that would have happened as a line of JSON.
    Simulate(Simulate),
}

#[derive(Args, Debug)]
struct Simulate {
    #[arg(long, default_value = "default")]
    project: String,
    /// The start of the period (RFC 3339).
    #[arg(long)]
    from: String,
    /// The end of the period (RFC 3339).
    #[arg(long)]
    to: String,
    /// The time between evaluations, in minutes.
    #[arg(long, value_name = "MINUTES", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1_440))]
    step: u32,
    /// A JSON file with a list of rules.
    #[arg(long, value_name = "FILE")]
    rules: PathBuf,
}

pub(super) fn run(shared: &Shared, args: &AlertsArgs, out: impl Write) -> anyhow::Result<()> {
    let Command::Simulate(simulate) = &args.command;
    runtime()?.block_on(async {
        let judge = Judge::for_past(store_in_use(shared, DEFAULT_WAIT).await?);
        simulated(&judge, simulate, out).await
    })
}

async fn simulated(judge: &Judge, args: &Simulate, mut out: impl Write) -> anyhow::Result<()> {
    for (place, rule) in rules(&args.rules)?.iter().enumerate() {
        let past = Replay {
            project: &args.project,
            rule,
            from: time(&args.from)?,
            to: time(&args.to)?,
            step: Duration::from_secs(u64::from(args.step) * 60),
        };
        let began = Instant::now();
        let mut lines = Vec::new();
        let evaluations = replay(judge, &past, |transition| {
            lines.push(json!({"rule": place, "name": rule.name, "transition": transition}));
        })
        .await
        .with_context(|| format!("rule {place}, {}", rule.name))?;
        let fired = lines
            .iter()
            .filter(|line| line["transition"]["what"] == "fired")
            .count();
        let seconds = began.elapsed().as_secs_f64();
        lines.push(json!({
            "rule": place, "name": rule.name, "evaluations": evaluations, "fired": fired, "seconds": seconds,
        }));
        for line in lines {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

fn rules(file: &PathBuf) -> anyhow::Result<Vec<Rule>> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let values: Vec<Value> =
        serde_json::from_str(&text).context("the file is not a JSON list of rules")?;
    let rules = values.into_iter().enumerate().map(|(place, value)| {
        Rule::from_value(value).map_err(|faults| anyhow::anyhow!("rule {place}: {faults:?}"))
    });
    rules.collect()
}

fn time(text: &str) -> anyhow::Result<UnixTime> {
    let time = Timestamp::parse(text).map(UnixTime::from);
    time.with_context(|| format!("{text} is not a time such as 2026-11-20T12:00:00Z"))
}
