//! `unjank dead-letter`: rows that ClickHouse rejected because of their content.

use std::io::Write;

use clap::{Args, Subcommand};

use super::{DEFAULT_WAIT, runtime, store_in_use};
use crate::config::Shared;
use crate::store::{DeadLetter, DeadLetters};

#[derive(Args, Debug)]
pub(super) struct DeadLetterArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// List all items: id, table, rows, time of arrival, and the reason for the rejection.
    List,
    /// Retry items after the cause is fixed.
    Retry(Items),
    /// Drop items permanently. Their events count as rejected.
    Drop(Items),
}

#[derive(Args, Debug)]
struct Items {
    /// Ids as listed by `list`.
    #[arg(required_unless_present = "all")]
    ids: Vec<String>,

    /// All items.
    #[arg(long, conflicts_with = "ids")]
    all: bool,
}

pub(super) fn run(shared: &Shared, args: &DeadLetterArgs) -> anyhow::Result<()> {
    let folder = DeadLetters::open(shared.data_dir.join("dead-letter"), u64::MAX)?;
    let mut out = std::io::stdout().lock();
    match &args.command {
        Command::List => {
            writeln!(out, "id\ttable\trows\treceived_at\terror")?;
            for DeadLetter {
                id,
                table,
                rows,
                received_at,
                error,
                ..
            } in folder.list()?
            {
                writeln!(
                    out,
                    "{id}\t{table}\t{rows}\t{received_at}\t{}",
                    error.replace(['\n', '\t'], " ")
                )?;
            }
            Ok(())
        }
        Command::Retry(items) => each(shared, &folder, items, true, &mut out),
        Command::Drop(items) => each(shared, &folder, items, false, &mut out),
    }
}

fn each(
    shared: &Shared,
    folder: &DeadLetters,
    items: &Items,
    retry: bool,
    out: &mut impl Write,
) -> anyhow::Result<()> {
    let ids = if items.all {
        folder.list()?.into_iter().map(|item| item.id).collect()
    } else {
        items.ids.clone()
    };
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
    Ok(())
}
