//! Connections: how many, how long a client may dawdle, and how they end.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::stalled_writes::StalledWrites;
use crate::proxies::TrustedProxies;
use crate::shares::{Holder, Shares};

/// The longest head of a request. A connection reads ahead by as much.
const HEAD_BYTES: usize = 16 << 10;
/// The head of a request must arrive within this; also ends idle connections.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);

/// Told to an address that has too many connections.
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n";

#[derive(Clone, Debug)]
pub struct ListenerSettings {
    /// More connections wait in the system's queue.
    pub max_connections: usize,
    /// What connections from one address may take of them.
    pub from_one_address: usize,
    /// Their addresses are those of many clients.
    pub proxies: TrustedProxies,
    /// How long requests under way may take to finish at shutdown.
    pub patience: Duration,
}

/// Serves until `shutdown`, then lets requests under way finish.
pub async fn serve_connections(
    listener: TcpListener,
    router: Router,
    settings: ListenerSettings,
    shutdown: CancellationToken,
) {
    let slots = Arc::new(Semaphore::new(settings.max_connections));
    let addresses = Shares::new(settings.max_connections, settings.from_one_address);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .max_buf_size(HEAD_BYTES)
        .header_read_timeout(HEAD_TIMEOUT);
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        let Some((stream, peer, slot)) = accepted else {
            continue;
        };
        let share = if settings.proxies.trusts(peer.ip()) {
            None
        } else {
            let share = addresses.try_take(Holder::address(peer.ip()), 1);
            if share.is_none() {
                // Nothing waits for what does not fit into the socket's buffer.
                let _told = stream.try_write(TOO_MANY).is_ok();
                continue;
            }
            share
        };
        let service = router
            .clone()
            .map_request(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(ConnectInfo(peer));
                request
            });
        let service = TowerToHyperService::new(service);
        let stream = TokioIo::new(StalledWrites::new(stream));
        let connection = graceful.watch(builder.serve_connection(stream, service));
        connections.spawn(async move {
            // A connection that breaks is the client's business: its requests were answered or will be sent again.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended");
            }
            drop((slot, share));
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    if tokio::time::timeout(settings.patience, graceful.shutdown())
        .await
        .is_err()
    {
        tracing::warn!(
            "requests under way did not finish in time and are cut off; devices will send them again"
        );
    }
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            // Answers are small and wanted at once. A socket that refuses is served all the same.
            let _delayed = stream.set_nodelay(true).is_err();
            Some((stream, peer, slot))
        }
        Err(error) => {
            // Out of file descriptors, most likely: give connections time to end.
            tracing::warn!(%error, "no connection accepted");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}
