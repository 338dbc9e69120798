//! Hands what arrives to the ingest, as the handler of a request does: taken apart, known or new, counted, made durable.

use std::sync::Arc;

use futures_util::future::try_join_all;
use unjank_protocol::Limits;

use super::calendar::{HOUR_US, uses_of_day};
use super::delivery::{Delivery, UnderWay};
use super::population::{Install, installs};
use super::stacks::{Stack, stacks};
use super::{APP, PROJECT, Plan};
use crate::app::App;
use crate::ingest::{Arrival, Context, Device, StackKey, accept};
use crate::store::{Count, Outcome};

pub(super) struct Intake {
    app: Arc<App>,
    plan: Plan,
    device: Device,
    limits: Limits,
    installs: Vec<Install>,
    stacks: Vec<Stack>,
    under_way: UnderWay,
}

/// What a day leaves for the ingest log.
#[derive(Default)]
pub(super) struct Taken {
    records: Vec<Vec<u8>>,
    new_stacks: Vec<StackKey>,
    pub(super) batches: u64,
    pub(super) events: u64,
}

/// Records that wait for the disk at a time: fewer than its queue takes.
const TOGETHER: usize = 256;

impl Intake {
    pub(super) fn new(app: Arc<App>, plan: Plan) -> Self {
        Self {
            device: Device {
                project: Arc::from(PROJECT),
                apps: Some(Arc::from([APP.to_owned()])),
                install_id: None,
            },
            limits: app.limits.clone(),
            installs: installs(plan.seed, plan.installs),
            stacks: stacks(),
            under_way: UnderWay::default(),
            app,
            plan,
        }
    }

    /// Makes what is sent on a day and takes apart what arrives on it.
    pub(super) fn day(&mut self, day: u32) -> anyhow::Result<Taken> {
        for (install, told) in uses_of_day(&self.plan, &self.installs, &self.stacks, day) {
            self.under_way.send(&self.plan, install, told)?;
        }
        let mut taken = Taken::default();
        let mut hour = None;
        for delivery in self.under_way.arrived(self.plan.end_of(day)) {
            let now = delivery.at - delivery.at.rem_euclid(HOUR_US);
            if let Some(before) = hour.replace(now)
                && before != now
            {
                taken.records.extend(self.counts(before));
            }
            self.take(&delivery, &mut taken)?;
        }
        let last = hour.unwrap_or_default();
        taken.records.extend(self.counts(last));
        Ok(taken)
    }

    /// What was counted, as records of that time.
    fn counts(&self, at: i64) -> Vec<Vec<u8>> {
        let counts = self.app.outcome_counts.take();
        counts.iter().map(|counts| counts.record(at)).collect()
    }

    fn take(&self, delivery: &Delivery, taken: &mut Taken) -> anyhow::Result<()> {
        let app = &self.app;
        let rules = app.access.rules(PROJECT);
        let context = Context {
            device: &self.device,
            limits: &self.limits,
            rules: rules.as_deref().unwrap_or(&app.default_rules),
            scrubbing: &app.access.scrubbing(PROJECT),
            known_stacks: &app.known_stacks,
            variety: &app.variety,
            config_etag: &|_| None,
            hold_back: None,
            received_at: delivery.at,
            // As devices send it.
            wire_bytes: zstd::bulk::compress(&delivery.body, 1)?.len(),
            quick_only: false,
        };
        let Ok(accepted) = accept(&delivery.body, &context) else {
            self.count("batch", (Outcome::Rejected, "invalid_json"), 1);
            return Ok(());
        };
        let Arrival::New(ticket) = app.seen.arrive(PROJECT, delivery.batch_id, &[]) else {
            for (signal, events) in &accepted.events {
                self.count(signal.as_str(), (Outcome::Duplicate, "batch"), *events);
            }
            return Ok(());
        };
        // Before it is durable: when it does not become so, the whole demo is given up.
        ticket.stored(Box::default());
        taken.batches += 1;
        taken.events += accepted.receipt.accepted;
        taken.new_stacks.extend(accepted.new_stacks);
        taken.records.push(accepted.record);
        Ok(())
    }

    fn count(&self, signal: &'static str, (outcome, reason): (Outcome, &'static str), events: u32) {
        let count = Count {
            signal,
            outcome,
            reason,
            events,
        };
        self.app.outcome_counts.add(&self.device.project, count);
    }
}

/// Makes a day durable.
pub(super) async fn append(app: &App, taken: Taken) -> anyhow::Result<()> {
    let mut records = taken.records.into_iter();
    loop {
        let some: Vec<_> = records.by_ref().take(TOGETHER).collect();
        if some.is_empty() {
            break;
        }
        try_join_all(some.into_iter().map(|record| app.log.append(record))).await?;
    }
    app.known_stacks.insert(&taken.new_stacks);
    Ok(())
}
