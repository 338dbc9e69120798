//! Changes that an operator can make to the tables while batches arrive.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::time::sleep;

use crate::faults::balance::Counts;
use crate::faults::devices::Size;
use crate::faults::kills::send_large_range;
use crate::faults::rig::{Rig, Trial};

/// A materialized view of the operator rejects about one span in a hundred. Rows may go to the dead-letter folder, but a dead
/// letter must not be stored as well, and no row may be stored twice.
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
    ensure_settled_with_dead_letters(&rig).await?;
    rig.site.ask("DROP VIEW mine_view").await?;
    rig.devices.send(Size::Small, 5).await?;
    ensure_settled_with_dead_letters(&rig).await?;
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

async fn ensure_settled_with_dead_letters(rig: &Rig) -> Result<()> {
    if !rig.settles(Counts::balance_with_dead_letters).await? {
        bail!("{}", rig.differences().await);
    }
    Ok(())
}

/// Roll-up tables are missing while small and large ranges are stored.
pub(super) async fn roll_up_away(trial: &Trial) -> Result<String> {
    let mut rig = trial.rig().await?;
    let tables = trial.choose(&["spans_daily", "spans_hourly"], 1);
    for table in tables {
        trial.say(&format!("{table} is missing"));
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
            .with_context(|| format!("{table} was missing"))?;
    }
    let stored = rig.exactly_once().await?;
    Ok(format!("{}; {stored}", tables.join(", ")))
}

/// The roll-up of a large range keeps failing until other ranges have evicted its deduplication tokens from the engine's window.
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
        // Each batch becomes a range of its own.
        rig.devices.send(Size::Spans, 1).await?;
        sleep(Duration::from_millis(1_300)).await;
    }
    rig.site
        .ask("RENAME TABLE traffic_daily_away TO traffic_daily")
        .await?;
    let stored = rig.exactly_once().await?;
    Ok(format!("for {} s; {stored}", FAILS.as_secs()))
}
