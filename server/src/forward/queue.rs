//! The requests that wait to be forwarded, in memory. The queue is bounded in bytes, for each project and in all. A full queue drops what
//! arrives, and counts it. Never blocks, because batches pass it on their way to their receipt.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::Notify;
use utoipa::ToSchema;

use super::Piece;
use crate::clock::UnixTime;
use crate::metrics::ForwardMetrics;

/// The most bytes that wait for the collector of one project.
const PROJECT_BYTES: usize = 8 << 20;
/// The most bytes that wait in all.
const ALL_BYTES: usize = 32 << 20;
/// The most bytes of a request, unless a single batch has more. Collectors accept at least 4 MiB by default.
const REQUEST_BYTES: usize = 1 << 20;
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
    told: ForwardState,
}

/// What became of the events that this server should forward, since it started.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct ForwardState {
    /// Events that the collector has accepted.
    pub delivered: u64,
    /// Events that were dropped because the queue was full, or because the setting was removed.
    pub dropped: u64,
    /// Events that the collector refused for good.
    pub refused: u64,
    /// Events that wait.
    pub waiting: u64,
    pub waiting_bytes: u64,
    /// Why the last attempt failed. Missing after a success.
    pub error: Option<String>,
    pub delivered_at: Option<UnixTime>,
}

/// A request to send.
#[derive(Debug)]
pub struct Work {
    pub project: Arc<str>,
    pub piece: Piece,
    /// Failed attempts before this one.
    pub attempts: i64,
}

/// The result of an attempt.
#[derive(Debug)]
pub enum Result {
    Delivered {
        at: UnixTime,
    },
    Later {
        at: UnixTime,
        error: String,
    },
    Refused {
        error: String,
    },
    /// The project forwards nothing any more.
    Removed,
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

    /// Adds events, or drops them if the queue is full.
    pub fn offer(&self, project: &Arc<str>, piece: Piece) {
        let mut state = self.lock();
        let bytes = piece.body.len() + PIECE_BYTES;
        let all = state.bytes + bytes;
        let own = state.projects.entry(Arc::clone(project)).or_default();
        if all > ALL_BYTES || own.bytes + bytes > PROJECT_BYTES {
            own.told.dropped += piece.events;
            self.metrics
                .count(piece.kind.name(), "dropped", piece.events);
            return;
        }
        own.bytes += bytes;
        own.told.waiting += piece.events;
        own.waiting.push_back(piece);
        state.bytes = all;
        self.measure(&state);
        drop(state);
        self.arrived.notify_one();
    }

    /// Waits for events.
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }

    /// Takes a request for a collector that can take one now. Its bytes count as waiting until it is [settled](Self::settle).
    pub fn take(&self, now: UnixTime) -> Option<Work> {
        let mut state = self.lock();
        let ready = state
            .projects
            .iter_mut()
            .filter(|(_, own)| !own.is_in_flight && !own.waiting.is_empty() && own.due <= now);
        let (project, own) = ready.min_by_key(|(_, own)| own.due)?;
        let project = Arc::clone(project);
        let mut piece = own.waiting.pop_front()?;
        (own.is_in_flight, own.due) = (true, now);
        let (attempts, mut freed) = (own.attempts, 0);
        while let Some(next) = own.waiting.front() {
            let fits = piece.body.len() + next.body.len() <= REQUEST_BYTES;
            if next.kind != piece.kind || !fits {
                break;
            }
            if let Some(next) = own.waiting.pop_front() {
                piece.body.extend_from_slice(&next.body);
                piece.events += next.events;
                freed += PIECE_BYTES;
            }
        }
        own.bytes -= freed;
        state.bytes -= freed;
        Some(Work {
            project,
            piece,
            attempts,
        })
    }

    /// Whether something waits for its time.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        self.lock().bytes > 0
    }

    /// Notes the result of an attempt.
    pub fn settle(&self, Work { project, piece, .. }: Work, result: Result) {
        let mut state = self.lock();
        let Some(own) = state.projects.get_mut(&project) else {
            return;
        };
        own.is_in_flight = false;
        let (kind, events) = (piece.kind.name(), piece.events);
        let outcome = match result {
            Result::Delivered { at } => {
                own.told.delivered += events;
                (own.told.error, own.told.delivered_at) = (None, Some(at));
                "delivered"
            }
            Result::Refused { error } => {
                own.told.refused += events;
                own.told.error = Some(error);
                "refused"
            }
            Result::Removed => {
                own.told.dropped += events;
                "dropped"
            }
            Result::Later { at, error } => {
                own.attempts += 1;
                own.due = at;
                own.told.error = Some(error);
                own.waiting.push_front(piece);
                return;
            }
        };
        self.metrics.count(kind, outcome, events);
        let freed = piece.body.len() + PIECE_BYTES;
        own.attempts = 0;
        own.told.waiting -= events;
        own.bytes -= freed;
        state.bytes -= freed;
        self.measure(&state);
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
