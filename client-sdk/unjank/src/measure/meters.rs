//! The state machines that all threads feed. Each has its own lock, which is held only for the duration of a call.

use std::sync::{Mutex, MutexGuard, PoisonError};

use unjank_monitors::{
    AppStartTimer, FrameMeter, LastValues, MetricWindows, PageLoads, Recompositions, RunLog, Scene,
    TrafficMeter,
};
use unjank_protocol::config::Document;

use super::awaited_frame::NextFrame;

#[derive(Debug)]
pub(crate) struct Meters {
    frames: Mutex<FrameMeter>,
    pages: Mutex<PageLoads>,
    traffic: Mutex<TrafficMeter>,
    start: Mutex<AppStartTimer>,
    redraws: Mutex<Recompositions>,
    samples: Mutex<MetricWindows>,
    log: Mutex<RunLog>,
    last_values: Mutex<LastValues>,
    pub(crate) next_frame: NextFrame,
}

/// Length of the windows in which redraws are counted.
const REDRAW_WINDOW_MS: u32 = 10_000;

fn locked<T>(machine: &Mutex<T>) -> MutexGuard<'_, T> {
    machine.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Meters {
    pub(crate) fn new(document: &Document, refresh_hz: u16) -> Self {
        let scene = Scene::new("");
        let frames = FrameMeter::new(&document.frames, refresh_hz, scene.clone());
        Self {
            frames: Mutex::new(frames),
            pages: Mutex::new(PageLoads::new(&document.pages, scene.clone())),
            traffic: Mutex::new(TrafficMeter::new(&document.traffic)),
            start: Mutex::default(),
            redraws: Mutex::new(Recompositions::new(REDRAW_WINDOW_MS, scene.clone())),
            samples: Mutex::new(MetricWindows::new(&document.monitors, scene)),
            log: Mutex::default(),
            last_values: Mutex::default(),
            next_frame: NextFrame::default(),
        }
    }

    /// Discards what is open, because consent was withdrawn. Traffic is deleted with its ledger.
    pub(crate) fn clear(&self, document: &Document, refresh_hz: u16) {
        let new = Self::new(document, refresh_hz);
        fn swap<T>(old: &Mutex<T>, new: Mutex<T>) {
            *locked(old) = new.into_inner().unwrap_or_else(PoisonError::into_inner);
        }
        swap(&self.frames, new.frames);
        swap(&self.pages, new.pages);
        swap(&self.start, new.start);
        swap(&self.redraws, new.redraws);
        swap(&self.samples, new.samples);
        swap(&self.log, new.log);
        swap(&self.last_values, new.last_values);
        self.next_frame.clear();
    }

    pub(crate) fn set_config(&self, document: &Document) {
        locked(&self.frames).set_config(&document.frames);
        locked(&self.pages).set_config(&document.pages);
        locked(&self.traffic).set_config(&document.traffic);
        locked(&self.samples).set_config(&document.monitors);
    }

    pub(crate) fn frames(&self) -> MutexGuard<'_, FrameMeter> {
        locked(&self.frames)
    }

    pub(crate) fn pages(&self) -> MutexGuard<'_, PageLoads> {
        locked(&self.pages)
    }

    pub(crate) fn traffic(&self) -> MutexGuard<'_, TrafficMeter> {
        locked(&self.traffic)
    }

    pub(crate) fn start(&self) -> MutexGuard<'_, AppStartTimer> {
        locked(&self.start)
    }

    pub(crate) fn redraws(&self) -> MutexGuard<'_, Recompositions> {
        locked(&self.redraws)
    }

    pub(crate) fn samples(&self) -> MutexGuard<'_, MetricWindows> {
        locked(&self.samples)
    }

    pub(crate) fn last_values(&self) -> MutexGuard<'_, LastValues> {
        locked(&self.last_values)
    }

    pub(crate) fn log(&self) -> MutexGuard<'_, RunLog> {
        locked(&self.log)
    }
}
