//! The installs that sent a batch recently: all of them, or a random sample.

use unjank_foundation::clock::UnixTime;
use unjank_remote_config::Device;

use crate::store::{ClickHouse, Failure, InstallSample, SeenInstall};

/// The maximum size of the sample. With 10,000 installs, the standard error of a share of 10 % is 0.3 percentage points.
const MAX_INSTALLS: u64 = 10_000;
/// How far back installs are looked for if those of the last 24 hours are not enough. Batches are kept for 8 days.
pub(super) const MOST_DAYS: u32 = 7;

/// The installs of a project that sent a batch since a time.
pub(super) struct RecentInstalls<'p> {
    /// The number of all installs.
    pub(super) seen: u64,
    pub(super) sample: InstallSample<'p>,
    pub(super) sampled: Vec<SeenInstall>,
}

impl<'p> RecentInstalls<'p> {
    pub(super) async fn read(
        clickhouse: &ClickHouse,
        project: &'p str,
        since: UnixTime,
    ) -> Result<Self, Failure> {
        let seen = clickhouse.installs_since(project, since).await?;
        let sample = InstallSample {
            project,
            since,
            one_in: seen.div_ceil(MAX_INSTALLS).max(1),
        };
        let sampled = clickhouse.sampled_installs(&sample).await?;
        Ok(Self {
            seen,
            sample,
            sampled,
        })
    }

    /// Calls `visit` with each sampled install and its attributes. Yields in between, because a visit evaluates up to thousands of
    /// conditions and devices must not wait.
    pub(super) async fn visit(&self, mut visit: impl FnMut(&SeenInstall, &Device<'_>)) {
        for (index, install) in self.sampled.iter().enumerate() {
            let install_id = install.install_id.to_string();
            visit(install, &device(install, &install_id));
            if index % 256 == 255 {
                tokio::task::yield_now().await;
            }
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of installs and bytes are far below 2^53"
)]
pub(super) fn as_f64(count: u64) -> f64 {
    count as f64
}

/// Returns the attributes that the install would send in a poll, except the network, because a batch can span several.
fn device<'i>(install: &'i SeenInstall, install_id: &'i str) -> Device<'i> {
    Device {
        app_id: Some(&install.app_id),
        app_version: Some(&install.app_version),
        build: (install.build > 0).then_some(install.build),
        os_name: Some(&install.os_name),
        os_version: Some(&install.os_version),
        device_model: Some(&install.device_model),
        device_class: Some(&install.device_class),
        network: None,
        locale: Some(&install.locale),
        sdk_version: Some(&install.sdk_version),
        user_id: Some(&install.user_id),
        install_id: Some(install_id),
    }
}
