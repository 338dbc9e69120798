//! The requests that wait to be forwarded, in memory. The queue is bounded in bytes, for each project and in all. A full queue drops what
//! arrives, and counts it. Never blocks, because batches pass it on their way to their receipt.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use unjank_foundation::clock::UnixTime;

use super::outcomes::{ForwardState, Loss};
use super::{Kind, Piece, REQUEST_BYTES, REQUEST_EVENTS};
use crate::metrics::{ForwardMetrics, ForwardOutcome};

/// Maximum bytes queued for one project.
const PROJECT_BYTES: usize = 8 << 20;
/// The most bytes of a batch for which nothing waits yet. No batch within the default limits has more, so an empty queue takes it whole.
const FIRST_BATCH_BYTES: usize = 16 << 20;
/// Maximum bytes queued across all projects.
const ALL_BYTES: usize = 32 << 20;
/// What a waiting piece takes besides its body.
const PIECE_BYTES: usize = 128;

#[derive(Debug)]
pub struct ForwardQueue {
    state: Mutex<State>,
    arrived: Notify,
    metrics: ForwardMetrics,
}

#[derive(Debug, Default)]
struct State {
    bytes: usize,
    projects: HashMap<Arc<str>, OfProject>,
    phase: Phase,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Open,
    /// The server shuts down: the rest is sent.
    Closing,
    /// Nothing is sent any more.
    Closed,
}

/// What waits for the collector of a project, and what became of the rest.
#[derive(Debug, Default)]
struct OfProject {
    waiting: VecDeque<Piece>,
    bytes: usize,
    is_in_flight: bool,
    /// Failed attempts since the last success.
    attempts: i64,
    due: UnixTime,
    /// Whether the collector asked to wait until `due`.
    is_asked: bool,
    /// Whether the queue has dropped events since the last success.
    is_dropping: bool,
    told: ForwardState,
}

/// A request to send. If it is dropped before it is [settled](Self::settle), because the attempt panicked or was cancelled, the project
/// goes on with its next request.
#[derive(Debug)]
pub struct Work {
    pub project: Arc<str>,
    pub piece: Piece,
    /// Failed attempts before this one.
    pub attempts: i64,
    /// The bytes that count as waiting.
    bytes: usize,
    queue: Arc<ForwardQueue>,
    result: Result,
}

/// The result of an attempt.
#[derive(Debug)]
pub enum Result {
    Delivered {
        at: UnixTime,
        /// The events that the collector rejected, at most all.
        rejected: u64,
        /// What the collector says about them.
        message: Option<String>,
    },
    Later {
        at: UnixTime,
        /// Whether the collector asked to wait until then.
        is_asked: bool,
        error: String,
    },
    Refused {
        error: String,
    },
    /// The project forwards nothing any more.
    Removed,
    /// The attempt ended without a result.
    Abandoned,
}

impl Work {
    /// Notes the result of the attempt.
    pub fn settle(mut self, result: Result) {
        self.result = result;
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let piece = Piece {
            body: mem::take(&mut self.piece.body),
            ..self.piece
        };
        let result = mem::replace(&mut self.result, Result::Abandoned);
        self.queue
            .settle((&self.project, self.bytes), piece, result);
    }
}

impl ForwardQueue {
    #[must_use]
    pub fn new(metrics: ForwardMetrics) -> Self {
        Self {
            state: Mutex::default(),
            arrived: Notify::new(),
            metrics,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the events of a batch. Drops those for which the queue has no room.
    pub fn offer(&self, project: &Arc<str>, pieces: Vec<Piece>) {
        let mut state = self.lock();
        let State {
            bytes: all,
            projects,
            phase,
        } = &mut *state;
        let own = projects.entry(Arc::clone(project)).or_default();
        let most = if own.bytes == 0 {
            FIRST_BATCH_BYTES
        } else {
            PROJECT_BYTES
        };
        let mut dropped = 0;
        for piece in pieces {
            let bytes = held(&piece);
            let is_full = *all + bytes > ALL_BYTES || own.bytes + bytes > most;
            if is_full || *phase == Phase::Closed {
                let outcome = match phase {
                    Phase::Closed => ForwardOutcome::Shutdown,
                    Phase::Open | Phase::Closing => ForwardOutcome::QueueFull,
                };
                dropped += piece.events;
                self.count(own, piece.kind, (outcome, piece.events));
                continue;
            }
            own.bytes += bytes;
            *all += bytes;
            own.told.waiting += piece.events;
            own.waiting.push_back(piece);
        }
        let is_first = dropped > 0 && !mem::replace(&mut own.is_dropping, true);
        self.measure(&state);
        drop(state);
        if is_first {
            tracing::warn!(%project, events = dropped, "events were not forwarded: too many wait for the collector; the metrics count further ones");
        }
        self.arrived.notify_one();
    }

    /// Waits for events.
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Takes a request for a collector that can take one now. Its bytes count as waiting until the attempt ends.
    pub fn take(self: &Arc<Self>, now: UnixTime) -> Option<Work> {
        let mut state = self.lock();
        let ready = state.projects.iter_mut();
        let ready = ready.filter(|(_, own)| own.can_send() && own.due <= now);
        let (project, own) = ready.min_by_key(|(_, own)| own.due)?;
        let mut piece = own.waiting.pop_front()?;
        let mut bytes = held(&piece);
        (own.is_in_flight, own.due) = (true, now);
        // A request is repeated as it was, so that a collector can tell that it has the events already.
        while let Some(next) = own.waiting.front()
            && own.attempts == 0
            && next.joins(&piece)
            && let Some(next) = own.waiting.pop_front()
        {
            bytes += held(&next);
            piece.body.extend_from_slice(&next.body);
            piece.events += next.events;
            piece.has_keys |= next.has_keys;
        }
        Some(Work {
            project: Arc::clone(project),
            piece,
            attempts: own.attempts,
            bytes,
            queue: Arc::clone(self),
            result: Result::Abandoned,
        })
    }

    /// Whether something waits.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        self.lock().bytes > 0
    }

    /// Whether a request can be sent until then, besides those in flight.
    #[must_use]
    pub fn has_due(&self, until: UnixTime) -> bool {
        let state = self.lock();
        let mut all = state.projects.values();
        all.any(|own| own.can_send() && own.due <= until)
    }

    /// Lets everything that waits be sent at once, except where a collector asked to wait.
    pub fn begin_to_close(&self, now: UnixTime) {
        let mut state = self.lock();
        state.phase = Phase::Closing;
        for own in state.projects.values_mut().filter(|own| !own.is_asked) {
            own.due = now;
        }
    }

    /// Counts what still waits as lost, and returns it. Takes no more events.
    pub fn close(&self) -> Vec<Loss> {
        let mut state = self.lock();
        state.phase = Phase::Closed;
        let mut losses = Vec::new();
        let State {
            bytes: all,
            projects,
            ..
        } = &mut *state;
        for (project, own) in projects {
            for (kind, events) in own.counted() {
                losses.push(Loss {
                    project: Arc::clone(project),
                    kind,
                    events,
                    error: own.told.error.clone(),
                });
                self.count(own, kind, (ForwardOutcome::Shutdown, events));
                own.told.waiting -= events;
            }
            own.waiting.clear();
            *all -= mem::take(&mut own.bytes);
        }
        self.measure(&state);
        losses
    }

    fn settle(&self, (project, bytes): (&str, usize), piece: Piece, result: Result) {
        let mut state = self.lock();
        let State {
            bytes: all,
            projects,
            phase,
        } = &mut *state;
        let Some(own) = projects.get_mut(project) else {
            return;
        };
        own.is_in_flight = false;
        own.bytes -= bytes;
        *all -= bytes;
        let events = piece.events;
        let (outcome, others) = match result {
            Result::Delivered {
                at,
                rejected,
                message,
            } => {
                own.told.error = None;
                own.told.delivered_at = Some(at);
                own.told.message = message.or(own.told.message.take());
                own.is_dropping = false;
                (ForwardOutcome::Delivered, rejected.min(events))
            }
            Result::Refused { error } => {
                own.told.error = Some(error);
                (ForwardOutcome::Refused, 0)
            }
            Result::Removed => (ForwardOutcome::Removed, 0),
            Result::Later {
                at,
                is_asked,
                error,
            } => {
                own.told.error = Some(error);
                *all += own.give_back(piece, at, is_asked);
                return;
            }
            Result::Abandoned if *phase != Phase::Open => {
                *all += own.give_back(piece, UnixTime::MAX, true);
                return;
            }
            Result::Abandoned => {
                own.told.error = Some("the attempt failed in the server: see its log".to_owned());
                (ForwardOutcome::Failed, 0)
            }
        };
        (own.attempts, own.is_asked) = (0, false);
        own.told.waiting -= events;
        self.count(own, piece.kind, (outcome, events - others));
        self.count(own, piece.kind, (ForwardOutcome::Rejected, others));
        self.measure(&state);
    }

    fn count(&self, own: &mut OfProject, kind: Kind, (outcome, events): (ForwardOutcome, u64)) {
        own.told.count(outcome, events);
        self.metrics.count(kind.name(), outcome, events);
    }

    /// Forgets what the collector of a project said, because the project has another one.
    pub fn forget_messages(&self, project: &str) {
        if let Some(own) = self.lock().projects.get_mut(project) {
            (own.told.error, own.told.message) = (None, None);
        }
    }

    /// Returns what became of the events of a project.
    #[must_use]
    pub fn state(&self, project: &str) -> ForwardState {
        let state = self.lock();
        let Some(own) = state.projects.get(project) else {
            return ForwardState::default();
        };
        ForwardState {
            waiting_bytes: own.bytes as u64,
            ..own.told.clone()
        }
    }

    fn measure(&self, state: &State) {
        self.metrics
            .waiting_bytes
            .set(i64::try_from(state.bytes).unwrap_or(i64::MAX));
    }
}

/// What a piece counts for while it waits.
fn held(piece: &Piece) -> usize {
    piece.body.len() + PIECE_BYTES
}

impl Piece {
    /// Whether it can be part of the same request.
    fn joins(&self, first: &Self) -> bool {
        self.kind == first.kind
            && self.body.len() + first.body.len() <= REQUEST_BYTES
            && self.events + first.events <= REQUEST_EVENTS
    }
}

impl OfProject {
    fn can_send(&self) -> bool {
        !self.is_in_flight && !self.waiting.is_empty()
    }

    /// The events that wait, by kind.
    fn counted(&self) -> Vec<(Kind, u64)> {
        let counted = [Kind::Spans, Kind::Incidents].map(|kind| {
            let own = self.waiting.iter().filter(|piece| piece.kind == kind);
            (kind, own.map(|piece| piece.events).sum())
        });
        let some = counted.into_iter().filter(|(_, events)| *events > 0);
        some.collect()
    }

    /// Puts a request back to be sent first. Returns its bytes.
    fn give_back(&mut self, piece: Piece, due: UnixTime, is_asked: bool) -> usize {
        let bytes = held(&piece);
        self.attempts += 1;
        (self.due, self.is_asked) = (due, is_asked);
        self.bytes += bytes;
        self.waiting.push_front(piece);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    const NOW: UnixTime = UnixTime::from_secs(1_000);

    fn queue() -> Arc<ForwardQueue> {
        Arc::new(ForwardQueue::new(Metrics::new().forward))
    }

    fn spans(bytes: usize, events: u64) -> Piece {
        Piece {
            kind: Kind::Spans,
            body: vec![0; bytes],
            events,
            has_keys: false,
        }
    }

    #[tokio::test]
    async fn a_panicking_attempt_costs_its_own_request_only() {
        let queue = queue();
        queue.offer(&"shop".into(), vec![spans(REQUEST_BYTES, 3), spans(10, 2)]);
        let work = queue.take(NOW).unwrap();
        assert!(queue.take(NOW).is_none(), "one request at a time");
        let mut attempts = tokio::task::JoinSet::new();
        attempts.spawn(async move {
            let work = work;
            panic!("with {}", work.project)
        });
        assert!(attempts.join_next().await.unwrap().is_err());
        let state = queue.state("shop");
        assert_eq!((state.dropped, state.waiting), (3, 2));
        assert!(state.error.unwrap().contains("failed in the server"));
        queue.take(NOW).unwrap().settle(Result::Delivered {
            at: NOW,
            rejected: 0,
            message: None,
        });
        let state = queue.state("shop");
        assert_eq!((state.delivered, state.waiting_bytes), (2, 0));
        assert!(!queue.has_waiting());
    }

    #[test]
    fn an_attempt_that_is_cancelled_by_the_shutdown_is_lost_with_the_rest() {
        let queue = queue();
        queue.offer(&"shop".into(), vec![spans(REQUEST_BYTES, 3), spans(10, 2)]);
        let work = queue.take(NOW).unwrap();
        queue.begin_to_close(NOW);
        drop(work);
        assert!(queue.take(NOW).is_none() && !queue.has_due(NOW));
        let losses = queue.close();
        assert_eq!((losses.len(), losses[0].events), (1, 5));
        queue.offer(&"shop".into(), vec![spans(10, 1)]);
        let state = queue.state("shop");
        assert_eq!(
            (state.dropped, state.waiting, state.waiting_bytes),
            (6, 0, 0)
        );
    }

    #[test]
    fn a_first_batch_may_be_larger_than_what_waits_otherwise_and_all_have_a_bound() {
        let queue = queue();
        let batch = |pieces| vec![spans(REQUEST_BYTES, 1); pieces];
        let waiting = |project: &str| queue.state(project).waiting;
        queue.offer(&"a".into(), batch(20));
        assert_eq!(waiting("a"), 15);
        queue.offer(&"b".into(), batch(4));
        queue.offer(&"b".into(), batch(10));
        assert_eq!(waiting("b"), 7);
        queue.offer(&"c".into(), batch(20));
        assert_eq!(waiting("c"), 9);
        assert_eq!(queue.state("c").dropped, 11);
    }

    #[test]
    fn a_request_has_a_most_number_of_events_and_is_repeated_as_it_was() {
        let queue = queue();
        let offer = |events| queue.offer(&"shop".into(), vec![spans(1, events)]);
        offer(REQUEST_EVENTS - 1);
        offer(1);
        offer(1);
        let work = queue.take(NOW).unwrap();
        assert_eq!(work.piece.events, REQUEST_EVENTS);
        let later = |work: Work| {
            work.settle(Result::Later {
                at: NOW,
                is_asked: false,
                error: "busy".to_owned(),
            });
        };
        later(work);
        assert_eq!(queue.take(NOW).unwrap().piece.events, REQUEST_EVENTS);
        // The request above was given up. The next request has the remaining event and begins with its first attempt.
        let work = queue.take(NOW).unwrap();
        assert_eq!((work.piece.events, work.attempts), (1, 0));
        later(work);
        offer(5);
        assert_eq!(queue.take(NOW).unwrap().piece.events, 1);
    }
}
