//! The host of a simulated server: whether its process runs, and what the process can reach.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

#[derive(Debug, Default)]
pub(super) struct Host(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_paused: bool,
    /// Tasks that continue when the process does.
    waiting: Vec<Waker>,
    control_is_away: bool,
    store_is_away: bool,
}

impl Host {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the process without ending it, as a hypervisor may do. Time goes on.
    pub(super) fn pause(&self) {
        self.state().is_paused = true;
    }

    pub(super) fn resume(&self) {
        let mut state = self.state();
        state.is_paused = false;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Runs a task of the process.
    pub(super) async fn run<T>(&self, task: impl Future<Output = T>) -> T {
        let mut task = pin!(task);
        poll_fn(|context| {
            let mut state = self.state();
            if state.is_paused {
                state.waiting.push(context.waker().clone());
                return Poll::Pending;
            }
            drop(state);
            task.as_mut().poll(context)
        })
        .await
    }

    /// Cuts the server off from the control database, or connects it again.
    pub(super) fn cut_off_control(&self, is_away: bool) {
        self.state().control_is_away = is_away;
    }

    pub(super) fn control_is_away(&self) -> bool {
        self.state().control_is_away
    }

    /// Cuts the server off from ClickHouse, or connects it again.
    pub(super) fn cut_off_store(&self, is_away: bool) {
        self.state().store_is_away = is_away;
    }

    pub(super) fn store_is_away(&self) -> bool {
        self.state().store_is_away
    }
}
