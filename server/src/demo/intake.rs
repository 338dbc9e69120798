//! Hands the deliveries of the demo to the server's intake, as HTTP does.

use std::sync::Arc;

use futures_util::future::join_all;
use unjank_foundation::clock::{HOUR, UnixTime};
use unjank_foundation::shares::{Holder, Memory};

use super::calendar::uses_of_day;
use super::delivery::{Delivery, UnderWay};
use super::population::{Install, installs};
use super::stacks::{Stack, stacks};
use super::{APP, PROJECT, Plan};
use crate::access::{Budget, Caller};
use crate::app::App;
use crate::ingest::Device;
use crate::intake::{Encoding, Format, Refused, Upload};

/// Makes the traffic of each day.
pub(super) struct Source {
    plan: Plan,
    installs: Vec<Install>,
    stacks: Vec<Stack>,
    under_way: UnderWay,
}

impl Source {
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            installs: installs(plan.seed, plan.installs),
            stacks: stacks(),
            under_way: UnderWay::default(),
            plan,
        }
    }

    /// The deliveries that arrive on a day, in their order.
    pub(super) fn day(&mut self, day: u32) -> anyhow::Result<Vec<Delivery>> {
        for (install, session) in uses_of_day(&self.plan, &self.installs, &self.stacks, day) {
            self.under_way.send(&self.plan, install, session)?;
        }
        Ok(self.under_way.arrived(self.plan.end_of(day)))
    }
}

/// What the server stored.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stored {
    pub(super) batches: u64,
    pub(super) events: u64,
}

/// Maximum number of batches that are sent concurrently and share a sync of the disk. Must be less than the length of
/// the log's queue.
const TOGETHER: usize = 256;

/// Sends the deliveries of a day.
pub(super) async fn send(app: &App, deliveries: &[Delivery]) -> anyhow::Result<Stored> {
    let caller = caller();
    let mut stored = Stored::default();
    for hour in deliveries.chunk_by(|one, next| hour_of(one) == hour_of(next)) {
        for some in hour.chunks(TOGETHER) {
            send_together(app, &caller, some, &mut stored).await?;
        }
        // Outcomes of refused and duplicate batches belong to the hour of the demo, not to the current hour.
        for counts in app.intake.outcome_counts.take() {
            let at = hour.first().map_or(UnixTime::default(), hour_of);
            app.log.append(counts.record(at)).await?;
        }
    }
    Ok(stored)
}

async fn send_together(
    app: &App,
    caller: &Caller,
    deliveries: &[Delivery],
    stored: &mut Stored,
) -> anyhow::Result<()> {
    let mut waiting: Vec<&Delivery> = deliveries.iter().collect();
    while !waiting.is_empty() {
        let answers = join_all(waiting.iter().map(|delivery| take(app, caller, delivery)));
        let mut in_flight = Vec::new();
        for (delivery, answer) in waiting.iter().zip(answers.await) {
            match answer {
                Ok(receipt) if receipt.duplicate => {}
                Ok(receipt) => {
                    stored.batches += 1;
                    stored.events += receipt.accepted;
                }
                // The batch was sent twice within this group.
                Err(Refused::InFlight) => in_flight.push(*delivery),
                Err(Refused::Batch(_)) => app.intake.count_refused(caller, "invalid_json"),
                Err(refused) => return Err(refused.into()),
            }
        }
        waiting = in_flight;
    }
    Ok(())
}

async fn take(
    app: &App,
    caller: &Caller,
    delivery: &Delivery,
) -> Result<unjank_protocol::Receipt<'static>, Refused> {
    let memory = Memory::new(app.intake.bodies.begin(caller.project));
    let upload = Upload::new(delivery.body.clone(), Encoding::Zstd, memory);
    app.intake
        .take(
            caller,
            (upload, Format::Batch),
            UnixTime::from_micros(delivery.at),
        )
        .await
}

fn hour_of(delivery: &Delivery) -> UnixTime {
    UnixTime::from_micros(delivery.at).floor(HOUR)
}

fn caller() -> Caller {
    Caller {
        device: Arc::new(Device {
            project: Arc::from(PROJECT),
            apps: Some(Arc::from([APP.to_owned()])),
            install_id: None,
        }),
        budget: Budget::default(),
        holder: Holder::new("demo", b"key"),
        project: Holder::new("demo", b"project"),
    }
}
