//! The measurements that wait for the next frame.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use unjank_monitors::Uptime;

/// A later frame does not show the feedback.
pub(super) const LONGEST_US: u64 = 5_000_000;

/// The measurements that wait for the next frame.
#[derive(Debug, Default)]
pub(crate) struct NextFrame {
    /// Checked for each frame.
    pub(super) is_awaited: AtomicBool,
    awaited: Mutex<Awaited>,
}

#[derive(Debug, Default)]
pub(super) struct Awaited {
    pub(super) input: Option<(Cow<'static, str>, Uptime)>,
    pub(super) foreground: Option<Uptime>,
}

impl NextFrame {
    fn change(&self, change: impl FnOnce(&mut Awaited)) {
        let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut awaited);
        let is_awaited = awaited.input.is_some() || awaited.foreground.is_some();
        self.is_awaited.store(is_awaited, Ordering::Relaxed);
    }

    pub(super) fn await_input(&self, name: Cow<'static, str>, at: Uptime) {
        self.change(|awaited| {
            let is_old = |since: Uptime| at.micros_since(since) > LONGEST_US;
            if awaited
                .input
                .as_ref()
                .is_none_or(|(_, since)| is_old(*since))
            {
                awaited.input = Some((name, at));
            }
        });
    }

    /// Measures until the first frame in the foreground; `None`: the app is in the background.
    pub(crate) fn await_foreground(&self, since: Option<Uptime>) {
        self.change(|awaited| awaited.foreground = since);
    }

    pub(crate) fn clear(&self) {
        self.change(|awaited| *awaited = Awaited::default());
    }

    /// Takes the measurements that began before a frame and end with it.
    pub(super) fn take(&self, delivered: Uptime) -> Awaited {
        let mut ended = Awaited::default();
        self.change(|awaited| {
            ended.input = awaited.input.take_if(|(_, since)| *since <= delivered);
            ended.foreground = awaited.foreground.take_if(|since| *since <= delivered);
        });
        ended
    }
}
