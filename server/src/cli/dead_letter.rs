//! `unjank dead-letter`: rows that ClickHouse rejected because of their content.

use std::io::Write;

use clap::{Args, Subcommand};

use super::output::unless_closed;
use super::{DEFAULT_WAIT, runtime, store_in_use};
use crate::config::Shared;
use crate::serve::existing_dead_letters;
use crate::store::{DeadLetter, DeadLetterError, DeadLetters};

#[derive(Args, Debug)]
pub(super) struct DeadLetterArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// List all items: id, project, table, rows, time of arrival, and the reason for the rejection.
    List,
    /// Retry items after the cause is fixed.
    Retry(Items),
    /// Drop items permanently. Their events count as rejected.
    Drop(Items),
}

#[derive(Args, Debug)]
struct Items {
    /// Ids as listed by `list`. Without them, `--all` is required.
    #[arg(required_unless_present = "all")]
    ids: Vec<String>,

    /// All items.
    #[arg(long, conflicts_with = "ids")]
    all: bool,
}

pub(super) fn run(shared: &Shared, args: &DeadLetterArgs) -> anyhow::Result<()> {
    let folder = existing_dead_letters(shared)?;
    let mut out = std::io::stdout().lock();
    match &args.command {
        Command::List => {
            let (items, unreadable) = folder.list()?;
            unless_closed(list(&items, &mut out))?;
            all_readable(&unreadable)
        }
        Command::Retry(items) => each(shared, &folder, items, true, &mut out),
        Command::Drop(items) => each(shared, &folder, items, false, &mut out),
    }
}

fn list(items: &[DeadLetter], out: &mut impl Write) -> anyhow::Result<()> {
    writeln!(out, "id\tproject\ttable\trows\treceived_at\terror")?;
    for DeadLetter {
        id,
        table,
        project,
        rows,
        received_at,
        error,
        ..
    } in items
    {
        writeln!(
            out,
            "{id}\t{project}\t{table}\t{rows}\t{received_at}\t{}",
            error.replace(['\n', '\t'], " ")
        )?;
    }
    Ok(())
}

/// Fails if there are items that cannot be read, and says which.
fn all_readable(unreadable: &[DeadLetterError]) -> anyhow::Result<()> {
    let reasons: Vec<_> = unreadable.iter().map(ToString::to_string).collect();
    anyhow::ensure!(
        reasons.is_empty(),
        "{} items cannot be read: {}",
        reasons.len(),
        reasons.join("; ")
    );
    Ok(())
}

fn each(
    shared: &Shared,
    folder: &DeadLetters,
    items: &Items,
    retry: bool,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let (ids, unreadable) = if items.all {
        let (items, unreadable) = folder.list()?;
        let ids: Vec<_> = items.into_iter().map(|item| item.id).collect();
        (ids, unreadable)
    } else {
        (items.ids.clone(), Vec::new())
    };
    if ids.is_empty() {
        writeln!(out, "no items")?;
        return all_readable(&unreadable);
    }
    let runtime = runtime()?;
    let clickhouse = runtime.block_on(store_in_use(shared, DEFAULT_WAIT))?;
    let ledger = shared.data_dir.join("drain.json");
    let mut failed = 0;
    for id in &ids {
        let done = if retry {
            runtime.block_on(folder.retry(id, &clickhouse))
        } else {
            runtime.block_on(folder.drop_item(id, &ledger, &clickhouse))
        };
        match done {
            Ok(item) => writeln!(
                out,
                "{id}: {} {} rows of {}",
                if retry { "stored" } else { "dropped" },
                item.rows,
                item.table
            )?,
            Err(error) => {
                failed += 1;
                writeln!(out, "{id}: {error}")?;
            }
        }
    }
    anyhow::ensure!(failed == 0, "{failed} of {} items failed", ids.len());
    all_readable(&unreadable)
}
