//! Simulates uploads: some batches are late, a few arrive twice, and a few contain events that the server rejects.

use bytes::Bytes;
use unjank_protocol::{Batch, Metric, Timestamp};
use unjank_random::{Random, whole};
use uuid::Uuid;

use super::Plan;
use super::calendar::{DAY_US, HOUR_US};
use super::population::Install;
use super::session::SimulatedSession;

/// An ingest request.
pub(super) struct Delivery {
    /// Time of arrival, in microseconds since the epoch.
    pub(super) at: i64,
    batch_id: Uuid,
    /// Compressed with zstd.
    pub(super) body: Bytes,
}

impl Delivery {
    /// A batch that arrives at a time.
    pub(super) fn of(at: i64, batch: &Batch<'_>) -> anyhow::Result<Self> {
        Ok(Self {
            at,
            batch_id: batch.batch_id,
            body: compressed(&serde_json::to_vec(batch)?)?,
        })
    }
}

/// Batches in flight. Some batches of a day arrive on a later day.
#[derive(Default)]
pub(super) struct UnderWay(Vec<Delivery>);

/// Shares of the batches that are sent late because the device was offline, sent twice, contain an invalid event, or are
/// truncated in transit.
const LATE: f64 = 0.05;
const TWICE: f64 = 0.008;
const SPOILED: f64 = 0.012;
const BROKEN: f64 = 0.001;
const SECOND_US: f64 = 1e6;

impl UnderWay {
    pub(super) fn send(
        &mut self,
        plan: &Plan,
        install: &Install,
        session: SimulatedSession,
    ) -> anyhow::Result<()> {
        let SimulatedSession { ended, mut batch } = session;
        let random = &mut Random::seeded(&[plan.seed, 4, batch.batch_id.as_u64_pair().0]);
        let waited = if random.chance(LATE) {
            random
                .exponential(14.0 * HOUR_US as f64)
                .min(4.0 * DAY_US as f64)
        } else {
            random.log_normal(12.0 * SECOND_US, 0.8)
        };
        let at = ended + signed(waited);
        if random.chance(SPOILED) {
            spoil(&mut batch, random);
        }
        batch.sent_at = Some(Timestamp::from_micros(at + install.clock_ahead_us));
        let mut json = serde_json::to_vec(&batch)?;
        let batch_id = batch.batch_id;
        let whole = compressed(&json)?;
        if random.chance(TWICE) {
            let again = at + signed(random.log_normal(40.0 * SECOND_US, 1.0));
            self.0.push(Delivery {
                at: again,
                batch_id,
                body: whole.clone(),
            });
        }
        let body = if random.chance(BROKEN) {
            json.truncate(json.len() / 2);
            compressed(&json)?
        } else {
            whole
        };
        self.0.push(Delivery { at, batch_id, body });
        Ok(())
    }

    /// Removes and returns the deliveries that arrive before a time, in order of arrival.
    pub(super) fn arrived(&mut self, before: i64) -> Vec<Delivery> {
        let (mut arrived, later) = std::mem::take(&mut self.0)
            .into_iter()
            .partition::<Vec<_>, _>(|delivery| delivery.at < before);
        self.0 = later;
        arrived.sort_by_key(|delivery| (delivery.at, delivery.batch_id));
        arrived
    }
}

fn compressed(json: &[u8]) -> std::io::Result<Bytes> {
    zstd::bulk::compress(json, 1).map(Bytes::from)
}

/// Makes one or two events invalid, so that every server rejects them.
fn spoil(batch: &mut Batch<'static>, random: &mut Random) {
    if let Some(span) = batch.spans.first_mut()
        && random.chance(0.5)
    {
        span.duration_us = -1;
    }
    if let Some(metric) = batch.metrics.first().cloned() {
        let time = metric.time.shifted(-9 * DAY_US);
        batch.metrics.push(Metric { time, ..metric });
    }
}

fn signed(micros: f64) -> i64 {
    i64::try_from(whole(micros)).unwrap_or(i64::MAX)
}
