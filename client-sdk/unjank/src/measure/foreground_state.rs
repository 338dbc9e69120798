//! Whether the app is in the foreground or in the background, and since when.

use std::sync::{Mutex, PoisonError};

use crate::clock::{Moment, steady_micros};

/// The state of the app, and since when.
#[derive(Debug)]
pub(crate) struct AppState(Mutex<(bool, u64)>);

impl Default for AppState {
    fn default() -> Self {
        Self(Mutex::new((true, awake_or_asleep_us())))
    }
}

impl AppState {
    /// Restarts the measurement of the current state, because there was no consent until now.
    pub(crate) fn begin_again(&self) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.1 = awake_or_asleep_us();
    }

    /// Returns how long the state lasted that ends, in microseconds. `None`: nothing changes.
    pub(super) fn change(&self, foreground: bool) -> Option<u64> {
        let now = awake_or_asleep_us();
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (was, since) = *state;
        if was == foreground {
            return None;
        }
        *state = (foreground, now);
        Some(now.saturating_sub(since))
    }
}

/// A clock that goes on while the device sleeps, if the system has one.
fn awake_or_asleep_us() -> u64 {
    let micros = steady_micros().unwrap_or_else(|| Moment::now().micros());
    u64::try_from(micros).unwrap_or_default()
}
