//! When each version of an app began to reach users. Cached, because every chart over time marks it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use unjank_foundation::clock::{DAY, UnixTime};

use super::QueryError;
use super::cached_answers::CachedAnswers;
use super::known_versions::{KnownVersions, LOOK_BACK};
use crate::store::ClickHouse;

/// A version begins to reach users on the first day on which at least this share of the app's active installs runs it. Builds of testers
/// and versions that few people use stay below.
const REACHES_USERS: f64 = 0.05;

/// Maximum number of versions. The latest ones are kept.
const MOST_VERSIONS: usize = 500;

/// A version of an app.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    pub app_id: String,
    pub app_version: String,
    /// The hours in which the first and the last batch arrived.
    pub first_seen: UnixTime,
    pub last_seen: UnixTime,
    /// The first hour with a batch on the first day on which the version reached users. `None` if it has not, or if the version was
    /// already in use when the data begins.
    pub reached_users: Option<UnixTime>,
}

/// The releases of all projects.
#[derive(Clone)]
pub struct Releases {
    clickhouse: ClickHouse,
    versions: KnownVersions,
    cached: CachedAnswers<Vec<Release>>,
}

impl Releases {
    #[must_use]
    pub fn new(clickhouse: ClickHouse, versions: KnownVersions) -> Self {
        Self {
            clickhouse,
            versions,
            cached: CachedAnswers::new(Duration::from_secs(5 * 60)),
        }
    }

    /// Returns the versions of a project, by app, newest first.
    pub async fn of(&self, project: &str, now: UnixTime) -> Result<Arc<Vec<Release>>, QueryError> {
        let read = async |at: UnixTime| self.read(project, at, now).await;
        self.cached.of(project, now, read).await
    }

    async fn read(
        &self,
        project: &str,
        at: UnixTime,
        now: UnixTime,
    ) -> Result<Vec<Release>, QueryError> {
        let versions = self.versions.of(project, now).await?;
        let reached = self
            .clickhouse
            .reached_versions(project, at - LOOK_BACK, at + DAY, REACHES_USERS)
            .await?;
        let days: BTreeMap<_, _> = reached
            .into_iter()
            .map(|one| {
                let day = UnixTime::from_secs(one.reached_day);
                ((one.app_id, one.app_version), day)
            })
            .collect();
        let mut releases: Vec<_> = versions
            .iter()
            .flat_map(|(app, all)| all.iter().map(move |version| (app.clone(), version)))
            .map(|(app_id, version)| {
                let key = (app_id, version.name.clone());
                let day = days.get(&key).copied();
                let (app_id, app_version) = key;
                Release {
                    app_id,
                    app_version,
                    first_seen: version.first_seen,
                    last_seen: version.last_seen,
                    reached_users: day.map(|day| day.max(version.first_seen)),
                }
            })
            .collect();
        if releases.len() > MOST_VERSIONS {
            let mut seen: Vec<_> = releases.iter().map(|one| one.first_seen).collect();
            seen.sort_unstable();
            let oldest = seen[seen.len() - MOST_VERSIONS];
            releases.retain(|one| one.first_seen >= oldest);
            releases.truncate(MOST_VERSIONS);
        }
        Ok(releases)
    }
}
