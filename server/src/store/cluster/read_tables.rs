//! The tables and views that read all shards: a database beside the one with the rows, with the same names.

use unjank_foundation::fingerprint::fingerprint;

use crate::store::clickhouse::{ClickHouse, Failure};
use crate::store::migrations::{add_to_ledger, baseline, create_ledger, read_ledger};

/// The entry of the ledger for all statements together.
const ENTRY: &str = "read_tables";

/// The tables for reading of one cluster.
pub(super) struct ReadTables {
    database: String,
    statements: Vec<String>,
    checksum: u64,
}

impl ReadTables {
    /// Returns the tables that read `database` of all shards of `cluster`.
    pub(super) fn of(cluster: &str, database: &str) -> Self {
        let statements =
            baseline().filter_map(|statement| for_reading(statement, cluster, database));
        let statements: Vec<String> = statements.collect();
        let texts: Vec<&[u8]> = statements.iter().map(String::as_bytes).collect();
        Self {
            database: format!("{database}_all"),
            checksum: fingerprint(&texts),
            statements,
        }
    }

    /// Whether a host has these tables, as this version makes them.
    pub(super) async fn are_current(&self, host: &ClickHouse) -> Result<bool, Failure> {
        let ledger = read_ledger(&host.client()?, &self.database).await?;
        Ok(ledger.get(ENTRY) == Some(&self.checksum))
    }

    /// Makes the tables on a host, or replaces them. Each one is replaced at once, so queries go on.
    pub(super) async fn replace(&self, host: &ClickHouse) -> Result<(), Failure> {
        let client = create_ledger(host, &self.database).await?;
        for statement in &self.statements {
            client.query_raw(statement).execute().await?;
        }
        add_to_ledger(&client, &[(ENTRY, self.checksum)]).await
    }
}

/// Turns a statement of the baseline into the one for reading. A view reads the tables of its own database, so its text stays. A
/// materialized view writes, so it has no counterpart.
fn for_reading(statement: &str, cluster: &str, database: &str) -> Option<String> {
    let (_, statement) = statement.split_once("CREATE ")?;
    if let Some(view) = statement.strip_prefix("VIEW IF NOT EXISTS ") {
        return Some(format!("CREATE OR REPLACE VIEW {view}"));
    }
    let table = statement
        .strip_prefix("TABLE IF NOT EXISTS ")?
        .split_whitespace()
        .next()?;
    Some(format!(
        "CREATE OR REPLACE TABLE {table} AS `{database}`.{table} ENGINE = Distributed('{cluster}', '{database}', '{table}')"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_and_view_but_no_materialized_view_is_made_for_reading() {
        let ReadTables {
            database,
            statements,
            checksum,
        } = ReadTables::of("two", "unjank");
        assert_eq!(database, "unjank_all");
        let count = |start: &str| {
            let starts = statements.iter().filter(|text| text.starts_with(start));
            starts.count()
        };
        let declared = |kind: &str| {
            let head = format!("CREATE {kind} IF NOT EXISTS ");
            baseline().filter(|text| text.contains(&head)).count()
        };
        assert!(declared("TABLE") > 0 && declared("VIEW") > 0);
        assert_eq!(count("CREATE OR REPLACE TABLE "), declared("TABLE"));
        assert_eq!(count("CREATE OR REPLACE VIEW "), declared("VIEW"));
        assert_eq!(statements.len(), declared("TABLE") + declared("VIEW"));
        let spans = "CREATE OR REPLACE TABLE spans AS `unjank`.spans ENGINE = Distributed('two', 'unjank', 'spans')";
        assert!(statements.iter().any(|text| text == spans));
        assert_ne!(checksum, ReadTables::of("three", "unjank").checksum);
    }
}
