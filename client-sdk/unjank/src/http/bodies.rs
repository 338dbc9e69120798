//! Bodies of requests and responses that count their bytes.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

use super::exchange::{End, Exchange, Sent, header_bytes, length};

pin_project! {
    /// The body of a request, which counts what the client takes of it. It is otherwise the same as the body it wraps.
    ///
    /// ```
    /// use unjank::http::RequestBody;
    ///
    /// let empty = RequestBody::<String>::default();
    /// # drop(empty);
    /// ```
    #[derive(Debug, Default)]
    pub struct RequestBody<B> {
        #[pin]
        body: B,
        sent: Option<Arc<Sent>>,
    }
}

impl<B> RequestBody<B> {
    pub(super) fn new(body: B, sent: Option<Arc<Sent>>) -> Self {
        Self { body, sent }
    }
}

impl<B: Body> Body for RequestBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        if let Some(sent) = this.sent {
            sent.begin();
        }
        let frame = ready!(this.body.poll_frame(context));
        if let (Some(Ok(frame)), Some(sent)) = (&frame, this.sent) {
            sent.add(frame_bytes(frame));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        // A client asks this when it has a connection, and takes no frame of an empty body.
        if let Some(sent) = &self.sent {
            sent.begin();
        }
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

pin_project! {
    /// The body of a response, which counts what the app reads. It is otherwise the same as the body it wraps. The request ends with
    /// it: when it is read to its end, when it fails, or when it is dropped.
    ///
    /// ```
    /// use unjank::http::ResponseBody;
    ///
    /// fn forwarded<B>(response: http::Response<ResponseBody<B>>) -> http::StatusCode {
    ///     response.status() // dropping the body before its end gives the request up
    /// }
    /// ```
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        // Dropped before the request ends.
        #[pin]
        body: B,
        exchange: Option<Box<Exchange>>,
    }
}

impl<B: Body> ResponseBody<B> {
    pub(super) fn new(body: B, exchange: Option<Box<Exchange>>) -> Self {
        let mut this = Self { body, exchange };
        if this.body.is_end_stream() {
            end(&mut this.exchange, End::Read);
        }
        this
    }
}

fn end(exchange: &mut Option<Box<Exchange>>, end: End) {
    if let Some(mut exchange) = exchange.take() {
        exchange.end = end;
    }
}

impl<B: Body> Body for ResponseBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let frame = ready!(this.body.as_mut().poll_frame(context));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(exchange) = this.exchange {
                    let received = exchange.received_bytes;
                    exchange.received_bytes = received.saturating_add(frame_bytes(frame));
                }
                if this.body.is_end_stream() {
                    end(this.exchange, End::Read);
                }
            }
            Some(Err(_)) => end(this.exchange, End::Failed),
            None => end(this.exchange, End::Read),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Returns the size of a frame: of its data, or of its trailers.
fn frame_bytes<D: Buf>(frame: &Frame<D>) -> u64 {
    match (frame.data_ref(), frame.trailers_ref()) {
        (Some(data), _) => length(data.remaining()),
        (None, Some(trailers)) => header_bytes(trailers),
        (None, None) => 0,
    }
}
