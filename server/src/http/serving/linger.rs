//! Reads the rest of a rejected body, so that its sender receives the answer.
//!
//! If the connection closes while the sender is still writing, the sender gets a reset and loses the answer with its `Retry-After`. So the server
//! answers at once, then reads and discards the rest of the body.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use http_body_util::BodyExt;
use hyper::body::{Frame, SizeHint};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

/// The server reads the rest of a body for at most this time …
const PATIENCE: Duration = Duration::from_secs(3);
/// … and at most this many bytes. By default the largest body is 1 MiB, but a client that compresses nothing and splits late sends many times
/// as much, and without an answer it would send the same again and again.
const MOST_BYTES: usize = 64 << 20;
/// Maximum number of bodies at a time. Other clients may lose their answers.
static PLACES: Semaphore = Semaphore::const_new(256);

/// Wraps the body of a request. If the handler does not read all of it, the server reads the rest afterwards.
pub(super) fn drain_unread_body(request: Request) -> Request {
    request.map(|body| {
        if body.is_end_stream() {
            body
        } else {
            Body::new(Unread(body))
        }
    })
}

struct Unread(Body);

impl HttpBody for Unread {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.0).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.size_hint()
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        if self.0.is_end_stream() {
            return;
        }
        // The task ends at the latest with the connection. Without a runtime, the process is about to end.
        if let (Ok(runtime), Ok(place)) = (Handle::try_current(), PLACES.try_acquire()) {
            let rest = std::mem::take(&mut self.0);
            runtime.spawn(async move {
                let _in_time = tokio::time::timeout(PATIENCE, discard(rest)).await.is_ok();
                drop(place);
            });
        }
    }
}

async fn discard(mut rest: Body) {
    let mut read = 0;
    while let Some(Ok(frame)) = rest.frame().await {
        read += frame.data_ref().map_or(0, Bytes::len);
        if read > MOST_BYTES {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    const PIECE: usize = 1 << 20;

    /// How many of the pieces of a rejected body are read.
    async fn read_of(pieces: usize) -> usize {
        let read = Arc::new(AtomicUsize::new(0));
        let (counted, piece) = (Arc::clone(&read), Bytes::from(vec![b' '; PIECE]));
        let body = futures_util::stream::iter((0..pieces).map(move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok::<_, Infallible>(piece.clone())
        }));
        discard(Body::from_stream(body)).await;
        read.load(Ordering::Relaxed)
    }

    #[tokio::test]
    async fn a_batch_many_times_too_large_is_read_to_its_end_and_an_endless_body_is_not() {
        assert_eq!(read_of(41).await, 41);
        assert_eq!(read_of(10_000).await, MOST_BYTES / PIECE + 1);
    }
}
