//! ClickHouse hangs for a while.

use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::Signal;
use tokio::time::sleep;

use crate::faults::devices::Size;
use crate::faults::rig::{Rig, Trial};

/// Longer than the server's send timeout, so the server retries while the first INSERT still hangs in the engine.
const HANGS: Duration = Duration::from_secs(40);
const HANGS_BEFORE_KILL: Duration = Duration::from_secs(4);

/// Suspends the engine in the middle of INSERTs.
pub(super) async fn engine_hung(trial: &Trial) -> Result<String> {
    let mut rig = trial.rig().await?;
    hang(&mut rig).await?;
    trial.say("the engine hangs");
    rig.under_load(Size::Small, async |site| {
        sleep(HANGS).await;
        site.signal_engine(Signal::CONT)
    })
    .await
    .context("the engine hung")?;
    rig.balanced().await.context("the engine hung")?;
    hang(&mut rig).await?;
    trial.say("the engine hangs and is killed");
    rig.under_load(Size::Small, async |site| {
        sleep(HANGS_BEFORE_KILL).await;
        site.signal_engine(Signal::KILL)?;
        site.engine().await.map(drop)
    })
    .await
    .context("the engine hung and was killed")?;
    rig.balanced()
        .await
        .context("the engine hung and was killed")?;
    let stored = rig.exactly_once().await?;
    Ok(format!(
        "once for {} s, and once until it was killed; {stored}",
        HANGS.as_secs()
    ))
}

/// Suspends the engine while it processes large INSERTs.
async fn hang(rig: &mut Rig) -> Result<()> {
    rig.site.engine().await?;
    rig.under_load(Size::Medium, async |site| {
        sleep(Duration::from_millis(2_500)).await;
        site.signal_engine(Signal::STOP)
    })
    .await
}
