//! Resolved and ignored groups of janks that came back: groups that a later version of the app has.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use unjank_database::HandledGroup;
use unjank_foundation::clock::UnixTime;

use super::known_versions::{LOOK_BACK, Versions, later_versions};
use super::{GroupFilter, MOST_VALUES, NamedQuery, QueryError};
use crate::store::ClickHouse;

const MOST_ROWS: u64 = 50_000;

/// Returns the groups that came back, each with the first later version that has the group.
pub async fn reopened_groups(
    clickhouse: &ClickHouse,
    project: &str,
    closed: &[HandledGroup],
    versions: &Versions,
    now: UnixTime,
) -> Result<HashMap<u64, String>, QueryError> {
    // The versions that bring a group back, newest first.
    let mut later: BTreeMap<u64, (&str, Vec<&str>)> = BTreeMap::new();
    for one in closed {
        let of_app = versions.get(&one.app_id).map_or(&[][..], Vec::as_slice);
        let names = later_versions(of_app, &one.app_version, one.changed_at);
        if !names.is_empty() {
            later.insert(one.group, (&one.app_id, names));
        }
    }
    if later.is_empty() {
        return Ok(HashMap::new());
    }
    let names: BTreeSet<&str> = later.values().flat_map(|(_, all)| all).copied().collect();
    // With more versions, all versions are read.
    let names = Some(names).filter(|names| names.len() <= MOST_VALUES);
    let of_versions = |name: &str| ("app_version".to_owned(), name.to_owned());
    let ask = NamedQuery {
        from: Some(now - LOOK_BACK),
        by: ["group_id", "app_id", "app_version"]
            .map(str::to_owned)
            .into(),
        measures: vec!["count".to_owned()],
        filters: names.into_iter().flatten().map(of_versions).collect(),
        groups: Some(GroupFilter::Only(later.keys().copied().collect())),
        ..NamedQuery::default()
    };
    let asked = ask.table(project, "janks", now)?;
    let rows = clickhouse.read_table(&asked.reading, asked.sort, MOST_ROWS);
    let mut found: HashMap<u64, usize> = HashMap::new();
    for row in rows.await?.0 {
        let [group, app, version] = &row.keys[..] else {
            continue;
        };
        let Some(group) = group.parse::<u64>().ok() else {
            continue;
        };
        let Some((_, names)) = later.get(&group).filter(|(of_app, _)| of_app == app) else {
            continue;
        };
        if let Some(place) = names.iter().position(|name| name == version) {
            let oldest = found.entry(group).or_default();
            *oldest = (*oldest).max(place);
        }
    }
    let named = |(group, place): (u64, usize)| {
        let name = later.get(&group)?.1.get(place)?;
        Some((group, (*name).to_owned()))
    };
    Ok(found.into_iter().filter_map(named).collect())
}
