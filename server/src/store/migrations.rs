//! ClickHouse migrations: numbered, idempotent, checksummed in `schema_migrations`. See `migrations/README.md`.

use std::collections::HashMap;
use std::slice;

use clickhouse::Client;
use unjank_foundation::fingerprint::fingerprint;

use super::clickhouse::{ClickHouse, Failure};

struct Migration {
    name: &'static str,
    sql: &'static str,
}

impl Migration {
    fn checksum(&self) -> u64 {
        fingerprint(&[self.sql.as_bytes()])
    }
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
    "0026_rates_of_app_starts",
];

/// What all migrations make together, for a database without tables. A test compares both ways.
const BASELINE: Migration = Migration {
    name: "baseline",
    sql: include_str!("../../../migrations/clickhouse/baseline.sql"),
};

const CREATE_LEDGER: &str = "CREATE TABLE IF NOT EXISTS schema_migrations (name String, checksum UInt64, \
     applied_at DateTime64(3, 'UTC') DEFAULT now64(3)) ENGINE = ReplacingMergeTree(applied_at) ORDER BY name";

#[derive(clickhouse::Row, serde::Serialize, serde::Deserialize)]
struct Applied {
    name: String,
    checksum: u64,
}

/// How the schema of a database compares with the one of this version.
pub(super) struct SchemaState {
    /// The migrations that are not applied yet, in order.
    pub(super) missing: Vec<&'static str>,
    /// The migrations that this version does not know.
    pub(super) unknown: Vec<String>,
    /// The migrations that were applied with a different text.
    pub(super) changed: Vec<&'static str>,
}

/// Makes the schema of a database without tables, or applies the missing migrations in order. Returns their names.
pub async fn migrate(clickhouse: &ClickHouse) -> Result<Vec<&'static str>, Failure> {
    let client = create_ledger(clickhouse, clickhouse.database()).await?;
    let ledger = entries(&client).await?;
    if begins_with_baseline(&client, &ledger).await? {
        run(&client, &BASELINE).await?;
        record(&client, MIGRATIONS).await?;
        tracing::info!("made the schema");
        return Ok(MIGRATIONS.iter().map(|migration| migration.name).collect());
    }
    let mut applied = Vec::new();
    for migration in MIGRATIONS {
        match ledger.get(migration.name) {
            Some(known) if *known == migration.checksum() => continue,
            Some(_) => tracing::warn!(
                migration = migration.name,
                "this migration was applied with a different text and is not run again: check the schema by hand"
            ),
            None => {
                run(&client, migration).await?;
                record(&client, slice::from_ref(migration)).await?;
                tracing::info!(migration = migration.name, "applied");
                applied.push(migration.name);
            }
        }
    }
    Ok(applied)
}

/// Migrates the database of a server whose ledger says that it stored `stored` records of its log there. An empty database is not that one.
pub async fn migrate_used(clickhouse: &ClickHouse, stored: u64) -> Result<(), Failure> {
    let applied = migrate(clickhouse).await?;
    if stored > 0 && applied.len() == MIGRATIONS.len() {
        tracing::error!(
            stored,
            database = clickhouse.database(),
            "the ledger says that this server has stored this many records, but the database of ClickHouse was empty. Is the right disk \
             mounted, and the right ClickHouse set? Stop the server and restore a backup"
        );
    }
    Ok(())
}

/// Compares the ledger with the migrations. Changes nothing.
pub(super) async fn schema_state(clickhouse: &ClickHouse) -> Result<SchemaState, Failure> {
    let mut ledger = read_ledger(&clickhouse.client()?, clickhouse.database()).await?;
    ledger.remove(BASELINE.name);
    let mut state = SchemaState {
        missing: Vec::new(),
        unknown: Vec::new(),
        changed: Vec::new(),
    };
    for migration in MIGRATIONS {
        match ledger.remove(migration.name) {
            None => state.missing.push(migration.name),
            Some(known) if known != migration.checksum() => state.changed.push(migration.name),
            Some(_) => {}
        }
    }
    state.unknown = ledger.into_keys().collect();
    state.unknown.sort_unstable();
    Ok(state)
}

/// Returns the statements of the schema that all migrations make together.
pub(super) fn baseline() -> impl Iterator<Item = &'static str> {
    statements(BASELINE.sql)
}

/// Creates a database and its ledger if they do not exist. Returns a client for this database.
pub(super) async fn create_ledger(
    clickhouse: &ClickHouse,
    database: &str,
) -> Result<Client, Failure> {
    clickhouse
        .client()?
        .query("CREATE DATABASE IF NOT EXISTS {database:Identifier}")
        .param("database", database)
        .execute()
        .await?;
    let client = clickhouse.client()?.with_database(database);
    client.query(CREATE_LEDGER).execute().await?;
    Ok(client)
}

/// Reads the checksums in the ledger of a database by name. Returns none if the database has no ledger.
pub(super) async fn read_ledger(
    client: &Client,
    database: &str,
) -> Result<HashMap<String, u64>, Failure> {
    let exists = "SELECT count() FROM system.tables WHERE database = {database:String} AND name = 'schema_migrations'";
    let exists = client.query(exists).param("database", database);
    if exists.fetch_one::<u64>().await? == 0 {
        return Ok(HashMap::new());
    }
    entries(&client.clone().with_database(database)).await
}

async fn entries(client: &Client) -> Result<HashMap<String, u64>, Failure> {
    let ledger = client
        .query("SELECT ?fields FROM schema_migrations FINAL")
        .fetch_all::<Applied>()
        .await?;
    let entries = ledger.into_iter().map(|row| (row.name, row.checksum));
    Ok(entries.collect())
}

/// Whether the baseline makes the schema: in a database without tables, or if the baseline was interrupted. The ledger has the baseline
/// before the first table exists, and all migrations once all tables exist.
async fn begins_with_baseline(
    client: &Client,
    ledger: &HashMap<String, u64>,
) -> Result<bool, Failure> {
    match ledger.get(BASELINE.name) {
        None if ledger.is_empty() && has_no_tables(client).await? => {
            record(client, &[BASELINE]).await?;
            Ok(true)
        }
        Some(checksum) if ledger.len() == 1 && *checksum == BASELINE.checksum() => Ok(true),
        Some(_) if ledger.len() == 1 => Err(Failure::Later(
            "another version of unjank is making the schema, or was interrupted. If this does not end, drop the database: it has no rows yet"
                .to_owned(),
        )),
        _ => Ok(false),
    }
}

async fn has_no_tables(client: &Client) -> Result<bool, Failure> {
    let others = "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name != 'schema_migrations'";
    Ok(client.query(others).fetch_one::<u64>().await? == 0)
}

async fn run(client: &Client, migration: &Migration) -> Result<(), Failure> {
    for statement in statements(migration.sql) {
        client.query_raw(statement).execute().await?;
    }
    Ok(())
}

async fn record(client: &Client, migrations: &[Migration]) -> Result<(), Failure> {
    let entries = migrations.iter();
    let entries: Vec<_> = entries
        .map(|migration| (migration.name, migration.checksum()))
        .collect();
    add_to_ledger(client, &entries).await
}

/// Adds names and checksums to the ledger, all or none.
pub(super) async fn add_to_ledger(client: &Client, entries: &[(&str, u64)]) -> Result<(), Failure> {
    let mut insert = client.insert::<Applied>("schema_migrations").await?;
    for (name, checksum) in entries {
        let applied = Applied {
            name: (*name).to_owned(),
            checksum: *checksum,
        };
        insert.write(&applied).await?;
    }
    Ok(insert.end().await?)
}

/// Splits the text at semicolons that end a line, and drops parts that only have comments.
fn statements(sql: &'static str) -> impl Iterator<Item = &'static str> {
    sql.split(";\n").map(str::trim).filter(|statement| {
        statement
            .lines()
            .any(|line| !line.trim().is_empty() && !line.trim_start().starts_with("--"))
    })
}
