//! The roll-out of a configuration: which installs run the current revision.

use std::collections::BTreeMap;

use unjank_database::{Actor, Control, ControlError, Document, DocumentKind};
use unjank_foundation::clock::{DAY, UnixTime};
use unjank_remote_config::{Compiled, Device};

use super::configurations::{SaveError, compile, read};
use super::recent_installs::{RecentInstalls, as_f64};
use crate::store::{ClickHouse, Failure, SeenInstall};

/// The maximum number of revisions to count separately, latest first.
const MOST_REVISIONS: usize = 20;

/// The current revision and the one before it.
pub struct Revisions {
    pub latest: Document,
    current: Compiled,
    previous: Compiled,
}

impl Revisions {
    /// Reads both revisions from the database, because the snapshot in memory may not have the latest one yet. Returns
    /// `None` if nothing has been saved.
    pub async fn read(
        control: &Control,
        project: &str,
        actor: &Actor,
    ) -> Result<Option<Self>, SaveError> {
        const KIND: DocumentKind = DocumentKind::Configuration;
        let latest = match control.latest_document(KIND, project).await {
            Ok(latest) => latest,
            Err(ControlError::NotFound) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let previous = match control.document(KIND, project, latest.revision - 1).await {
            Ok(document) => read(&document)?,
            Err(ControlError::NotFound) => serde_json::json!({}),
            Err(error) => return Err(error.into()),
        };
        // With the same revision, so that unchanged documents compare equal.
        let current = compile(read(&latest)?, 0, actor).await?.compiled;
        let previous = compile(previous, 0, actor).await?.compiled;
        Ok(Some(Self {
            latest,
            current,
            previous,
        }))
    }

    /// Whether receipts announce the revision to devices.
    pub fn is_announced(&self) -> bool {
        !self.current.asks_for_network()
    }

    /// Returns the maximum time between two polls, and the time between two uploads, of a device without overrides, in
    /// seconds. Reads the previous revision, which applies until a device gets the new one.
    pub fn intervals(&self, now: UnixTime) -> (u32, u32) {
        let resolved = self.previous.resolve(&Device::default(), now);
        let document = &resolved.document;
        (document.poll_interval_s, document.upload.interval_s)
    }
}

/// Counts of installs that sent a batch in the last 24 hours.
#[derive(Debug, Default, PartialEq)]
pub struct Rollout {
    /// All installs.
    pub installs: u64,
    /// Installs that were examined. The counts below are scaled to all installs.
    pub sampled: u64,
    /// Installs that run the current revision.
    pub running: u64,
    /// Installs that sent a batch after the revision was saved, and still run an earlier one.
    pub waiting: u64,
    /// Installs whose document the revision changes.
    pub concerned: u64,
    /// Installs that the revision changes and that run it.
    pub concerned_running: u64,
    /// Installs by the latest revision that they reported, latest first.
    pub revisions: Vec<(u64, u64)>,
}

/// Counts the installs of the last 24 hours by the revision that they run.
pub async fn rollout(
    clickhouse: &ClickHouse,
    project: &str,
    revisions: &Revisions,
    now: UnixTime,
) -> Result<Rollout, Failure> {
    let installs = RecentInstalls::read(clickhouse, project, now - DAY).await?;
    let mut counted = Rollout {
        installs: installs.seen,
        ..Rollout::default()
    };
    let mut by_revision = BTreeMap::new();
    let add = |install: &SeenInstall, device: &Device<'_>| {
        counted.add(install, device, revisions, now);
        *by_revision.entry(install.config_revision).or_default() += 1;
    };
    installs.visit(add).await;
    counted.revisions = by_revision.into_iter().rev().take(MOST_REVISIONS).collect();
    counted.scale();
    Ok(counted)
}

impl Rollout {
    fn add(
        &mut self,
        install: &SeenInstall,
        device: &Device<'_>,
        revisions: &Revisions,
        now: UnixTime,
    ) {
        let latest = u64::try_from(revisions.latest.revision).unwrap_or_default();
        let is_running = install.config_revision >= latest;
        let is_waiting = !is_running && install.last_seen > revisions.latest.created_at;
        let before = revisions.previous.resolve(device, now);
        let after = revisions.current.resolve(device, now);
        let is_concerned = before.etag != after.etag;
        self.sampled += 1;
        self.running += u64::from(is_running);
        self.waiting += u64::from(is_waiting);
        self.concerned += u64::from(is_concerned);
        self.concerned_running += u64::from(is_concerned && is_running);
    }

    /// Scales the counts of the sample to all installs.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts are positive and far below 2^53"
    )]
    fn scale(&mut self) {
        let factor = as_f64(self.installs) / as_f64(self.sampled.max(1));
        let scaled = |count: &mut u64| *count = (as_f64(*count) * factor).round() as u64;
        scaled(&mut self.running);
        scaled(&mut self.waiting);
        scaled(&mut self.concerned);
        scaled(&mut self.concerned_running);
        self.revisions
            .iter_mut()
            .for_each(|(_, count)| scaled(count));
    }
}
