//! A month of a shop's app that does not exist, sent the way devices send theirs: something to look at before the first
//! event of one's own is there.
//!
//! `population`, `versions`, `pages`, `operations` and `stacks` say what there is; `calendar` and `session` what people do
//! with it; `delivery` how it arrives; `intake` hands it to the ingest. Everything follows from a [`Plan`]: the same plan is
//! the same month, event by event. Nothing here writes rows.

mod admin;
mod calendar;
mod delivery;
mod intake;
mod operations;
mod pages;
mod plan;
mod population;
mod random;
mod session;
mod stacks;
mod versions;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use anyhow::Context;

pub use self::admin::{EMAIL, make_admin};
pub use self::plan::{DemoFile, Plan};

use self::intake::Source;
use crate::app::App;
use crate::clock::Clock;

/// The project that the month is of.
pub const PROJECT: &str = "shop";
/// The app.
const APP: &str = "com.example.shop";
/// Above this much in the log ClickHouse is waited for.
const LOG_BYTES: u64 = 256 << 20;
const PAUSE: Duration = Duration::from_millis(20);
/// Fetching the engine for the first time takes minutes on a slow line.
const ENGINE_PATIENCE: Duration = Duration::from_secs(900);

/// A clock that is set to a time of the month while it is told, and is the machine's own before and after.
#[derive(Clone, Default)]
pub struct DemoClock(Arc<AtomicI64>);

impl DemoClock {
    #[must_use]
    pub fn clock(&self) -> Clock {
        let (set, machine) = (Arc::clone(&self.0), Clock::system());
        Clock::new(move || match set.load(Ordering::Relaxed) {
            0 => machine.now(),
            at => at,
        })
    }

    fn set(&self, at: i64) {
        self.0.store(at, Ordering::Relaxed);
    }

    fn release(&self) {
        self.set(0);
    }
}

/// What was sent so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sent {
    pub days: u32,
    pub batches: u64,
    pub events: u64,
}

/// Whether anything of the demo's project is stored, or waits to be. Waits until ClickHouse can say it.
///
/// # Errors
/// When ClickHouse does not come up.
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
        .context("ClickHouse does not answer; the log says why")?;
    Ok(stored || app.log.pending_records() > 0)
}

/// Sends the whole month and waits until it is stored and rolled up. `said` hears of every day.
///
/// # Errors
/// When a batch cannot be made durable, or ClickHouse does not answer.
pub async fn seed(
    app: &Arc<App>,
    plan: &Plan,
    clock: &DemoClock,
    mut said: impl FnMut(Sent),
) -> anyhow::Result<Sent> {
    // Batches expire after eight days by default. The demo is older, and expired batches would miss the roll-ups.
    app.clickhouse.keep_batches(plan.days + 8).await?;
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
        said(sent);
    }
    let unfolded = &app.metrics.writer.unfolded_rows;
    while app.log.pending_records() > 0 || unfolded.get() > 0 {
        tokio::time::sleep(PAUSE).await;
    }
    clock.release();
    Ok(sent)
}
