//! The builds whose symbols the stacks of a period need, and whether the stacks got them.

use std::collections::{BTreeMap, BTreeSet};

use clickhouse::Row;
use serde::{Deserialize, Serialize};
use unjank_foundation::clock::UnixTime;
use unjank_symbols::{SymbolId, map_id_of};
use utoipa::ToSchema;

use super::reading::Span;
use crate::store::clickhouse::{ClickHouse, Failure};

/// The maximum number of versions of an app that are listed for one build.
const VERSIONS: u32 = 5;
/// The number of stacks of each build whose frames are read for the names of modules.
const STACKS: u32 = 3;
/// The maximum number of modules that are listed for one build.
const MODULES: usize = 5;
/// Above this memory use, ClickHouse spills to disk.
const EXTERNAL_BYTES: &str = "536870912";

/// Whether the stacks of a build are readable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SymbolState {
    /// The build has no symbol file.
    Missing,
    /// The symbol file of this build has none of the frames: it does not belong to the build.
    Mismatched,
    /// The symbol file of this build has names of functions, but no lines.
    NoLines,
    /// The symbol file of this build has functions and lines.
    Complete,
}

/// Selects stacks of janks and functions of spans.
#[derive(Clone, Copy, Debug)]
pub struct SymbolQuestion<'q> {
    pub project: &'q str,
    pub span: Span,
    /// Only janks of this version.
    pub app_version: Option<&'q str>,
    /// The ids of the builds whose symbol files have no lines.
    pub without_lines: &'q [String],
    /// Whether to leave out builds that are complete.
    pub only_incomplete: bool,
    /// The maximum number of builds.
    pub most: u32,
}

/// A build whose symbols stacks need.
#[derive(Clone, Debug)]
pub struct NeededBuild {
    pub id: String,
    /// The names of the images of the build, as devices report them. An obfuscated app has none.
    pub modules: Vec<String>,
    pub state: SymbolState,
    /// The number of janks and spans that need the symbols, weighted by their sample rates.
    pub events: f64,
    /// The number of distinct stacks, and functions of spans, that are not readable yet, or have no lines.
    pub waiting_stacks: u64,
    /// The number of janks and spans with these, weighted.
    pub waiting_events: f64,
    /// The versions of the app with most of these events.
    pub waiting_versions: Vec<(String, f64)>,
    /// The times of the first and last of these events in the period. The times of spans are full hours.
    pub first_seen: UnixTime,
    pub last_seen: UnixTime,
}

#[derive(Row, Deserialize)]
struct BuildRow {
    id: String,
    events: f64,
    missing_events: f64,
    mismatched_events: f64,
    has_no_lines: bool,
    waiting_stacks: u64,
    waiting_events: f64,
    waiting_versions: Vec<(String, f64)>,
    first_seen: UnixTime,
    last_seen: UnixTime,
    some_stacks: Vec<u64>,
}

/// A file that belongs to the build does not have every frame: code of the linker has no function. So a build counts as mismatched only if
/// a tenth of its events has no frame in the file.
const IS_MISMATCHED: &str = "mismatched_events > 0 AND mismatched_events * 10 >= events";

impl BuildRow {
    fn state(&self) -> SymbolState {
        if self.missing_events > 0.0 {
            SymbolState::Missing
        } else if self.mismatched_events > 0.0 && self.mismatched_events * 10.0 >= self.events {
            SymbolState::Mismatched
        } else if self.has_no_lines {
            SymbolState::NoLines
        } else {
            SymbolState::Complete
        }
    }
}

/// The stacks of janks and the functions of spans with their number, by version.
fn occurrences(database: &str) -> String {
    format!(
        "SELECT stack_hash, toString(app_version) AS version, sum(1 / sample_rate) AS occurrences, min(start) AS first, max(start) AS last \
         FROM `{database}`.janks WHERE {JANKS} GROUP BY stack_hash, version \
         UNION ALL SELECT f.stack_hash AS stack_hash, version, occurrences, first, last FROM (\
             SELECT toString(name) AS name, toString(app_version) AS version, sum(count) AS occurrences, \
                 toDateTime64(min(hour), 6, 'UTC') AS first, toDateTime64(max(hour), 6, 'UTC') AS last \
             FROM `{database}`.spans_hourly WHERE {SPANS} GROUP BY name, version) AS s \
         INNER JOIN (SELECT name, stack_hash FROM `{database}`.function_names FINAL WHERE project = {{project:String}}) AS f USING name"
    )
}

/// Spans that are named after an obfuscated function.
const SPANS: &str = "project = {project:String} AND match(name, '@[0-9a-f]{12}$') \
     AND ({version:String} = '' OR app_version = {version:String}) \
     AND hour >= toStartOfHour(fromUnixTimestamp64Micro({from:Int64}, 'UTC')) AND hour < fromUnixTimestamp64Micro({to:Int64}, 'UTC')";

const JANKS: &str = "project = {project:String} AND stack_hash != 0 \
     AND ({version:String} = '' OR app_version = {version:String}) \
     AND start >= fromUnixTimestamp64Micro({from:Int64}, 'UTC') AND start < fromUnixTimestamp64Micro({to:Int64}, 'UTC')";

impl ClickHouse {
    /// Returns the builds whose symbols stacks need, those with most waiting events first.
    pub async fn needed_symbols(
        &self,
        question: SymbolQuestion<'_>,
    ) -> Result<Vec<NeededBuild>, Failure> {
        let database = self.database();
        let sql = format!(
            "SELECT id, sum(occurrences) AS events, sumIf(occurrences, is_missing) AS missing_events, \
                 sumIf(occurrences, is_mismatched) AS mismatched_events, has({{without_lines:Array(String)}}, id) AS has_no_lines, \
                 uniqExactIf(stack_hash, is_waiting) AS waiting_stacks, sumIf(occurrences, is_waiting) AS waiting_events, \
                 sumMapIf([version], [occurrences], is_waiting) AS versions, \
                 arraySlice(arrayReverseSort(one -> one.2, arrayZip(versions.1, versions.2)), 1, {VERSIONS}) AS waiting_versions, \
                 toUnixTimestamp64Micro(minIf(first, is_waiting)) AS first_seen, \
                 toUnixTimestamp64Micro(maxIf(last, is_waiting)) AS last_seen, \
                 groupArray({STACKS})(stack_hash) AS some_stacks \
             FROM (SELECT stack_hash, id, version, occurrences, first, last, is_missing, is_mismatched, \
                     is_missing OR is_mismatched OR has({{without_lines:Array(String)}}, id) AS is_waiting \
                 FROM (SELECT stack_hash, toString(arrayJoin(ids)) AS id, has(missing, id) AS is_missing, \
                         has(mismatched, id) AS is_mismatched \
                     FROM `{database}`.stacks_symbolicated FINAL WHERE project = {{project:String}}) AS r \
                 INNER JOIN ({occurrences}) AS j USING stack_hash) \
             GROUP BY id \
             HAVING NOT {{only_incomplete:Bool}} OR missing_events > 0 OR ({IS_MISMATCHED}) OR has_no_lines \
             ORDER BY waiting_events DESC, events DESC, id LIMIT {{most:UInt32}}",
            occurrences = occurrences(database),
        );
        let sql = format!(
            "SELECT id, events, missing_events, mismatched_events, has_no_lines, waiting_stacks, waiting_events, waiting_versions, \
                 first_seen, last_seen, some_stacks FROM ({sql})"
        );
        let query = (self.question(&sql)?)
            .param("project", question.project)
            .param("version", question.app_version.unwrap_or_default())
            .param("from", question.span.from)
            .param("to", question.span.to)
            .param("without_lines", question.without_lines)
            .param("only_incomplete", question.only_incomplete)
            .param("most", question.most)
            .with_setting("max_bytes_before_external_group_by", EXTERNAL_BYTES);
        let (rows, _): (Vec<BuildRow>, _) = self.collect(query).await?;
        let mut stacks: Vec<u64> = rows
            .iter()
            .flat_map(|row| &row.some_stacks)
            .copied()
            .collect();
        stacks.sort_unstable();
        stacks.dedup();
        let mut modules = self.modules_of(question.project, &stacks).await?;
        let build = |row: BuildRow| NeededBuild {
            modules: modules.remove(&row.id).unwrap_or_default(),
            state: row.state(),
            id: row.id,
            events: row.events,
            waiting_stacks: row.waiting_stacks,
            waiting_events: row.waiting_events,
            waiting_versions: row.waiting_versions,
            first_seen: row.first_seen,
            last_seen: row.last_seen,
        };
        Ok(rows.into_iter().map(build).collect())
    }

    /// Returns the number of distinct stacks of a version in a period.
    pub async fn count_stacks_of_version(
        &self,
        project: &str,
        span: Span,
        app_version: &str,
    ) -> Result<u64, Failure> {
        let sql = format!(
            "SELECT uniqExact(stack_hash) AS stacks FROM `{}`.janks WHERE {JANKS}",
            self.database()
        );
        let query = (self.question(&sql)?)
            .param("project", project)
            .param("version", app_version)
            .param("from", span.from)
            .param("to", span.to);
        let (rows, _): (Vec<u64>, _) = self.collect(query).await?;
        Ok(rows.first().copied().unwrap_or_default())
    }

    /// Returns stacks of a version in a period that were not symbolicated, at most `most`. Stacks that need no symbols are among them.
    pub async fn unsymbolicated_stacks(
        &self,
        project: &str,
        span: Span,
        app_version: &str,
        most: u32,
    ) -> Result<Vec<u64>, Failure> {
        let database = self.database();
        let sql = format!(
            "SELECT DISTINCT stack_hash FROM `{database}`.janks WHERE {JANKS} AND stack_hash NOT IN (\
                 SELECT stack_hash FROM `{database}`.stacks_symbolicated WHERE project = {{project:String}}) \
             ORDER BY stack_hash LIMIT {{most:UInt32}}"
        );
        let query = (self.question(&sql)?)
            .param("project", project)
            .param("version", app_version)
            .param("from", span.from)
            .param("to", span.to)
            .param("most", most);
        let (hashes, _) = self.collect(query).await?;
        Ok(hashes)
    }

    /// Returns the names of the modules in the frames of stacks, by the id of the build.
    async fn modules_of(
        &self,
        project: &str,
        stacks: &[u64],
    ) -> Result<BTreeMap<String, Vec<String>>, Failure> {
        #[derive(Row, Deserialize)]
        struct ModuleRow {
            module: String,
            build_id: String,
            file: String,
        }
        if stacks.is_empty() {
            return Ok(BTreeMap::new());
        }
        let sql = format!(
            "SELECT DISTINCT toString(frame.1) AS module, toString(frame.2) AS build_id, toString(frame.3) AS file FROM (\
                 SELECT arrayJoin(arrayZip(`frames.module`, `frames.build_id`, \
                     arrayMap(file -> if(startsWith(file, 'r8-map-id-'), file, ''), `frames.file`))) AS frame \
                 FROM `{}`.stacks WHERE project = {{project:String}} AND stack_hash IN {{stacks:Array(UInt64)}}) \
             WHERE module != '' ORDER BY module LIMIT 100000",
            self.database()
        );
        let query = (self.question(&sql)?)
            .param("project", project)
            .param("stacks", stacks);
        let (rows, _): (Vec<ModuleRow>, _) = self.collect(query).await?;
        let mut modules: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for row in rows {
            let id = map_id_of(&row.file).or_else(|| SymbolId::parse(&row.build_id));
            if let Some(id) = id {
                let of_id = modules.entry(id.as_str().to_owned()).or_default();
                of_id.insert(row.module);
            }
        }
        let listed = |(id, modules): (String, BTreeSet<String>)| {
            (id, modules.into_iter().take(MODULES).collect())
        };
        Ok(modules.into_iter().map(listed).collect())
    }
}
