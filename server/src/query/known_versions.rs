//! The order of an app's versions, and when each was first seen. Cached for some minutes, because every comparison of versions needs it.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use unjank_foundation::clock::{DAY, UnixTime};
use unjank_remote_config::version_order;

use super::cached_answers::CachedAnswers;
use super::same_age::FirstSeen;
use super::{NamedQuery, QueryError};
use crate::store::ClickHouse;
use crate::store::reads::SeenVersion;

/// Versions without a batch in this period are ignored.
pub(super) const LOOK_BACK: Duration = Duration::from_secs(90 * 86_400);

/// A version, and the hours in which its first and its last batch arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub name: String,
    pub first_seen: UnixTime,
    pub last_seen: UnixTime,
}

/// The versions of each app, newest first.
pub type Versions = BTreeMap<String, Vec<Version>>;

/// The versions of all projects.
#[derive(Clone)]
pub struct KnownVersions {
    clickhouse: ClickHouse,
    cached: CachedAnswers<Versions>,
}

impl KnownVersions {
    /// Caches versions for five minutes. A version that is younger may be unknown.
    #[must_use]
    pub fn new(clickhouse: ClickHouse) -> Self {
        Self::fresh_for(clickhouse, Duration::from_secs(5 * 60))
    }

    #[must_use]
    pub fn fresh_for(clickhouse: ClickHouse, fresh: Duration) -> Self {
        Self {
            clickhouse,
            cached: CachedAnswers::new(fresh),
        }
    }

    /// Returns the versions known at a time.
    pub async fn of(&self, project: &str, now: UnixTime) -> Result<Arc<Versions>, QueryError> {
        let read = async |at| {
            let to = at + self.cached.fresh();
            let seen = self.clickhouse.seen_versions(project, at - LOOK_BACK, to);
            Ok(ordered(seen.await?))
        };
        self.cached.of(project, now, read).await
    }

    /// Reads the versions now, for answers that a new version changes at once.
    pub async fn latest(&self, project: &str, now: UnixTime) -> Result<Versions, QueryError> {
        let to = now + self.cached.fresh();
        let seen = self.clickhouse.seen_versions(project, now - LOOK_BACK, to);
        Ok(ordered(seen.await?))
    }

    /// Returns when the compared versions of a query were first seen. `None` if the query does not compare one version with
    /// another, or if the first batch of either may be older than the batches that are read.
    pub async fn first_seen(
        &self,
        project: &str,
        ask: &NamedQuery,
        now: UnixTime,
    ) -> Result<Option<FirstSeen>, QueryError> {
        let (Some(head), Some(base)) = (ask.only("app_version"), &ask.base_version) else {
            return Ok(None);
        };
        let versions = self.of(project, now).await?;
        let oldest = now.floor(self.cached.fresh()) - LOOK_BACK + DAY;
        let seen = |name: &str| {
            let apps = versions
                .iter()
                .filter(|(app, _)| ask.may_have("app_id", app));
            let same = apps.flat_map(|(_, all)| all).filter(|one| one.name == name);
            let first = same.map(|one| one.first_seen).min();
            first.filter(|first| *first >= oldest)
        };
        Ok(seen(head)
            .zip(seen(base))
            .map(|(head, base)| FirstSeen { head, base }))
    }
}

/// Sorts by version number and build. Versions that this leaves equal, and texts that are not versions, follow by first sight.
fn ordered(seen: Vec<SeenVersion>) -> Versions {
    let mut versions = Versions::new();
    for one in seen {
        versions.entry(one.app_id).or_default().push(Version {
            name: one.app_version,
            first_seen: UnixTime::from_secs(one.first_seen),
            last_seen: UnixTime::from_secs(one.last_seen),
        });
    }
    for of_app in versions.values_mut() {
        of_app.sort_by(|one, other| {
            version_order(&other.name, &one.name)
                .then(other.first_seen.cmp(&one.first_seen))
                .then_with(|| other.name.cmp(&one.name))
        });
    }
    versions
}

/// Returns the versions of an app that are later than one of them, in the order of `of_app`: newest first. If the version is unknown,
/// versions with an equal number that were first seen after `since` are later.
#[must_use]
pub fn later_versions<'v>(of_app: &'v [Version], than: &str, since: UnixTime) -> Vec<&'v str> {
    let place = of_app.iter().position(|one| one.name == than);
    let is_later = |(at, one): &(usize, &Version)| match version_order(&one.name, than) {
        Ordering::Equal => place.map_or(one.first_seen > since, |place| *at < place),
        order => order == Ordering::Greater,
    };
    let later = of_app.iter().enumerate().filter(is_later);
    later.map(|(_, one)| one.name.as_str()).collect()
}

/// Returns when a version of any app was first seen.
#[must_use]
pub(super) fn first_seen(versions: &Versions, name: &str) -> Option<UnixTime> {
    let same = versions.values().flatten().filter(|one| one.name == name);
    same.map(|one| one.first_seen).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(seen: &[(&str, i64)]) -> Vec<String> {
        let seen = seen.iter().map(|(version, first_seen)| SeenVersion {
            app_id: "shop".to_owned(),
            app_version: (*version).to_owned(),
            first_seen: *first_seen,
            last_seen: *first_seen,
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
    fn builds_are_sorted_by_number_and_commits_by_first_sighting() {
        let seen = [("4.10.0 (41)", 10), ("4.9.0 (40)", 20), ("4.10.0 (9)", 30)];
        assert_eq!(order(&seen), ["4.10.0 (41)", "4.10.0 (9)", "4.9.0 (40)"]);
        let seen = [("1.4+f00ba42", 10), ("1.4+1234abc", 20), ("1.4", 30)];
        assert_eq!(order(&seen), ["1.4+1234abc", "1.4+f00ba42", "1.4"]);
        // One name among numbers does not change the order of the numbers.
        let seen = [("4.10.0", 10), ("nightly", 20), ("4.9.1", 30)];
        assert_eq!(order(&seen), ["4.10.0", "4.9.1", "nightly"]);
    }

    #[test]
    fn versions_without_numbers_are_sorted_by_first_sighting() {
        assert_eq!(
            order(&[("summer", 20), ("winter", 10)]),
            ["summer", "winter"]
        );
        assert_eq!(
            order(&[("nightly", 10), ("4.10.0", 20)]),
            ["4.10.0", "nightly"]
        );
    }

    #[test]
    fn later_versions_follow_the_order_of_the_app() {
        let of = |seen: &[(&str, i64)]| {
            let seen = seen.iter().map(|(version, first_seen)| SeenVersion {
                app_id: "shop".to_owned(),
                app_version: (*version).to_owned(),
                first_seen: *first_seen,
                last_seen: *first_seen,
            });
            ordered(seen.collect()).remove("shop").unwrap()
        };
        let numbered = of(&[("4.10.0", 10), ("4.9.0", 20), ("4.9", 30), ("4.11.0", 40)]);
        let later = |than| later_versions(&numbered, than, UnixTime::from_secs(0));
        assert_eq!(later("4.9.0"), ["4.11.0", "4.10.0", "4.9"]);
        assert_eq!(later("4.11.0"), [""; 0]);
        // The order of numbers is known even if the version has sent nothing for a long time.
        assert_eq!(later("4.10.0-beta"), ["4.11.0", "4.10.0"]);
        let named = of(&[("spring", 10), ("summer", 20), ("4.10.0", 30)]);
        let later = |than, since| later_versions(&named, than, UnixTime::from_secs(since));
        assert_eq!(later("spring", 0), ["4.10.0", "summer"]);
        assert_eq!(later("winter", 15), ["4.10.0", "summer"]);
    }
}
