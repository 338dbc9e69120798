//! Connections of HTTP/2, which gRPC needs. TLS ends at the reverse proxy, so clients of this server begin with HTTP/2 at once.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::{Request, Version};
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::listener::{HEAD_BYTES, HEAD_TIMEOUT};
use super::stalled_writes::StalledWrites;

/// A connection may have so many requests at a time. Exporters send one or two; proxies open more connections.
const MOST_REQUESTS: u32 = 16;
/// What a client may send before the server has read it, in all requests of a connection together.
const WINDOW: u32 = 64 << 10;
/// A connection without requests ends after one to two times this long. Clients open it again.
const IDLE: Duration = HEAD_TIMEOUT;
/// How a connection of HTTP/2 begins. No method of HTTP/1 does.
const FIRST_BYTES: [u8; 4] = *b"PRI ";

/// Returns the version that a client speaks, by its first bytes. `None` if it sends nothing in time.
pub(super) async fn spoken(stream: &TcpStream, shutdown: &CancellationToken) -> Option<Version> {
    let mut first = [0; FIRST_BYTES.len()];
    let peeked = tokio::select! {
        () = shutdown.cancelled() => return None,
        peeked = timeout(HEAD_TIMEOUT, stream.peek(&mut first)) => peeked,
    };
    peeked.ok()?.ok()?;
    Some(if first == FIRST_BYTES {
        Version::HTTP_2
    } else {
        Version::HTTP_11
    })
}

/// Serves a connection until the client ends it, it is idle, or the server shuts down. Running requests finish first.
pub(super) async fn serve<T, S>(
    stream: StalledWrites<T>,
    service: S,
    shutdown: &CancellationToken,
) -> hyper::Result<()>
where
    T: AsyncRead + AsyncWrite + Unpin,
    S: Service<Request<Incoming>, Response = Response, Error = Infallible>,
    S::Future: Send + 'static,
{
    let requests = Arc::new(Requests::default());
    let begun = Arc::clone(&requests);
    let counted = service_fn(move |request| {
        let running = Running::new(Arc::clone(&begun));
        let answer = service.call(request);
        async move {
            let answer = answer.await;
            drop(running);
            answer
        }
    });
    let connection = builder().serve_connection(TokioIo::new(stream), counted);
    tokio::pin!(connection);
    let is_idle = tokio::select! {
        ended = &mut connection => return ended,
        () = requests.end() => true,
        () = shutdown.cancelled() => false,
    };
    connection.as_mut().graceful_shutdown();
    if is_idle {
        // A client that does not read its answers has no more time.
        return timeout(IDLE, connection).await.unwrap_or(Ok(()));
    }
    connection.await
}

fn builder() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MOST_REQUESTS)
        .max_header_list_size(HEAD_BYTES as u32)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(HEAD_BYTES)
        .keep_alive_interval(HEAD_TIMEOUT)
        .keep_alive_timeout(HEAD_TIMEOUT);
    builder
}

/// The requests of a connection.
#[derive(Default)]
struct Requests {
    running: AtomicUsize,
    /// Whether one has begun since [`Self::end`] looked.
    has_begun: AtomicBool,
}

impl Requests {
    /// Waits until there were none for a while.
    async fn end(&self) {
        loop {
            sleep(IDLE).await;
            let has_begun = self.has_begun.swap(false, Ordering::Relaxed);
            if !has_begun && self.running.load(Ordering::Relaxed) == 0 {
                return;
            }
        }
    }
}

struct Running(Arc<Requests>);

impl Running {
    fn new(requests: Arc<Requests>) -> Self {
        requests.running.fetch_add(1, Ordering::Relaxed);
        requests.has_begun.store(true, Ordering::Relaxed);
        Self(requests)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[expect(
    clippy::disallowed_methods,
    reason = "both ends of a connection run at a time"
)]
mod tests {
    use axum::body::Body;
    use hyper::client::conn::http2::{Builder, SendRequest};
    use tokio::time::Instant;

    use super::*;

    /// What a connection serves: requests that take some time.
    async fn answer(request: Request<Incoming>) -> Result<Response, Infallible> {
        let seconds = request
            .uri()
            .path()
            .trim_start_matches('/')
            .parse()
            .unwrap_or_default();
        sleep(Duration::from_secs(seconds)).await;
        Ok(Response::new(Body::from("done")))
    }

    /// Connects a client that reads as many bytes of answers as `window`. The second future ends with the connection.
    async fn connected(
        window: u32,
        shutdown: &CancellationToken,
    ) -> (SendRequest<Body>, impl Future<Output = ()>) {
        let (near, far) = tokio::io::duplex(1 << 16);
        let shutdown = shutdown.clone();
        let served = tokio::spawn(async move {
            let stream = StalledWrites::new(near);
            let _ended = serve(stream, service_fn(answer), &shutdown).await.is_ok();
        });
        let mut builder = Builder::new(TokioExecutor::new());
        builder.initial_stream_window_size(window);
        let (client, connection) = builder.handshake(TokioIo::new(far)).await.unwrap();
        tokio::spawn(connection);
        (client, async { served.await.unwrap() })
    }

    fn taking(seconds: u64) -> Request<Body> {
        let request = Request::post(format!("http://unjank/{seconds}"));
        request.body(Body::empty()).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_ends_when_it_is_idle_and_no_request_is_cut() {
        let shutdown = CancellationToken::new();
        let (mut client, ended) = connected(1 << 16, &shutdown).await;
        let long = client.send_request(taking(100)).await.unwrap();
        assert_eq!(long.status(), 200);
        let begun = Instant::now();
        ended.await;
        assert!(begun.elapsed() <= 3 * IDLE, "{:?}", begun.elapsed());
        assert!(client.send_request(taking(0)).await.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_does_not_read_its_answer_loses_the_connection() {
        let shutdown = CancellationToken::new();
        let (mut client, ended) = connected(0, &shutdown).await;
        let unread = client.send_request(taking(0)).await.unwrap();
        let begun = Instant::now();
        ended.await;
        assert!(begun.elapsed() <= 4 * IDLE, "{:?}", begun.elapsed());
        drop(unread);
    }

    #[tokio::test(start_paused = true)]
    async fn a_running_request_is_answered_before_the_server_ends() {
        let shutdown = CancellationToken::new();
        let (mut client, ended) = connected(1 << 16, &shutdown).await;
        let running = client.send_request(taking(20));
        let stop = async {
            sleep(Duration::from_secs(1)).await;
            shutdown.cancel();
        };
        let (answer, (), ()) = tokio::join!(running, stop, ended);
        assert_eq!(answer.unwrap().status(), 200);
    }
}
