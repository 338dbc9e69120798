//! Listens for changes that any server makes in a shared PostgreSQL, and reconnects as needed.

use std::convert::Infallible;
use std::io::ErrorKind;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgListener, PgPoolOptions};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

const CHANNEL: &str = "unjank_control";
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How long to wait for a notice before checking the connection. A connection that a firewall dropped looks idle.
const QUIET: Duration = Duration::from_secs(30);
const PATIENCE: Duration = Duration::from_secs(5);

/// Increments `ticks` at each notice, and whenever listening starts, because notices may have been missed before.
pub(super) async fn run(
    options: &PgConnectOptions,
    ticks: &watch::Sender<u64>,
    listening: &watch::Sender<bool>,
    shutdown: CancellationToken,
) {
    let mut pause = FIRST_PAUSE;
    loop {
        let lost = tokio::select! {
            () = shutdown.cancelled() => return,
            lost = listen(options, ticks, listening) => lost,
        };
        if listening.send_replace(false) {
            pause = FIRST_PAUSE;
        }
        let Err(error) = lost;
        tracing::warn!(%error, again_in_ms = pause.as_millis(), "cannot listen for changes made by other servers");
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = sleep(pause) => {}
        }
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Listens on one connection until it is lost.
async fn listen(
    options: &PgConnectOptions,
    ticks: &watch::Sender<u64>,
    listening: &watch::Sender<bool>,
) -> Result<Infallible, sqlx::Error> {
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .max_lifetime(None)
        .idle_timeout(None)
        .acquire_timeout(PATIENCE)
        .connect_with(options.clone())
        .await?;
    let mut listener = PgListener::connect_with(&pool).await?;
    // Otherwise the listener reconnects on its own, in an attempt that can be neither bounded nor delayed.
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    ticks.send_modify(|ticks| *ticks += 1);
    listening.send_replace(true);
    loop {
        match timeout(QUIET, listener.try_recv()).await {
            Ok(Ok(Some(_))) => ticks.send_modify(|ticks| *ticks += 1),
            Ok(Ok(None)) => return Err(std::io::Error::from(ErrorKind::ConnectionAborted).into()),
            Ok(Err(error)) => return Err(error),
            Err(_) => still_there(&mut listener).await?,
        }
    }
}

async fn still_there(listener: &mut PgListener) -> Result<(), sqlx::Error> {
    timeout(PATIENCE, sqlx::query("SELECT 1").execute(listener))
        .await
        .map_err(|_| std::io::Error::from(ErrorKind::TimedOut))??;
    Ok(())
}
