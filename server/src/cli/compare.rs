//! `unjank compare`: compares two builds, for a pull-request comment and as a CI gate.

mod history;
mod source;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};

use self::history::HistoryArgs;
use self::source::{Source, sides};
use super::event_filters::EventFilters;
use super::output::{Output, OutputArgs, is_broken_pipe};
use super::runtime;
use crate::compare::{Budgets, Gate, compare, json, markdown};
use crate::config::Shared;

/// The exit code if no comparison was possible.
pub(super) const NOT_COMPARED: u8 = 2;

/// Compare two builds: by report files of test runs, or by versions, sessions or installs in the store
///
/// A difference is a regression only if all of these conditions hold: both sides have enough samples, the change exceeds both the
/// relative and the absolute tolerance, the median of the runs changes in the same direction if there are several runs, and the
/// change is significant (Mann–Whitney U, with Holm's correction for the number of tests). A small p alone is never a regression.
///
/// Prefer more runs to longer ones. Values within a run are correlated (a slow minute causes many slow windows), which makes p too
/// small. From 5 runs per side on, each run counts as one value, provided that so few values can be significant: for a report of 30
/// metrics this takes 8 runs. Stalls and traffic have one value per run and always need that many runs.
///
/// For versions, p is computed from up to 200 sessions per side, chosen by hash; the numbers include all events.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Exit codes:
  0  no regression, no broken budget (or only findings that the budget file downgrades to a warning)
  1  a regression or a broken budget
  2  no comparison was possible: invalid arguments, an unreadable file, or nothing in common

Examples:
  unjank compare --base main.jsonl --head branch.jsonl
  unjank compare --base main-1.jsonl --base main-2.jsonl --head branch-1.jsonl --head branch-2.jsonl --budgets unjank-budgets.toml
  unjank compare --base 4.11.0 --head 4.12.0 --from 7d --format json
  unjank compare --base session_id=0199e0d2-… --head session_id=0199e0e7-…

A budget file. All keys are optional; unknown keys are errors:
  [defaults]
  significance = 0.01        # the probability of one or more false findings if nothing changed
  least_samples = 20         # minimum number of values per side
  least_runs = 5             # minimum number of runs per side to compare runs instead of values
  allow_percent = 10
  on_regression = \"fail\"     # or \"warn\", \"pass\"
  on_budget = \"fail\"
  on_missing = \"warn\"        # when the head did not measure a metric that has a budget

  [[budget]]                 # later budgets override earlier ones
  page = \"CheckoutActivity\"  # or span = …, start = \"cold\", run = true; \"*\" matches all
  metric = \"t3_ms\"
  statistic = \"p75\"          # mean, p1 … p99; default: the usual statistics
  at_most = 800              # or at_least
  allow_percent = 20         # allowed change against the base, relative
  allow = 50                 # and absolute, in the unit of the metric
  least_samples = 30
  gate = \"fail\"              # or \"warn\", \"pass\": for regressions and budgets of this metric

Metrics of pages: fps, slow_frames_share, frozen_frames_share (0 to 1), jank_ms_per_minute, stalls and stalled_ms (by run), t1_ms, t2_ms,
t3_ms, total_ms, cpu_percent, memory_bytes. Metrics of manual spans: duration_ms. Of starts: start_ms. Of runs: traffic_bytes.

JSON output (while `schema_version` is 1, fields are only added): gate (pass, warn, fail); base and head (label, runs); significance; the
counts regressed, over_budget, improved; missing (budgeted metrics that the head did not measure); rows, each with of (page, span, start, run),
name, metric, statistic, unit, better (lower, higher), base, head, change, change_percent, counted (runs, values), base_count, head_count,
p (corrected), cliffs_delta, limit (at_most or at_least), verdict (over_budget, regressed, improved, new, gone, not_enough_samples,
unchanged) and gate. Values that were not measured are null.")]
pub(super) struct CompareArgs {
    /// The base to compare with: a report file, a version, or DIMENSION=VALUE in the store, such as `session_id=…`; repeatable
    #[arg(long, value_name = "RUN", required = true)]
    base: Vec<Source>,

    /// The head to compare, in the same form; repeatable
    #[arg(long, value_name = "RUN", required = true)]
    head: Vec<Source>,

    /// The performance budgets: a TOML file, see below
    #[arg(long, value_name = "FILE")]
    budgets: Option<PathBuf>,

    /// The format of the report
    #[arg(long, value_enum, default_value = "markdown")]
    format: Format,

    /// Also append the report as Markdown to this file
    #[arg(long, env = "GITHUB_STEP_SUMMARY", value_name = "FILE")]
    summary: Option<PathBuf>,

    #[command(flatten)]
    history: HistoryArgs,

    #[command(flatten)]
    events: EventFilters,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A pull-request comment
    Markdown,
    /// All numbers, with `schema_version`
    Json,
}

pub(super) fn run(shared: &Shared, args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let budgets = budgets(args.budgets.as_deref())?;
    let earlier = args.history.read()?;
    let output = Output::open(&args.output)?;
    let (base, head) = runtime()?.block_on(sides(shared, &args.events, &args.base, &args.head))?;
    let comparison = compare(&base, &head, &budgets);
    if comparison.has_nothing_in_common() {
        bail!("base and head have nothing in common: no page, span or start was measured in both");
    }
    let since_when = args.history.keep(earlier, &comparison)?;
    let report = format!("{}{since_when}", markdown(&comparison));
    let text = match args.format {
        Format::Markdown => report.clone(),
        Format::Json => json(&comparison)?,
    };
    match output.whole(text.as_bytes()) {
        // The reader, such as `head`, needs no more output. The gate still decides the exit code.
        Err(error) if is_broken_pipe(&error) => {}
        done => done?,
    }
    if let Some(summary) = args
        .summary
        .as_deref()
        .filter(|path| !path.as_os_str().is_empty())
    {
        append(summary, &report)?;
    }
    Ok(match comparison.gate() {
        Gate::Fail => ExitCode::from(1),
        Gate::Warn | Gate::Pass => ExitCode::SUCCESS,
    })
}

fn budgets(path: Option<&Path>) -> anyhow::Result<Budgets> {
    let Some(path) = path else {
        return Ok(Budgets::default());
    };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the budgets at {}", path.display()))?;
    Budgets::parse(&text).with_context(|| format!("invalid budgets in {}", path.display()))
}

fn append(path: &Path, report: &str) -> anyhow::Result<()> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .and_then(|mut file| file.write_all(report.as_bytes()))
        .with_context(|| format!("cannot append to {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_files_in_the_help_and_in_the_docs_are_valid() {
        let mut command = CompareArgs::augment_args(clap::Command::new("compare"));
        let help = command.render_long_help().to_string();
        let (_, example) = help.split_once("[defaults]").unwrap();
        let (example, _) = example.split_once("Metrics of pages").unwrap();
        Budgets::parse(&format!("[defaults]{example}")).unwrap();
        let readme = include_str!("../../../docs/compare.md");
        let (_, example) = readme.split_once("```toml\n[[budget]]").unwrap();
        let (example, _) = example.split_once("```").unwrap();
        Budgets::parse(&format!("[[budget]]{example}")).unwrap();
    }
}
