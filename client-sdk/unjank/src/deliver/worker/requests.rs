//! Requests from the app to the background thread.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Requests from the app to the background thread.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    state: Mutex<RequestState>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RequestState {
    pub(crate) stop: bool,
    /// With `stop`: collection was on until now, so the remaining events are to be sent.
    pub(crate) last_work: bool,
    /// Number of calls of `flush`.
    pub(crate) flushes: u64,
    /// The last flush that is done.
    pub(crate) flushed: u64,
    /// The last flush after which something still waits on the device.
    pub(crate) unsent: u64,
    /// Number of calls of `keep`, and the last one that is done.
    pub(crate) keeps: u64,
    pub(crate) kept: u64,
    /// The last call of `keep` after which something was still only in memory.
    pub(crate) unkept: u64,
    /// Wake up now, for example because the queue is filling up.
    pub(crate) hurry: bool,
    /// Delete unsent events.
    pub(crate) forget: bool,
    /// A deletion of unsent events is requested or under way.
    forgets: bool,
    /// The background thread has ended.
    ended: bool,
}

impl Requests {
    pub(crate) fn change(&self, change: impl FnOnce(&mut RequestState)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut state);
        self.changed.notify_all();
    }

    /// Waits for a request, at most `longest`, and returns the current ones. Clears `hurry` and `forget`.
    pub(crate) fn wait(&self, longest: Duration) -> RequestState {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |state: &mut RequestState| {
            !(state.stop
                || state.hurry
                || state.forget
                || state.flushes > state.flushed
                || state.keeps > state.kept)
        };
        let waited = self.changed.wait_timeout_while(state, longest, idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let taken = *state;
        (state.hurry, state.forget) = (false, false);
        taken
    }

    /// Waits like [`Self::wait`] while a request to the server is under way. The requests in `known` do not end the wait.
    pub(crate) fn wait_for_more(&self, known: RequestState, longest: Duration) -> RequestState {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |state: &mut RequestState| {
            !(state.hurry
                || state.forget
                || state.keeps > state.kept
                || state.flushes > known.flushes
                || (state.stop && !known.stop))
        };
        let waited = self.changed.wait_timeout_while(state, longest, idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let taken = *state;
        (state.hurry, state.forget) = (false, false);
        taken
    }

    /// Requests that unsent events are deleted. A deletion stays requested if consent is renewed before it runs.
    pub(crate) fn forget(&self) {
        self.change(|state| {
            (state.hurry, state.forget, state.forgets) = (true, true, true);
        });
    }

    /// Marks the requested deletion as done, unless another was requested meanwhile.
    pub(crate) fn forgotten(&self) {
        self.change(|state| state.forgets = state.forget);
    }

    /// Waits until the requested deletion is done, at most `timeout`.
    #[cfg(unix)]
    pub(crate) fn wait_until_forgotten(&self, timeout: Duration) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let open = |state: &mut RequestState| state.forgets && !state.ended;
        drop(self.changed.wait_timeout_while(state, timeout, open));
    }

    /// Marks the background thread as ended.
    pub(crate) fn ended(&self) {
        self.change(|state| state.ended = true);
    }

    /// Waits for the background thread to end. Returns whether it ended in time.
    pub(crate) fn stopped(&self, timeout: Duration) -> bool {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(state, timeout, |state| !state.ended);
        waited.unwrap_or_else(PoisonError::into_inner).0.ended
    }

    /// Requests that everything is on disk and waits for it. Returns whether it was done in time.
    pub(crate) fn keep(&self, timeout: Duration) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.keeps = state.keeps.saturating_add(1);
        let mine = state.keeps;
        self.changed.notify_all();
        let open = |state: &mut RequestState| state.kept < mine && !state.ended;
        let waited = self.changed.wait_timeout_while(state, timeout, open);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.kept >= mine && state.unkept < mine
    }

    /// Requests a flush and waits for it. Returns whether everything was sent in time.
    pub(crate) fn flush(&self, timeout: Duration) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.flushes = state.flushes.saturating_add(1);
        let mine = state.flushes;
        self.changed.notify_all();
        let open = |state: &mut RequestState| state.flushed < mine && !state.stop;
        let waited = self.changed.wait_timeout_while(state, timeout, open);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.flushed >= mine && state.unsent < mine
    }
}
