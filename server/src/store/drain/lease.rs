//! The lease on the log of a lost server, under which `unjank log drain` drains the log.

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use unjank_database::{ClaimStore, TakeOver};
use uuid::Uuid;

/// How often the command asks again for a log that it may not drain yet.
const ASK_EVERY: Duration = Duration::from_secs(1);
/// A lease lasts for two minutes. If the command cannot renew it, the command ends before that: after this time, a pause and a timeout.
const LEASE: Duration = Duration::from_secs(75);
const RENEW_EVERY: Duration = Duration::from_secs(20);
/// Timeout of a renewal.
const PATIENCE: Duration = Duration::from_secs(20);

/// Takes the log over from its server. Waits while the server, or another command, may still be storing batches of the log.
pub(crate) async fn take_over<C: ClaimStore>(claims: &C, log_id: Uuid) -> anyhow::Result<C> {
    let (mut seen, mut is_held) = (None, false);
    loop {
        match claims.take_over(log_id).await? {
            TakeOver::Taken(claims) => return Ok(claims),
            TakeOver::ServerSeen(at) => {
                // A server that claims batches after another command has ended is running as well.
                anyhow::ensure!(
                    !is_held && seen.is_none_or(|before| before == at),
                    "a server with this log is running: it stores batches of log {log_id} at this moment. Stop it first, or leave the log to it"
                );
                if seen.replace(at).is_none() {
                    tracing::warn!(%log_id, "the server of this log has stored batches within the last two minutes: waiting until it counts as gone");
                }
            }
            TakeOver::Held => {
                if !is_held {
                    tracing::warn!(%log_id, "another `unjank log drain` drains this log, or was killed within the last two minutes: waiting");
                }
                is_held = true;
            }
        }
        sleep(ASK_EVERY).await;
    }
}

/// Renews the lease on the log. Resolves when the lease is lost.
pub(crate) async fn lease_lost(claims: &impl ClaimStore, log_id: Uuid) {
    let mut renewed = Instant::now();
    while renewed.elapsed() < LEASE {
        sleep(RENEW_EVERY).await;
        let asked = Instant::now();
        match timeout(PATIENCE, claims.renew(log_id)).await {
            Ok(Ok(true)) => renewed = asked,
            Ok(Ok(false)) => return,
            Ok(Err(error)) => tracing::warn!(%error, "cannot renew the lease on the log"),
            Err(_) => tracing::warn!("cannot renew the lease on the log: no answer"),
        }
    }
}
