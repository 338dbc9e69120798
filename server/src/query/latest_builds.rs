//! The latest version of the app in which each stack occurred.

use std::cmp::Ordering;
use std::collections::HashMap;

use unjank_remote_config::version_order;

use super::known_versions::{Versions, first_seen};
use super::{NamedQuery, ResolvedQuery};
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
    /// Orders by version, then by build number, then by when the versions were first seen.
    fn order(&self, other: &Self, versions: &Versions) -> Ordering {
        version_order(&self.version, &other.version)
            .then(self.number.cmp(&other.number))
            .then_with(|| {
                let seen = |build: &Self| first_seen(versions, &build.version);
                seen(self).cmp(&seen(other))
            })
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

/// Returns the latest build of each stack.
pub async fn latest_builds(
    clickhouse: &ClickHouse,
    asked: &ResolvedQuery,
    versions: &Versions,
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
        if build.order(known, versions).is_gt() {
            *known = build;
        }
    }
    Ok(latest)
}

#[cfg(test)]
mod tests {
    use unjank_foundation::clock::UnixTime;

    use super::*;
    use crate::query::Version;

    #[test]
    fn later_builds_have_a_higher_version_or_number() {
        let build = |version: &str, number| LatestBuild {
            version: version.to_owned(),
            number,
        };
        let seen = |name: &str, hours: i64| Version {
            name: name.to_owned(),
            first_seen: UnixTime::from_secs(hours * 3_600),
            last_seen: UnixTime::from_secs(hours * 3_600),
        };
        let of_app = vec![seen("spring", 1), seen("autumn", 2)];
        let versions = Versions::from([("shop".to_owned(), of_app)]);
        for (later, earlier) in [
            (build("4.10.0", 1), build("4.9.0", 2)),
            (build("4.10.0", 2), build("4.10.0", 1)),
            (build("4.10.0", 1), build("4.10.0-beta", 2)),
            (build("4.10.0 (41)", 0), build("4.9.0 (50)", 0)),
            (build("4.10.0", 1), build("nightly", 2)),
            (build("autumn", 0), build("spring", 0)),
        ] {
            assert_eq!(later.order(&earlier, &versions), Ordering::Greater);
            assert_eq!(earlier.order(&later, &versions), Ordering::Less);
        }
    }
}
