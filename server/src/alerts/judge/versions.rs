//! The order of an app's versions, and when each was first seen.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::alerts::judge::Judge;
use crate::clock::UnixTime;
use crate::query::QueryError;
use crate::remote_config::version_order;
use crate::store::reads::SeenVersion;

/// Versions that no batch has used for this long are ignored.
const LOOK_BACK: Duration = Duration::from_secs(90 * 86_400);

/// A version, and the hour in which its first batch arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::alerts) struct Version {
    pub(in crate::alerts) name: String,
    pub(in crate::alerts) first_seen: UnixTime,
}

/// The versions of each app, newest first.
pub(in crate::alerts) type Versions = BTreeMap<String, Vec<Version>>;

/// The cached versions of one project at one time.
pub(in crate::alerts) type Remembered = Option<(String, UnixTime, Versions)>;

impl Judge {
    /// Returns the versions known at a time, from the cache if it is fresh.
    pub(in crate::alerts) async fn versions(
        &self,
        project: &str,
        now: UnixTime,
    ) -> Result<Versions, QueryError> {
        let at = now.floor(self.fresh);
        if let Some((of, known_at, versions)) = &*self.versions.lock().await
            && of == project
            && *known_at == at
        {
            return Ok(versions.clone());
        }
        let seen = self
            .clickhouse
            .seen_versions(project, at - LOOK_BACK, at + self.fresh)
            .await?;
        let versions = ordered(seen);
        *self.versions.lock().await = Some((project.to_owned(), at, versions.clone()));
        Ok(versions)
    }
}

/// Sorts by version number if all versions of an app have one, otherwise by when each was first seen.
fn ordered(seen: Vec<SeenVersion>) -> Versions {
    let mut versions = Versions::new();
    for one in seen {
        versions.entry(one.app_id).or_default().push(Version {
            name: one.app_version,
            first_seen: UnixTime::from_secs(one.first_seen),
        });
    }
    for of_app in versions.values_mut() {
        let numbered = of_app
            .iter()
            .all(|one| version_order(&one.name, &one.name).is_some());
        of_app.sort_by(|one, other| {
            let by_number = numbered
                .then(|| version_order(&other.name, &one.name))
                .flatten();
            by_number
                .unwrap_or(Ordering::Equal)
                .then(other.first_seen.cmp(&one.first_seen))
                .then_with(|| other.name.cmp(&one.name))
        });
    }
    versions
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seen: &[(&str, i64)]) -> Vec<String> {
        let seen = seen.iter().map(|(version, first_seen)| SeenVersion {
            app_id: "shop".to_owned(),
            app_version: (*version).to_owned(),
            first_seen: *first_seen,
        });
        let mut versions = ordered(seen.collect());
        let of_app = versions.remove("shop").unwrap();
        of_app.into_iter().map(|one| one.name).collect()
    }

    #[test]
    fn versions_are_sorted_by_number_not_by_first_sighting() {
        let seen = [("4.9.0", 30), ("4.10.0", 20), ("4.10.0-beta.1", 10)];
        assert_eq!(order(&seen), ["4.10.0", "4.10.0-beta.1", "4.9.0"]);
    }

    #[test]
    fn versions_without_numbers_are_sorted_by_first_sighting() {
        assert_eq!(
            order(&[("nightly", 10), ("4.10.0", 20)]),
            ["4.10.0", "nightly"]
        );
    }
}
