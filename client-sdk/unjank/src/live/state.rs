//! What a watch keeps, and the places where the SDK adds to it.

use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use unjank_monitors::FrameTotals;
use unjank_protocol::Jank;

use super::spans::Spans;
use super::tree::Latest;
use super::{Frames, Live, Stall, Traffic};
use crate::clock::Moment;
use crate::event::Event;
use crate::measure::client::{self, Shared};
use crate::measure::monitor::Resources;
use crate::measure::traffic::Transferred;
use crate::report::shown_frame;

/// Keeps current values while it exists. Clones share them.
///
/// ```
/// let watch = unjank::live::watch();
/// let of_another_view = watch.clone();
/// drop((watch, of_another_view)); // nothing is kept any more
/// ```
#[derive(Clone)]
#[must_use = "nothing is kept once this is dropped: bind it to a name, not to `_`"]
pub struct Watch(Arc<State>);

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

/// Begins to keep current values, or continues to if there is a watch already. Works in every [`crate::Mode`] and also before
/// [`crate::init`].
///
/// ```
/// let watch = unjank::live::watch();
/// assert!(watch.read().spans.is_empty());
/// ```
pub fn watch() -> Watch {
    let mut current = current_state();
    let state = current.upgrade().unwrap_or_default();
    *current = Arc::downgrade(&state);
    WATCHED.store(true, Ordering::Release);
    drop(current);
    if let Some(shared) = client::current() {
        state.lock().sample(&shared);
    }
    Watch(state)
}

impl Watch {
    /// Returns the current values. Takes some tens of microseconds: it reads the memory from the system, and sorts spans. A view that
    /// draws each frame should read about twice a second.
    ///
    /// ```
    /// let watch = unjank::live::watch();
    /// println!("{}", watch.read());
    /// ```
    #[must_use]
    pub fn read(&self) -> Live {
        let shared = client::current();
        let mut kept = self.0.lock();
        if let Some(shared) = &shared {
            kept.sample(shared);
        }
        let mut live = Live {
            collecting: shared.is_some(),
            frames: kept.frames(),
            cpu_percent: kept.cpu_percent,
            memory_bytes: kept.memory_bytes,
            stall: kept.stall.clone(),
            stalls: kept.stalls,
            spans: kept.spans.by_hazard(),
            tree: kept.latest.tree(),
            traffic: kept.traffic,
            ..Live::default()
        };
        drop(kept);
        if let Some(shared) = shared {
            live.page = shared.page_name().to_string();
            let now = shared.stall.lock().unwrap_or_else(PoisonError::into_inner);
            let under_way = now.stall.as_ref().map(|jank| stall(jank, true));
            live.stall = under_way.or(live.stall);
        }
        live
    }
}

/// Whether there is a watch.
static WATCHED: AtomicBool = AtomicBool::new(false);
static STATE: Mutex<Weak<State>> = Mutex::new(Weak::new());

fn current_state() -> MutexGuard<'static, Weak<State>> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns whether there is a watch.
pub(crate) fn is_watched() -> bool {
    WATCHED.load(Ordering::Relaxed)
}

/// Returns the state, without the lock: dropping the last owner takes the lock.
#[inline]
fn watched() -> Option<Arc<State>> {
    if !is_watched() {
        return None;
    }
    let state = current_state().clone();
    state.upgrade()
}

#[derive(Default)]
struct State(Mutex<Kept>);

impl State {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let current = current_state();
        if current.strong_count() == 0 {
            WATCHED.store(false, Ordering::Release);
        }
    }
}

#[derive(Default)]
struct Kept {
    /// The client that the samples are of.
    client: u32,
    samples: VecDeque<(Moment, FrameTotals)>,
    resources: Resources,
    /// When `resources` was read.
    read: Option<Moment>,
    cpu_percent: Option<f64>,
    memory_bytes: Option<u64>,
    stall: Option<Stall>,
    stalls: u64,
    spans: Spans,
    latest: Latest,
    traffic: Traffic,
}

impl Kept {
    /// The time that frames are counted over.
    const PERIOD: Duration = Duration::from_secs(5);
    /// The shortest time between two samples.
    const PAUSE: Duration = Duration::from_millis(200);

    fn sample(&mut self, shared: &Shared) {
        let now = Moment::now();
        let totals = shared.meters.frames().totals();
        let before = self.samples.back().map(|(_, before)| before.drawn);
        if self.client != shared.id || before.is_some_and(|before| before > totals.drawn) {
            (self.client, self.read) = (shared.id, None);
            self.samples.clear();
        }
        if self.read.is_some_and(|read| now.since(read) < Self::PAUSE) {
            // Replaces the newest sample. The oldest sample stays, because later ones are compared with it.
            if self.samples.len() > 1 {
                self.samples.pop_back();
            }
            self.samples.push_back((now, totals));
            return;
        }
        self.read = Some(now);
        self.samples.push_back((now, totals));
        // Keeps one that is older than the period.
        while self
            .samples
            .get(1)
            .is_some_and(|(at, _)| now.since(*at) >= Self::PERIOD)
        {
            self.samples.pop_front();
        }
        self.read_resources();
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "bytes are whole and not negative"
    )]
    fn read_resources(&mut self) {
        let (cpu, memory) = (&mut self.cpu_percent, &mut self.memory_bytes);
        self.resources.sample(&mut |name, value| match name {
            "cpu_percent" => *cpu = Some(value),
            "memory_used_bytes" => *memory = Some(value as u64),
            _ => {}
        });
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "frames of a few seconds are few"
    )]
    fn frames(&self) -> Frames {
        let ends = self.samples.front().zip(self.samples.back());
        let Some(((_, first), (_, last))) = ends else {
            return Frames::default();
        };
        let drawn = last.drawn.saturating_sub(first.drawn);
        let active_us = last.active_us.saturating_sub(first.active_us);
        Frames {
            fps: (drawn > 0 && active_us > 0)
                .then(|| drawn as f64 * 1_000_000.0 / active_us as f64),
            drawn,
            dropped: last.dropped.saturating_sub(first.dropped),
            slow: last.slow.saturating_sub(first.slow),
            frozen: last.frozen.saturating_sub(first.frozen),
        }
    }
}

fn stall(jank: &Jank<'_>, under_way: bool) -> Stall {
    Stall {
        kind: jank.kind.as_str().to_owned(),
        duration_ms: jank.duration_ms,
        under_way,
        thread: jank.thread.to_string(),
        page: jank.page.to_string(),
        stack: jank.stack.iter().map(shown_frame).collect(),
        stack_missing: jank.stack_missing.to_string(),
    }
}

/// Adds an event. Called on the background thread.
#[inline]
pub(crate) fn see(event: &Event) {
    let Some(state) = watched() else {
        return;
    };
    let mut kept = state.lock();
    match event {
        Event::Span(span) => {
            kept.spans.add(span);
            kept.latest.add(span);
        }
        Event::Jank(jank) => {
            kept.stall = Some(stall(jank, false));
            kept.stalls = kept.stalls.saturating_add(1);
        }
        _ => {}
    }
}

/// Takes a sample, so that a view that is read rarely also shows the last seconds.
pub(crate) fn sample(shared: &Shared) {
    if let Some(state) = watched() {
        state.lock().sample(shared);
    }
}

/// Adds a request.
#[inline]
pub(crate) fn count_request(transferred: &Transferred<'_>) {
    let Some(state) = watched() else {
        return;
    };
    let traffic = &mut state.lock().traffic;
    traffic.tx_bytes = traffic.tx_bytes.saturating_add(transferred.tx_bytes);
    traffic.rx_bytes = traffic.rx_bytes.saturating_add(transferred.rx_bytes);
    traffic.requests = traffic.requests.saturating_add(1);
    let failed = u64::from(!transferred.answered);
    traffic.failed_requests = traffic.failed_requests.saturating_add(failed);
}

/// Forgets everything, because consent was withdrawn.
pub(crate) fn clear() {
    if let Some(state) = watched() {
        *state.lock() = Kept::default();
    }
}
