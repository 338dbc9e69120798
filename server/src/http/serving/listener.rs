//! Connections: their maximum number, their timeouts, and their end. [`crate::http::serving::http2`] has those of HTTP/2.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::ConnectInfo;
use axum::http::{Request, Version};
use axum::response::Response;
use axum::routing::future::RouteFuture;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use unjank_foundation::shares::{Holder, Share, Shares};

use super::fair_stream::FairStream;
use super::head_limits::{HEAD_BYTES, HEAD_TIMEOUT};
use super::http2;
use crate::trusted_proxies::TrustedProxies;

/// The answer to an address with too many connections.
const TOO_MANY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nRetry-After: 5\r\nContent-Length: 0\r\n\r\n";

#[derive(Clone, Debug)]
pub struct ListenerSettings {
    /// Further connections wait in the system's queue.
    pub max_connections: usize,
    /// Maximum number of connections from one address.
    pub from_one_address: usize,
    /// The limit per address does not apply to these proxies, because many clients share them.
    pub proxies: TrustedProxies,
    /// How long running requests may take to finish at shutdown.
    pub patience: Duration,
}

/// What a listener serves.
pub struct Routes {
    pub http1: Router,
    /// Without these, connections of HTTP/2 are refused.
    pub http2: Option<Router>,
}

/// Serves requests until `shutdown`, then lets running requests finish.
pub async fn serve_connections(
    listener: TcpListener,
    routes: Routes,
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
                // Do not wait until the socket's buffer has room.
                let _sent = stream.try_write(TOO_MANY).is_ok();
                continue;
            }
            share
        };
        let connection = Connection {
            http1: OfPeer::new(&routes.http1, peer),
            http2: routes.http2.as_ref().map(|http2| OfPeer::new(http2, peer)),
            most_calls: http2::most_calls(settings.from_one_address),
            share,
            builder: builder.clone(),
            watcher: graceful.watcher(),
            shutdown: shutdown.clone(),
        };
        connections.spawn(async move {
            // A broken connection is not an error of the server: the client retries requests without an answer.
            if let Err(error) = connection.serve(stream).await {
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
            "running requests did not finish in time and are cut off; devices will retry them"
        );
    }
}

/// What one connection needs.
struct Connection {
    http1: OfPeer,
    http2: Option<OfPeer>,
    /// The most calls of HTTP/2 at a time.
    most_calls: u32,
    /// The part of the connections of its address. Trusted proxies have none.
    share: Option<Share>,
    builder: http1::Builder,
    watcher: Watcher,
    shutdown: CancellationToken,
}

impl Connection {
    async fn serve(mut self, stream: TcpStream) -> hyper::Result<()> {
        let Some(service) = self.http2.take() else {
            return self.serve_http1(stream).await;
        };
        match http2::spoken(&stream, &self.shutdown).await {
            None => Ok(()),
            Some(Version::HTTP_2) if self.has_calls() => {
                let stream = FairStream::new(stream);
                http2::serve(stream, service, self.most_calls, &self.shutdown).await
            }
            Some(Version::HTTP_2) => Ok(()),
            Some(_) => self.serve_http1(stream).await,
        }
    }

    async fn serve_http1(self, stream: TcpStream) -> hyper::Result<()> {
        let stream = TokioIo::new(FairStream::new(stream));
        let connection = self.builder.serve_connection(stream, self.http1);
        self.watcher.watch(connection).await
    }

    /// Takes the calls from the connections of its address. Otherwise, one address could use up the uploads of a key with them.
    fn has_calls(&mut self) -> bool {
        let more = self.most_calls - 1;
        let share = self.share.as_mut();
        share.is_none_or(|share| share.try_grow(more))
    }
}

/// Routes for the requests of one client.
struct OfPeer {
    router: Router,
    peer: SocketAddr,
}

impl OfPeer {
    fn new(router: &Router, peer: SocketAddr) -> Self {
        let router = router.clone();
        Self { router, peer }
    }
}

impl hyper::service::Service<Request<Incoming>> for OfPeer {
    type Response = Response;
    type Error = Infallible;
    type Future = RouteFuture<Infallible>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        request.extensions_mut().insert(ConnectInfo(self.peer));
        tower::Service::call(&mut self.router.clone(), request)
    }
}

async fn accept(
    listener: &TcpListener,
    slots: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let slot = Arc::clone(slots).acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            // Answers are small and urgent. If the option cannot be set, the connection is served anyway.
            let _delayed = stream.set_nodelay(true).is_err();
            Some((stream, peer, slot))
        }
        Err(error) => {
            // The process is probably out of file descriptors: give connections time to end.
            tracing::warn!(%error, "cannot accept a connection");
            tokio::time::sleep(Duration::from_millis(50)).await;
            None
        }
    }
}
