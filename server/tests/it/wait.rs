//! Waits for conditions.

use std::time::Duration;

const PAUSE: Duration = Duration::from_millis(20);
/// So long that only a condition that never holds takes longer, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// Waits until a condition holds, at most three minutes. `what` names the condition in the failure.
pub(crate) async fn until(what: &str, condition: impl AsyncFnMut() -> bool) {
    assert!(holds(condition).await, "not within three minutes: {what}");
}

/// Waits until a condition holds, at most three minutes. Returns false if it never did.
pub(crate) async fn holds(mut condition: impl AsyncFnMut() -> bool) -> bool {
    let waited = async {
        while !condition().await {
            tokio::time::sleep(PAUSE).await;
        }
    };
    tokio::time::timeout(PATIENCE, waited).await.is_ok()
}
