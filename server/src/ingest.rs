//! From a batch to a record of the ingest log: decode → check → hold back → filter texts → classify → rows.
//!
//! Knows no HTTP, no disk and no clock. Every event gets exactly one outcome here, counted in a [`Tally`].
//! One file per signal has its checks and its columns.

mod app_start;
mod attribute_names;
mod decode;
mod decode_columns;
mod device_clock;
mod envelope;
mod event_checks;
mod faults;
mod frame_window;
mod functions;
mod jank;
mod json_repair;
mod metric;
mod modules;
mod page_load;
mod recomposition;
mod refusal;
mod reject;
mod rejections;
mod resource;
mod rows;
mod scrubbing;
mod sdk_health;
mod signal_rows;
mod span;
mod tally;
mod text_filter;
mod traffic;

use std::sync::Arc;

use unjank_foundation::clock::UnixTime;
use unjank_protocol::{
    Batch, Events, Limits, RateLimit, Receipt, Resource, Signal, for_each_signal,
};
use unjank_stacks::RuleSet;
use uuid::Uuid;

pub use self::json_repair::Body;
pub use self::refusal::Refusal;
pub use self::scrubbing::{Scrubbing, ScrubbingDocument, ScrubbingError, ScrubbingRule};
pub use self::signal_rows::MOST_BATCHES;
pub use self::tally::{SignalTally, Tally};
pub use crate::ingest::reject::Reject;

use self::decode::Decoded;
use self::device_clock::DeviceClock;
use self::jank::NewStacks;
use self::rejections::Rejections;
use self::rows::{BatchCounts, Envelope};
use self::text_filter::{ChangedTexts, TextFilter};
use crate::forward::{Forward, Piece};
use crate::ingest::event_checks::{Checks, Event};
use crate::recent::{RecentNames, RecentStacks, StackKey, Unstored};
use crate::records::{Count, Outcome, RecordBuilder};

/// The batch id of records that have only counts. Devices may not use it.
pub const NO_BATCH: Uuid = Uuid::nil();

/// The reason of events over the quota of their signal.
const RATE_LIMITED: &str = "rate_limited";

/// The sender of a batch, as its ingest key or device token identifies it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    pub project: Arc<str>,
    /// The apps that the key is for; `None` allows any.
    pub apps: Option<Arc<[String]>>,
    /// The install that a device token is for; `None` for an ingest key, which any install may hold.
    pub install_id: Option<Uuid>,
}

impl Device {
    /// Whether the sender may report for an app.
    pub fn allows(&self, app_id: &str) -> bool {
        self.apps
            .as_ref()
            .is_none_or(|apps| apps.iter().any(|app| app == app_id))
    }
}

/// The decoded batches of one request with their valid events. They have the same id. [`Self::tally`] counts the rejected events.
pub struct Checked<'a> {
    batches: Vec<Batch<'a>>,
    /// The bytes of the body, or of the texts that it stands for if they are more.
    body_bytes: usize,
    received_at: UnixTime,
    rejections: Rejections,
    rate_limits: Vec<RateLimit>,
    tally: Tally,
    /// The number of events that were truncated to fit the limits.
    truncated: u64,
    skew_us: i64,
}

/// Decodes a batch, checks who sent it, corrects the device's clock and checks every event.
pub fn check<'a>(
    body: &'a Body<'_>,
    device: &Device,
    limits: &Limits,
    received_at: UnixTime,
) -> Result<Checked<'a>, Refusal> {
    let Decoded { batch, rejections } = decode::decode(body, limits)?;
    envelope::check(&batch)?;
    let body_bytes = body.bytes().len();
    let checked = Checked::new(vec![batch], body_bytes, rejections, received_at);
    checked.check(device, limits)
}

/// Does the same with a columnar batch. It may stand for no more than JSON of `most_bytes` bytes, or is refused for its size.
pub fn check_columns<'a>(
    body: &'a Body<'_>,
    most_bytes: usize,
    device: &Device,
    limits: &Limits,
    received_at: UnixTime,
) -> Result<Checked<'a>, Refusal> {
    let (decoded, text_bytes) = decode_columns::decode(body, most_bytes, limits)?;
    let Decoded { batch, rejections } = decoded;
    envelope::check(&batch)?;
    let body_bytes = body.bytes().len().max(text_bytes);
    let checked = Checked::new(vec![batch], body_bytes, rejections, received_at);
    checked.check(device, limits)
}

/// Does the same with batches that were decoded from another format: at most [`MOST_BATCHES`], all with the same id.
pub fn check_decoded<'a>(
    batches: Vec<Batch<'a>>,
    undecoded: Vec<(Signal, Reject)>,
    body_bytes: usize,
    device: &Device,
    limits: &Limits,
    received_at: UnixTime,
) -> Result<Checked<'a>, Refusal> {
    let mut rejections = Rejections::default();
    for (signal, reject) in undecoded {
        rejections.add(signal, 0, reject);
    }
    let checked = Checked::new(batches, body_bytes, rejections, received_at);
    checked.check(device, limits)
}

/// What turns a checked batch into rows.
pub struct Context<'c> {
    pub device: &'c Device,
    /// The classification rules of the device's project.
    pub rules: &'c RuleSet,
    /// The scrubbing rules of the device's project.
    pub scrubbing: &'c Scrubbing,
    pub recent_stacks: &'c RecentStacks,
    pub recent_names: &'c RecentNames,
    /// What the device's project forwards to another collector.
    pub forward: Option<&'c Forward>,
    pub received_at: UnixTime,
    /// Bytes of the request as sent.
    pub wire_bytes: usize,
}

impl Context<'_> {
    fn stack_key(&self, stack_hash: u64) -> StackKey {
        let project = &self.device.project;
        StackKey::new(project, self.rules.id(), stack_hash, self.received_at)
    }
}

/// A batch that is stored already.
pub struct Again {
    pub receipt: Receipt<'static>,
    pub tally: Tally,
}

/// A batch as a record, ready to be appended to the ingest log.
pub struct Prepared {
    pub receipt: Receipt<'static>,
    pub record: Vec<u8>,
    pub tally: Tally,
    /// Stacks whose rows are in `record`.
    pub new_stacks: Vec<StackKey>,
    /// The hashes of new stacks that wait for symbolication.
    pub waiting_stacks: Vec<u64>,
    /// The number of new stacks for which slow rules had no time. The reclassifier classifies them later.
    pub unclassified_stacks: u64,
    /// Spans to forward to another collector once the record is durable.
    pub forwarded: Vec<Piece>,
    /// How far the device's clock was behind, in microseconds. `None` when the batch has no `sent_at`.
    pub skew_us: Option<i64>,
}

impl Prepared {
    /// The events that this batch does not store.
    #[must_use]
    pub fn unstored(&self) -> Unstored {
        let held_back = self.tally.iter().filter(|(_, tally)| tally.held_back > 0);
        let rejected = self.tally.iter().filter(|(_, tally)| tally.invalid > 0);
        Unstored {
            held_back: held_back.map(|(signal, _)| signal).collect(),
            rejected: rejected
                .map(|(signal, tally)| (signal, tally.invalid))
                .collect(),
        }
    }
}

impl<'a> Checked<'a> {
    fn new(
        batches: Vec<Batch<'a>>,
        body_bytes: usize,
        rejections: Rejections,
        received_at: UnixTime,
    ) -> Self {
        Self {
            batches,
            body_bytes,
            received_at,
            rejections,
            rate_limits: Vec::new(),
            tally: Tally::default(),
            truncated: 0,
            skew_us: 0,
        }
    }

    fn check(mut self, device: &Device, limits: &Limits) -> Result<Self, Refusal> {
        let received = self.events() + self.rejections.events();
        let mut batches = std::mem::take(&mut self.batches);
        for batch in &mut batches {
            envelope::check_sender(&batch.resource, device)?;
            modules::resolve(batch);
            let clock = DeviceClock::new(limits, self.received_at, batch.sent_at);
            self.skew_us = clock.skew_us();
            let checks = Checks::new(limits, clock);
            resource::normalize(&mut batch.resource, &checks);
            self.reject_invalid(batch, &checks);
        }
        for rejected in self.rejections.counts() {
            self.tally.get_mut(rejected.signal).invalid += rejected.events;
        }
        self.batches = batches;
        debug_assert_eq!(
            self.tally.total(SignalTally::received),
            received,
            "each event has one outcome"
        );
        Ok(self)
    }

    /// The number of events that are left in the batches.
    fn events(&self) -> u64 {
        self.batches.iter().map(|batch| batch.events() as u64).sum()
    }

    pub fn id(&self) -> Uuid {
        self.batches
            .first()
            .map_or(NO_BATCH, |batch| batch.batch_id)
    }

    /// The batches that this one was split from. They have its events, too.
    #[must_use]
    pub fn split_from(&self) -> &[Uuid] {
        self.batches.first().map_or(&[], |batch| &batch.split_from)
    }

    /// The resource of the first batch.
    #[must_use]
    pub fn resource(&self) -> Option<&Resource<'_>> {
        self.batches.first().map(|batch| &batch.resource)
    }

    #[must_use]
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Whether classification or scrubbing may take more than about a millisecond.
    #[must_use]
    pub fn is_slow(&self, context: &Context<'_>) -> bool {
        let janks = self.batches.iter().flat_map(|batch| &batch.janks);
        let mut stacks = janks.flat_map(jank::stacks);
        context.scrubbing.is_slow(self.body_bytes)
            || (context.rules.rules().are_slow()
                && stacks.any(|frames| jank::new_stack(frames, context).is_some()))
    }

    /// Drops the events of signals that are over their quota. They are counted as rejected, and the receipt has one number per signal.
    pub fn hold_back(&mut self, rate_limits: Vec<RateLimit>) {
        let is_over = |signal| {
            let mut over = rate_limits.iter().filter(|limit| limit.dropped > 0);
            over.any(|limit| limit.signal == signal)
        };
        for batch in &mut self.batches {
            for_each_signal!(&mut batch, |signal, events| {
                if is_over(signal) {
                    events.retain_mut(|_| false);
                }
            });
        }
        self.tally.hold_back(&rate_limits);
        self.rate_limits = rate_limits;
    }

    /// Makes the receipt of a batch that is stored already: it reports what was stored, and which signals were held back, when the batch
    /// arrived first. Each of its signals has a limit, whose wait the caller fills in.
    pub fn into_again(mut self, unstored: &Unstored, config_etag: Option<&str>) -> Again {
        self.restore_rejections(&unstored.rejected);
        for (signal, tally) in self.tally.iter() {
            let is_held_back = unstored.held_back.contains(&signal);
            self.rate_limits.push(RateLimit {
                signal,
                retry_after_s: 0,
                dropped: if is_held_back { tally.stored.into() } else { 0 },
            });
        }
        let dropped: u64 = self.rate_limits.iter().map(|limit| limit.dropped).sum();
        let mut tally = self.tally.clone();
        tally.become_duplicate();
        let mut receipt = self.into_receipt(config_etag);
        receipt.accepted -= dropped;
        receipt.duplicate = true;
        Again { receipt, tally }
    }

    /// Counts as rejected what was rejected when the batch arrived first. Times can be out of range by now.
    fn restore_rejections(&mut self, first: &[(Signal, u32)]) {
        let sent: Vec<_> = self.tally.iter().collect();
        for (signal, now) in sent {
            let mut known = first.iter().filter(|(of, _)| *of == signal);
            let known = known.next().map(|(_, events)| *events);
            let rejected = self.rejections.of_first_arrival(signal, known);
            let invalid = rejected.min(now.received());
            *self.tally.get_mut(signal) = SignalTally {
                stored: now.received() - invalid,
                invalid,
                ..SignalTally::default()
            };
        }
    }

    fn into_receipt(self, config_etag: Option<&str>) -> Receipt<'static> {
        let batch_id = self.id();
        let (rejected, rejected_unlisted) = self.rejections.for_receipt();
        Receipt {
            batch_id,
            accepted: self.tally.total(|one| one.stored),
            rejected,
            rejected_unlisted,
            truncated: self.truncated,
            duplicate: false,
            config_etag: config_etag.map(|etag| etag.to_owned().into()),
            rate_limits: self.rate_limits,
        }
    }

    /// Filters the texts, classifies new stacks and makes the rows. `config_etag` goes into the receipt.
    pub fn into_record(mut self, context: &Context<'_>, config_etag: Option<&str>) -> Prepared {
        let device = context.device;
        let names = context.recent_names.of_project(
            &device.project,
            self.received_at,
            context.scrubbing.id(),
        );
        let mut filter = TextFilter::new(&names, context.scrubbing);
        for batch in &mut self.batches {
            filter.batch(batch, |frames| jank::new_stack(frames, context));
        }
        let changed = filter.into_changed();
        // After the filter, so that no scrubbed text leaves the server.
        let forward = context.forward;
        let forwarded = forward.map(|to| to.spans(&device.project, &self.batches));
        let forwarded = forwarded.unwrap_or_default();
        self.log_changed(&device.project, &changed);
        debug_assert_eq!(
            self.tally.total(|one| one.stored),
            self.events(),
            "the receipt counts the rows"
        );
        let (id, split_from) = (self.id(), self.split_from());
        let mut record = RecordBuilder::new(&device.project, id, split_from, self.received_at);
        self.count(&mut record, &changed);
        let new_stacks = self.rows(&mut record, context);
        let has_sent_at = self.batches.iter().any(|batch| batch.sent_at.is_some());
        Prepared {
            record: record.finish(),
            tally: self.tally.clone(),
            new_stacks: new_stacks.keys,
            waiting_stacks: new_stacks.waiting,
            unclassified_stacks: new_stacks.unclassified as u64,
            forwarded,
            skew_us: has_sent_at.then_some(self.skew_us),
            receipt: self.into_receipt(config_etag),
        }
    }

    fn reject_invalid(&mut self, batch: &mut Batch<'_>, checks: &Checks<'_>) {
        for_each_signal!(&mut batch, |signal, events| {
            let mut indices = self.rejections.decoded_indices(signal);
            events.retain_mut(|event| {
                let index = indices.next().unwrap_or(u32::MAX);
                let checked = event.check(checks);
                let is_truncated = checks.take_truncated();
                match checked {
                    Ok(()) => self.truncated += u64::from(is_truncated),
                    Err(reject) => {
                        self.rejections.add(signal, index, reject);
                        return false;
                    }
                }
                true
            });
            let valid = u32::try_from(Events::len(events)).unwrap_or(u32::MAX);
            self.tally.get_mut(signal).stored += valid;
        });
    }

    /// Writes the outcomes of the events into the record, durable together with the events.
    fn count(&self, record: &mut RecordBuilder, changed: &[ChangedTexts]) {
        let mut count = |signal: Signal, outcome, reason, events| {
            if events > 0 {
                record.count(Count {
                    signal: signal.as_str(),
                    outcome,
                    reason,
                    events,
                });
            }
        };
        for (signal, tally) in self.tally.iter() {
            count(signal, Outcome::Stored, "", tally.stored);
        }
        for one in self.rejections.counts() {
            count(one.signal, Outcome::Rejected, one.code, one.events);
        }
        for one in changed {
            count(one.signal, one.outcome, one.reason, one.texts);
        }
        for (signal, tally) in self.tally.iter() {
            count(signal, Outcome::Rejected, RATE_LIMITED, tally.held_back);
        }
    }

    fn rows(&self, record: &mut RecordBuilder, context: &Context<'_>) -> NewStacks {
        let mut new_stacks = NewStacks::default();
        for (index, batch) in self.batches.iter().enumerate() {
            // The rows of the request together have its bytes and its rejected events, once.
            let is_first = index == 0;
            new_stacks.extend(self.batch_rows(batch, is_first, record, context));
        }
        new_stacks
    }

    fn batch_rows(
        &self,
        batch: &Batch<'_>,
        is_first: bool,
        record: &mut RecordBuilder,
        context: &Context<'_>,
    ) -> NewStacks {
        let mut envelope = Envelope::new(batch, context);
        let mut rejected = self.tally.total(SignalTally::rejected);
        if !is_first {
            (envelope.wire_bytes, rejected) = (0, 0);
        }
        let most_hours = signal_rows::most_hours(self.batches.len());
        for_each_signal!(&batch, |_, events| {
            signal_rows::signal_rows(record, &envelope, most_hours, Events::as_slice(events));
        });
        let functions = functions::stacks(&batch.spans);
        let stacks = batch.janks.iter().flat_map(jank::stacks).map(Vec::as_slice);
        let stacks = stacks.chain(functions.iter().map(<[_; 1]>::as_slice));
        let new_stacks = jank::stack_rows(record, &envelope, stacks, context);
        let counts = BatchCounts {
            accepted: batch.events() as u64,
            rejected,
            skew_us: self.skew_us,
            sent_at: batch.sent_at,
        };
        record.frame(rows::batch_rows(&envelope, batch, &counts));
        new_stacks
    }

    fn log_changed(&self, project: &str, changed: &[ChangedTexts]) {
        let Some(resource) = self.resource() else {
            return;
        };
        for ChangedTexts { reason, .. } in changed {
            tracing::debug!(%project, reason, app = &*resource.app_id, version = &*resource.app_version,
                "texts were scrubbed or renamed");
        }
    }
}
