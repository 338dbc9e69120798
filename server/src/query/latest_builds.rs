//! The latest version of the app in which each stack occurred.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::{NamedQuery, ResolvedQuery};
use crate::remote_config::version_order;
use crate::store::{ClickHouse, Failure};

/// The maximum number of stacks whose versions are read.
const MOST_STACKS: usize = 200;
const MOST_ROWS: u64 = 10_000;

/// A version of the app, and its build number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatestBuild {
    pub version: String,
    /// 0 if unknown.
    pub number: u64,
}

impl LatestBuild {
    /// Whether this build is later. Texts that are not versions have no order.
    fn is_after(&self, other: &Self) -> bool {
        match version_order(&self.version, &other.version) {
            Some(Ordering::Equal) => self.number > other.number,
            order => order == Some(Ordering::Greater),
        }
    }
}

impl NamedQuery {
    /// Returns the query for the versions in which stacks occurred. Only raw rows have build numbers.
    #[must_use]
    pub fn of_builds(&self, stacks: &[u64], with_numbers: bool) -> Self {
        let mut by = vec!["stack_hash".to_owned(), "app_version".to_owned()];
        by.extend(with_numbers.then(|| "build".to_owned()));
        let mut filters = self.filters.clone();
        filters.retain(|(name, _)| name != "stack_hash");
        let stacks = stacks.iter().take(MOST_STACKS);
        filters.extend(stacks.map(|hash| ("stack_hash".to_owned(), hash.to_string())));
        Self {
            from: self.from,
            to: self.to,
            by,
            measures: vec!["count".to_owned()],
            order: Some("-count".to_owned()),
            filters,
            ..Self::default()
        }
    }
}

/// Returns the latest build of each stack. Of texts that are not versions, the most frequent one.
pub async fn latest_builds(
    clickhouse: &ClickHouse,
    asked: &ResolvedQuery,
) -> Result<HashMap<u64, LatestBuild>, Failure> {
    let rows = clickhouse.read_table(&asked.reading, asked.sort, MOST_ROWS);
    let (rows, _) = rows.await?;
    let mut latest: HashMap<u64, LatestBuild> = HashMap::new();
    for row in rows {
        let mut keys = row.keys.into_iter();
        let Some(hash) = keys.next().and_then(|hash| hash.parse().ok()) else {
            continue;
        };
        let build = LatestBuild {
            version: keys.next().unwrap_or_default(),
            number: keys.next().and_then(|it| it.parse().ok()).unwrap_or(0),
        };
        let known = latest.entry(hash).or_insert_with(|| build.clone());
        if build.is_after(known) {
            *known = build;
        }
    }
    Ok(latest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_builds_have_a_higher_version_or_number() {
        let build = |version: &str, number| LatestBuild {
            version: version.to_owned(),
            number,
        };
        assert!(build("4.10.0", 1).is_after(&build("4.9.0", 2)));
        assert!(build("4.10.0", 2).is_after(&build("4.10.0", 1)));
        assert!(!build("4.10.0-beta", 2).is_after(&build("4.10.0", 1)));
        assert!(!build("nightly", 2).is_after(&build("4.10.0", 1)));
    }
}
