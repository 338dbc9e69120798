//! The health of the log: whether a record would be accepted now. Probes use the disk itself, so they need no traffic.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::mpsc::error::TrySendError;
use tokio::time::{Instant, timeout};

use super::IngestLog;
use super::disk::Command;

/// Minimum time between two probes.
const INTERVAL: Duration = Duration::from_secs(1);
/// A disk that takes longer counts as hung.
const PATIENCE: Duration = Duration::from_secs(5);

const ENDED: &str = "the log has ended";

impl IngestLog {
    /// Fails with the reason if a record would not be accepted now. Returns within five seconds even if the disk hangs.
    pub async fn health(&self) -> Result<(), &'static str> {
        let state = &self.0.state;
        if state.ended.is_cancelled() {
            return Err(ENDED);
        }
        let last = *self.0.probed.lock().unwrap_or_else(PoisonError::into_inner);
        if last.is_none_or(|last| last.elapsed() >= INTERVAL) {
            let probed = timeout(PATIENCE, self.probe()).await;
            probed.map_err(|_| "the disk does not answer")??;
            let now = Some(Instant::now());
            *self.0.probed.lock().unwrap_or_else(PoisonError::into_inner) = now;
        }
        (*state.verdict.borrow())?;
        if state.full.load(Ordering::Relaxed) {
            return Err("the log is at its limit");
        }
        Ok(())
    }

    /// Waits for the next verdict of the log's thread, and requests one unless a probe is already queued.
    async fn probe(&self) -> Result<(), &'static str> {
        let state = &self.0.state;
        // Subscribe before the request, so that its verdict is not missed.
        let mut verdict = state.verdict.subscribe();
        if !state.probe_waits.swap(true, Ordering::AcqRel)
            && let Err(error) = self.0.queue.try_send(Command::Probe)
        {
            state.probe_waits.store(false, Ordering::Release);
            if let TrySendError::Closed(_) = error {
                return Err(ENDED);
            }
            // The queue is full of records, and their writes produce a verdict as well.
        }
        tokio::select! {
            () = state.ended.cancelled() => Err(ENDED),
            _ = verdict.changed() => Ok(()),
        }
    }
}
