//! How fast the sender of a file must be. A request holds a turn that others wait for, so a sender that hardly sends must end soon.

use std::time::Duration;

use axum::extract::multipart::MultipartError;
use tokio::time::{Instant, timeout};

use super::request_size::broken;
use crate::http::api::problem::Problem;

/// How long a sender may pause in all, besides the time that its bytes take at the least rate.
const PAUSES: Duration = Duration::from_secs(30);
/// The least rate.
const BYTES_PER_SECOND: u64 = 4 << 10;

/// The progress of a sender. Only the time in which the server waits for it counts.
#[derive(Default)]
pub(super) struct Pace {
    waited: Duration,
    bytes: u64,
}

impl Pace {
    /// Waits for the next part of a body.
    pub(super) async fn wait_for<T>(
        &mut self,
        next: impl Future<Output = Result<T, MultipartError>>,
    ) -> Result<T, Problem> {
        let begun = Instant::now();
        let next = timeout(self.left(), next).await;
        self.waited += begun.elapsed();
        let next = next.map_err(|_| Problem::stalled())?;
        next.map_err(|error| broken(&error))
    }

    /// Records that bytes have arrived.
    pub(super) fn advance(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }

    fn left(&self) -> Duration {
        let allowed = PAUSES + Duration::from_secs(self.bytes / BYTES_PER_SECOND);
        allowed.saturating_sub(self.waited)
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::sleep;

    use super::*;

    /// Sends as many bytes each second, for a number of seconds. Returns the number of seconds until the sender is stopped.
    async fn stopped_after(seconds: u64, bytes: usize) -> Option<u64> {
        let mut pace = Pace::default();
        for second in 0..seconds {
            let next = async {
                sleep(Duration::from_secs(1)).await;
                Ok(())
            };
            if pace.wait_for(next).await.is_err() {
                return Some(second);
            }
            // The server's own work does not count.
            sleep(Duration::from_secs(60)).await;
            pace.advance(bytes);
        }
        None
    }

    #[tokio::test(start_paused = true)]
    async fn senders_below_the_least_rate_are_stopped_after_their_pauses() {
        let idle = stopped_after(300, 0).await;
        assert!(matches!(idle, Some(28..=31)), "{idle:?}");
        let slow = stopped_after(300, 1 << 10).await;
        assert!(matches!(slow, Some(37..=41)), "{slow:?}");
        assert_eq!(stopped_after(300, 4 << 10).await, None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_sender_may_pause() {
        let mut pace = Pace::default();
        pace.advance(1 << 20);
        let pause = async {
            sleep(Duration::from_secs(200)).await;
            Ok(())
        };
        assert!(pace.wait_for(pause).await.is_ok());
        assert!(
            pace.wait_for(std::future::pending::<Result<(), _>>())
                .await
                .is_err()
        );
    }
}
