//! Threads for large and slow batches: one batch at a time per project.
//!
//! A thread keeps its memory for the next batch. Tokio's blocking threads are many, and each of them would keep as much.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use unjank_foundation::shares::{Holder, Share, Shares};

/// The longest wait of a batch for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

pub struct LargeBatches {
    turns: Arc<Shares>,
    jobs: mpsc::Sender<Job>,
}

impl LargeBatches {
    /// Starts the threads. They end when this is dropped.
    ///
    /// # Errors
    /// When the system starts no thread.
    pub fn new(threads: usize) -> std::io::Result<Self> {
        let (jobs, received) = mpsc::channel::<Job>(threads.max(1));
        let received = Arc::new(Mutex::new(received));
        for _ in 0..threads.max(1) {
            let received = Arc::clone(&received);
            let next = move || {
                let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
                received.blocking_recv()
            };
            std::thread::Builder::new()
                .name("large batches".to_owned())
                .spawn(move || std::iter::from_fn(next).for_each(|job| job()))?;
        }
        Ok(Self {
            turns: Shares::new(threads, 1),
            jobs,
        })
    }

    /// Runs `work` when it is the project's turn. Returns `None` if that takes too long. Work that has begun runs to its end and keeps its
    /// turn, even if the caller is gone. Also returns the turn: the project's next batch waits until the caller drops it.
    pub async fn run<T: Send + 'static>(
        &self,
        project: Holder,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<(T, Share)> {
        let turn = self.turns.take(project, PATIENCE).await?;
        let (answer, done) = oneshot::channel();
        let job = move || {
            // A panic must not end the thread. The caller then gets `None`.
            let work = std::panic::AssertUnwindSafe(work);
            if let Ok(done) = std::panic::catch_unwind(work) {
                let _caller_is_gone = answer.send((done, turn)).is_err();
            }
        };
        self.jobs.send(Box::new(job)).await.ok()?;
        done.await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_does_not_end_the_thread() {
        let batches = LargeBatches::new(1).unwrap();
        let sender = Holder::new("key", b"one");
        let broken = batches.run(sender, || panic!("a bug")).await;
        assert!(broken.is_none());
        let done = batches.run(sender, || 7).await;
        assert_eq!(done.map(|(done, _)| done), Some(7));
    }

    #[tokio::test]
    async fn one_project_has_one_turn_at_a_time() {
        let batches = LargeBatches::new(2).unwrap();
        let (begin, begun) = std::sync::mpsc::sync_channel::<()>(1);
        let one = Holder::new("key", b"one");
        let first = batches.run(one, move || begun.recv().is_ok());
        let mut second = Box::pin(batches.run(one, || ()));
        let mut first = Box::pin(first);
        assert!(futures_util::poll!(&mut first).is_pending());
        assert!(futures_util::poll!(&mut second).is_pending());
        let other = batches.run(Holder::new("key", b"other"), || 7);
        assert_eq!(other.await.map(|(done, _)| done), Some(7));
        begin.send(()).unwrap();
        let first = first.await.map(|(done, _)| done);
        assert_eq!((first, second.await.is_some()), (Some(true), true));
    }
}
