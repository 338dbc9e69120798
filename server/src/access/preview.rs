//! Previews a proposed configuration on the installs seen in the last 24 hours.

use std::sync::Arc;

use unjank_foundation::clock::{DAY, UnixTime};
use unjank_protocol::Signal;
use unjank_remote_config::{Compiled, Device, Forecast, ForecastResult};

use super::device_access::Project;
use super::recent_installs::{MOST_DAYS, RecentInstalls, as_f64};
use crate::store::{ClickHouse, Failure, InstallSample, MAX_VOLUMES, SeenInstall};

/// A proposed configuration of a project.
pub struct Proposal {
    pub project: String,
    /// The ids of the enabled overrides. If one matches no install of the last 24 hours, all are tried on the installs
    /// of a week.
    pub enabled: Vec<String>,
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
    /// The bytes that the sampled installs uploaded.
    wire_bytes: u64,
    /// If an enabled override matches no install of the last 24 hours: the forecast for a sample of the installs of a week.
    pub in_week: Option<Week>,
}

/// The forecast for the installs of a week.
pub struct Week {
    seen: u64,
    outlook: ForecastResult,
}

impl Week {
    /// Returns the number of installs that an override matches, estimated from the sample.
    #[must_use]
    pub fn matched(&self, id: &str) -> f64 {
        let matched = self.outlook.matched.get(id);
        as_f64(matched.map_or(0, |reach| reach.installs)) * as_f64(self.seen)
            / as_f64(self.outlook.installs.max(1))
    }
}

/// Bytes that all installs upload in 24 hours.
pub struct Traffic {
    /// Measured.
    pub last_day: f64,
    /// Estimated from the expected events and the average size of each signal's events. `None` if no estimate is
    /// possible.
    pub current: Option<f64>,
    pub proposed: Option<f64>,
}

impl Preview {
    /// Estimates the bytes that all installs upload: distributes the measured bytes among the signals by the size of their
    /// rows, and scales them with the events.
    pub async fn traffic(
        &self,
        clickhouse: &ClickHouse,
        project: &str,
        now: UnixTime,
    ) -> Result<Traffic, Failure> {
        let (mut sent, mut current, mut proposed) = (0.0, 0.0, Some(0.0));
        for one in &self.outlook.signals {
            if one.sent == 0.0 && one.current == 0.0 && one.proposed == Some(0.0) {
                continue;
            }
            let mut bytes = clickhouse.row_bytes(project, one.signal, now - DAY).await?;
            if one.signal == Signal::Janks {
                bytes += clickhouse.stack_bytes(project).await?;
            }
            sent += bytes * one.sent;
            current += bytes * one.current;
            proposed = proposed.and_then(|sum| Some(sum + bytes * one.proposed?));
        }
        let wire = as_f64(self.wire_bytes) * self.scale();
        let scaled = |events: f64| (sent > 0.0).then(|| wire * events / sent);
        Ok(Traffic {
            last_day: wire,
            current: scaled(current),
            proposed: proposed.and_then(scaled),
        })
    }

    /// Returns how many installs each sampled install represents.
    pub fn scale(&self) -> f64 {
        as_f64(self.seen) / as_f64(self.outlook.installs.max(1))
    }
}

/// Computes a preview from the data in ClickHouse.
pub async fn preview(clickhouse: &ClickHouse, proposal: Proposal) -> Result<Preview, Failure> {
    let project = proposal.project.as_str();
    let installs = RecentInstalls::read(clickhouse, project, proposal.now - DAY).await?;
    let mut forecast = forecast(&proposal, &installs).await;
    let mut truncated = false;
    for signal in Signal::ALL {
        if *signal != Signal::Other {
            let rows = add_volumes(clickhouse, &installs.sample, *signal, &mut forecast).await?;
            truncated |= rows >= MAX_VOLUMES;
        }
    }
    let outlook = forecast.finish();
    let wire_bytes = installs.sampled.iter().map(|install| install.wire_bytes);
    let unmatched = |id: &String| !outlook.matched.contains_key(id.as_str());
    let in_week = if proposal.enabled.iter().any(unmatched) {
        Some(in_week(clickhouse, &proposal).await?)
    } else {
        None
    };
    Ok(Preview {
        seen: installs.seen,
        outlook,
        truncated,
        wire_bytes: wire_bytes.sum(),
        in_week,
    })
}

/// Tries the overrides on the installs of a week, because an enabled one matches no install of the last 24 hours.
async fn in_week(clickhouse: &ClickHouse, proposal: &Proposal) -> Result<Week, Failure> {
    let since = proposal.now - DAY * MOST_DAYS;
    let installs = RecentInstalls::read(clickhouse, &proposal.project, since).await?;
    Ok(Week {
        seen: installs.seen,
        outlook: forecast(proposal, &installs).await.finish(),
    })
}

/// Starts a forecast for the sampled installs.
async fn forecast<'p>(proposal: &'p Proposal, installs: &RecentInstalls<'_>) -> Forecast<'p> {
    let current = &proposal.current.configuration;
    let mut forecast = Forecast::new(current, &proposal.proposed, proposal.now);
    let add = |install: &SeenInstall, device: &Device<'_>| {
        forecast.install(install.install_id.as_u128(), device);
    };
    installs.visit(add).await;
    forecast
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
