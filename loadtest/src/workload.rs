//! Combines plans, batches, connections and retries into a load.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::arguments::{LoadArgs, RetryArgs};
use crate::clock;
use crate::delivery::{Backoff, Carrier};
use crate::fingerprint::Times;
use crate::load::{self, LoadSettings, Outcome, Stops};
use crate::parcel::{Packer, Parcel, ParcelSettings};
use crate::parcel_threads::{self, Stop};
use crate::plan::{PlanSettings, Planner, Rate};
use crate::post::Target;
use crate::run_tag::RunTag;
use crate::tally::Recent;

/// A generated load.
pub(crate) struct Workload {
    pub(crate) load: LoadArgs,
    pub(crate) tag: RunTag,
    /// Last scheduled start. `None` continues until stopped.
    pub(crate) duration: Option<Duration>,
    pub(crate) batches: Option<u64>,
    pub(crate) verify: bool,
    /// [`Times::Ignored`] for a load that is built ahead.
    pub(crate) times: Times,
}

/// The server to send to, and how to retry.
pub(crate) struct Destination {
    pub(crate) url: String,
    pub(crate) key: String,
    pub(crate) backoff: Backoff,
    pub(crate) timeout: Duration,
}

impl Destination {
    pub(crate) fn new(url: &str, key: &str, retry: &RetryArgs) -> Self {
        Self {
            url: url.to_owned(),
            key: key.to_owned(),
            backoff: retry.backoff(),
            timeout: retry.timeout,
        }
    }

    pub(crate) fn carrier(&self, connections: u16, stops: &Stops) -> Result<Arc<Carrier>> {
        let connections = usize::from(connections);
        Ok(Arc::new(Carrier {
            target: Target::new(&self.url, &self.key, connections, self.timeout)?,
            backoff: self.backoff.clone(),
            connections: Semaphore::new(connections),
            stop: stops.retries.clone(),
        }))
    }
}

/// Returns a random tag that is unique to the run.
pub(crate) fn new_tag() -> RunTag {
    let (high, low) = Uuid::new_v4().as_u64_pair();
    RunTag(high.rotate_left(20) ^ low)
}

/// Time between starting to build batches and the first scheduled start.
const LEAD: Duration = Duration::from_millis(400);

impl Workload {
    /// Returns the batches per second that are scheduled to start. `None` in a closed loop.
    pub(crate) fn offered(&self) -> Option<f64> {
        match self.load.rate {
            Rate::PerSecond(rate) => Some(rate),
            Rate::Max => None,
        }
    }

    fn planner(&self) -> Planner {
        Planner::new(PlanSettings {
            seed: self.load.seed,
            rate: self.load.rate,
            arrivals: self.load.arrivals,
            devices: self.load.devices,
            duration: self.duration,
            batches: self.batches,
        })
    }

    fn packer(&self) -> Packer {
        Packer::new(ParcelSettings {
            seed: self.load.seed,
            tag: self.tag,
            mix: self.load.mix,
            events: usize::try_from(self.load.events_per_batch).unwrap_or(usize::MAX),
            encoding: self.load.encoding,
            format: self.load.format,
            late: self.load.late,
            invalid: self.load.invalid,
            verify: self.verify,
            times: self.times,
        })
    }

    fn settings(&self) -> LoadSettings {
        let closed = self.load.rate == Rate::Max;
        LoadSettings {
            outstanding: if closed {
                usize::from(self.load.connections)
            } else {
                self.load.outstanding.max(1)
            },
            expected: self.duration,
            stop_after: self.duration.filter(|_| closed),
            verify: self.verify,
            grace: None,
            recent: None,
        }
    }

    /// Builds batches while sending them.
    pub(crate) async fn stream(&self, destination: &Destination, stops: &Stops) -> Result<Outcome> {
        self.stream_to(destination, stops, None).await
    }

    /// Like [`Workload::stream`], and reports each acknowledged batch to `recent`.
    pub(crate) async fn stream_to(
        &self,
        destination: &Destination,
        stops: &Stops,
        recent: Option<Recent>,
    ) -> Result<Outcome> {
        let carrier = destination.carrier(self.load.connections, stops)?;
        let lead = i64::try_from(LEAD.as_micros()).unwrap_or_default();
        let started = clock::now().shifted(lead);
        let start = Instant::now() + LEAD;
        let parcels = parcel_threads::start(
            self.planner(),
            self.packer(),
            self.load.generators,
            started,
            &stops.load,
        );
        let settings = LoadSettings {
            recent,
            ..self.settings()
        };
        load::run(parcels, start, settings, carrier, stops.clone()).await
    }

    /// Builds the whole load without sending it.
    pub(crate) async fn prepare(&self) -> Result<Vec<Parcel>> {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let parcels = parcel_threads::start(
            self.planner(),
            self.packer(),
            threads,
            clock::now(),
            &Stop::default(),
        );
        tokio::task::spawn_blocking(|| parcels.collect())
            .await
            .context("building the load")?
    }

    /// Sends a load that was built before.
    pub(crate) async fn send(
        &self,
        parcels: Vec<Parcel>,
        destination: &Destination,
        stops: &Stops,
    ) -> Result<Outcome> {
        let carrier = destination.carrier(self.load.connections, stops)?;
        let start = Instant::now() + LEAD;
        load::run(
            parcels.into_iter().map(Ok),
            start,
            self.settings(),
            carrier,
            stops.clone(),
        )
        .await
    }
}
