//! From the bytes of a request to a record of the ingest log: decode → validate → correct the clock → classify → rows.
//!
//! Pure steps: no HTTP, no driver, no clock of its own. Every event gets exactly one outcome here, counted once.
//! One file per signal holds its rules and its rows; adding a signal is copying that shape.

mod app_start;
mod check;
mod decode;
mod frame_window;
mod held_back;
mod jank;
mod known_stacks;
mod metric;
mod outcome_counts;
mod page_load;
mod recomposition;
mod rejections;
mod rows;
mod scrub;
mod scrubbing;
mod sdk_health;
mod seen;
mod span;
mod traffic;
mod variety;

use std::sync::Arc;

use unjank_protocol::{Batch, Limits, RateLimit, Receipt, Resource, Signal};
use uuid::Uuid;

pub use self::known_stacks::{KnownStacks, StackKey};
pub use self::outcome_counts::{OutcomeCounts, ProjectCounts};
pub use self::scrubbing::{Scrubbing, ScrubbingDocument, ScrubbingError, ScrubbingRule};
pub use self::seen::{Arrival, Seen, Ticket};
pub use self::variety::Variety;

use self::check::{Checks, Event};
use self::jank::NewStacks;
use self::rejections::Rejections;
use self::rows::{Envelope, batch_rows};
use self::variety::Changed;
use crate::stacks::RuleSet;
use crate::store::{Count, Outcome, RecordBuilder};

/// Whose batch it is: what the ingest key says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    pub project: Arc<str>,
    /// The app the key is for; `None` allows any.
    pub apps: Option<Arc<[String]>>,
    /// The one install a device token speaks for; `None` for an ingest key, which any install may hold.
    pub install_id: Option<Uuid>,
}

impl Device {
    /// Whether it may speak for an app.
    pub fn allows(&self, app_id: &str) -> bool {
        self.apps
            .as_ref()
            .is_none_or(|apps| apps.iter().any(|app| app == app_id))
    }
}

/// Why a whole batch is refused. Each has its status and code in `http::problem`.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the body is not JSON: {detail} (line {line}, column {column})")]
    NotJson {
        detail: String,
        line: usize,
        column: usize,
    },
    #[error("the body is not UTF-8: the first bad byte is at offset {0}")]
    NotUtf8(usize),
    #[error("the envelope is not valid: {0}")]
    Envelope(String),
    #[error("`resource` is not valid: {0}")]
    Resource(String),
    #[error("the batch holds more than {limit} events: split it")]
    TooManyEvents { limit: usize },
    #[error(
        "the attributes, stacks and other lists of the batch take more than {limit} bytes once decoded: split it"
    )]
    ListsTooLarge { limit: usize },
    #[error("this ingest key is not for the app `{0}`")]
    WrongApp(String),
    #[error("this device token is not for the install that is named")]
    WrongInstall,
    /// Not here: see [`Context::quick_only`].
    #[error("the batch takes long to classify or to scrub")]
    TakesLong,
}

/// Answers the `ETag` of a device's configuration.
pub type ConfigEtag<'c> = dyn Fn(&Resource<'_>) -> Option<Arc<str>> + 'c;

/// Takes the valid events of a batch, by signal, from their quotas. Answers the signals to hold back.
pub type HoldBack<'c> = dyn Fn(&[(Signal, u32)]) -> Vec<RateLimit> + 'c;

/// What the steps need to know besides the batch.
pub struct Context<'c> {
    pub device: &'c Device,
    pub limits: &'c Limits,
    /// Those of the device's project.
    pub rules: &'c RuleSet,
    /// What the project scrubs.
    pub scrubbing: &'c Scrubbing,
    pub known_stacks: &'c KnownStacks,
    pub variety: &'c Variety,
    /// For the receipt: what tells a device that its configuration changed.
    pub config_etag: &'c ConfigEtag<'c>,
    /// For a project that limits single signals.
    pub hold_back: Option<&'c HoldBack<'c>>,
    /// Microseconds since the epoch.
    pub received_at: i64,
    /// Bytes of the request as sent.
    pub wire_bytes: usize,
    /// Refuses to classify new stacks by rules with large expressions, or to scrub much by rules of the project: that takes long, and is done
    /// elsewhere.
    pub quick_only: bool,
}

impl Context<'_> {
    fn stack_key(&self, stack_hash: u64) -> StackKey {
        let project = &self.device.project;
        StackKey::new(project, self.rules.id(), stack_hash, self.received_at)
    }
}

/// A batch taken apart, ready to be made durable.
pub struct Accepted {
    pub receipt: Receipt<'static>,
    /// For the ingest log, unless the batch was seen before.
    pub record: Vec<u8>,
    /// Stacks whose rows are in `record`: known once it is durable.
    pub new_stacks: Vec<StackKey>,
    /// How many of them slow rules had no time for. They are classified later.
    pub unclassified_stacks: u64,
    /// Events by signal: what a duplicate counts.
    pub events: Vec<(Signal, u32)>,
    pub project: Arc<str>,
    /// The batches it was cut from: they hold its events as well.
    pub split_from: Vec<Uuid>,
    /// How far the device's clock was behind ours, in microseconds, when it said what it showed.
    pub skew_us: Option<i64>,
}

impl Accepted {
    /// The receipt of a batch that was stored before, when those signals were held back.
    pub fn receipt_of_duplicate(self, held_back: &[Signal]) -> Receipt<'static> {
        held_back::as_then(self.receipt, &self.events, held_back)
    }
}

/// Takes a batch apart. `body` is the decompressed JSON.
pub fn accept(body: &[u8], context: &Context<'_>) -> Result<Accepted, Refusal> {
    let decode::Decoded { batch, rejections } = decode::decode(body, context.limits)?;
    if batch.batch_id == NO_BATCH {
        return Err(Refusal::Envelope(
            "`batch_id` is the nil UUID: give the batch an id of its own".to_owned(),
        ));
    }
    if batch.split_from.contains(&batch.batch_id) {
        return Err(Refusal::Envelope(
            "`split_from` names the batch itself: name the batches it was cut from".to_owned(),
        ));
    }
    if batch.split_from.len() > Batch::MAX_SPLIT_FROM {
        return Err(Refusal::Envelope(format!(
            "`split_from` has more than {} ids",
            Batch::MAX_SPLIT_FROM
        )));
    }
    if batch.resource.app_id.is_empty() {
        return Err(Refusal::Resource("`app_id` is empty".to_owned()));
    }
    if !context.device.allows(&batch.resource.app_id) {
        return Err(Refusal::WrongApp(
            batch.resource.app_id.as_str().chars().take(128).collect(),
        ));
    }
    let install_id = batch.resource.install_id;
    if context
        .device
        .install_id
        .is_some_and(|only| only != install_id)
    {
        return Err(Refusal::WrongInstall);
    }
    let is_slow = context.scrubbing.is_slow(body.len())
        || (context.rules.rules().are_slow() && has_new_stacks(&batch, context));
    if context.quick_only && is_slow {
        return Err(Refusal::TakesLong);
    }
    Ok(Assembly::new(batch, rejections, context).finish())
}

fn has_new_stacks(batch: &Batch<'_>, context: &Context<'_>) -> bool {
    let mut stacks = batch.janks.iter().flat_map(jank::stacks);
    stacks.any(|frames| jank::unknown_stack(frames, context).is_some())
}

/// The batch on its way to a record.
struct Assembly<'a, 'c> {
    batch: Batch<'a>,
    context: &'c Context<'c>,
    checks: Checks<'c>,
    rejections: Rejections,
    truncated: u64,
    events: Vec<(Signal, u32)>,
    rate_limits: Vec<RateLimit>,
}

impl<'a, 'c> Assembly<'a, 'c> {
    fn new(batch: Batch<'a>, rejections: Rejections, context: &'c Context<'c>) -> Self {
        let checks = Checks::new(context.limits, context.received_at, batch.sent_at);
        Self {
            batch,
            context,
            checks,
            rejections,
            truncated: 0,
            events: Vec::new(),
            rate_limits: Vec::new(),
        }
    }

    fn finish(mut self) -> Accepted {
        self.checks.resource(&mut self.batch.resource);
        self.validate();
        if let Some(hold_back) = self.context.hold_back {
            self.rate_limits = hold_back(&self.events);
            held_back::clear(&mut self.batch, &mut self.events, &self.rate_limits);
        }
        let context = self.context;
        // Counts what the device sent, before anything is renamed or scrubbed.
        let config_etag = (context.config_etag)(&self.batch.resource);
        let changed = context.variety.bound(
            (&context.device.project, context.received_at),
            (&mut self.batch, context.scrubbing),
            |frames| jank::unknown_stack(frames, context),
        );
        let mut record = self.counted(changed);
        let accepted: u64 = self
            .events
            .iter()
            .map(|(_, events)| u64::from(*events))
            .sum();
        let new_stacks = self.rows(&mut record, accepted);
        for rejected in self.rejections.counts() {
            match self
                .events
                .iter_mut()
                .find(|(signal, _)| *signal == rejected.signal)
            {
                Some((_, events)) => *events += rejected.events,
                None => self.events.push((rejected.signal, rejected.events)),
            }
        }
        held_back::add_back(&mut self.events, &self.rate_limits);
        let (rejected, rejected_unlisted) = self.rejections.for_receipt();
        Accepted {
            receipt: Receipt {
                batch_id: self.batch.batch_id,
                accepted,
                rejected,
                rejected_unlisted,
                truncated: self.truncated,
                duplicate: false,
                config_etag: config_etag.map(|etag| etag.to_string().into()),
                rate_limits: self.rate_limits,
            },
            record: record.finish(),
            new_stacks: new_stacks.keys,
            unclassified_stacks: new_stacks.unclassified as u64,
            events: self.events,
            project: Arc::clone(&self.context.device.project),
            split_from: self.batch.split_from,
            skew_us: self.batch.sent_at.map(|_| self.checks.skew_us()),
        }
    }

    /// A record with what became of the events.
    fn counted(&self, changed: Vec<Changed>) -> RecordBuilder {
        let mut record = RecordBuilder::new(
            &self.context.device.project,
            self.batch.batch_id,
            &self.batch.split_from,
            self.context.received_at,
        );
        for (signal, events) in &self.events {
            record.count(Count {
                signal: signal.as_str(),
                outcome: Outcome::Stored,
                reason: "",
                events: *events,
            });
        }
        for rejected in self.rejections.counts() {
            record.count(Count {
                signal: rejected.signal.as_str(),
                outcome: Outcome::Rejected,
                reason: rejected.code,
                events: rejected.events,
            });
        }
        for one in changed {
            record.count(Count {
                signal: one.signal.as_str(),
                outcome: one.outcome,
                reason: one.reason,
                events: one.texts,
            });
        }
        held_back::count(&mut record, &self.rate_limits);
        record
    }

    /// Checks every event and keeps those that pass.
    fn validate(&mut self) {
        let batch = &mut self.batch;
        let mut sieve = Sieve {
            checks: &self.checks,
            rejections: &mut self.rejections,
            truncated: &mut self.truncated,
            events: &mut self.events,
        };
        sieve.keep_valid(&mut batch.spans);
        sieve.keep_valid(&mut batch.frame_windows);
        sieve.keep_valid(&mut batch.janks);
        sieve.keep_valid(&mut batch.traffic);
        sieve.keep_valid(&mut batch.page_loads);
        sieve.keep_valid(&mut batch.metrics);
        sieve.keep_valid(&mut batch.app_starts);
        sieve.keep_valid(&mut batch.recompositions);
        let mut health: Vec<_> = batch.sdk_health.take().into_iter().collect();
        sieve.keep_valid(&mut health);
        batch.sdk_health = health.pop();
    }

    fn rows(&self, record: &mut RecordBuilder, accepted: u64) -> NewStacks {
        let batch = &self.batch;
        let envelope = Envelope::new(batch, self.context);
        rows::signal_rows(record, &envelope, &batch.spans);
        rows::signal_rows(record, &envelope, &batch.frame_windows);
        rows::signal_rows(record, &envelope, &batch.janks);
        rows::signal_rows(record, &envelope, &batch.traffic);
        rows::signal_rows(record, &envelope, &batch.page_loads);
        rows::signal_rows(record, &envelope, &batch.metrics);
        rows::signal_rows(record, &envelope, &batch.app_starts);
        rows::signal_rows(record, &envelope, &batch.recompositions);
        rows::signal_rows(record, &envelope, batch.sdk_health.as_slice());
        let new_stacks = jank::stack_rows(record, &envelope, &batch.janks, self.context);
        let counts = rows::BatchCounts {
            accepted,
            rejected: self.rejections.total() + held_back::dropped(&self.rate_limits),
            skew_us: self.checks.skew_us(),
            sent_at: batch.sent_at,
        };
        record.frame(batch_rows(&envelope, batch, &counts));
        new_stacks
    }
}

/// Splits the events of a list into those that pass and those that do not.
struct Sieve<'s, 'c> {
    checks: &'s Checks<'c>,
    rejections: &'s mut Rejections,
    truncated: &'s mut u64,
    events: &'s mut Vec<(Signal, u32)>,
}

impl Sieve<'_, '_> {
    fn keep_valid<E: Event>(&mut self, events: &mut Vec<E>) {
        if events.is_empty() {
            return;
        }
        let mut places = self.rejections.decoded_places(E::SIGNAL);
        events.retain_mut(|event| {
            let at = places.next().unwrap_or(u32::MAX);
            match event.check(self.checks) {
                Ok(()) => {
                    *self.truncated += u64::from(self.checks.take_truncated());
                    true
                }
                Err(reject) => {
                    self.checks.take_truncated();
                    self.rejections.add(E::SIGNAL, at, reject);
                    false
                }
            }
        });
        if !events.is_empty() {
            self.events.push((E::SIGNAL, events.len() as u32));
        }
    }
}

/// No batch: records that only count. Devices may not use it.
pub const NO_BATCH: Uuid = Uuid::nil();
