//! Previews a proposed configuration on the installs seen in the last 24 hours.

use std::sync::Arc;

use unjank_protocol::Signal;

use super::device_access::Project;
use crate::clock::{DAY, UnixTime};
use crate::remote_config::{Compiled, Device, Forecast, ForecastResult};
use crate::store::{ClickHouse, Failure, InstallSample, MAX_VOLUMES, SeenInstall};
/// The maximum size of the sample. With 10,000 installs, the standard error of a share of 10 % is 0.3 percentage points.
const MAX_INSTALLS: u64 = 10_000;

/// A proposed configuration of a project.
pub struct Proposal {
    pub project: String,
    /// The configuration served now.
    pub current: Arc<Project>,
    /// Compiled with the revision of `current`, so that unchanged documents compare equal.
    pub proposed: Compiled,
    pub now: UnixTime,
}

/// The result of a preview.
pub struct Preview {
    /// Installs that sent a batch in the last 24 hours.
    pub seen: u64,
    /// The forecast for the sampled installs.
    pub outlook: ForecastResult,
    /// Whether there were more span names than are read. The forecast for spans is then too low.
    pub truncated: bool,
}

impl Preview {
    /// Returns how many installs each sampled install represents.
    #[expect(
        clippy::cast_precision_loss,
        reason = "counts of installs are far below 2^53"
    )]
    pub fn scale(&self) -> f64 {
        self.seen as f64 / self.outlook.installs.max(1) as f64
    }
}

/// Computes a preview from the data in ClickHouse.
pub async fn preview(clickhouse: &ClickHouse, proposal: Proposal) -> Result<Preview, Failure> {
    let since = proposal.now - DAY;
    let project = proposal.project.as_str();
    let seen = clickhouse.installs_since(project, since).await?;
    let sample = InstallSample {
        project,
        since,
        one_in: seen.div_ceil(MAX_INSTALLS).max(1),
    };
    let current = &proposal.current.configuration;
    let mut forecast = Forecast::new(current, &proposal.proposed, proposal.now);
    for (index, install) in clickhouse
        .sampled_installs(&sample)
        .await?
        .iter()
        .enumerate()
    {
        let install_id = install.install_id.to_string();
        forecast.install(install.install_id.as_u128(), &device(install, &install_id));
        if index % 256 == 255 {
            // Thousands of conditions are evaluated here; yields so that devices do not wait.
            tokio::task::yield_now().await;
        }
    }
    let mut truncated = false;
    for signal in Signal::ALL {
        if *signal != Signal::Other {
            let rows = add_volumes(clickhouse, &sample, *signal, &mut forecast).await?;
            truncated |= rows >= MAX_VOLUMES;
        }
    }
    Ok(Preview {
        seen,
        outlook: forecast.finish(),
        truncated,
    })
}

/// Adds the volumes of a signal to the forecast. Returns the number of rows.
async fn add_volumes(
    clickhouse: &ClickHouse,
    sample: &InstallSample<'_>,
    signal: Signal,
    forecast: &mut Forecast<'_>,
) -> Result<u64, Failure> {
    let mut volumes = clickhouse.volumes(sample, signal)?;
    let mut rows = 0;
    while let Some(volume) = volumes.next().await? {
        rows += 1;
        let install = volume.install_id.as_u128();
        let happened = (volume.happened > 0.0).then_some(volume.happened);
        #[expect(
            clippy::cast_precision_loss,
            reason = "counts of events are far below 2^53"
        )]
        let sent = volume.sent as f64;
        forecast.volume(install, signal, volume.name, sent, happened);
    }
    Ok(rows)
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
