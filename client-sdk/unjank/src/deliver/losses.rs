//! Losses: events that were not sent, counted by reason and reported with the next batch.

use std::sync::atomic::{AtomicU64, Ordering};

use unjank_protocol::{Dropped, Signal};

/// Why an event was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The queue in memory was full.
    QueueFull,
    /// The device's own budget for the signal was used up, or the server asked to hold it back.
    RateLimited,
    /// The disk space was used up, and the oldest events were dropped.
    DiskFull,
    /// There is no data directory, the memory for batches was used up, and the oldest events were dropped.
    MemoryFull,
    /// Reading from or writing to the disk failed.
    DiskFailed,
    /// The event waited for longer than the server accepts.
    TooOld,
    /// The server rejected the event for good.
    Refused,
    /// The event was larger than the server accepts.
    TooLarge,
    /// `before_send` dropped the event.
    Filtered,
    /// The method was shorter than `Config::min_method_duration`.
    TooShort,
    /// Collection was switched off while the event waited.
    Disabled,
    /// The process was suspended during the event, so its duration means nothing.
    Suspended,
}

impl Reason {
    const ALL: [Self; 12] = [
        Self::QueueFull,
        Self::RateLimited,
        Self::DiskFull,
        Self::MemoryFull,
        Self::DiskFailed,
        Self::TooOld,
        Self::Refused,
        Self::TooLarge,
        Self::Filtered,
        Self::TooShort,
        Self::Disabled,
        Self::Suspended,
    ];

    const fn as_str(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::RateLimited => "rate_limited",
            Self::DiskFull => "disk_full",
            Self::MemoryFull => "memory_full",
            Self::DiskFailed => "disk_failed",
            Self::TooOld => "too_old",
            Self::Refused => "refused",
            Self::TooLarge => "too_large",
            Self::Filtered => "filtered",
            Self::TooShort => "too_short",
            Self::Disabled => "disabled",
            Self::Suspended => "suspended",
        }
    }
}

/// The losses that a batch reports: signal, reason and count.
pub(crate) type ReportedLosses = Vec<(Signal, String, u64)>;

const SIGNALS: usize = Signal::ALL.len();

/// Counts since the last [`Losses::take`].
#[derive(Debug, Default)]
pub(crate) struct Losses([[AtomicU64; SIGNALS]; Reason::ALL.len()]);

impl Losses {
    pub(crate) fn add(&self, signal: Signal, reason: Reason, events: u64) {
        let place = Signal::ALL.iter().position(|one| *one == signal);
        let counts = self.0.get(reason as usize);
        let count = place.and_then(|place| counts.and_then(|counts| counts.get(place)));
        if let Some(count) = count {
            count.fetch_add(events, Ordering::Relaxed);
        }
    }

    pub(crate) fn add_all(&self, events: &[(Signal, u32)], reason: Reason) {
        for (signal, count) in events {
            self.add(*signal, reason, u64::from(*count));
        }
    }

    /// Counts the losses again that were reported by a batch that never arrives.
    pub(crate) fn add_reported(&self, reported: &ReportedLosses) {
        for (signal, name, count) in reported {
            let reason = Reason::ALL.iter().find(|reason| reason.as_str() == name);
            // A reason that only another version of the SDK knows counts as lost to the disk.
            self.add(*signal, *reason.unwrap_or(&Reason::DiskFailed), *count);
        }
    }

    /// Takes at most 64 of the counts. The others are taken by later calls.
    pub(crate) fn take(&self) -> Vec<Dropped<'static>> {
        let reasons = Reason::ALL.iter().zip(&self.0);
        let counts = reasons.flat_map(|(reason, counts)| {
            let counts = Signal::ALL.iter().zip(counts);
            counts.map(move |(signal, count)| (*reason, *signal, count))
        });
        let lost = counts.filter(|(_, _, count)| count.load(Ordering::Relaxed) > 0);
        lost.take(64)
            .map(|(reason, signal, count)| Dropped {
                signal,
                reason: reason.as_str().into(),
                count: count.swap(0, Ordering::Relaxed),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_reported_once() {
        let losses = Losses::default();
        losses.add(Signal::Spans, Reason::QueueFull, 2);
        losses.add(Signal::Spans, Reason::QueueFull, 3);
        losses.add_all(&[(Signal::Janks, 1)], Reason::Refused);
        let reported: Vec<_> = losses
            .take()
            .into_iter()
            .map(|one| (one.signal, one.reason.to_string(), one.count))
            .collect();
        assert_eq!(
            reported,
            [
                (Signal::Spans, "queue_full".to_owned(), 5),
                (Signal::Janks, "refused".to_owned(), 1)
            ]
        );
        assert!(losses.take().is_empty());
    }
}
