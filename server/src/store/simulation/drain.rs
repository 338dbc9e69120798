//! A model of `unjank log drain`: the same steps in the same order, on a copy of the log of a server.

use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use unjank_database::ClaimStore;

use super::world::World;
use crate::store::drain::lease::{lease_lost, take_over};

/// A server counts as gone after two minutes.
const LONGEST_WAIT: Duration = Duration::from_secs(300);
/// Longer than the lease of a killed command.
const LEASE: Duration = Duration::from_secs(121);

/// Copies the log of a server that is down, and begins to drain the copy. Returns when the server may come back, usually while the copy is drained.
pub(super) async fn while_lost(world: &Arc<World>) {
    if is_draining(world) {
        return;
    }
    let (copy, begun) = (copy_of(world), Arc::new(Notify::new()));
    let killed_after = killed_after(world);
    let drain = tokio::spawn({
        let begun = Arc::clone(&begun);
        async move { drain(&copy, &begun, killed_after).await }
    });
    world.drains().push(drain);
    wait_for(world, &begun).await;
}

/// Cuts a running server off from the control database until a copy of its log is drained.
pub(super) fn cut_off(world: &Arc<World>) {
    if is_draining(world) {
        return;
    }
    world.host.cut_off_control(true);
    let server = Arc::clone(world);
    let cut_off = tokio::spawn(async move {
        // Meanwhile the server appends to its log.
        sleep(server.chance.millis(0, 60_000)).await;
        let (copy, begun) = (copy_of(&server), Notify::new());
        let killed_after = killed_after(&server);
        let back = async {
            wait_for(&server, &begun).await;
            sleep(server.chance.millis(0, 5_000)).await;
            server.host.cut_off_control(false);
        };
        tokio::join!(drain(&copy, &begun, killed_after), back);
    });
    world.drains().push(cut_off);
}

/// Only one command at a time has a copy of a log. One that waits for another would have an old copy.
fn is_draining(world: &World) -> bool {
    let drains = world.drains();
    drains.iter().any(|drain| !drain.is_finished())
}

/// In most cases, waits until the command has taken the log over or has failed.
async fn wait_for(world: &World, begun: &Notify) {
    if world.chance.happens(800) {
        let _late = timeout(LONGEST_WAIT, begun.notified()).await.is_err();
    }
}

/// Some commands are killed soon after they have taken the log over.
fn killed_after(world: &World) -> Option<Duration> {
    let is_killed = world.chance.happens(300);
    is_killed.then(|| world.chance.millis(0, 3_000))
}

/// Copies the data folder of a server, or only its log.
pub(super) fn copy_of(world: &World) -> Arc<World> {
    let is_log_alone = world.chance.happens(500);
    world.history.say(|| {
        let what = if is_log_alone { "log" } else { "folder" };
        format!("the {what} of {} is copied", world.name)
    });
    let copy = world.beside("the command", world.control.clone(), 0);
    let is_meant = |path: &Path| !is_log_alone || path.starts_with("/data/log");
    copy.disk.restore(Some(&world.disk.image()), is_meant);
    copy
}

/// Runs the command on a copy. Returns when its lease has ended.
pub(super) async fn drain(copy: &World, begun: &Notify, killed_after: Option<Duration>) {
    let drained = take_over_and_drain(copy, begun, killed_after).await;
    begun.notify_one();
    copy.history.say(|| match &drained {
        Ok(()) => "the drain ends".to_owned(),
        Err(error) => format!("the drain fails: {error:#}"),
    });
    copy.disk.end_now();
    if drained.is_err() {
        sleep(LEASE).await;
    }
}

async fn take_over_and_drain(
    copy: &World,
    begun: &Notify,
    killed_after: Option<Duration>,
) -> anyhow::Result<()> {
    let opened = copy.open()?;
    let log_id = opened.log.identity();
    let Some(claims) = copy.claims() else {
        return Ok(());
    };
    let claims = take_over(&claims, log_id).await?;
    begun.notify_one();
    let writer = opened.writer.sharing(Some(claims.clone()));
    let give_up = CancellationToken::new();
    let mut draining = Box::pin(writer.drain(give_up.clone()));
    let mut lost = pin!(lease_lost(&claims, log_id));
    let mut is_lost = false;
    let mut killed = pin!(sleep(killed_after.unwrap_or_default()));
    let totals = loop {
        tokio::select! {
            biased;
            () = &mut killed, if killed_after.is_some() => anyhow::bail!("killed"),
            totals = &mut draining => break totals,
            () = &mut lost, if !is_lost => {
                is_lost = true;
                give_up.cancel();
            }
        }
    };
    claims.hand_back(log_id).await?;
    anyhow::ensure!(totals.is_complete, "the lease is lost");
    Ok(())
}
