//! Where documents with regular expressions are compiled: off the threads that answer requests, few at a time, and one at a time for one
//! person or token.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crate::shares::{Holder, Shares};

/// How long a document waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// Cores are those of the process, whatever runs on them.
static TURNS: LazyLock<Arc<Shares>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Shares::new(cores.div_ceil(2), 1)
});

#[derive(Debug, thiserror::Error)]
#[error("too many documents are being checked: try again in a moment")]
pub struct Busy;

/// Runs `work` when it is the holder's turn. Work that began goes on to its end, and keeps its turn, even if nobody waits for it.
pub(super) async fn compiling<T: Send + 'static>(
    holder: Holder,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Busy> {
    let turn = TURNS.take(holder, PATIENCE).await.ok_or(Busy)?;
    let done = tokio::task::spawn_blocking(move || {
        let done = work();
        drop(turn);
        done
    });
    done.await.map_err(|_| Busy)
}
