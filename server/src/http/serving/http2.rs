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

use super::fair_stream::FairStream;
use super::head_limits::{HEAD_BYTES, HEAD_TIMEOUT};

/// The most requests of a connection at a time. Exporters send one or two; proxies open more connections.
const MOST_REQUESTS: usize = 16;
/// What an address may have of its connections in one connection of HTTP/2.
const SHARE: usize = 4;
/// What a client may send before the server has read it, in all requests of a connection together.
const WINDOW: u32 = 64 << 10;
/// A connection without requests ends after one to two times this long. Clients open it again.
const IDLE: Duration = HEAD_TIMEOUT;
/// At shutdown, a connection without requests ends after one to two times this long, in which its last answers are read.
const LAST_ANSWERS: Duration = Duration::from_millis(500);
/// How long the server waits for the rest of [`FIRST_BYTES`] before it looks again.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How a connection of HTTP/2 begins. No method of HTTP/1 does.
const FIRST_BYTES: [u8; 4] = *b"PRI ";

/// Returns how many requests a connection may have at a time, of an address with so many connections at most.
pub(super) fn most_calls(from_one_address: usize) -> u32 {
    (from_one_address / SHARE).clamp(1, MOST_REQUESTS) as u32
}

/// Returns the version that a client speaks, by its first bytes. `None` if it sends nothing in time.
pub(super) async fn spoken(stream: &TcpStream, shutdown: &CancellationToken) -> Option<Version> {
    tokio::select! {
        () = shutdown.cancelled() => None,
        version = timeout(HEAD_TIMEOUT, version(stream)) => version.ok()?,
    }
}

async fn version(stream: &TcpStream) -> Option<Version> {
    let mut first = [0; FIRST_BYTES.len()];
    loop {
        let bytes = stream.peek(&mut first).await.ok()?;
        if first == FIRST_BYTES {
            return Some(Version::HTTP_2);
        }
        let so_far = first.get(..bytes).unwrap_or_default();
        if so_far.is_empty() || !FIRST_BYTES.starts_with(so_far) {
            return Some(Version::HTTP_11);
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// Serves a connection until the client ends it, it is idle, or the server shuts down. Running requests finish first.
pub(crate) async fn serve<T, S>(
    stream: FairStream<T>,
    service: S,
    most_requests: u32,
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
        let running = Running::new(&begun);
        let answer = service.call(request);
        async move {
            let answer = answer.await;
            drop(running);
            answer
        }
    });
    let connection = builder(most_requests).serve_connection(TokioIo::new(stream), counted);
    tokio::pin!(connection);
    tokio::select! {
        ended = &mut connection => return ended,
        () = requests.end(IDLE) => {}
        () = shutdown.cancelled() => {}
    }
    connection.as_mut().graceful_shutdown();
    tokio::select! {
        ended = &mut connection => return ended,
        // A client that does not read its answers, or is away, has no more time.
        () = requests.end(IDLE) => return Ok(()),
        () = shutdown.cancelled() => requests.is_closing.store(true, Ordering::Relaxed),
    }
    tokio::select! {
        ended = &mut connection => ended,
        () = requests.end(LAST_ANSWERS) => Ok(()),
    }
}

fn builder(most_requests: u32) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(most_requests)
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
    /// Whether one has begun or ended since [`Self::end`] looked.
    was_busy: AtomicBool,
    /// Further requests do not count, so that a client cannot delay the shutdown with them.
    is_closing: AtomicBool,
}

impl Requests {
    /// Waits until there were none for `patience`.
    async fn end(&self, patience: Duration) {
        loop {
            sleep(patience).await;
            let was_busy = self.was_busy.swap(false, Ordering::Relaxed);
            if !was_busy && self.running.load(Ordering::Relaxed) == 0 {
                return;
            }
        }
    }
}

struct Running(Arc<Requests>);

impl Running {
    fn new(requests: &Arc<Requests>) -> Option<Self> {
        if requests.is_closing.load(Ordering::Relaxed) {
            return None;
        }
        requests.running.fetch_add(1, Ordering::Relaxed);
        requests.was_busy.store(true, Ordering::Relaxed);
        Some(Self(Arc::clone(requests)))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Its answer still has to be written.
        self.0.was_busy.store(true, Ordering::Relaxed);
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
    use tokio::io::AsyncWriteExt;
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
            let stream = FairStream::new(near);
            let _ended = serve(stream, service_fn(answer), 16, &shutdown)
                .await
                .is_ok();
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
    async fn a_client_that_does_not_read_its_answer_does_not_delay_a_shutdown() {
        let shutdown = CancellationToken::new();
        let (mut client, ended) = connected(0, &shutdown).await;
        let unread = client.send_request(taking(0)).await.unwrap();
        let begun = Instant::now();
        shutdown.cancel();
        ended.await;
        assert!(begun.elapsed() <= 2 * LAST_ANSWERS, "{:?}", begun.elapsed());
        drop(unread);
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_client_does_not_delay_a_shutdown() {
        a_shutdown_is_quick_after(Duration::from_secs(1)).await;
        // It was asked to end.
        a_shutdown_is_quick_after(IDLE + Duration::from_secs(1)).await;
    }

    async fn a_shutdown_is_quick_after(idle: Duration) {
        let (near, mut far) = tokio::io::duplex(1 << 16);
        let shutdown = CancellationToken::new();
        let ends = shutdown.clone();
        let served = tokio::spawn(async move {
            serve(FairStream::new(near), service_fn(answer), 16, &ends).await
        });
        far.write_all(b"PRI * HTTP/2.0\r\n\r\n").await.unwrap();
        sleep(idle).await;
        let begun = Instant::now();
        shutdown.cancel();
        served.await.unwrap().unwrap();
        assert!(begun.elapsed() <= 2 * LAST_ANSWERS, "{:?}", begun.elapsed());
    }

    #[test]
    fn the_calls_of_an_address_are_as_many_as_its_connections() {
        for of_address in [1, 3, 10, 100, 2_500] {
            let calls = most_calls(of_address) as usize;
            let connections = of_address / calls;
            assert!(connections >= 1 && connections * calls <= of_address);
        }
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
