//! Dashboards as files, and their queries as Grafana expands them.

use std::fs;

use regex::{Captures, Regex};
use serde_json::Value;

const FOLDER: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../dashboards/grafana/dashboards"
);
/// The selected period, in seconds.
const FROM: i64 = 1_795_168_800;
const TO: i64 = FROM + 3 * 3_600 - 1;
const DAY: &str = "2026-11-20";
/// Values of the variables that have no option All.
const CHOSEN: &[(&str, &str)] = &[
    ("project", "default"),
    ("span", "checkout"),
    ("metric", "memory_used_bytes"),
];

/// A dashboard.
pub(crate) struct Board {
    pub(crate) file: String,
    pub(super) json: Value,
}

impl Board {
    pub(super) fn panels(&self) -> impl Iterator<Item = &Value> {
        self.json["panels"].as_array().unwrap().iter()
    }

    /// The type of its data source.
    pub(super) fn source(&self) -> &str {
        let mut variables = self.variables();
        let source = variables.find(|one| one["type"] == "datasource").unwrap();
        text(source, "query")
    }

    /// Names and expressions of its panels, if it reads metrics.
    pub(crate) fn expressions(&self) -> Vec<(&str, &str)> {
        let targets = self.panels().map(|panel| {
            let targets = panel["targets"].as_array().unwrap();
            assert_eq!(targets.len(), 1, "{panel}");
            (text(panel, "title"), text(&targets[0], "expr"))
        });
        targets.collect()
    }

    pub(super) fn variables(&self) -> impl Iterator<Item = &Value> {
        let variables = &self.json["templating"]["list"];
        variables.as_array().unwrap().iter()
    }

    /// Names and SQL of its panels.
    pub(super) fn queries(&self) -> Vec<(&str, &str)> {
        let panels = self.panels();
        panels
            .map(|panel| (text(panel, "title"), sql(panel)))
            .collect()
    }

    /// Names and SQL of the lists its variables are chosen from.
    pub(super) fn lists(&self) -> Vec<(&str, &str)> {
        let lists = self.variables().filter(|one| one["type"] == "query");
        lists
            .map(|one| (text(one, "name"), text(one, "query")))
            .collect()
    }
}

pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

fn sql(panel: &Value) -> &str {
    let targets = panel["targets"].as_array().unwrap();
    assert_eq!(targets.len(), 1, "{panel}");
    text(&targets[0], "rawSql")
}

/// The dashboards that read ClickHouse.
pub(super) fn boards() -> Vec<Board> {
    let mut boards = all_boards();
    boards.retain(|board| board.source() == "grafana-clickhouse-datasource");
    boards
}

/// The dashboards that read the metrics of servers.
pub(crate) fn boards_of_metrics() -> Vec<Board> {
    let mut boards = all_boards();
    boards.retain(|board| board.source() == "prometheus");
    boards
}

pub(super) fn all_boards() -> Vec<Board> {
    let mut folders = vec![FOLDER.into()];
    let mut boards = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir::<std::path::PathBuf>(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let text = fs::read_to_string(&path).unwrap();
            boards.push(Board {
                file: path.display().to_string(),
                json: serde_json::from_str(&text).unwrap(),
            });
        }
    }
    boards.sort_by(|a, b| a.file.cmp(&b.file));
    boards
}

/// Expands a query as Grafana and its ClickHouse plugin do. Variables that `chosen` does not name are All.
pub(super) fn expanded(sql: &str, chosen: &[(&str, &str)]) -> String {
    let mut sql = sql.to_owned();
    let value = |name: &str| chosen.iter().find(|one| one.0 == name).map(|one| one.1);
    // Expand the last macro first, as the plugin does. The arguments may contain balanced parentheses.
    while let Some((before, rest)) = sql.rsplit_once("$__conditionalAll") {
        let (arguments, after) = rest.split_at(closing(rest) + 1);
        let arguments = arguments.strip_prefix('(').unwrap().strip_suffix(')');
        let (condition, variable) = arguments.unwrap().rsplit_once(", $").unwrap();
        let kept = value(variable).map_or("1=1", |_| condition);
        sql = [before, kept, after].concat();
    }
    for (macro_name, meaning) in [
        (
            "timeFilter",
            format!("$1 >= toDateTime({FROM}) AND $1 <= toDateTime({TO})"),
        ),
        (
            "dateFilter",
            format!("$1 >= toDate('{DAY}') AND $1 <= toDate('{DAY}')"),
        ),
        (
            "timeInterval",
            "toStartOfInterval(toDateTime($1), INTERVAL 3600 second)".to_owned(),
        ),
    ] {
        let pattern = Regex::new(&format!(r"\$__{macro_name}\((\w+)\)")).unwrap();
        sql = pattern.replace_all(&sql, meaning).into_owned();
    }
    let quoted = Regex::new(r"\$\{(\w+):singlequote\}").unwrap();
    let sql = quoted.replace_all(&sql, |found: &Captures<'_>| {
        format!("'{}'", value(&found[1]).unwrap_or("All"))
    });
    assert!(!sql.contains('$'), "not fully expanded: {sql}");
    sql.into_owned()
}

/// Returns the position of the parenthesis that closes the one at the start of `text`.
fn closing(text: &str) -> usize {
    let mut depth = 0;
    let end = text.char_indices().find(|(_, char)| {
        depth += i32::from(*char == '(') - i32::from(*char == ')');
        depth == 0
    });
    end.unwrap().0
}

pub(super) fn chosen(more: &[(&'static str, &'static str)]) -> Vec<(&'static str, &'static str)> {
    [CHOSEN, more].concat()
}
