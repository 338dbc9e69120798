//! Boot, accept, shut down: the order of an engine's life.

use std::sync::Arc;
use std::time::Duration;

use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::engine::Engine;
use crate::flush::{Counted, Flushes};
use crate::http::{self, Interface};
use crate::options::EngineOptions;

/// A client has this long to send a request's head, and to begin the next one on an open connection.
const HEAD_TIMEOUT: Duration = Duration::from_secs(60);
/// After statements were told to stop, how long until the engine is left as it is.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// Boots the engine on its data folder, calls `on_ready`, and serves ClickHouse's HTTP interface on `listener` until
/// `shutdown` resolves. Then it accepts nothing more, lets running statements finish for a while, stops the rest, closes
/// the engine and returns.
///
/// One engine a process: the library is global, and once closed it cannot be opened again. Needs a multi-threaded runtime.
///
/// # Errors
/// When the data folder is in use or cannot be written, when the library cannot be loaded, when the engine does not
/// start, and when `on_ready` fails.
pub async fn serve<F>(
    options: EngineOptions,
    listener: TcpListener,
    on_ready: impl FnOnce() -> anyhow::Result<()>,
    shutdown: F,
) -> anyhow::Result<()>
where
    F: Future<Output = ()>,
{
    let boot = options.clone();
    let engine = tokio::task::spawn_blocking(move || Engine::boot(&boot)).await??;
    let interface = Arc::new(http::interface(engine, options));
    let clients = TaskTracker::new();
    let ending = CancellationToken::new();
    match on_ready() {
        Ok(()) => accept(&interface, &listener, &clients, &ending, shutdown).await,
        Err(error) => {
            tokio::task::spawn_blocking(move || interface.engine.shut_down()).await?;
            return Err(error);
        }
    }
    drop(listener);
    ending.cancel();
    clients.close();
    let patience = interface.options.shutdown_patience;
    if tokio::time::timeout(patience, clients.wait())
        .await
        .is_err()
    {
        tracing::warn!(
            "statements still run {} s after the end was asked for: they are stopped",
            patience.as_secs()
        );
    }
    http::stop_all(&interface);
    let until = Instant::now() + STOP_PATIENCE;
    while !http::is_idle(&interface) {
        anyhow::ensure!(
            Instant::now() < until,
            "a statement does not stop: the engine is left as it is, and recovers at its next start"
        );
        sleep(Duration::from_millis(20)).await;
    }
    tokio::task::spawn_blocking(move || {
        interface.sessions.clear();
        interface.engine.shut_down();
    })
    .await?;
    Ok(())
}

/// Accepts clients until `shutdown`, no more than the options allow at once.
async fn accept(
    interface: &Arc<Interface>,
    listener: &TcpListener,
    clients: &TaskTracker,
    ending: &CancellationToken,
    shutdown: impl Future<Output = ()>,
) {
    let places = Arc::new(Semaphore::new(interface.options.max_clients.max(1)));
    let mut expiry = tokio::time::interval(Duration::from_secs(5));
    tokio::pin!(shutdown);
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            () = &mut shutdown => return,
            _ = expiry.tick() => {
                let sessions = Arc::clone(&interface.sessions);
                drop(tokio::task::spawn_blocking(move || sessions.expire(std::time::Instant::now())));
            }
            (place, accepted) = accepted => match accepted {
                Ok((stream, _)) => {
                    let (interface, ending) = (Arc::clone(interface), ending.clone());
                    clients.spawn(async move {
                        client(interface, stream, ending).await;
                        drop(place);
                    });
                }
                Err(error) => {
                    // Out of handles, most likely: it passes when clients leave.
                    tracing::warn!(%error, "a client could not be accepted");
                    sleep(Duration::from_millis(50)).await;
                }
            },
        }
    }
}

/// Serves one connection to its end.
async fn client(interface: Arc<Interface>, stream: TcpStream, ending: CancellationToken) {
    // Answers are written in large pieces; waiting to fill a packet would only delay their ends.
    drop(stream.set_nodelay(true));
    let flushes = Flushes::default();
    let stream = Counted {
        stream,
        flushes: flushes.clone(),
    };
    let service = service_fn(move |mut request| {
        request.extensions_mut().insert(flushes.clone());
        Arc::clone(&interface).answer(request)
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(1 << 20);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = ending.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}
