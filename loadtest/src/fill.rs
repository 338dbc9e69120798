//! Fills a store with as many events as a large app produces in a month. Rows are inserted straight into the raw tables, without
//! roll-ups: this prepares measurements of queries and does not exercise ingestion.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::clickhouse::ClickHouse;
use crate::console;

/// Time limit for the server to classify the stacks. Two thousand take seconds.
const PATIENCE: Duration = Duration::from_secs(120);
/// Rows per INSERT.
const ROWS: u64 = 1_000_000;

/// Number of days, and number of spans in total. The other tables are filled in proportion.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount {
    pub(crate) days: u64,
    pub(crate) spans: u64,
}

/// Each table with its rows per thousand spans and the SQL that generates them.
const TABLES: [(&str, u64, &str); 7] = [
    ("spans", 1_000, include_str!("fill/spans.sql")),
    ("frame_windows", 200, include_str!("fill/frame_windows.sql")),
    ("janks", 100, include_str!("fill/janks.sql")),
    ("page_loads", 50, include_str!("fill/page_loads.sql")),
    ("metrics", 100, include_str!("fill/metrics.sql")),
    ("batches", 10, include_str!("fill/batches.sql")),
    ("traffic", 30, include_str!("fill/traffic.sql")),
];

/// Number of stacks, and the SQL that generates them.
const STACKS: (u64, &str) = (2_000, include_str!("fill/stacks.sql"));

/// Adds the missing days; the last one is today. A day whose last table is complete is skipped. The server classifies the stacks
/// when it starts.
pub(crate) async fn fill(clickhouse: &ClickHouse, amount: Amount) -> Result<()> {
    let today = u64::try_from(crate::clock::now().as_micros() / 86_400_000_000)?;
    if clickhouse
        .value::<u64>("SELECT count() FROM stacks")
        .await?
        < STACKS.0
    {
        clickhouse.rows(STACKS.1).await?;
    }
    for age in (0..amount.days).rev() {
        let day = today - age;
        let of_day = format!("SELECT count() FROM traffic WHERE day = toDate({day})");
        let (_, share, _) = TABLES[TABLES.len() - 1];
        let whole = amount.spans / amount.days * share / 1_000;
        if clickhouse.value::<u64>(&of_day).await? >= whole {
            continue;
        }
        console::say(&format!(
            "filling day {} of {} ...",
            amount.days - age,
            amount.days
        ));
        // A new version reaches a few more installs each day.
        let adopted = (amount.days - age) * 10 / amount.days;
        for (table, share, sql) in TABLES {
            let rows = amount.spans / amount.days * share / 1_000;
            add(clickhouse, table, sql, Chunk { day, adopted, rows }).await?;
        }
    }
    Ok(())
}

/// Waits until the server has classified all stacks.
pub(crate) async fn classified(clickhouse: &ClickHouse) -> Result<()> {
    console::say("waiting until the stacks are classified ...");
    let begun = Instant::now();
    while clickhouse
        .value::<u64>("SELECT count() FROM stack_class_current")
        .await?
        < STACKS.0
    {
        if begun.elapsed() > PATIENCE {
            bail!(
                "the server did not classify all stacks within {} s: see its log",
                PATIENCE.as_secs()
            );
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}

struct Chunk {
    day: u64,
    adopted: u64,
    rows: u64,
}

async fn add(clickhouse: &ClickHouse, table: &str, sql: &str, place: Chunk) -> Result<()> {
    for first in (0..place.rows).step_by(usize::try_from(ROWS)?) {
        let rows = ROWS.min(place.rows - first);
        let sql = sql
            .replace("{day:Int64}", &place.day.to_string())
            .replace("{adopted:Int64}", &place.adopted.to_string())
            .replace("{first:UInt64}", &first.to_string())
            .replace("{rows:UInt64}", &rows.to_string());
        clickhouse
            .rows(&sql)
            .await
            .with_context(|| format!("filling {table}"))?;
    }
    Ok(())
}
