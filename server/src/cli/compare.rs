//! `unjank compare`: two builds against each other, as a comment of a pull request and as a gate.

mod source;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};

use self::source::{Source, sides};
use super::choice::Choice;
use super::export::is_broken_pipe;
use super::output::{Output, OutputArgs};
use super::runtime;
use crate::compare::{Budgets, Gate, compare, json, markdown};
use crate::config::Shared;

/// The exit code of what could not be compared.
pub(super) const NOT_COMPARED: u8 = 2;

/// Compare two builds: by report files of test runs, or by versions, sessions and installs in the store
///
/// A difference is a regression when all of this holds: enough samples on both sides, a change beyond what is allowed, both relatively and
/// absolutely, the same change in the middle of the runs where there are several, and significance (Mann–Whitney U, corrected for the number
/// of tests after Holm). A small p alone never makes one.
///
/// More runs are better than longer ones: values within a run hang together (a slow minute makes many slow windows), which makes p too
/// small. From 5 runs a side each run counts as one value, as soon as so few values can be significant at all: for a report of 30
/// metrics these are 8 runs. Stalls and traffic are one number a run and need as many in any case.
///
/// Of versions up to 200 sessions a side, chosen by hash, are taken as runs for p; the numbers are those of all events.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Exit codes:
  0  no regression, no budget broken (or only such as the budget file lets pass with a warning)
  1  a regression, or a budget is broken
  2  could not compare: wrong arguments, a file that cannot be read, nothing in common

Examples:
  unjank compare --base main.jsonl --head branch.jsonl
  unjank compare --base main-1.jsonl --base main-2.jsonl --head branch-1.jsonl --head branch-2.jsonl --budgets unjank-budgets.toml
  unjank compare --base 4.11.0 --head 4.12.0 --from 7d --format json
  unjank compare --base session_id=0199e0d2-… --head session_id=0199e0e7-…

A budget file, all keys of which may be left out; a key that is not known is refused:
  [defaults]
  significance = 0.01        # the chance of even one false finding in a report without a change
  least_samples = 20         # values a side
  least_runs = 5             # runs a side from which runs count, not values
  allow_percent = 10
  on_regression = \"fail\"     # or \"warn\", \"pass\"
  on_budget = \"fail\"
  on_missing = \"warn\"        # a budget names what the head did not measure

  [[budget]]                 # later ones refine earlier ones
  page = \"CheckoutActivity\"  # or span = …, start = \"cold\", run = true; \"*\" is all of them
  metric = \"t3_ms\"
  statistic = \"p75\"          # mean, p1 … p99; without it, the usual ones
  at_most = 800              # or at_least
  allow_percent = 20         # what may change against the base, relatively
  allow = 50                 # and absolutely, in the unit of the metric
  least_samples = 30
  gate = \"fail\"              # or \"warn\", \"pass\": for regressions and budgets of this one

Metrics of pages: fps, slow_frames_share, frozen_frames_share (0 to 1), jank_ms_per_minute, stalls and stalled_ms (by run), t1_ms, t2_ms,
t3_ms, total_ms, cpu_percent, memory_bytes. Of spans that are marked by hand: duration_ms. Of starts: start_ms. Of runs: traffic_bytes.

JSON, to which fields are only added while `schema_version` is 1: gate (pass, warn, fail); base and head (label, runs); significance; how
many regressed, over_budget, improved; missing (budgets of what the head did not measure); rows, each with of (page, span, start, run),
name, metric, statistic, unit, better (lower, higher), base, head, change, change_percent, counted (runs, values), base_count, head_count,
p (corrected), cliffs_delta, limit (at_most or at_least), verdict (over_budget, regressed, improved, new, gone, not_enough_samples,
unchanged) and gate. What was not measured is null.")]
pub(super) struct CompareArgs {
    /// What to compare with: a report file, a version, or DIMENSION=VALUE in the store, such as `session_id=…`; may repeat
    #[arg(long, value_name = "RUN", required = true)]
    base: Vec<Source>,

    /// What is new, said in the same way; may repeat
    #[arg(long, value_name = "RUN", required = true)]
    head: Vec<Source>,

    /// What the app allows itself: a TOML file, see below
    #[arg(long, value_name = "FILE")]
    budgets: Option<PathBuf>,

    /// The form of the report
    #[arg(long, value_enum, default_value = "markdown")]
    format: Format,

    /// Append the report as Markdown to this file too
    #[arg(long, env = "GITHUB_STEP_SUMMARY", value_name = "FILE")]
    summary: Option<PathBuf>,

    #[command(flatten)]
    choice: Choice,

    #[command(flatten)]
    output: OutputArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// A comment of a pull request
    Markdown,
    /// All numbers, with `schema_version`
    Json,
}

pub(super) fn run(shared: &Shared, args: &CompareArgs) -> anyhow::Result<ExitCode> {
    let budgets = budgets(args.budgets.as_deref())?;
    let output = Output::open(&args.output)?;
    let (base, head) = runtime()?.block_on(sides(shared, &args.choice, &args.base, &args.head))?;
    let comparison = compare(&base, &head, &budgets);
    if comparison.has_nothing_in_common() {
        bail!("base and head have nothing in common: no page, span or start was measured in both");
    }
    let report = markdown(&comparison);
    let text = match args.format {
        Format::Markdown => report.clone(),
        Format::Json => json(&comparison)?,
    };
    match output.whole(text.as_bytes()) {
        // `| head` has seen enough, and the gate holds all the same.
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
    Budgets::parse(&text).with_context(|| format!("the budgets at {} are refused", path.display()))
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
    fn the_budget_files_of_the_help_and_of_the_readme_are_understood() {
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
