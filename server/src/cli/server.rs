//! `unjank serve` and `unjank migrate`.

use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::runtime;
use crate::clock::Clock;
use crate::config::{Serve, Shared};
use crate::serve::external;
use crate::serve::{Listeners, serve};
use crate::store::{self, ClickHouse};

pub(super) fn run(shared: &Shared, settings: &Serve) -> anyhow::Result<()> {
    keep_files_private();
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        let listeners = listeners(settings).await?;
        let shutdown = CancellationToken::new();
        let signals = watch_signals(shutdown.clone())?;
        let served = serve(shared, settings, listeners, Clock::system(), shutdown).await;
        signals.abort();
        served
    });
    // A thread stuck in a system call must not keep the server from exiting.
    runtime.shutdown_timeout(Duration::from_secs(2));
    result
}

/// Makes files that this process creates accessible to their owner only.
pub(super) fn keep_files_private() {
    rustix::process::umask(rustix::fs::Mode::RWXG | rustix::fs::Mode::RWXO);
}

pub(super) async fn listeners(settings: &Serve) -> anyhow::Result<Listeners> {
    Ok(Listeners {
        public: bind(settings.listen, "--listen").await?,
        admin: bind(settings.admin_listen, "--admin-listen").await?,
    })
}

async fn bind(address: std::net::SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.map_err(|error| {
        anyhow::anyhow!("cannot listen on {address}: {error}; choose another address with {flag}")
    })
}

/// The first SIGINT or SIGTERM shuts the server down in order; the second one exits immediately.
pub(super) fn watch_signals(
    shutdown: CancellationToken,
) -> anyhow::Result<tokio::task::JoinHandle<()>> {
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let watch = async move {
        for last in [false, true] {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            if last {
                tracing::warn!(
                    "received a second signal: exiting immediately; acknowledged batches stay in the ingest log"
                );
                #[expect(clippy::exit, reason = "the operator insists")]
                std::process::exit(1);
            }
            tracing::info!(
                "shutting down: finishing requests and draining the ingest log; send the signal again to exit immediately"
            );
            shutdown.cancel();
        }
    };
    #[expect(
        clippy::disallowed_methods,
        reason = "it ends with the process and has nothing to join"
    )]
    Ok(tokio::spawn(watch))
}

pub(super) fn migrate(shared: &Shared) -> anyhow::Result<()> {
    let Some(url) = &shared.clickhouse_url else {
        anyhow::bail!(
            "`unjank serve` migrates the embedded engine at startup; for a ClickHouse server, set --clickhouse-url"
        );
    };
    let clickhouse = ClickHouse::away(&shared.clickhouse_database);
    clickhouse.point_at(Some(&external(shared, url)));
    let applied = runtime()?.block_on(store::migrate(&clickhouse))?;
    match applied.as_slice() {
        [] => tracing::info!("the schema is up to date"),
        names => tracing::info!(applied = names.len(), "migrated the schema"),
    }
    Ok(())
}
