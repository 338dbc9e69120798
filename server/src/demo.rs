//! Generates a month of data from a made-up shop app and sends it as devices do, so that the dashboard has data before the
//! first real event.
//!
//! `population`, `versions`, `pages`, `operations` and `stacks` define the app and its users; `calendar` and `session` simulate
//! their use of the app; `delivery` simulates the upload; `intake` passes the batches to the ingestion. All data follows from a
//! [`Plan`]: the same plan generates exactly the same events. The demo does not write rows directly.
//! `rollout` goes on while the demo is served: a few installs poll the configuration.

mod admin;
mod calendar;
mod delivery;
mod intake;
mod operations;
mod owners;
mod pages;
mod plan;
mod population;
mod rollout;
mod session;
mod stacks;
mod versions;
mod work;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::Context;

pub use self::admin::{EMAIL, make_admin};
pub use self::plan::{DemoFile, Plan};
pub use self::rollout::follow_rollouts;

use unjank_foundation::clock::{Clock, UnixTime};

use self::intake::Source;
use crate::app::App;

/// Project of the demo's data.
pub const PROJECT: &str = "shop";
/// App id of the demo's app.
const APP: &str = "com.example.shop";
/// Above this size of the log, seeding waits for ClickHouse.
const LOG_BYTES: u64 = 256 << 20;
const PAUSE: Duration = Duration::from_millis(20);
/// Downloading the engine for the first time can take minutes.
const ENGINE_PATIENCE: Duration = Duration::from_secs(900);

/// A clock that shows simulated time during seeding, and the machine's time before and after.
#[derive(Clone, Default)]
pub struct DemoClock(Arc<AtomicI64>);

impl DemoClock {
    #[must_use]
    pub fn clock(&self) -> Clock {
        let (set, machine) = (Arc::clone(&self.0), Clock::system());
        Clock::new(move || match set.load(Ordering::Relaxed) {
            0 => machine.now(),
            at => UnixTime::from_micros(at),
        })
    }

    fn set(&self, at: i64) {
        self.0.store(at, Ordering::Relaxed);
    }

    fn release(&self) {
        self.set(0);
    }
}

/// Progress of the seeding.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    pub days: u32,
    pub batches: u64,
    pub events: u64,
}

/// Returns whether data of the demo's project is stored or waits in the log. Waits until ClickHouse is available.
///
/// # Errors
/// Returns an error if ClickHouse does not become available.
pub async fn holds_data(app: &App) -> anyhow::Result<bool> {
    let asked = async {
        loop {
            match app.clickhouse.holds_data_of(PROJECT).await {
                Ok(holds) => return holds,
                Err(failure) => tracing::debug!(%failure, "ClickHouse is not ready yet"),
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    let stored = tokio::time::timeout(ENGINE_PATIENCE, asked)
        .await
        .context("ClickHouse did not become available: see the server's log")?;
    Ok(stored || app.log.pending_records() > 0)
}

/// Sends the whole month and waits until it is stored and rolled up. Calls `progress` after each day.
///
/// # Errors
/// Returns an error if a batch cannot be made durable, or if ClickHouse does not respond.
pub async fn seed(
    app: &Arc<App>,
    plan: &Plan,
    clock: &DemoClock,
    mut progress: impl FnMut(Sent),
) -> anyhow::Result<Sent> {
    // Batches expire after eight days by default. The demo's batches are older, and expired batches would be missing from the
    // roll-ups.
    app.clickhouse.keep_batches(plan.days + 8).await?;
    owners::save_rules(app).await?;
    let mut source = Source::new(plan.clone());
    let mut sent = Sent::default();
    for day in 0..plan.days {
        clock.set(plan.end_of(day));
        let made = tokio::task::spawn_blocking(move || {
            let deliveries = source.day(day);
            (source, deliveries)
        });
        let (back, deliveries) = made.await?;
        source = back;
        let stored = intake::send(app, &deliveries?).await?;
        sent.days += 1;
        sent.batches += stored.batches;
        sent.events += stored.events;
        while app.log.pending_bytes() > LOG_BYTES {
            tokio::time::sleep(PAUSE).await;
        }
        progress(sent);
    }
    let unfolded = &app.metrics.writer.unfolded_rows;
    while app.log.pending_records() > 0 || unfolded.get() > 0 {
        tokio::time::sleep(PAUSE).await;
    }
    clock.release();
    work::save_work(app, plan).await?;
    Ok(sent)
}
