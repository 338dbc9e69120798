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

#[derive(Clone, Debug)]
pub struct ListenerSettings {
    /// More connections wait in the system's queue.
    pub max_connections: usize,
    /// A request's head must arrive within this; also ends idle connections.
    pub header_timeout: Duration,
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
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(settings.header_timeout);
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = accept(&listener, &slots) => accepted,
        };
        let Some((stream, peer, slot)) = accepted else {
            continue;
        };
        let service = router
            .clone()
            .map_request(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(ConnectInfo(peer));
                request
            });
        let service = TowerToHyperService::new(service);
        let connection = graceful.watch(builder.serve_connection(TokioIo::new(stream), service));
        connections.spawn(async move {
            // A connection that breaks is the client's business: its requests were answered or will be sent again.
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended");
            }
            drop(slot);
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
