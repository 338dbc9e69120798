//! Where batches are decoded that take long: on a few threads of their own, one batch at a time for one project.
//!
//! A thread keeps the memory that it used for the next batch. Spread over the threads that other blocking work runs on, each of those would
//! keep as much.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use crate::shares::{Holder, Share, Shares};

/// How long a batch waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

pub struct LargeBatches {
    turns: Arc<Shares>,
    jobs: mpsc::Sender<Job>,
}

impl LargeBatches {
    /// Starts the threads. They end with this.
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

    /// Runs `work` when it is the project's turn; nothing when that takes too long. Work that began goes on to its end, and keeps its turn,
    /// even if nobody waits for it. Answers the turn, too: the project's next batch waits until that is dropped.
    pub async fn run<T: Send + 'static>(
        &self,
        project: Holder,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Option<(T, Share)> {
        let turn = self.turns.take(project, PATIENCE).await?;
        let (answer, done) = oneshot::channel();
        let job = move || {
            // A panic must not end the thread. The caller gets no answer then.
            let work = std::panic::AssertUnwindSafe(work);
            if let Ok(done) = std::panic::catch_unwind(work) {
                let _nobody_waits = answer.send((done, turn)).is_err();
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
    async fn work_is_done_also_after_a_panic() {
        let batches = LargeBatches::new(1).unwrap();
        let sender = Holder::new("key", b"one");
        let broken = batches.run(sender, || panic!("a bug")).await;
        assert!(broken.is_none());
        let done = batches.run(sender, || 7).await;
        assert_eq!(done.map(|(done, _)| done), Some(7));
    }

    #[tokio::test]
    async fn one_sender_has_one_turn_at_a_time() {
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
