//! Hands parcels to the connections at their scheduled starts.
//!
//! Runs on a thread of its own, because the operating system's sleep is accurate to some ten microseconds and an async timer only
//! to a millisecond. That error would show in every latency.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::sync::mpsc;

use crate::parcel::Parcel;
use crate::parcel_threads::Stop;

/// A parcel that is due.
pub(crate) struct Due {
    pub(crate) parcel: Parcel,
    /// The scheduled start, from which latency counts. `None` in a closed loop, which has no schedule.
    pub(crate) intended: Option<Instant>,
}

/// How well the generators kept ahead of the schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pacing {
    pub(crate) parcels: u64,
    /// Parcels that were not ready at their scheduled start.
    pub(crate) generator_late: u64,
    /// Longest delay of such a parcel.
    pub(crate) generator_late_most: Duration,
}

/// Delays up to this long are not counted.
const TOLERANCE: Duration = Duration::from_millis(2);

/// Sends each parcel to `due` at its scheduled start. Blocks, so it needs a thread. Ends after the last parcel, when the receiver
/// is dropped, or when `stop` is set.
pub(crate) fn pace(
    parcels: impl Iterator<Item = Result<Parcel>>,
    start: Instant,
    due: &mpsc::Sender<Due>,
    stop: &Stop,
) -> Result<Pacing> {
    let mut pacing = Pacing::default();
    let mut parcels = parcels;
    loop {
        let asked = Instant::now();
        let Some(parcel) = parcels.next() else {
            break;
        };
        let parcel = parcel?;
        let intended = parcel.at.map(|at| start + at);
        if let Some(intended) = intended {
            pacing.note(asked, intended, Instant::now());
            sleep_until(intended, stop);
        }
        if stop.asked() || due.blocking_send(Due { parcel, intended }).is_err() {
            break;
        }
        pacing.parcels += 1;
    }
    Ok(pacing)
}

impl Pacing {
    /// Charges the generator only for parcels that were requested on time and arrived late.
    fn note(&mut self, asked: Instant, intended: Instant, got: Instant) {
        let late = got.saturating_duration_since(intended);
        let waited = got.saturating_duration_since(asked);
        if late.min(waited) > TOLERANCE {
            self.generator_late += 1;
            self.generator_late_most = self.generator_late_most.max(late);
        }
    }
}

fn sleep_until(intended: Instant, stop: &Stop) {
    const LONGEST: Duration = Duration::from_millis(200);
    while !stop.asked() {
        let left = intended.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        thread::sleep(left.min(LONGEST));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(start: Instant, millis: u64) -> Instant {
        start + Duration::from_millis(millis)
    }

    #[test]
    fn only_delays_of_the_generator_are_counted() {
        let start = Instant::now();
        let mut pacing = Pacing::default();
        // Requested at 0, due at 10, received at 5: on time.
        pacing.note(at(start, 0), at(start, 10), at(start, 5));
        assert_eq!(pacing, Pacing::default());
        // Due at 10, but the connections were busy until 50. The parcel itself was ready immediately.
        pacing.note(at(start, 50), at(start, 10), at(start, 50));
        assert_eq!(pacing, Pacing::default());
        // Requested at 50, due at 60, received at 90: late.
        pacing.note(at(start, 50), at(start, 60), at(start, 90));
        assert_eq!(pacing.generator_late, 1);
        assert_eq!(pacing.generator_late_most, Duration::from_millis(30));
    }
}
