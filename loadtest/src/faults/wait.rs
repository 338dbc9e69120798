//! Waits for conditions.

use std::time::{Duration, Instant};

use anyhow::Result;

/// Repeats a check until it succeeds or the time limit is reached. Returns whether it succeeded.
pub(super) async fn eventually(
    patience: Duration,
    mut check: impl AsyncFnMut() -> Result<bool>,
) -> Result<bool> {
    const PAUSE: Duration = Duration::from_millis(100);
    let until = Instant::now() + patience;
    loop {
        if check().await? {
            return Ok(true);
        }
        if Instant::now() >= until {
            return Ok(false);
        }
        tokio::time::sleep(PAUSE).await;
    }
}
