//! ClickHouse migrations: numbered, idempotent, checksummed in `schema_migrations`. See `migrations/README.md`.

use std::collections::HashMap;

use crate::fingerprint::fingerprint;

use super::clickhouse::{ClickHouse, Failure};

struct Migration {
    name: &'static str,
    sql: &'static str,
}

macro_rules! migrations {
    ($($name:literal),* $(,)?) => {
        &[$(Migration { name: $name, sql: include_str!(concat!("../../../migrations/clickhouse/", $name, ".sql")) }),*]
    };
}

const MIGRATIONS: &[Migration] = migrations![
    "0001_signals",
    "0002_stacks",
    "0003_arrivals",
    "0004_batch_devices",
    "0005_classes",
    "0006_rollups",
    "0007_rollups_of_use",
    "0008_rollups_of_arrivals",
    "0009_dash",
    "0010_folds",
    "0011_proofs",
    "0012_dash_without_marks",
    "0013_mark_of_traffic",
    "0014_rebuilds",
    "0015_split_batches",
    "0016_dropped_rows",
    "0017_marks_of_outcomes",
    "0018_dropped_rows_of_projects",
    "0019_raw_without_views",
    "0020_fewer_merges",
    "0021_stacks_symbolicated",
    "0022_function_names",
    "0023_ends_of_janks",
    "0024_modes",
    "0025_values_below_zero",
];

const CREATE_LEDGER: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (name String, checksum UInt64, \
     applied_at DateTime64(3, 'UTC') DEFAULT now64(3)) ENGINE = ReplacingMergeTree(applied_at) ORDER BY name";

#[derive(clickhouse::Row, serde::Serialize, serde::Deserialize)]
struct Applied {
    name: String,
    checksum: u64,
}

/// Applies the missing migrations in order. Returns their names.
pub async fn migrate(clickhouse: &ClickHouse) -> Result<Vec<&'static str>, Failure> {
    let database = clickhouse.database();
    clickhouse
        .client()?
        .query("CREATE DATABASE IF NOT EXISTS {database:Identifier}")
        .param("database", database)
        .execute()
        .await?;
    let client = clickhouse.client()?.with_database(database);
    client.query(CREATE_LEDGER).execute().await?;
    let ledger = client
        .query("SELECT ?fields FROM schema_migrations FINAL")
        .fetch_all::<Applied>()
        .await?;
    let ledger: HashMap<String, u64> = ledger
        .into_iter()
        .map(|row| (row.name, row.checksum))
        .collect();
    let mut applied = Vec::new();
    for migration in MIGRATIONS {
        let checksum = fingerprint(&[migration.sql.as_bytes()]);
        match ledger.get(migration.name) {
            Some(known) if *known == checksum => continue,
            Some(_) => tracing::warn!(
                migration = migration.name,
                "this migration was applied with a different text and is not run again: check the schema by hand"
            ),
            None => {
                for statement in statements(migration.sql) {
                    client.query_raw(statement).execute().await?;
                }
                let mut insert = client.insert::<Applied>("schema_migrations").await?;
                insert
                    .write(&Applied {
                        name: migration.name.to_owned(),
                        checksum,
                    })
                    .await?;
                insert.end().await?;
                tracing::info!(migration = migration.name, "applied");
                applied.push(migration.name);
            }
        }
    }
    Ok(applied)
}

/// Splits the text at semicolons that end a line, and drops parts that only have comments.
fn statements(sql: &'static str) -> impl Iterator<Item = &'static str> {
    sql.split(";\n").map(str::trim).filter(|statement| {
        statement
            .lines()
            .any(|line| !line.trim().is_empty() && !line.trim_start().starts_with("--"))
    })
}
