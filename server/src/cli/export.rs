//! `unjank export`: exports stored data as files: rows, traces, stacks, and a whole run as a report.

mod report;
mod spans;

pub(super) use self::report::of_file;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use uuid::Uuid;

use super::event_filters::EventFilters;
use super::output::{Output, OutputArgs, unless_closed};
use super::{DEFAULT_WAIT, runtime, store_in_use};
use crate::config::Shared;
use crate::query::{JankStacks, TraceJanks, chrome_trace, folded, raw_rows, speedscope, tables};

/// More than any viewer can open.
const MOST_SPANS: u64 = 200_000;

/// Export stored data: rows as CSV, a trace, flame graphs of janks and spans, or a whole run as an HTML report
///
/// Uses the server's store, like `unjank sql`: that of a running `unjank serve`, or the ClickHouse of --clickhouse-url.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  unjank export csv spans --from 24h --filter name=checkout > checkout.csv
  unjank export trace 7f1c3a5e9b2d4c6f8a0b1c2d3e4f5061 --output slow.trace.json     opens in ui.perfetto.dev
  unjank export stacks --filter app_version=4.12.0 --format speedscope > janks.speedscope.json
  unjank export stacks --filter category='JSON on main thread' | flamegraph.pl > json.svg
  unjank export spans --filter name=checkout --format speedscope > checkout.speedscope.json
  unjank export report --file run.jsonl --output run.html          a test run, no server needed
  unjank export report --filter session_id=0199e0d2-… --output session.html

If nothing matches, the exit code is 1 and nothing is written.")]
pub(super) struct ExportArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Csv(CsvArgs),
    Trace(TraceArgs),
    Stacks(StacksArgs),
    Spans(spans::SpansArgs),
    Report(Box<report::ReportArgs>),
}

/// Raw rows of a signal as CSV, with all columns, ordered by time
///
/// Rows are streamed, so even millions of rows need little memory. Text that a spreadsheet would run as a formula gets a leading
/// apostrophe; lists and maps are JSON.
#[derive(Args, Debug)]
struct CsvArgs {
    /// The signal: spans, janks, `page_loads`, …; an unknown name lists them all
    signal: String,

    /// Maximum number of rows
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    limit: Option<u64>,

    #[command(flatten)]
    events: EventFilters,

    #[command(flatten)]
    output: OutputArgs,
}

/// All spans of a trace and the janks during it, for ui.perfetto.dev and `chrome://tracing`
#[derive(Args, Debug)]
struct TraceArgs {
    /// The id of the trace: 32 hex digits
    trace: Uuid,

    /// The project of the trace
    #[arg(long, value_name = "PROJECT", default_value = "default")]
    project: String,

    #[command(flatten)]
    output: OutputArgs,
}

/// The stacks of janks, weighted by lost time, for flame graphs
#[derive(Args, Debug)]
struct StacksArgs {
    /// The output format
    #[arg(long, value_enum, default_value = "folded")]
    format: StacksFormat,

    #[command(flatten)]
    events: EventFilters,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum StacksFormat {
    /// One line `outermost;…;innermost milliseconds` per stack: flamegraph.pl, inferno, speedscope
    Folded,
    /// A JSON file for www.speedscope.app
    Speedscope,
}

pub(super) fn run(shared: &Shared, args: &ExportArgs) -> anyhow::Result<()> {
    let done = runtime()?.block_on(async {
        match &args.command {
            Command::Csv(csv) => rows(shared, csv).await,
            Command::Trace(trace) => one_trace(shared, trace).await,
            Command::Stacks(stacks) => all_stacks(shared, stacks).await,
            Command::Spans(args) => spans::run(shared, args).await,
            Command::Report(report) => report::run(shared, report).await,
        }
    });
    unless_closed(done)
}

async fn rows(shared: &Shared, args: &CsvArgs) -> anyhow::Result<()> {
    let Some(signal) = tables().find(|one| *one == args.signal) else {
        let known: Vec<_> = tables().collect();
        bail!(
            "there is no signal `{}`: use one of {}",
            args.signal,
            known.join(", ")
        );
    };
    let now = shared.now();
    let mut ask = args.events.ask(now)?;
    ask.limit = args.limit;
    let (reading, limit) = raw_rows(ask, args.events.project(), signal, now)?;
    let mut output = Output::open(&args.output)?;
    let mut cursor = store_in_use(shared, DEFAULT_WAIT)
        .await?
        .csv(&reading, limit)
        .await?;
    // The header with the column names arrives even without rows, so it is held back until the first row.
    let mut begun = false;
    let mut held = Vec::new();
    while let Some(bytes) = cursor.next().await? {
        if begun {
            output.write(&bytes)?;
            continue;
        }
        held.extend_from_slice(&bytes);
        let names_end = held.iter().position(|byte| *byte == b'\n');
        if names_end.is_some_and(|end| end + 1 < held.len()) {
            begun = true;
            output.write(&std::mem::take(&mut held))?;
        }
    }
    if !begun {
        bail!("no {signal} match: check --from, --to, --project and --filter");
    }
    output.finish()
}

async fn one_trace(shared: &Shared, args: &TraceArgs) -> anyhow::Result<()> {
    let output = Output::open(&args.output)?;
    let store = store_in_use(shared, DEFAULT_WAIT).await?;
    let (mut spans, _) = store
        .spans_of_traces(&args.project, &[args.trace], MOST_SPANS + 1)
        .await?;
    if spans.is_empty() {
        let id = args.trace.simple();
        bail!("project `{}` has no trace {id}", args.project);
    }
    let most = usize::try_from(MOST_SPANS).unwrap_or(usize::MAX);
    if spans.len() > most {
        spans.truncate(most);
        tracing::warn!("the trace has more than {MOST_SPANS} spans; exporting the first ones only");
    }
    let janks = TraceJanks::read(&store, &args.project, &spans, shared.now()).await?;
    output.whole(chrome_trace(&spans, &janks).to_string().as_bytes())
}

async fn all_stacks(shared: &Shared, args: &StacksArgs) -> anyhow::Result<()> {
    let now = shared.now();
    let ask = args.events.ask(now)?;
    let output = Output::open(&args.output)?;
    let store = store_in_use(shared, DEFAULT_WAIT).await?;
    let weighed = JankStacks::read(&store, args.events.project(), ask, now)
        .await
        .context("cannot read the stacks")?;
    if weighed.weighed().next().is_none() {
        bail!("no janks match: check --from, --to, --project and --filter");
    }
    let text = match args.format {
        StacksFormat::Folded => folded(weighed.weighed()),
        StacksFormat::Speedscope => speedscope("janks", weighed.weighed()).to_string(),
    };
    output.whole(text.as_bytes())
}
