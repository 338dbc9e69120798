//! The way of a batch from its body to its receipt. Every source of batches calls [`Intake::take`].

mod large_batches;
mod outcome_counts;
mod pending;
mod upload;

use std::sync::Arc;
use std::time::Duration;

use unjank_protocol::{Limits, Receipt, Signal};

pub use self::large_batches::LargeBatches;
pub use self::outcome_counts::{OutcomeCounts, ProjectCounts};
use self::pending::Pending;
pub use self::upload::{Encoding, NotInflated, Upload};

use unjank_foundation::clock::{Clock, UnixTime};
use unjank_foundation::shares::{Memory, Share, Shares};
use unjank_stacks::RuleSet;

use crate::access::{Access, Caller, Cost, OverQuota, RefusedKeys};
use crate::forward::ForwardQueue;
use crate::ingest::{self, Again, Checked, Context, Prepared, Refusal, SignalTally, Tally};
use crate::metrics::IngestMetrics;
use crate::otlp;
use crate::recent::{Arrival, ArrivedStacks, RecentBatches, RecentNames, RecentStacks};
use crate::records::{Count, Outcome};
use crate::store::{IngestLog, LogError};

/// Bodies up to this size after decompression are processed at once, in about a millisecond. Larger ones have threads of their own.
const SMALL_BODY: usize = 256 * 1024;
/// The pause between a refused large batch and the next one of its project.
const AFTER_REFUSAL: Duration = Duration::from_millis(250);

/// What the way of a batch needs.
pub struct Intake {
    pub limits: Limits,
    pub clock: Clock,
    pub access: Arc<Access>,
    /// The classification rules of projects without rules of their own.
    pub default_rules: Arc<RuleSet>,
    pub recent_batches: Arc<RecentBatches>,
    pub recent_stacks: RecentStacks,
    /// New stacks that wait for symbolication.
    pub arrived_stacks: Arc<ArrivedStacks>,
    pub recent_names: RecentNames,
    pub outcome_counts: OutcomeCounts,
    /// Keys that were refused, for people who set up an app.
    pub refused_keys: RefusedKeys,
    pub log: IngestLog,
    /// Takes the spans that projects forward.
    pub forward: Arc<ForwardQueue>,
    pub metrics: IngestMetrics,
    /// Concurrent uploads, by project: fewer than connections, so that polls of the configuration find a connection.
    pub uploads: Arc<Shares>,
    /// Concurrent uploads by key or install, so that one of them cannot use up the part of its project.
    pub uploads_of_keys: Arc<Shares>,
    /// Memory of bodies in KiB, by project.
    pub bodies: Arc<Shares>,
    pub large_batches: LargeBatches,
}

/// Why a batch is refused. `http::api::problem` has the status and code of each variant.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("too many uploads")]
    Busy,
    #[error("over quota: {0:?}")]
    OverQuota(OverQuota),
    #[error("the body does not decompress: {0:?}")]
    NotInflated(NotInflated),
    #[error(transparent)]
    Batch(#[from] Refusal),
    #[error(transparent)]
    Otlp(#[from] otlp::Unreadable),
    #[error("another request with the same batch is in flight")]
    InFlight,
    #[error(transparent)]
    Log(#[from] LogError),
}

/// What the body of an upload is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A batch of the protocol, as JSON.
    Batch,
    /// A batch of the protocol, as columns.
    Columns,
    /// A request of OpenTelemetry.
    Otlp(otlp::Kind, otlp::Form),
}

/// The right of one upload to proceed.
#[must_use]
pub struct Admission(#[expect(dead_code, reason = "dropping it frees the places")] [Share; 2]);

impl Intake {
    /// Admits an upload before its body is read, if there is a place for it and a quota for at least one event. Returns the share that
    /// pays for the memory of the body.
    pub fn admit(
        &self,
        caller: &Caller,
        declared_bytes: Option<u64>,
    ) -> Result<(Admission, Memory), Refused> {
        let own = self.uploads_of_keys.try_take(caller.holder, 1);
        let own = own.ok_or(Refused::Busy)?;
        let project = self.uploads.try_take(caller.project, 1);
        let project = project.ok_or(Refused::Busy)?;
        let now = self.clock.now();
        let admitted = caller.budget.admit(declared_bytes, now);
        admitted.map_err(Refused::OverQuota)?;
        let memory = Memory::new(self.bodies.begin(caller.project));
        Ok((Admission([own, project]), memory))
    }

    /// Charges for a body of which `read` bytes were received for nothing.
    pub fn spend(&self, caller: &Caller, read: usize) {
        let cost = read_in_vain(read, read);
        caller.budget.spend(cost, self.clock.now());
    }

    /// Takes a batch from its body to its receipt: inflate, check, deduplicate, take from the quotas of signals, make rows, charge, append
    /// to the log. The events are durable when this returns.
    pub async fn take(
        self: &Arc<Self>,
        caller: &Caller,
        (upload, format): (Upload, Format),
        received_at: UnixTime,
    ) -> Result<Receipt<'static>, Refused> {
        let bytes = upload.wire_bytes() as u64;
        self.metrics.body_bytes.inc_by(bytes);
        let timer = self.metrics.decode_seconds.start_timer();
        let arrived = self.prepare(caller, (upload, format), received_at).await?;
        timer.observe_duration();

        match arrived {
            Arrived::Again(mut again) => {
                let limits = &mut again.receipt.rate_limits;
                caller.budget.refresh_waits(limits, self.clock.now());
                self.count_events(&again.tally);
                self.count_duplicates(caller, &again.tally);
                Ok(again.receipt)
            }
            Arrived::New(mut prepared, pending) => {
                let stored = self.store(caller, &mut prepared, pending, bytes).await;
                if stored.is_err() {
                    let taken = stored_by_signal(&prepared.tally);
                    caller.budget.give_back_signals(taken, self.clock.now());
                }
                stored?;
                self.count(&prepared);
                Ok(prepared.receipt)
            }
        }
    }

    /// Counts a batch that was refused as a whole and will not be sent again.
    pub fn count_refused(&self, caller: &Caller, code: &'static str) {
        let refused = Count {
            signal: "batch",
            outcome: Outcome::Rejected,
            reason: code,
            events: 1,
        };
        self.outcome_counts.add(&caller.device.project, refused);
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Turns a body into a record. Large and slow batches have threads of their own, so that they delay no other request.
    async fn prepare(
        self: &Arc<Self>,
        caller: &Caller,
        (upload, format): (Upload, Format),
        received_at: UnixTime,
    ) -> Result<Arrived, Refused> {
        let work = Preparation {
            intake: Arc::clone(self),
            caller: caller.clone(),
            upload,
            format,
            received_at,
        };
        // The compressed size says little about the inflated size. The operator may set a lower limit than that of small bodies.
        let small = SMALL_BODY.min(self.limits.decompressed_bytes);
        if work.upload.wire_bytes() <= small
            && !work.upload.claims_more_than(small)
            && let Some(done) = work.run(small, Patience::Quick)
        {
            return done;
        }
        let large = self.large_batches.run(caller.project, move || {
            let limit = work.intake.limits.decompressed_bytes;
            let done = work.run(limit, Patience::Slow);
            done.unwrap_or_else(|| Err(work.too_large(limit)))
        });
        let (done, turn) = large.await.ok_or(Refused::Busy)?;
        if done.is_err() {
            // The allocator returns the memory to the system in this time.
            tokio::time::sleep(AFTER_REFUSAL).await;
        }
        drop(turn);
        done
    }

    /// Appends the batch to the log, and charges the quotas of key and project for it.
    async fn store(
        &self,
        caller: &Caller,
        prepared: &mut Prepared,
        pending: Option<Pending>,
        bytes: u64,
    ) -> Result<(), Refused> {
        let Some(pending) = pending else {
            let stored = prepared.tally.total(|one| one.stored);
            debug_assert_eq!(stored, 0, "a request without a batch has no events");
            return Ok(());
        };
        // Held-back events take nothing from the quota of the other signals.
        let charged = prepared.tally.total(|one| one.stored + one.invalid);
        let cost = Cost {
            events: u32::try_from(charged).unwrap_or(u32::MAX),
            bytes,
        };
        let now = self.clock.now();
        if let Err(over) = caller.budget.charge(cost, now) {
            pending.refused();
            return Err(Refused::OverQuota(over));
        }
        let record = std::mem::take(&mut prepared.record);
        if let Err(error) = self.log.append(record).await {
            caller.budget.refund(cost, self.clock.now());
            pending.refused();
            return Err(error.into());
        }
        pending.stored(prepared.unstored());
        self.recent_stacks.insert(&prepared.new_stacks);
        let project = &caller.device.project;
        self.arrived_stacks.add(project, &prepared.waiting_stacks);
        let forwarded = std::mem::take(&mut prepared.forwarded);
        if !forwarded.is_empty() {
            self.forward.offer(project, forwarded);
        }
        Ok(())
    }

    fn count(&self, prepared: &Prepared) {
        self.count_events(&prepared.tally);
        let unclassified = &self.metrics.unclassified_stacks;
        unclassified.inc_by(prepared.unclassified_stacks);
        if let Some(skew) = prepared.skew_us {
            let seconds = Duration::from_micros(skew.unsigned_abs()).as_secs_f64();
            self.metrics.clock_skew_seconds.observe(seconds);
        }
    }

    fn count_events(&self, tally: &Tally) {
        for (signal, tally) in tally.iter() {
            for (outcome, events) in [
                (Outcome::Stored, tally.stored),
                (Outcome::Rejected, tally.rejected()),
                (Outcome::Duplicate, tally.duplicate),
            ] {
                let labels = [signal.as_str(), outcome.as_str()];
                let counter = self.metrics.events.with_label_values(&labels);
                counter.inc_by(u64::from(events));
            }
        }
    }

    /// A duplicate leaves no record, so its outcomes are counted apart.
    fn count_duplicates(&self, caller: &Caller, tally: &Tally) {
        for (signal, SignalTally { duplicate, .. }) in tally.iter() {
            let count = Count {
                signal: signal.as_str(),
                outcome: Outcome::Duplicate,
                reason: "batch",
                events: duplicate,
            };
            self.outcome_counts.add(&caller.device.project, count);
        }
    }
}

fn stored_by_signal(tally: &Tally) -> impl Iterator<Item = (Signal, u32)> {
    tally.iter().map(|(signal, tally)| (signal, tally.stored))
}

/// Whether the work may take longer than about a millisecond.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Patience {
    Quick,
    Slow,
}

/// A batch that can be read.
enum Arrived {
    Again(Again),
    /// A request of OpenTelemetry without events has nothing to store.
    New(Prepared, Option<Pending>),
}

/// The work on one body that needs CPU only.
struct Preparation {
    intake: Arc<Intake>,
    caller: Caller,
    upload: Upload,
    format: Format,
    received_at: UnixTime,
}

impl Preparation {
    /// Inflates and checks the body and makes its record. Returns `None` if the inflated body is longer than `limit`. A quick run also returns
    /// `None` if columns stand for more or if the work is slow. A refused body costs its sender some of its quota.
    fn run(&self, limit: usize, patience: Patience) -> Option<Result<Arrived, Refused>> {
        let record = |body: &[u8]| self.record(body, limit, patience);
        match self.upload.inflate(limit, record) {
            Ok(done) => done,
            Err(NotInflated::TooLarge { .. }) => None,
            Err(error) => {
                self.spend(self.upload.wire_bytes());
                Some(Err(Refused::NotInflated(error)))
            }
        }
    }

    /// Checks a body. Columns may stand for no more than JSON of `limit` bytes.
    fn check<'b>(&self, body: &'b ingest::Body<'_>, limit: usize) -> Result<Checked<'b>, Refused> {
        let (device, limits) = (&self.caller.device, &self.intake.limits);
        let received_at = self.received_at;
        let (kind, form) = match self.format {
            Format::Batch => return Ok(ingest::check(body, device, limits, received_at)?),
            Format::Columns => {
                let checked = ingest::check_columns(body, limit, device, limits, received_at);
                return Ok(checked?);
            }
            Format::Otlp(kind, form) => (kind, form),
        };
        let request = otlp::read(body, kind, form, limits.events)?;
        let size = body.bytes().len();
        if request.batches.is_empty() {
            self.spend(size);
        }
        let (batches, undecoded) = (request.batches, request.undecoded);
        let checked = ingest::check_decoded(batches, undecoded, size, device, limits, received_at);
        Ok(checked?)
    }

    fn record(
        &self,
        body: &[u8],
        limit: usize,
        patience: Patience,
    ) -> Option<Result<Arrived, Refused>> {
        let (intake, caller, received_at) = (&self.intake, &self.caller, self.received_at);
        let device = &caller.device;
        let body = ingest::Body::new(body);
        let mut batch = match self.check(&body, limit) {
            Ok(batch) => batch,
            Err(refused) if self.stands_for_more(&refused) => {
                if patience == Patience::Quick {
                    return None;
                }
                let is_counted = matches!(refused, Refused::Batch(Refusal::TooManyEvents { .. }));
                // Events are counted before they are read.
                self.spend(if is_counted {
                    body.bytes().len()
                } else {
                    limit
                });
                return Some(Err(refused));
            }
            Err(refused) => {
                self.spend(body.bytes().len());
                return Some(Err(refused));
            }
        };
        let rules = intake.access.rules(&device.project);
        let forward = intake.access.forward(&device.project);
        let context = Context {
            device,
            rules: rules.as_deref().unwrap_or(&intake.default_rules),
            scrubbing: &intake.access.scrubbing(&device.project),
            recent_stacks: &intake.recent_stacks,
            recent_names: &intake.recent_names,
            forward: forward.as_deref(),
            received_at,
            wire_bytes: self.upload.wire_bytes(),
        };
        if patience == Patience::Quick && batch.is_slow(&context) {
            return None;
        }
        let etag = batch.resource().and_then(|resource| {
            let access = &intake.access;
            access.config_etag(&device.project, resource, received_at)
        });
        let pending = match self.arrive(&batch) {
            None => None,
            Some(Arrival::New(ticket)) => Some(Pending::new(ticket, &intake.metrics)),
            Some(Arrival::InFlight) => return Some(Err(Refused::InFlight)),
            Some(Arrival::Duplicate(unstored)) => {
                let again = batch.into_again(&unstored, etag.as_deref());
                return Some(Ok(Arrived::Again(again)));
            }
        };
        let valid = stored_by_signal(batch.tally());
        let rate_limits = caller.budget.take_signals(valid, received_at);
        batch.hold_back(rate_limits);
        let prepared = batch.into_record(&context, etag.as_deref());
        Some(Ok(Arrived::New(prepared, pending)))
    }

    /// Whether a body is refused because it stands for more than its bytes.
    fn stands_for_more(&self, refused: &Refused) -> bool {
        self.format == Format::Columns
            && matches!(refused, Refused::Batch(refusal) if refusal.is_for_size())
    }

    /// Registers the batch. Returns `None` for a request of OpenTelemetry without events.
    fn arrive(&self, batch: &Checked<'_>) -> Option<Arrival> {
        let (id, project) = (batch.id(), &self.caller.device.project);
        let batches = &self.intake.recent_batches;
        (id != ingest::NO_BATCH).then(|| batches.arrive(project, id, batch.split_from()))
    }

    fn too_large(&self, limit: usize) -> Refused {
        self.spend(limit);
        Refused::NotInflated(NotInflated::TooLarge { limit })
    }

    /// Charges for a body that was read for nothing.
    fn spend(&self, read: usize) {
        let cost = read_in_vain(read, self.upload.wire_bytes());
        self.caller.budget.spend(cost, self.received_at);
    }
}

/// The cost of a body that was read for nothing: one event for each KiB.
fn read_in_vain(read: usize, wire_bytes: usize) -> Cost {
    Cost {
        events: u32::try_from(read / 1024).unwrap_or(u32::MAX).max(1),
        bytes: wire_bytes as u64,
    }
}
