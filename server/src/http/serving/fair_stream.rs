//! Connections that share the server with others. One whose client does not read its answer ends, because it would hold memory, a file
//! descriptor, and perhaps a ClickHouse query. One that sends much at a time waits for its turn, because small frames take long to handle.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// A connection ends if nothing could be written to it for this long.
const PATIENCE: Duration = Duration::from_secs(30);

/// What is read in one turn.
const TURN: usize = 32 << 10;

pub(super) struct FairStream<S> {
    stream: S,
    /// What was read in this turn.
    read: usize,
    /// Runs while the stream accepts nothing.
    end: Option<Pin<Box<Sleep>>>,
}

impl<S> FairStream<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            read: 0,
            end: None,
        }
    }

    /// Passes on the answer of the stream, or an error if the stream has stalled for too long.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        answer: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if answer.is_ready() {
            self.end = None;
            return answer;
        }
        let end = self
            .end
            .get_or_insert_with(|| Box::pin(sleep_until(Instant::now() + PATIENCE)));
        match end.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for FairStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.read >= TURN {
            self.read = 0;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = buffer.filled().len();
        let answer = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.read = match answer {
            Poll::Ready(_) => self.read + (buffer.filled().len() - before),
            Poll::Pending => 0,
        };
        answer
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for FairStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let answer = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.watch(context, answer)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let answer = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.watch(context, answer)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let answer = Pin::new(&mut self.stream).poll_flush(context);
        self.watch(context, answer)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let answer = Pin::new(&mut self.stream).poll_shutdown(context);
        self.watch(context, answer)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    async fn read_slowly(far: &mut tokio::io::DuplexStream) {
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_secs(20)).await;
            far.read_exact(&mut [0; 32]).await.unwrap();
        }
    }

    #[tokio::test]
    async fn a_client_that_sends_much_lets_others_go_first() {
        let (near, mut far) = tokio::io::duplex(8 * TURN);
        far.write_all(&[0; 8 * TURN]).await.unwrap();
        let mut near = FairStream::new(near);
        let mut context = Context::from_waker(std::task::Waker::noop());
        let mut piece = vec![0; TURN / 4];
        let mut is_ready = || {
            let mut buffer = ReadBuf::new(&mut piece);
            let read = Pin::new(&mut near).poll_read(&mut context, &mut buffer);
            read.is_ready()
        };
        for turn in 1..8 {
            let ready = (0..4).filter(|_| is_ready()).count();
            assert_eq!((ready, is_ready()), (4, false), "{turn}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_stalled_reader_ends_the_connection_and_a_slow_reader_does_not() {
        let (near, mut far) = tokio::io::duplex(64);
        let mut near = FairStream::new(near);
        let (written, ()) = tokio::join!(near.write_all(&[0; 320]), read_slowly(&mut far));
        written.unwrap();
        let began = Instant::now();
        let stalled = near.write_all(&[0; 320]).await.unwrap_err();
        assert_eq!(stalled.kind(), ErrorKind::TimedOut);
        assert!(began.elapsed() >= PATIENCE && began.elapsed() < 2 * PATIENCE);
    }
}
