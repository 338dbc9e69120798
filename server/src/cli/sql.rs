//! `unjank sql`: one read-only query.

use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;

use super::output::unless_closed;
use super::{runtime, store_in_use};
use crate::config::Shared;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  unjank sql 'SELECT name, count() FROM spans GROUP BY name ORDER BY 2 DESC LIMIT 10'
  unjank sql --file slowest.sql --format PrettyCompact
  echo 'SELECT count() FROM janks' | unjank sql")]
pub(super) struct SqlArgs {
    /// The query, without a FORMAT clause. If it is missing or `-`, it is read from standard input.
    query: Option<String>,

    /// Read the query from a file.
    #[arg(long, value_name = "FILE", conflicts_with = "query")]
    file: Option<PathBuf>,

    /// The output format, as named by ClickHouse: `TSVWithNames`, `JSONEachRow`, Pretty, Vertical, CSV, …
    #[arg(long, value_name = "FORMAT", default_value = "TSV")]
    format: String,

    /// How long to wait for a starting engine, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(0..=3_600))]
    wait: u64,
}

impl SqlArgs {
    fn query(&self) -> anyhow::Result<String> {
        match (&self.query, &self.file) {
            (_, Some(file)) => std::fs::read_to_string(file)
                .with_context(|| format!("cannot read the query from {}", file.display())),
            (Some(query), None) if query != "-" => Ok(query.clone()),
            (query, None) => {
                anyhow::ensure!(
                    query.is_some() || !std::io::stdin().is_terminal(),
                    "pass a query, such as `unjank sql 'SELECT count() FROM spans'`, a --file, or standard input"
                );
                let mut text = String::new();
                std::io::stdin()
                    .read_to_string(&mut text)
                    .context("cannot read the query from standard input")?;
                Ok(text)
            }
        }
    }
}

pub(super) fn run(shared: &Shared, args: &SqlArgs) -> anyhow::Result<()> {
    let text = args.query()?;
    let text = text.trim().trim_end_matches([';', ' ', '\n']);
    anyhow::ensure!(!text.is_empty(), "the query is empty");
    unless_closed(runtime()?.block_on(async {
        let store = store_in_use(shared, Duration::from_secs(args.wait)).await?;
        let client = store.reader()?.with_database(&shared.clickhouse_database);
        // readonly=2 rejects writes but allows settings in the query.
        let query = client.query_raw(text).with_setting("readonly", "2");
        let mut cursor = query.fetch_bytes(&args.format)?;
        let mut out = std::io::stdout().lock();
        while let Some(bytes) = cursor.next().await? {
            out.write_all(&bytes)?;
        }
        Ok(out.flush()?)
    }))
}
