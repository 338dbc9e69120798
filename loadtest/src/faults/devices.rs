//! Sends generated batches during a fault, and retries each batch until it is acknowledged.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio::task::JoinSet;

use crate::clock;
use crate::delivery::{Backoff, Carrier, Delivery, Fate, deliver};
use crate::events::Mix;
use crate::faults::wait::eventually;
use crate::fingerprint::Times;
use crate::format::Format;
use crate::ledger::Ledger;
use crate::load::Stops;
use crate::pacing::Due;
use crate::parcel::{Encoding, Packer, ParcelSettings};
use crate::parcel_threads::Stop;
use crate::plan::{Arrivals, PlanSettings, Planner, Rate};
use crate::run_tag::RunTag;
use crate::server::KEY;
use crate::store::Scope;
use crate::workload::{Destination, new_tag};

/// Contents of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Size {
    /// 40 events of all signals.
    Small,
    /// 40 spans.
    Spans,
    /// 1,000 events of all signals.
    Medium,
    /// 10,000 spans. The server does not roll up a range of six such batches as soon as the range is stored.
    Large,
}

const SIZES: [(Size, Mix, usize); 4] = [
    (Size::Small, Mix::Realistic, 40),
    (Size::Spans, Mix::Spans, 40),
    (Size::Medium, Mix::Realistic, 1_000),
    (Size::Large, Mix::Spans, 10_000),
];

/// Interval between batches of a stream.
const EVERY: Duration = Duration::from_millis(50);
/// Maximum number of batches in flight in a stream. At this number, the stream starts no further batches.
const MOST_UNDER_WAY: usize = 400;
/// How long a batch may stay unacknowledged after the fault is over.
const PATIENCE: Duration = Duration::from_secs(90);

pub(super) struct Devices {
    pub(super) ledger: Ledger,
    /// Attempts that were not answered with 202.
    pub(super) failed_attempts: u64,
    /// Why a batch was rejected permanently. All batches are valid, so this is an error of the server.
    refused: Option<String>,
    tag: RunTag,
    planner: Planner,
    packers: Vec<(Size, Packer)>,
    carrier: Arc<Carrier>,
}

impl Devices {
    /// Creates the devices that send to the server at `url`.
    pub(super) fn new(url: &str) -> Result<Self> {
        const CONNECTIONS: u16 = 16;
        let tag = new_tag();
        let destination = Destination {
            url: url.to_owned(),
            key: KEY.to_owned(),
            backoff: Backoff {
                first: Duration::from_millis(100),
                longest: Duration::from_secs(2),
                retry_after_scale: 0.1,
                attempts: None,
            },
            timeout: Duration::from_secs(10),
        };
        Ok(Self {
            ledger: Ledger::default(),
            failed_attempts: 0,
            refused: None,
            tag,
            planner: Planner::new(PlanSettings {
                seed: 1,
                rate: Rate::Max,
                arrivals: Arrivals::Even,
                devices: 200,
                duration: None,
                batches: None,
            }),
            packers: SIZES
                .map(|(size, mix, events)| (size, packer(tag, mix, events)))
                .into(),
            carrier: destination.carrier(CONNECTIONS, &Stops::default())?,
        })
    }

    /// Returns the scope of these devices' rows in the store.
    pub(super) fn scope(&self) -> Scope {
        Scope::Run(self.tag, Times::OfRightClocks)
    }

    /// Sends batches one at a time: each is acknowledged before the next one starts.
    pub(super) async fn send(&mut self, size: Size, batches: u32) -> Result<()> {
        for _ in 0..batches {
            self.send_together(size, 1).await?;
        }
        Ok(())
    }

    /// Sends batches concurrently, and waits until all are acknowledged.
    pub(super) async fn send_together(&mut self, size: Size, batches: u32) -> Result<()> {
        let mut under_way = JoinSet::new();
        for _ in 0..batches {
            under_way.spawn(deliver(Arc::clone(&self.carrier), self.next(size)?));
        }
        self.finish(under_way).await
    }

    /// Sends a batch every 50 ms until `stop` is set, then waits until all are acknowledged.
    pub(super) async fn stream(&mut self, size: Size, stop: &Stop) -> Result<()> {
        let mut under_way = JoinSet::new();
        while !stop.asked() {
            if under_way.len() < MOST_UNDER_WAY {
                under_way.spawn(deliver(Arc::clone(&self.carrier), self.next(size)?));
            }
            while let Some(ended) = under_way.try_join_next() {
                self.record(ended.context("a delivery panicked")?);
            }
            tokio::time::sleep(EVERY).await;
        }
        self.finish(under_way).await
    }

    /// Returns a stop that ends all retries: every unacknowledged batch is then given up.
    pub(super) fn retries(&self) -> Stop {
        self.carrier.stop.clone()
    }

    fn next(&mut self, size: Size) -> Result<Due> {
        let plan = self
            .planner
            .next()
            .context("the planner has no more plans")?;
        let packer = self.packers.iter().find(|(one, _)| *one == size);
        let (_, packer) = packer.context("a size has no packer")?;
        Ok(Due {
            parcel: packer.pack(&plan, clock::now())?,
            intended: Some(Instant::now()),
        })
    }

    async fn finish(&mut self, mut under_way: JoinSet<Delivery>) -> Result<()> {
        let all_ended = eventually(PATIENCE, async || {
            while let Some(ended) = under_way.try_join_next() {
                self.record(ended.context("a delivery panicked")?);
            }
            Ok(under_way.is_empty())
        });
        if !all_ended.await? {
            self.carrier.stop.now();
        }
        let mut why = None;
        while let Some(ended) = under_way.join_next().await {
            let delivery = ended.context("a delivery panicked")?;
            if let Fate::Unknown(reason) = &delivery.fate {
                why = Some(reason.clone());
            }
            self.record(delivery);
        }
        if let Some(why) = &self.refused {
            bail!("a valid batch was rejected: {why}");
        }
        match why {
            Some(why) => bail!("a batch was not acknowledged: {why}"),
            None => Ok(()),
        }
    }

    fn record(&mut self, delivery: Delivery) {
        let failed = |(status, _): &&(String, Duration)| status != "202";
        self.failed_attempts += delivery.attempts.iter().filter(failed).count() as u64;
        if let Fate::Refused(why) = &delivery.fate {
            self.refused = Some(why.clone());
        }
        let parcel = delivery.parcel;
        self.ledger
            .record(parcel.batch_id, parcel.manifest, &delivery.fate);
    }
}

fn packer(tag: RunTag, mix: Mix, events: usize) -> Packer {
    Packer::new(ParcelSettings {
        seed: 1,
        tag,
        mix,
        events,
        encoding: Encoding::Zstd,
        format: Format::Batch,
        // Late batches spread rows over several days, and so over several parts of a table.
        late: 0.02,
        invalid: 0.0,
        verify: true,
        times: Times::OfRightClocks,
    })
}
