//! Stored stacks: read to try new rules on, and reclassified.
//!
//! All operations can run repeatedly and on several servers at once: rows of one stack under one revision replace each other.

use std::collections::HashMap;

use clickhouse::Row;
use clickhouse::query::RowCursor;
use serde::{Deserialize, Serialize};
use unjank_foundation::clock::UnixTime;
use unjank_protocol::Frame;
use unjank_stacks::{Class, Installs, RulesId, Usage};

use crate::store::clickhouse::{ClickHouse, Failure};

/// One project's classes under one set of rules.
#[derive(Clone, Copy, Debug)]
pub struct Classes<'p> {
    pub project: &'p str,
    pub rules: RulesId,
    /// Ignores classes that other rules made under the same revision, because of a new release or another default.
    pub only_current_hash: bool,
}

/// The number of distinct stacks of a project.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Row, Deserialize)]
pub struct StackCounts {
    pub total: u64,
    /// Stacks without a class.
    pub unclassified: u64,
}

/// The parts of a stack that rules use, innermost frame first.
#[derive(Clone, Debug)]
pub struct StoredStack {
    pub hash: u64,
    pub frames: Vec<Frame<'static>>,
    /// Time of the last classification under the same revision; 0 if there is none.
    pub classified_at: UnixTime,
    /// Time of the last symbolication; 0 if there was none.
    pub symbolicated_at: UnixTime,
}

#[derive(Row, Deserialize)]
struct FramesRow<'a> {
    stack_hash: u64,
    #[serde(borrow)]
    classes: Vec<&'a str>,
    #[serde(borrow)]
    modules: Vec<&'a str>,
    #[serde(borrow)]
    functions: Vec<&'a str>,
    #[serde(borrow)]
    files: Vec<&'a str>,
    #[serde(borrow)]
    build_ids: Vec<&'a str>,
    lines: Vec<u32>,
    columns: Vec<u32>,
    offsets: Vec<u64>,
    classified_at: UnixTime,
    symbolicated_at: UnixTime,
}

impl From<FramesRow<'_>> for StoredStack {
    fn from(row: FramesRow<'_>) -> Self {
        let text = |texts: &[&str], place: usize| {
            let text = texts.get(place).copied().unwrap_or_default();
            text.to_owned().into()
        };
        let frame = |place: usize| Frame {
            class: text(&row.classes, place),
            module: text(&row.modules, place),
            function: text(&row.functions, place),
            file: text(&row.files, place),
            build_id: text(&row.build_ids, place),
            line: row.lines.get(place).copied().map_or(0, i64::from),
            column: row.columns.get(place).copied().unwrap_or_default(),
            // 0 is stored for a frame without an offset.
            offset: row.offsets.get(place).copied().filter(|&offset| offset > 0),
            ..Frame::default()
        };
        Self {
            hash: row.stack_hash,
            frames: (0..row.classes.len()).map(frame).collect(),
            classified_at: row.classified_at,
            symbolicated_at: row.symbolicated_at,
        }
    }
}

/// A new class of a stored stack.
#[derive(Debug)]
pub struct NewClass {
    pub stack_hash: u64,
    pub class: Class,
    /// In microseconds since the epoch; later than that of the class it replaces.
    pub classified_at: UnixTime,
}

#[derive(Row, Serialize)]
struct ClassRow<'a> {
    project: &'a str,
    rules_version: u32,
    rules_hash: u64,
    stack_hash: u64,
    group_id: u64,
    category: &'a str,
    culprit: &'a str,
    owner: &'a str,
    title: &'a str,
    not_a_cause: bool,
    classified_at: UnixTime,
}

/// A stream of stacks, ordered by hash.
pub struct StackCursor(RowCursor<FramesRow<'static>>);

impl StackCursor {
    /// Returns the next stacks, at most `most`, or none at the end. A stack that is stored twice may appear twice.
    pub async fn next_chunk(&mut self, most: usize) -> Result<Vec<StoredStack>, Failure> {
        let mut stacks = Vec::new();
        while stacks.len() < most
            && let Some(row) = self.0.next().await?
        {
            stacks.push(row.into());
        }
        Ok(stacks)
    }
}

impl ClickHouse {
    /// Counts all stacks and those without a class.
    pub async fn count_stacks(&self, classes: Classes<'_>) -> Result<StackCounts, Failure> {
        let database = self.database();
        let sql = format!(
            "SELECT count() AS total, countIf(stack_hash NOT IN (\
                 SELECT stack_hash FROM `{database}`.stack_classes \
                 WHERE project = {{project:String}} AND rules_version = {{revision:UInt32}} \
                 GROUP BY stack_hash \
                 HAVING {{any:Bool}} OR argMax(rules_hash, classified_at) = {{hash:UInt64}})) AS unclassified \
             FROM (SELECT stack_hash FROM `{database}`.stacks WHERE project = {{project:String}} GROUP BY stack_hash)"
        );
        let counts = (self.client()?.query(&sql))
            .param("project", classes.project)
            .param("revision", classes.rules.revision)
            .param("hash", classes.rules.hash)
            .param("any", !classes.only_current_hash)
            .with_setting("optimize_aggregation_in_order", "1")
            .fetch_one::<StackCounts>()
            .await?;
        Ok(counts)
    }

    /// Returns the last of the next `most` stacks after a hash; `None` at the end.
    pub async fn end_of_stacks(
        &self,
        project: &str,
        after: u64,
        most: u32,
    ) -> Result<Option<u64>, Failure> {
        // No stack has the hash 0.
        let sql = format!(
            "SELECT max(stack_hash) AS last FROM (SELECT stack_hash FROM `{}`.stacks \
             WHERE project = {{project:String}} AND stack_hash > {{after:UInt64}} ORDER BY stack_hash LIMIT {{most:UInt32}})",
            self.database()
        );
        let last = (self.client()?.query(&sql))
            .param("project", project)
            .param("after", after)
            .param("most", most)
            .fetch_one::<u64>()
            .await?;
        Ok((last > 0).then_some(last))
    }

    /// Returns the stacks without a class whose hash is above `after` and at most `last`.
    pub async fn unclassified_stacks(
        &self,
        classes: Classes<'_>,
        after: u64,
        last: u64,
    ) -> Result<Vec<StoredStack>, Failure> {
        let database = self.database();
        let range = "project = {project:String} AND stack_hash > {after:UInt64} AND stack_hash <= {last:UInt64}";
        let sql = format!(
            "SELECT s.stack_hash AS stack_hash, {columns}, any(c.latest) AS classified_at, any(r.latest) AS symbolicated_at \
             FROM (SELECT * FROM `{database}`.stacks WHERE {range}) AS s LEFT JOIN (\
                 SELECT stack_hash, argMax(rules_hash, classified_at) AS hash, \
                     toUnixTimestamp64Micro(max(classified_at)) AS latest \
                 FROM `{database}`.stack_classes WHERE {range} AND rules_version = {{revision:UInt32}} \
                 GROUP BY stack_hash) AS c ON s.stack_hash = c.stack_hash \
             LEFT JOIN ({readable}) AS r ON s.stack_hash = r.stack_hash \
             WHERE c.latest = 0 OR NOT ({{any:Bool}} OR c.hash = {{hash:UInt64}}) \
             GROUP BY stack_hash",
            columns = readable_columns("any"),
            readable = latest_symbolication(database, range),
        );
        let mut rows = (self.client()?.query(&sql))
            .param("project", classes.project)
            .param("after", after)
            .param("last", last)
            .param("revision", classes.rules.revision)
            .param("hash", classes.rules.hash)
            .param("any", !classes.only_current_hash)
            .with_setting("join_use_nulls", "0")
            .fetch::<FramesRow<'_>>()?;
        let mut stacks = Vec::new();
        while let Some(row) = rows.next().await? {
            stacks.push(row.into());
        }
        Ok(stacks)
    }

    /// Returns stacks with the frames that devices reported. Stacks that are not stored yet are left out.
    pub async fn reported_stacks(
        &self,
        project: &str,
        rules: RulesId,
        hashes: &[u64],
    ) -> Result<Vec<StoredStack>, Failure> {
        let database = self.database();
        let range = "project = {project:String} AND stack_hash IN {hashes:Array(UInt64)}";
        let columns =
            FRAME_COLUMNS.map(|(column, name)| format!("any(s.`frames.{column}`) AS {name}"));
        let sql = format!(
            "SELECT s.stack_hash AS stack_hash, {columns}, any(c.latest) AS classified_at, any(r.latest) AS symbolicated_at \
             FROM (SELECT * FROM `{database}`.stacks WHERE {range}) AS s LEFT JOIN (\
                 SELECT stack_hash, toUnixTimestamp64Micro(max(classified_at)) AS latest \
                 FROM `{database}`.stack_classes WHERE {range} AND rules_version = {{revision:UInt32}} \
                 GROUP BY stack_hash) AS c ON s.stack_hash = c.stack_hash \
             LEFT JOIN (\
                 SELECT stack_hash, toUnixTimestamp64Micro(max(symbolicated_at)) AS latest \
                 FROM `{database}`.stacks_symbolicated WHERE {range} GROUP BY stack_hash) AS r \
             ON s.stack_hash = r.stack_hash \
             GROUP BY stack_hash",
            columns = columns.join(", "),
        );
        let mut rows = (self.client()?.query(&sql))
            .param("project", project)
            .param("hashes", hashes)
            .param("revision", rules.revision)
            .with_setting("join_use_nulls", "0")
            .fetch::<FramesRow<'_>>()?;
        let mut stacks = Vec::new();
        while let Some(row) = rows.next().await? {
            stacks.push(row.into());
        }
        Ok(stacks)
    }

    /// Inserts classes under a revision. Duplicates disappear when parts are merged.
    pub async fn insert_classes(
        &self,
        project: &str,
        rules: RulesId,
        classes: &[NewClass],
    ) -> Result<(), Failure> {
        self.note_former_groups(project, classes).await?;
        let client = self.client()?.with_database(self.database());
        let mut insert = (client.insert::<ClassRow<'_>>("stack_classes").await?)
            .with_setting("async_insert", "0")
            // An equal block inserted long ago may have been replaced since, so this one must not count as a duplicate.
            .with_setting("insert_deduplicate", "0");
        for NewClass {
            stack_hash,
            class,
            classified_at,
        } in classes
        {
            let row = ClassRow {
                project,
                rules_version: rules.revision,
                rules_hash: rules.hash,
                stack_hash: *stack_hash,
                group_id: class.group_id,
                category: &class.category,
                culprit: &class.culprit,
                owner: &class.owner,
                title: &class.title,
                not_a_cause: class.not_a_cause,
                classified_at: *classified_at,
            };
            insert.write(&row).await?;
        }
        insert.end().await?;
        Ok(())
    }

    /// Returns how often each stack occurred since a time, for the `most` most frequent stacks, and whether there are more.
    pub async fn stack_usage(
        &self,
        project: &str,
        since: UnixTime,
        most: usize,
    ) -> Result<(HashMap<u64, Usage>, bool), Failure> {
        #[derive(Row, Deserialize)]
        struct UsageRow {
            stack_hash: u64,
            occurrences: f64,
            installs: Vec<u64>,
        }
        let sql = format!(
            "SELECT stack_hash, sum(weight) AS occurrences, groupArraySorted({smallest})(install) AS installs FROM (\
                 SELECT stack_hash, cityHash64(install_id) AS install, sum(1 / sample_rate) AS weight \
                 FROM `{}`.janks WHERE project = {{project:String}} AND stack_hash != 0 \
                 AND start >= fromUnixTimestamp64Micro({{since:Int64}}, 'UTC') GROUP BY stack_hash, install_id) \
             GROUP BY stack_hash ORDER BY occurrences DESC, stack_hash LIMIT {{most:UInt64}}",
            self.database(),
            smallest = Installs::MOST,
        );
        let mut rows = (self.client()?.query(&sql))
            .param("project", project)
            .param("since", since)
            .param("most", (most as u64).saturating_add(1))
            .with_setting("max_bytes_before_external_group_by", EXTERNAL_BYTES)
            .with_setting("max_bytes_before_external_sort", EXTERNAL_BYTES)
            .with_setting("max_execution_time", LONGEST_S)
            .fetch::<UsageRow>()?;
        let mut usage = HashMap::new();
        while let Some(row) = rows.next().await? {
            if usage.len() == most {
                return Ok((usage, true));
            }
            let one = Usage {
                occurrences: row.occurrences,
                installs: Installs::new(row.installs),
            };
            usage.insert(row.stack_hash, one);
        }
        Ok((usage, false))
    }

    /// Streams the frames of the stacks that occurred since a time.
    pub fn stacks_in_use(&self, project: &str, since: UnixTime) -> Result<StackCursor, Failure> {
        let database = self.database();
        let range = format!(
            "project = {{project:String}} AND stack_hash IN (\
                 SELECT stack_hash FROM `{database}`.janks WHERE project = {{project:String}} \
                 AND start >= fromUnixTimestamp64Micro({{since:Int64}}, 'UTC'))"
        );
        let columns = FRAME_COLUMNS.map(|(column, name)| format!("`frames.{column}` AS {name}"));
        let columns = format!(
            "stack_hash, {}, toInt64(0) AS classified_at, toInt64(0) AS symbolicated_at",
            columns.join(", ")
        );
        let sql = format!(
            "SELECT {columns} FROM `{database}`.stacks_symbolicated FINAL WHERE {range} AND notEmpty(`frames.class`) \
             UNION ALL SELECT {columns} FROM `{database}`.stacks WHERE {range} AND stack_hash NOT IN (\
                 SELECT stack_hash FROM `{database}`.stacks_symbolicated FINAL \
                 WHERE project = {{project:String}} AND notEmpty(`frames.class`))"
        );
        let rows = (self.client()?.query(&sql))
            .param("project", project)
            .param("since", since)
            // There is no time limit: the query takes as long as the caller's classification, which reads the stream.
            .fetch()?;
        Ok(StackCursor(rows))
    }
}

/// The columns of a frame, and their names in [`FramesRow`], in its order.
const FRAME_COLUMNS: [(&str, &str); 8] = [
    ("class", "classes"),
    ("module", "modules"),
    ("function", "functions"),
    ("file", "files"),
    ("build_id", "build_ids"),
    ("line", "lines"),
    ("column", "columns"),
    ("offset", "offsets"),
];

/// The columns of the readable frames of a stack `s` with its latest symbolication `r`: the reported frames, if symbols did not improve them.
pub(crate) fn readable_columns(aggregate: &str) -> String {
    let columns = FRAME_COLUMNS.map(|(column, name)| {
        format!("{aggregate}(if(notEmpty(r.{name}), r.{name}, s.`frames.{column}`)) AS {name}")
    });
    columns.join(", ")
}

/// Selects the latest symbolication of the stacks in a range.
pub(crate) fn latest_symbolication(database: &str, range: &str) -> String {
    let columns = FRAME_COLUMNS
        .map(|(column, name)| format!("argMax(`frames.{column}`, symbolicated_at) AS {name}"));
    format!(
        "SELECT stack_hash, {}, argMax(`frames.origin`, symbolicated_at) AS origins, \
             argMax(missing, symbolicated_at) AS missing, argMax(mismatched, symbolicated_at) AS mismatched, \
             toUnixTimestamp64Micro(max(symbolicated_at)) AS latest \
         FROM `{database}`.stacks_symbolicated WHERE {range} GROUP BY stack_hash",
        columns.join(", ")
    )
}

/// Above this memory use, ClickHouse spills to disk.
const EXTERNAL_BYTES: &str = "536870912";
/// The time limit. A client waits for the response.
const LONGEST_S: &str = "60";
