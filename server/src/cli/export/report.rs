//! `unjank export report`: renders a run as one HTML page, from a report file or from the store.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use unjank_database::{ControlError, DocumentKind};
use unjank_foundation::task::Tasks;
use unjank_stacks::Rules;

use crate::cli::event_filters::EventFilters;
use crate::cli::output::{Output, OutputArgs};
use crate::cli::{DEFAULT_WAIT, store_in_use};
use crate::config::Shared;
use crate::query::stored_run;
use crate::run_report;
use crate::serve::{existing_control_database, exists};
use crate::test_run::{Collector, TestRun};

/// A whole run as one HTML page: pages, starts, stalls with their stacks, spans, traffic
///
/// The page is self-contained: it can be kept, sent and printed. With --file, the command reads the report file of the SDK's test
/// mode, and needs neither server nor store. Otherwise it reads the store, with filters on dimensions that all events have.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  unjank export report --file run.jsonl > run.html
  unjank export report --file run.jsonl --rules rules.toml --output run.html
  unjank export report --filter session_id=0199e0d2-… --output session.html
  unjank export report --filter app_version=4.12.0 --filter device_model='Pixel 8' --from 2h > run.html")]
pub(super) struct ReportArgs {
    /// The report file of a test run; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = ["from", "to", "filters"])]
    file: Option<PathBuf>,

    /// Classify stalls by this rule file in place of the project's rules (with --file: of the built-in rules)
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,

    #[command(flatten)]
    events: EventFilters,

    #[command(flatten)]
    output: OutputArgs,
}

pub(super) async fn run(shared: &Shared, args: &ReportArgs) -> anyhow::Result<()> {
    let output = Output::open(&args.output)?;
    let run = match &args.file {
        Some(file) => {
            let rules = rules_of_file(args.rules.as_deref())?.unwrap_or_else(Rules::built_in);
            of_file(file, &rules)?
        }
        None => of_store(shared, args).await?,
    };
    output.whole(run_report::html(&run).as_bytes())
}

pub(crate) fn of_file(path: &Path, rules: &Rules) -> anyhow::Result<TestRun> {
    let mut collector = Collector::new(rules);
    if path == Path::new("-") {
        collector.read(std::io::stdin().lock())
    } else {
        File::open(path).and_then(|file| collector.read(BufReader::new(file)))
    }
    .with_context(|| format!("cannot read {}", path.display()))?;
    let run = collector.finish();
    if run.is_empty() {
        bail!(
            "{} holds no event ({} lines could not be read): pass a file that `unjank::ReportFile` wrote",
            path.display(),
            run.skipped
        );
    }
    Ok(run)
}

async fn of_store(shared: &Shared, args: &ReportArgs) -> anyhow::Result<TestRun> {
    if args.events.is_open() {
        bail!("select a run: --file FILE, --filter session_id=…, or --from and --to");
    }
    let now = shared.now();
    let ask = args.events.ask(now)?;
    let project = args.events.project();
    let rules = match rules_of_file(args.rules.as_deref())? {
        Some(rules) => rules,
        None => saved_rules(shared, project)
            .await?
            .unwrap_or_else(Rules::built_in),
    };
    let run = stored_run(
        &store_in_use(shared, DEFAULT_WAIT).await?,
        project,
        &ask,
        now,
        &rules,
    )
    .await?;
    if run.is_empty() {
        bail!("no events match: check --from, --to, --project and --filter");
    }
    Ok(run)
}

fn rules_of_file(path: Option<&Path>) -> anyhow::Result<Option<Rules>> {
    let Some(path) = path else { return Ok(None) };
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the rules at {}", path.display()))?;
    let rules =
        Rules::parse(&text).with_context(|| format!("invalid rules in {}", path.display()))?;
    Ok(Some(rules))
}

/// Returns the rules that the project has saved. A missing control database is no error: the store may belong to another machine.
async fn saved_rules(shared: &Shared, project: &str) -> anyhow::Result<Option<Rules>> {
    if shared.database_url.is_none() && !exists(&shared.data_dir.join("control.sqlite"))? {
        return Ok(None);
    }
    let tasks = Tasks::default();
    let control = existing_control_database(shared, &tasks).await?;
    let document = control
        .latest_document(DocumentKind::RuleSet, project)
        .await;
    control.close().await;
    tasks.end(Duration::from_secs(1)).await;
    match document {
        Ok(document) => Ok(Some(Rules::parse(&document.text)?)),
        Err(ControlError::NotFound) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
