//! `unjank serve` and `unjank migrate`.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use unjank_foundation::clock::Clock;

use super::{Cli, cluster, runtime};
use crate::access::Credential;
use crate::app::App;
use crate::backup::is_unfinished;
use crate::config::{Serve, Shared, unknown_variables};
use crate::http::has_web_interface;
use crate::serve::{Listeners, Surroundings, Then, external, serve_after};
use crate::store::{self, ClickHouse};

pub(super) fn run(shared: &Shared, settings: &Serve) -> anyhow::Result<()> {
    keep_files_private();
    refuse_unfinished(shared)?;
    warn_of_unknown_variables();
    let runtime = runtime()?;
    let result = runtime.block_on(async {
        let listeners = listeners(settings).await?;
        let shutdown = CancellationToken::new();
        let signals = watch_signals(shutdown.clone())?;
        let address = listeners.public.local_addr()?;
        let public_url = settings.notifications.public_url.clone();
        let base = public_url.unwrap_or_else(|| address_on_this_machine(address));
        let surroundings = Surroundings {
            listeners,
            clock: Clock::system(),
            shutdown,
        };
        let prepare = async |app: Arc<App>| {
            warn_of_missing_parts(&app);
            if let Some(code) = app.logins.offer_set_up(&app.control).await? {
                print_set_up(&base, &code);
            }
            Ok(Then::Serve)
        };
        let served = serve_after(shared, settings, surroundings, prepare).await;
        signals.abort();
        served
    });
    // A thread stuck in a system call must not keep the server from exiting.
    runtime.shutdown_timeout(Duration::from_secs(2));
    result
}

/// Warns of what a server needs before it is useful.
fn warn_of_missing_parts(app: &App) {
    if app.access.snapshot().is_closed() {
        tracing::warn!(
            "no ingest keys: batches are rejected. Create a key on the page Get started, or set UNJANK_INGEST_KEYS=key=app_id"
        );
    }
    if !has_web_interface() {
        tracing::warn!(
            "this program was built without the web interface, so its pages are missing, also the one for the first user: run `make web`, and \
             build the program again"
        );
    }
}

/// Names variables that may be misspelled settings. An unknown line of the file is an error, but other programs may use variables.
fn warn_of_unknown_variables() {
    let variables = unknown_variables::<Cli>();
    if !variables.is_empty() {
        tracing::warn!(
            variables = variables.join(" "),
            "these variables of the environment are no settings of this version, and have no effect: check their spelling"
        );
    }
}

/// Fails if the data folder has only a part of a backup.
pub(super) fn refuse_unfinished(shared: &Shared) -> anyhow::Result<()> {
    anyhow::ensure!(
        !is_unfinished(&shared.data_dir),
        "a restore into {} did not finish: run the same `unjank restore` again",
        shared.data_dir.display()
    );
    Ok(())
}

/// Prints the link for creating the first user. The code is in the fragment, which browsers do not send, so no proxy
/// logs the code.
fn print_set_up(base: &str, code: &Credential) {
    let base = base.trim_end_matches('/');
    let code = code.reveal();
    let printed = writeln!(
        std::io::stdout().lock(),
        "\nunjank has no users yet. Open this link to set it up:\n\n  {base}/setup#code={code}\n\n\
         The link works until the first user exists. Each start of the server makes a new link.\n"
    );
    if let Err(error) = printed {
        tracing::warn!(%error, "cannot print the link for creating the first user; `unjank user add` also creates users");
    }
}

/// Returns the URL for a browser on this machine.
fn address_on_this_machine(mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(Ipv4Addr::LOCALHOST.into());
    }
    format!("http://{address}")
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

async fn bind(address: SocketAddr, flag: &str) -> anyhow::Result<TcpListener> {
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
    if shared.cluster.clickhouse_cluster.is_some() {
        return cluster::migrate(shared);
    }
    let clickhouse = ClickHouse::away(&shared.clickhouse_database);
    clickhouse.point_at(Some(&external(shared, url)?));
    let applied = runtime()?.block_on(store::migrate(&clickhouse))?;
    match applied.as_slice() {
        [] => tracing::info!("the schema is up to date"),
        names => tracing::info!(applied = names.len(), "migrated the schema"),
    }
    Ok(())
}
