//! What an operator can do to the tables while batches arrive.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::time::sleep;

use crate::faults::balance::Counts;
use crate::faults::devices::Size;
use crate::faults::kills::send_large_range;
use crate::faults::rig::{Rig, Trial};

/// A view of the operator refuses one span in about a hundred. Rows may go to the dead-letter folder, but none of them may be
/// stored as well, and none twice.
pub(super) async fn refused_after_store(trial: &Trial) -> Result<String> {
    let mut rig = trial.rig().await?;
    for sql in [
        "CREATE TABLE mine (v UInt64) ENGINE = MergeTree ORDER BY v",
        "CREATE MATERIALIZED VIEW mine_view TO mine AS \
         SELECT toUInt64(if(duration_us % 97 = 0, 'refused', '1')) AS v FROM spans",
    ] {
        rig.site.ask(sql).await?;
    }
    rig.under_load(Size::Small, async |_| {
        sleep(Duration::from_secs(5)).await;
        Ok(())
    })
    .await?;
    settled_with_dead_letters(&rig).await?;
    rig.site.ask("DROP VIEW mine_view").await?;
    rig.devices.send(Size::Small, 5).await?;
    settled_with_dead_letters(&rig).await?;
    let dead = rig.counts().await?.dead();
    let refused = rig.rows().await?.into_iter().any(|check| {
        let lost = check.lost > 0 && check.table != "spans";
        lost || check.doubled + check.unexpected > 0
    });
    if refused {
        bail!("{}", rig.differences().await);
    }
    let sent = rig.devices.ledger.describe();
    Ok(format!(
        "{sent}; {dead} are dead letters, all others stored once"
    ))
}

async fn settled_with_dead_letters(rig: &Rig) -> Result<()> {
    if !rig.settles(Counts::balance_with_dead_letters).await? {
        bail!("{}", rig.differences().await);
    }
    Ok(())
}

/// Roll-up tables are away while small and large ranges are stored.
pub(super) async fn roll_up_away(trial: &Trial) -> Result<String> {
    let mut rig = trial.rig().await?;
    let tables = trial.choose(&["spans_daily", "spans_hourly"], 1);
    for table in tables {
        trial.say(&format!("{table} is away"));
        rig.under_load(Size::Small, async |site| {
            sleep(Duration::from_secs(1)).await;
            site.ask(&format!("RENAME TABLE {table} TO {table}_away"))
                .await?;
            sleep(Duration::from_secs(4)).await;
            Ok(())
        })
        .await?;
        send_large_range(&mut rig).await?;
        sleep(Duration::from_secs(6)).await;
        rig.site
            .ask(&format!("RENAME TABLE {table}_away TO {table}"))
            .await?;
        rig.balanced()
            .await
            .with_context(|| format!("{table} was away"))?;
    }
    let stored = rig.exactly_once().await?;
    Ok(format!("{}; {stored}", tables.join(", ")))
}

/// A roll-up of a large range fails again and again, while other ranges push its tokens out of the engine's memory.
pub(super) async fn old_fold(trial: &Trial) -> Result<String> {
    const FAILS: Duration = Duration::from_secs(40);
    let mut rig = trial.rig().await?;
    for sql in [
        "ALTER TABLE spans_hourly MODIFY SETTING non_replicated_deduplication_window = 3",
        "RENAME TABLE traffic_daily TO traffic_daily_away",
    ] {
        rig.site.ask(sql).await?;
    }
    send_large_range(&mut rig).await?;
    let begun = Instant::now();
    while begun.elapsed() < FAILS {
        // Each is a range of its own.
        rig.devices.send(Size::Spans, 1).await?;
        sleep(Duration::from_millis(1_300)).await;
    }
    rig.site
        .ask("RENAME TABLE traffic_daily_away TO traffic_daily")
        .await?;
    let stored = rig.exactly_once().await?;
    Ok(format!("for {} s; {stored}", FAILS.as_secs()))
}
