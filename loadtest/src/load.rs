//! Runs a load: receives parcels on schedule, starts their deliveries and records the results.

use std::pin::pin;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::delivery::{Carrier, Delivery, deliver};
use crate::ledger::Ledger;
use crate::pacing::{Due, Pacing, pace};
use crate::parcel::Parcel;
use crate::parcel_threads::Stop;
use crate::progress::Progress;
use crate::tally::{Recent, Tally};

/// How to run a load.
pub(crate) struct LoadSettings {
    /// Maximum number of batches in flight: the connections of a closed loop, more in an open loop.
    pub(crate) outstanding: usize,
    /// Planned duration, for the progress bar. `None` if the load ends for another reason.
    pub(crate) expected: Option<Duration>,
    /// Ends a closed loop, which has no scheduled starts.
    pub(crate) stop_after: Option<Duration>,
    /// Keep fingerprints for verification.
    pub(crate) verify: bool,
    /// How long batches may be retried after the load before they are given up. `None` waits for all of them.
    pub(crate) grace: Option<Duration>,
    /// Reports each finished batch to an observer.
    pub(crate) recent: Option<Recent>,
}

/// The result of a load.
pub(crate) struct Outcome {
    pub(crate) tally: Tally,
    pub(crate) ledger: Ledger,
    pub(crate) pacing: Pacing,
    /// Time from the start to the last acknowledgment.
    pub(crate) took: Duration,
    /// The open loop had to wait because too many batches were in flight.
    pub(crate) saturated: bool,
    pub(crate) interrupted: bool,
}

/// `load` stops new batches; `retries` gives up the batches that wait for a retry.
#[derive(Clone, Default)]
pub(crate) struct Stops {
    pub(crate) load: Stop,
    pub(crate) retries: Stop,
}

/// Sends all parcels and waits until each is delivered or given up.
pub(crate) async fn run<I>(
    parcels: I,
    start: Instant,
    settings: LoadSettings,
    carrier: Arc<Carrier>,
    stops: Stops,
) -> Result<Outcome>
where
    I: Iterator<Item = Result<Parcel>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(64);
    let stop = stops.load.clone();
    let pacer = thread::spawn(move || pace(parcels, start, &sender, &stop));
    let load = Load {
        progress: Progress::new(settings.expected),
        settings,
        carrier,
        stops,
        start,
        tally: Tally::new()?,
        ledger: Ledger::default(),
        under_way: JoinSet::new(),
        saturated: false,
        interrupted: false,
    };
    let mut outcome = load.work(receiver).await?;
    outcome.pacing = pacer
        .join()
        .map_err(|_| anyhow!("the pacing thread panicked"))??;
    Ok(outcome)
}

struct Load {
    settings: LoadSettings,
    carrier: Arc<Carrier>,
    stops: Stops,
    start: Instant,
    tally: Tally,
    ledger: Ledger,
    under_way: JoinSet<Delivery>,
    saturated: bool,
    interrupted: bool,
    progress: Progress,
}

impl Load {
    async fn work(mut self, mut due: mpsc::Receiver<Due>) -> Result<Outcome> {
        let mut ticks = tokio::time::interval(Duration::from_millis(250));
        let mut interrupt = pin!(tokio::signal::ctrl_c());
        let mut more = true;
        let mut ended_at: Option<Instant> = None;
        while more || !self.under_way.is_empty() {
            let room = self.under_way.len() < self.settings.outstanding;
            self.saturated |= more && !room;
            tokio::select! {
                next = due.recv(), if more && room => match next {
                    Some(due) => {
                        self.under_way.spawn(deliver(Arc::clone(&self.carrier), due));
                    }
                    None => more = false,
                },
                Some(ended) = self.under_way.join_next() => {
                    self.end(ended.context("a delivery panicked")?)?;
                }
                _ = ticks.tick() => {
                    self.check_time();
                    self.progress.show(&self.tally, self.start.elapsed(), self.under_way.len());
                }
                asked = &mut interrupt, if !self.interrupted => {
                    asked.context("waiting for Ctrl-C")?;
                    self.interrupted = true;
                    self.stops.load.now();
                }
            }
            if !more || self.interrupted {
                let ended = *ended_at.get_or_insert_with(Instant::now);
                self.check_grace(ended);
            }
        }
        self.progress.finish();
        let last = self.tally.last_acknowledgment().unwrap_or(self.start);
        Ok(Outcome {
            took: last.saturating_duration_since(self.start),
            tally: self.tally,
            ledger: self.ledger,
            pacing: Pacing::default(),
            saturated: self.saturated,
            interrupted: self.interrupted,
        })
    }

    fn end(&mut self, delivery: Delivery) -> Result<()> {
        self.tally.add(&delivery);
        if let Some(recent) = &self.settings.recent {
            recent.add(&delivery)?;
        }
        if self.settings.verify {
            let parcel = delivery.parcel;
            self.ledger
                .record(parcel.batch_id, parcel.manifest, &delivery.fate);
        }
        Ok(())
    }

    fn check_time(&self) {
        if self
            .settings
            .stop_after
            .is_some_and(|duration| self.start.elapsed() > duration)
        {
            self.stops.load.now();
        }
    }

    fn check_grace(&self, ended: Instant) {
        const AFTER_INTERRUPT: Duration = Duration::from_secs(5);
        let grace = if self.interrupted {
            Some(AFTER_INTERRUPT)
        } else {
            self.settings.grace
        };
        if grace.is_some_and(|grace| ended.elapsed() > grace) {
            self.stops.retries.now();
        }
    }
}
