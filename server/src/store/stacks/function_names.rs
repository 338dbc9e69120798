//! Names of obfuscated functions: the rows of `function_names`.

use clickhouse::Row;
use serde::Serialize;
use unjank_foundation::clock::UnixTime;

use crate::store::clickhouse::{ClickHouse, Failure};

/// The name of an obfuscated function.
pub struct FunctionName {
    pub key: String,
    /// The hash of the stack that has only this function.
    pub stack_hash: u64,
    /// Later than that of the row it replaces.
    pub symbolicated_at: UnixTime,
    /// Empty, like the next two, while no mapping has the function.
    pub class: String,
    pub function: String,
    pub file: String,
}

#[derive(Row, Serialize)]
struct NameRow<'a> {
    project: &'a str,
    name: &'a str,
    stack_hash: u64,
    symbolicated_at: UnixTime,
    class: &'a str,
    function: &'a str,
    file: &'a str,
}

impl ClickHouse {
    /// Inserts rows. They replace earlier rows of the same functions.
    pub async fn insert_function_names(
        &self,
        project: &str,
        names: &[FunctionName],
    ) -> Result<(), Failure> {
        if names.is_empty() {
            return Ok(());
        }
        let client = self.client()?.with_database(self.database());
        let mut insert = (client.insert::<NameRow<'_>>("function_names").await?)
            .with_setting("async_insert", "0")
            // An equal block inserted long ago may have been replaced since, so this one must not count as a duplicate.
            .with_setting("insert_deduplicate", "0");
        for name in names {
            let row = NameRow {
                project,
                name: &name.key,
                stack_hash: name.stack_hash,
                symbolicated_at: name.symbolicated_at,
                class: &name.class,
                function: &name.function,
                file: &name.file,
            };
            insert.write(&row).await?;
        }
        insert.end().await?;
        Ok(())
    }
}
