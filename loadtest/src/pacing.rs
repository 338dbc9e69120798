//! Hands parcels to the connections at their intended starts.
//!
//! A thread of its own: the sleep of the operating system is exact to some ten microseconds, an async timer to a
//! millisecond, which would show in every latency.

use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::sync::mpsc;

use crate::generator::Stop;
use crate::parcel::Parcel;

/// A parcel at its time.
pub(crate) struct Due {
    pub(crate) parcel: Parcel,
    /// When it was meant to start: latency counts from here. None in a closed loop, where it starts when it can.
    pub(crate) intended: Option<Instant>,
}

/// How well the generators kept ahead.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pacing {
    pub(crate) parcels: u64,
    /// Parcels that were not ready at their intended start.
    pub(crate) generator_late: u64,
    /// The most such a parcel was late.
    pub(crate) generator_late_most: Duration,
}

/// What may be late without being called so.
const TOLERANCE: Duration = Duration::from_millis(2);

/// Sends each parcel on when its time has come. Blocks: run it on a thread. Ends when the parcels do, the receiver is
/// gone or `stop` is asked for.
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
    /// The generator is to blame when the parcel was asked for in time and came too late.
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
    fn a_generator_that_comes_late_is_blamed_and_a_slow_server_is_not() {
        let start = Instant::now();
        let mut pacing = Pacing::default();
        // Asked at 0 for a parcel due at 10, got it at 5: in time.
        pacing.note(at(start, 0), at(start, 10), at(start, 5));
        assert_eq!(pacing, Pacing::default());
        // Due at 10, but the connections were busy until 50; the parcel itself was there at once.
        pacing.note(at(start, 50), at(start, 10), at(start, 50));
        assert_eq!(pacing, Pacing::default());
        // Due at 60, asked for at 50, came at 90.
        pacing.note(at(start, 50), at(start, 60), at(start, 90));
        assert_eq!(pacing.generator_late, 1);
        assert_eq!(pacing.generator_late_most, Duration::from_millis(30));
    }
}
