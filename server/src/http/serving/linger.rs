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
/// … and at most this many bytes. By default the largest body is 1 MiB.
const MOST_BYTES: usize = 16 << 20;
/// Maximum number of bodies at a time. Other clients may lose their answers.
static PLACES: Semaphore = Semaphore::const_new(256);

/// Wraps the body of a request. If the handler does not read all of it, the server reads the rest afterwards.
pub(super) async fn drain_unread_body(request: Request) -> Request {
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
