//! Compiles documents with regular expressions: off the request threads, a few at a time, and one at a time per user or
//! token.

use std::sync::{Arc, LazyLock};
use std::time::Duration;

use unjank_foundation::shares::{Holder, Shares};

/// How long a document may wait for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// The number of concurrent compilations depends on the cores of the process, not on their load.
static TURNS: LazyLock<Arc<Shares>> = LazyLock::new(|| {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Shares::new(cores.div_ceil(2), 1)
});

#[derive(Debug, thiserror::Error)]
#[error("too many documents are being checked; retry in a moment")]
pub struct Busy;

/// Runs `work` when it is the holder's turn. Once started, the work runs to its end and keeps its turn, even if the
/// future is dropped.
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
