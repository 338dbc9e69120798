//! Stacks after symbolication: the rows of `stacks_symbolicated`, which also say which builds each stack needs and which of them are missing.

use clickhouse::Row;
use serde::{Deserialize, Serialize};
use unjank_foundation::clock::UnixTime;
use unjank_protocol::Frame;

use crate::store::clickhouse::{ClickHouse, Failure};

/// A stack after symbolication. It has no frames if symbols did not improve the reported frames.
pub struct SymbolicatedStack<'s> {
    pub hash: u64,
    /// Later than that of the row it replaces.
    pub symbolicated_at: UnixTime,
    pub frames: &'s [Frame<'static>],
    pub origins: &'s [u8],
    pub ids: &'s [String],
    /// The builds without a symbol file.
    pub missing: &'s [String],
    /// The builds whose symbol file has none of the frames, so that it belongs to another build.
    pub mismatched: &'s [String],
}

#[derive(Row, Serialize)]
struct SymbolicatedRow<'a> {
    project: &'a str,
    stack_hash: u64,
    symbolicated_at: UnixTime,
    #[serde(rename = "frames.class")]
    classes: Vec<&'a str>,
    #[serde(rename = "frames.module")]
    modules: Vec<&'a str>,
    #[serde(rename = "frames.function")]
    functions: Vec<&'a str>,
    #[serde(rename = "frames.file")]
    files: Vec<&'a str>,
    #[serde(rename = "frames.build_id")]
    build_ids: Vec<&'a str>,
    #[serde(rename = "frames.line")]
    lines: Vec<u32>,
    #[serde(rename = "frames.column")]
    columns: Vec<u32>,
    #[serde(rename = "frames.offset")]
    offsets: Vec<u64>,
    #[serde(rename = "frames.origin")]
    origins: &'a [u8],
    ids: &'a [String],
    missing: &'a [String],
    mismatched: &'a [String],
}

impl ClickHouse {
    /// Inserts rows. They replace earlier rows of the same stacks.
    pub async fn insert_symbolicated(
        &self,
        project: &str,
        stacks: &[SymbolicatedStack<'_>],
    ) -> Result<(), Failure> {
        let client = self.client()?.with_database(self.database());
        let insert = client.insert::<SymbolicatedRow<'_>>("stacks_symbolicated");
        let mut insert = (insert.await?)
            .with_setting("async_insert", "0")
            // An equal block inserted long ago may have been replaced since, so this one must not count as a duplicate.
            .with_setting("insert_deduplicate", "0");
        for stack in stacks {
            let frames = stack.frames;
            let row = SymbolicatedRow {
                project,
                stack_hash: stack.hash,
                symbolicated_at: stack.symbolicated_at,
                classes: frames.iter().map(|frame| &*frame.class).collect(),
                modules: frames.iter().map(|frame| &*frame.module).collect(),
                functions: frames.iter().map(|frame| &*frame.function).collect(),
                files: frames.iter().map(|frame| &*frame.file).collect(),
                build_ids: frames.iter().map(|frame| &*frame.build_id).collect(),
                lines: frames
                    .iter()
                    .map(|frame| u32::try_from(frame.line).unwrap_or_default())
                    .collect(),
                columns: frames.iter().map(|frame| frame.column).collect(),
                offsets: frames
                    .iter()
                    .map(|frame| frame.offset.unwrap_or_default())
                    .collect(),
                origins: stack.origins,
                ids: stack.ids,
                missing: stack.missing,
                mismatched: stack.mismatched,
            };
            insert.write(&row).await?;
        }
        insert.end().await?;
        Ok(())
    }

    /// Returns the next stacks after a hash that need the symbols of any of these builds, by hash.
    pub async fn stacks_that_need(
        &self,
        project: &str,
        ids: &[String],
        after: u64,
        most: u32,
    ) -> Result<Vec<u64>, Failure> {
        #[derive(Row, Deserialize)]
        struct Hash {
            stack_hash: u64,
        }
        let sql = format!(
            "SELECT stack_hash FROM `{}`.stacks_symbolicated \
             WHERE project = {{project:String}} AND stack_hash > {{after:UInt64}} \
             GROUP BY stack_hash HAVING hasAny(argMax(ids, symbolicated_at), {{ids:Array(String)}}) \
             ORDER BY stack_hash LIMIT {{most:UInt32}}",
            self.database()
        );
        let rows = (self.client()?.query(&sql))
            .param("project", project)
            .param("after", after)
            .param("ids", ids)
            .param("most", most)
            .with_setting("optimize_aggregation_in_order", "1")
            .fetch_all::<Hash>()
            .await?;
        Ok(rows.into_iter().map(|row| row.stack_hash).collect())
    }

    /// Returns the number of stacks that need the symbols of any of these builds.
    pub async fn count_stacks_that_need(
        &self,
        project: &str,
        ids: &[String],
    ) -> Result<u64, Failure> {
        let sql = format!(
            "SELECT count() AS stacks FROM (SELECT stack_hash FROM `{}`.stacks_symbolicated \
             WHERE project = {{project:String}} \
             GROUP BY stack_hash HAVING hasAny(argMax(ids, symbolicated_at), {{ids:Array(String)}}))",
            self.database()
        );
        let count = (self.client()?.query(&sql))
            .param("project", project)
            .param("ids", ids)
            .with_setting("optimize_aggregation_in_order", "1")
            .fetch_one::<u64>()
            .await?;
        Ok(count)
    }

    /// Returns the ids for which stacks wait, at most `most`.
    pub async fn missing_symbols(&self, project: &str, most: u32) -> Result<Vec<String>, Failure> {
        #[derive(Row, Deserialize)]
        struct Id {
            id: String,
        }
        let sql = format!(
            "SELECT DISTINCT toString(arrayJoin(latest)) AS id FROM (\
                 SELECT argMax(missing, symbolicated_at) AS latest FROM `{}`.stacks_symbolicated \
                 WHERE project = {{project:String}} GROUP BY stack_hash) LIMIT {{most:UInt32}}",
            self.database()
        );
        let rows = (self.client()?.query(&sql))
            .param("project", project)
            .param("most", most)
            .fetch_all::<Id>()
            .await?;
        Ok(rows.into_iter().map(|row| row.id).collect())
    }
}
