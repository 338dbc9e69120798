//! Ends connections whose client does not read its answer. Each would hold memory, a file descriptor, and perhaps a ClickHouse query.

use std::future::Future;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

/// A connection ends if nothing could be written to it for this long.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct StalledWrites<S> {
    stream: S,
    /// Runs while the stream accepts nothing.
    end: Option<Pin<Box<Sleep>>>,
}

impl<S> StalledWrites<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, end: None }
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

impl<S: AsyncRead + Unpin> AsyncRead for StalledWrites<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StalledWrites<S> {
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

    #[tokio::test(start_paused = true)]
    async fn a_stalled_reader_ends_the_connection_and_a_slow_reader_does_not() {
        let (near, mut far) = tokio::io::duplex(64);
        let mut near = StalledWrites::new(near);
        let (written, ()) = tokio::join!(near.write_all(&[0; 320]), read_slowly(&mut far));
        written.unwrap();
        let began = Instant::now();
        let stalled = near.write_all(&[0; 320]).await.unwrap_err();
        assert_eq!(stalled.kind(), ErrorKind::TimedOut);
        assert!(began.elapsed() >= PATIENCE && began.elapsed() < 2 * PATIENCE);
    }
}
