//! `unjank sql`: one read-only query.

use std::io::Write;

use clap::Args;

use super::{runtime, store_in_use};
use crate::config::Shared;

#[derive(Args, Debug)]
pub(super) struct SqlArgs {
    /// The query, without a FORMAT clause.
    query: String,

    /// The output format, any that ClickHouse writes: `TSVWithNames`, `JSONEachRow`, Pretty, Vertical, CSV, …
    #[arg(long, value_name = "FORMAT", default_value = "TSV")]
    format: String,
}

pub(super) fn run(shared: &Shared, args: &SqlArgs) -> anyhow::Result<()> {
    let client = store_in_use(shared)?
        .client()?
        .with_database(&shared.clickhouse_database);
    runtime()?.block_on(async {
        // readonly=2: nothing is written, settings of the query itself still work.
        let query = client
            .query_raw(args.query.trim_end_matches([';', ' ', '\n']))
            .with_setting("readonly", "2");
        let mut cursor = query.fetch_bytes(&args.format)?;
        let mut out = std::io::stdout().lock();
        while let Some(bytes) = cursor.next().await? {
            out.write_all(&bytes)?;
        }
        Ok(out.flush()?)
    })
}
