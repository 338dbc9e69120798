//! The setup of every fault: a server under test and the devices that send to it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::clickhouse::Access;
use crate::console;
use crate::faults::balance::Counts;
use crate::faults::devices::{Devices, Size};
use crate::faults::site::Site;
use crate::faults::wait::eventually;
use crate::ledger::Ledger;
use crate::parcel_threads::Stop;
use crate::server::Settings;
use crate::store::RunStore;
use crate::verify::{TableCheck, compare};

/// The inputs of a fault.
pub(super) struct Trial {
    pub(super) fault: String,
    pub(super) begun: Instant,
    pub(super) server_bin: PathBuf,
    /// An empty folder, removed afterwards.
    pub(super) folder: PathBuf,
    pub(super) quick: bool,
}

impl Trial {
    /// Reports the progress of the fault.
    pub(super) fn say(&self, what: &str) {
        let at = self.begun.elapsed().as_secs();
        console::say(&format!("  {at:>3} s {}: {what}", self.fault));
    }

    /// Starts a server with an embedded engine in the folder `data`.
    pub(super) async fn rig(&self) -> Result<Rig> {
        self.rig_at(self.folder.join("data"), Settings::new(), None)
            .await
    }

    pub(super) async fn rig_at(
        &self,
        data_dir: PathBuf,
        settings: Settings,
        access: Option<Access>,
    ) -> Result<Rig> {
        let site = Site::start(&self.server_bin, &data_dir, settings, access).await?;
        Ok(Rig {
            devices: Devices::new(&site.server.url())?,
            site,
        })
    }

    /// Returns all of `cases`, or the first `few` with `--quick`.
    pub(super) fn choose<'a, T>(&self, cases: &'a [T], few: usize) -> &'a [T] {
        let most = if self.quick { few } else { cases.len() };
        cases.get(..most).unwrap_or(cases)
    }
}

pub(super) struct Rig {
    pub(super) devices: Devices,
    pub(super) site: Site,
}

/// How long the counts may stay unchanged and wrong after the fault is over.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long the server may take to store everything.
const LONGEST: Duration = Duration::from_secs(240);
/// How long the counts must stay right, because a retry could still store rows twice.
const SETTLED: Duration = Duration::from_millis(1_500);

impl Rig {
    /// Runs an action while batches arrive, and waits until all of them are acknowledged.
    pub(super) async fn under_load<T>(
        &mut self,
        size: Size,
        action: impl AsyncFnOnce(&mut Site) -> Result<T>,
    ) -> Result<T> {
        let stop = Stop::default();
        let retries = self.devices.retries();
        let acting = async {
            let done = action(&mut self.site).await;
            stop.now();
            if done.is_err() {
                retries.now();
            }
            done
        };
        let (sent, done) = tokio::join!(self.devices.stream(size, &stop), acting);
        let done = done?;
        sent?;
        Ok(done)
    }

    /// Waits until raw rows, roll-ups and books match the acknowledged events. The error describes the differences.
    pub(super) async fn balanced(&self) -> Result<()> {
        if self.settles(Counts::balance).await? {
            return Ok(());
        }
        bail!("{}", self.differences().await)
    }

    /// Like [`Rig::balanced`], and also compares row by row. Returns the text for the verdict.
    pub(super) async fn exactly_once(&self) -> Result<String> {
        self.balanced().await?;
        if !self.rows().await?.iter().all(TableCheck::holds) {
            bail!("{}", self.differences().await);
        }
        Ok(format!(
            "{} in raw rows, roll-ups and books, each once{}",
            self.devices.ledger.describe(),
            self.site.help()
        ))
    }

    /// Waits until the counts are right and stay right. Gives up when they have not changed for [`PATIENCE`].
    pub(super) async fn settles(&self, right: impl Fn(&Counts, &Ledger) -> bool) -> Result<bool> {
        let mut last = Counts::default();
        let (mut right_since, mut changed) = (None, Instant::now());
        let settled = eventually(LONGEST, async || {
            let counts = self.counts().await.unwrap_or_else(|_| last.clone());
            if counts != last {
                (last, changed) = (counts, Instant::now());
            }
            if !right(&last, &self.devices.ledger) {
                right_since = None;
                return Ok(changed.elapsed() >= PATIENCE);
            }
            let since = *right_since.get_or_insert_with(Instant::now);
            Ok(since.elapsed() >= SETTLED)
        });
        Ok(settled.await? && right_since.is_some())
    }

    pub(super) async fn counts(&self) -> Result<Counts> {
        Counts::read(&self.site.clickhouse).await
    }

    pub(super) async fn differences(&self) -> String {
        let counts = match self.counts().await {
            Ok(counts) => counts,
            Err(error) => return format!("the rows cannot be counted: {error:#}"),
        };
        let checks = self.rows().await.unwrap_or_default();
        counts.differences(&self.devices.ledger, &checks)
    }

    /// Compares row by row.
    pub(super) async fn rows(&self) -> Result<Vec<TableCheck>> {
        let store = RunStore {
            clickhouse: &self.site.clickhouse,
            scope: self.devices.scope(),
        };
        compare(&self.devices.ledger, &store).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_check_is_repeated_until_it_succeeds_or_times_out() {
        let mut left = 3;
        let counted = eventually(Duration::from_secs(5), async || {
            left -= 1;
            Ok(left == 0)
        });
        assert!(counted.await.unwrap());
        let never = eventually(Duration::from_millis(1), async || Ok(false));
        assert!(!never.await.unwrap());
    }
}
