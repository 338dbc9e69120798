//! `POST /v1/ingest`: a batch from a device, made durable before it is acknowledged.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_LENGTH;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::time::Instant;
use unjank_protocol::{Batch, Receipt, Signal};

use super::body::{NotInflated, Received, receive};
use super::device::Device;
use super::openapi::{BatchBody, ContentEncoding, Refused, UploadedBody};
use super::problem::Problem;
use super::remote_config;
use crate::app::App;
use crate::control::{Budget, Caller, Cost};
use crate::ingest::{self, Accepted, Arrival, Context, Refusal, accept};
use crate::metrics::IngestMetrics;
use crate::store::{Count, Outcome};

/// Takes a batch: durable before it is acknowledged.
///
/// Events that cannot be kept are refused one by one in the receipt; the rest is stored. The same batch sent again is a duplicate, and
/// stored once.
#[utoipa::path(
    post, path = "/v1/ingest", tag = "ingest",
    params(ContentEncoding),
    request_body(content = Batch<'_>, description = "At most 1 MiB as sent, 10 MiB after decompression, 10,000 events."),
    responses(
        (status = 202, description = "The events survive the crash of the server and of the store.", body = Receipt<'_>),
        Refused<(Device, UploadedBody, BatchBody)>,
    ),
)]
pub(super) async fn ingest(
    State(app): State<Arc<App>>,
    device: Result<Device, Problem>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let started = Instant::now();
    let answer = match device {
        Ok(Device(caller)) => store(&app, &caller, &headers, body).await,
        Err(problem) => Err(problem),
    };
    let metrics = &app.metrics.ingest;
    let (status, code) = match &answer {
        Ok(receipt) if receipt.duplicate => (StatusCode::ACCEPTED, "duplicate"),
        Ok(_) => (StatusCode::ACCEPTED, "accepted"),
        Err(problem) => (problem.status, problem.code),
    };
    metrics
        .requests
        .with_label_values(&[status.as_str(), code])
        .inc();
    metrics.seconds.observe(started.elapsed().as_secs_f64());
    match answer {
        Ok(receipt) => (status, Json(receipt)).into_response(),
        Err(problem) => problem.into_response(),
    }
}

async fn store(
    app: &Arc<App>,
    caller: &Caller,
    headers: &HeaderMap,
    body: Body,
) -> Result<Receipt<'static>, Problem> {
    let stored = store_batch(app, caller, headers, body).await;
    if let Err(problem) = &stored
        // A batch that comes back is counted then.
        && !problem.status.is_server_error()
        && problem.status != StatusCode::TOO_MANY_REQUESTS
        && problem.status != StatusCode::REQUEST_TIMEOUT
    {
        let refused = Count {
            signal: "batch",
            outcome: Outcome::Rejected,
            reason: problem.code,
            events: 1,
        };
        app.outcome_counts.add(&caller.device.project, refused);
    }
    stored
}

async fn store_batch(
    app: &Arc<App>,
    caller: &Caller,
    headers: &HeaderMap,
    body: Body,
) -> Result<Receipt<'static>, Problem> {
    // Uploads under way go on; a new one costs no more than this.
    let own = app.uploads_of_keys.try_take(caller.holder, 1);
    let _own = own.ok_or_else(Problem::overloaded)?;
    let upload = app.uploads.try_take(caller.project, 1);
    let _upload = upload.ok_or_else(Problem::overloaded)?;
    let budget = &caller.budget;
    budget.admit(declared_bytes(headers), app.clock.now())?;
    let received = receive(
        headers,
        body,
        app.limits.compressed_bytes,
        app.body_timeout,
        app.device_bodies.begin(caller.project),
    )
    .await?;
    let (received_at, bytes) = (app.clock.now(), received.wire_bytes() as u64);
    app.metrics.ingest.body_bytes.inc_by(bytes);
    let timer = app.metrics.ingest.decode_seconds.start_timer();
    let accepted = take_apart(app, caller, received, received_at).await?;
    timer.observe_duration();
    let taken = taken_of_signals(&accepted, budget);
    let mut kept = keep(app, caller, accepted, (received_at, bytes)).await;
    match &mut kept {
        Ok(receipt) if receipt.duplicate => {
            let now = app.clock.now();
            budget.let_go(&taken, now);
            budget.say_anew(&mut receipt.rate_limits, now);
        }
        Ok(_) => {}
        Err(_) => budget.let_go(&taken, app.clock.now()),
    }
    kept
}

/// Makes a batch durable, unless it was before.
async fn keep(
    app: &Arc<App>,
    Caller { device, budget, .. }: &Caller,
    accepted: Accepted,
    (received_at, bytes): (i64, u64),
) -> Result<Receipt<'static>, Problem> {
    let batch_id = accepted.receipt.batch_id;
    let ticket = match app
        .seen
        .arrive(&device.project, batch_id, &accepted.split_from)
    {
        Arrival::Duplicate { held_back } => return Ok(duplicate(app, accepted, &held_back)),
        Arrival::InFlight => return Err(Problem::in_flight()),
        Arrival::New(ticket) => ticket,
    };
    let limits = &accepted.receipt.rate_limits;
    let held_back = limits.iter().filter(|limit| limit.dropped > 0);
    let dropped: u64 = held_back.clone().map(|limit| limit.dropped).sum();
    let events: u32 = accepted.events.iter().map(|(_, events)| events).sum();
    let cost = Cost {
        // What its own quota keeps out takes no room from the other signals.
        events: events.saturating_sub(u32::try_from(dropped).unwrap_or(u32::MAX)),
        bytes,
    };
    budget.charge(cost, received_at)?;
    let held_back = held_back.map(|limit| limit.signal).collect();
    if let Err(error) = app.log.append(accepted.record).await {
        budget.refund(cost, app.clock.now());
        return Err(error.into());
    }
    ticket.stored(held_back);
    app.known_stacks.insert(&accepted.new_stacks);
    let unclassified = &app.metrics.ingest.unclassified_stacks;
    unclassified.inc_by(accepted.unclassified_stacks);
    count(&app.metrics.ingest, &accepted.receipt, &accepted.events);
    if let Some(skew) = accepted.skew_us {
        let seconds = Duration::from_micros(skew.unsigned_abs()).as_secs_f64();
        app.metrics.ingest.clock_skew_seconds.observe(seconds);
    }
    Ok(accepted.receipt)
}

/// What a batch took of the quotas of its signals: to be given back when it is not stored now.
fn taken_of_signals(accepted: &Accepted, budget: &Budget) -> Vec<(Signal, u32)> {
    if !budget.limits_signals() {
        return Vec::new();
    }
    let stored = |(signal, events): &(Signal, u32)| {
        let refused = refused(&accepted.receipt, *signal);
        let stored = u64::from(*events).saturating_sub(refused);
        (*signal, u32::try_from(stored).unwrap_or(u32::MAX))
    };
    accepted.events.iter().map(stored).collect()
}

fn declared_bytes(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// The pause between a large batch that was refused and the project's next one.
const AFTER_REFUSAL: Duration = Duration::from_millis(250);
/// Bodies up to this size, after decompression, are decoded on the spot. That takes about a millisecond.
const SMALL_BODY: usize = 256 * 1024;

async fn take_apart(
    app: &Arc<App>,
    caller: &Caller,
    received: Received,
    received_at: i64,
) -> Result<Accepted, Problem> {
    let work = Decoding {
        app: Arc::clone(app),
        device: Arc::clone(&caller.device),
        budget: caller.budget.clone(),
        received,
        received_at,
    };
    // The compressed size says nothing about the size that counts.
    if work.received.wire_bytes() <= SMALL_BODY
        && !work.received.claims_more_than(SMALL_BODY)
        && let Some(done) = work.run(SMALL_BODY, true)
    {
        return done;
    }
    let done = app.large_batches.run(caller.project, move || {
        let done = work.run(work.app.limits.decompressed_bytes, false);
        done.unwrap_or_else(|| Err(work.too_large()))
    });
    let (done, turn) = done.await.ok_or_else(Problem::overloaded)?;
    if done.is_err() {
        // The allocator gives the memory back to the system in this time.
        tokio::time::sleep(AFTER_REFUSAL).await;
    }
    drop(turn);
    done
}

/// A received body and what is needed to decode it.
struct Decoding {
    app: Arc<App>,
    device: Arc<ingest::Device>,
    budget: Budget,
    received: Received,
    received_at: i64,
}

impl Decoding {
    /// Decodes the body, unless it is longer than `limit` after decompression, or takes long though it is to be quick. What is refused
    /// costs its sender some of its quota.
    fn run(&self, limit: usize, quick_only: bool) -> Option<Result<Accepted, Problem>> {
        let accept = |json: &[u8]| self.accept(json, quick_only);
        match self.received.decompressed(limit, accept) {
            Ok(done) => done,
            Err(NotInflated::TooFar { .. }) => None,
            Err(error) => {
                self.spend(self.received.wire_bytes());
                Some(Err(error.into()))
            }
        }
    }

    fn accept(&self, json: &[u8], quick_only: bool) -> Option<Result<Accepted, Problem>> {
        let (app, device, budget) = (&self.app, &self.device, &self.budget);
        let rules = app.access.rules(&device.project);
        let scrubbing = app.access.scrubbing(&device.project);
        let hold_back = |events: &[(Signal, u32)]| budget.hold_back(events, self.received_at);
        let context = Context {
            device,
            limits: &app.limits,
            rules: rules.as_deref().unwrap_or(&app.default_rules),
            scrubbing: &scrubbing,
            known_stacks: &app.known_stacks,
            variety: &app.variety,
            config_etag: &|resource| {
                remote_config::etag_for(app, &device.project, resource, self.received_at)
            },
            hold_back: budget.limits_signals().then_some(&hold_back),
            received_at: self.received_at,
            wire_bytes: self.received.wire_bytes(),
            quick_only,
        };
        match accept(json, &context) {
            Err(Refusal::TakesLong) => None,
            Err(refusal) => {
                self.spend(json.len());
                Some(Err(refusal.into()))
            }
            Ok(accepted) => Some(Ok(accepted)),
        }
    }

    fn too_large(&self) -> Problem {
        let limit = self.app.limits.decompressed_bytes;
        self.spend(limit);
        Problem::inflates_too_far(limit)
    }

    /// Charges for a body that was read in vain: an event for each KiB.
    fn spend(&self, read: usize) {
        let cost = Cost {
            events: u32::try_from(read / 1024).unwrap_or(u32::MAX).max(1),
            bytes: self.received.wire_bytes() as u64,
        };
        self.budget.spend(cost, self.received_at);
    }
}

fn duplicate(app: &App, accepted: Accepted, held_back: &[Signal]) -> Receipt<'static> {
    for (signal, events) in &accepted.events {
        let count = Count {
            signal: signal.as_str(),
            outcome: Outcome::Duplicate,
            reason: "batch",
            events: *events,
        };
        app.outcome_counts.add(&accepted.project, count);
        let labels = [signal.as_str(), Outcome::Duplicate.as_str()];
        app.metrics
            .ingest
            .events
            .with_label_values(&labels)
            .inc_by(u64::from(*events));
    }
    accepted.receipt_of_duplicate(held_back)
}

fn count(metrics: &IngestMetrics, receipt: &Receipt<'_>, events: &[(Signal, u32)]) {
    for (signal, events) in events {
        let rejected = refused(receipt, *signal);
        let stored = u64::from(*events).saturating_sub(rejected);
        metrics
            .events
            .with_label_values(&[signal.as_str(), Outcome::Stored.as_str()])
            .inc_by(stored);
        if rejected > 0 {
            metrics
                .events
                .with_label_values(&[signal.as_str(), Outcome::Rejected.as_str()])
                .inc_by(rejected);
        }
    }
}

/// Events of a signal that were not stored, one by one or held back.
fn refused(receipt: &Receipt<'_>, signal: Signal) -> u64 {
    let rejected = receipt.rejected_of(signal);
    let limits = receipt.rate_limits.iter();
    let dropped = limits.filter(|one| one.signal == signal);
    rejected + dropped.map(|one| one.dropped).sum::<u64>()
}
