//! The bodies of answers: whole, or arriving piece by piece from a statement's thread.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::mpsc;
use tokio::time::Sleep;

use crate::engine::Engine;
use crate::flush::Flushes;
use crate::output::Sent;
use crate::running::Running;

/// An answer that breaks off waits this long for a client that does not take its last bytes.
const BREAK_OFF_AFTER: Duration = Duration::from_secs(30);

/// Watches over a statement for its client: when the client is gone, a statement that only reads is stopped.
pub(crate) struct ClientWatch {
    pub(crate) engine: Arc<Engine>,
    pub(crate) running: Arc<Running>,
}

impl Drop for ClientWatch {
    fn drop(&mut self) {
        if self.running.is_left_alone() && !self.running.is_finished() {
            self.engine.stop(&self.running);
        }
    }
}

/// The body of an answer.
pub(crate) enum AnswerBody {
    Whole(Option<Bytes>),
    Pieces {
        pieces: mpsc::Receiver<Sent>,
        flushes: Flushes,
        _watch: ClientWatch,
    },
    /// Breaks off once its last bytes are on their way: the client can see that it is not complete.
    BreakingOff {
        flushes: Flushes,
        count: u64,
        patience: Pin<Box<Sleep>>,
    },
    Ended,
}

impl AnswerBody {
    pub(crate) fn whole(text: impl Into<Bytes>) -> Self {
        Self::Whole(Some(text.into()))
    }
}

/// What a body polled gives: a frame, or its end.
type Polled = Option<Result<Frame<Bytes>, io::Error>>;

impl AnswerBody {
    fn break_off(flushes: Flushes) -> Self {
        let patience = Box::pin(tokio::time::sleep(BREAK_OFF_AFTER));
        Self::BreakingOff {
            count: flushes.count(),
            flushes,
            patience,
        }
    }

    /// Goes on until there is a frame or the end: `None` when the body has only become another.
    fn poll_step(&mut self, context: &mut Context<'_>) -> Poll<Option<Polled>> {
        let (next, polled) = match self {
            Self::Whole(bytes) => {
                return Poll::Ready(Some(bytes.take().map(|bytes| Ok(Frame::data(bytes)))));
            }
            Self::Pieces {
                pieces, flushes, ..
            } => match ready!(pieces.poll_recv(context)) {
                Some(Sent::Data(data)) => return Poll::Ready(Some(Some(Ok(Frame::data(data))))),
                Some(Sent::End) => (Self::Ended, None),
                None => (Self::break_off(flushes.clone()), None),
            },
            Self::BreakingOff {
                flushes,
                count,
                patience,
            } => {
                let left = flushes.poll_past(*count, context);
                ready!(if left.is_ready() {
                    left
                } else {
                    patience.as_mut().poll(context)
                });
                (
                    Self::Ended,
                    Some(Some(Err(io::Error::other(
                        "the statement failed in mid-answer",
                    )))),
                )
            }
            Self::Ended => return Poll::Ready(Some(None)),
        };
        *self = next;
        Poll::Ready(polled)
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Polled> {
        loop {
            if let Some(polled) = ready!(self.poll_step(context)) {
                return Poll::Ready(polled);
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Ended | Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            _ => SizeHint::default(),
        }
    }
}
