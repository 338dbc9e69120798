//! The state machines that all threads feed. Each has its own lock, which is held only for the duration of a call.

use std::sync::{Mutex, MutexGuard, PoisonError};

use unjank_monitors::{
    AppStartTimer, FrameMeter, MetricWindows, PageLoads, Recompositions, RunLog, Scene,
    TrafficMeter, Uptime,
};
use unjank_protocol::config::Document;
use unjank_protocol::{FrameWindow, Metric, PageLoad, Recomposition, Signal};

use crate::client::Shared;
use crate::event::Event;
use crate::frames::Times as _;

#[derive(Debug)]
pub(crate) struct Meters {
    frames: Mutex<FrameMeter>,
    pages: Mutex<PageLoads>,
    traffic: Mutex<TrafficMeter>,
    start: Mutex<AppStartTimer>,
    redraws: Mutex<Recompositions>,
    samples: Mutex<MetricWindows>,
    log: Mutex<RunLog>,
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

    pub(crate) fn log(&self) -> MutexGuard<'_, RunLog> {
        locked(&self.log)
    }
}

impl Shared {
    /// Applies a change of the screen, the network or the visibility: windows of the old surroundings end.
    pub(crate) fn set_scene(&self) {
        let (now, scene) = (Uptime::now(), self.scene());
        let meters = &self.meters;
        let window = meters.frames().set_scene(now, scene.clone());
        self.record_frames(window);
        let redrawn = meters.redraws().set_scene(now, scene.clone());
        self.record_redraws(redrawn);
        let samples = meters.samples().set_scene(now, scene.clone());
        self.record_samples(samples);
        meters.pages().set_scene(scene);
    }

    /// Records the measurements that are over; with `all`, also those that are still open.
    pub(crate) fn poll_meters(&self, all: bool) {
        let now = Uptime::now();
        let meters = &self.meters;
        let window = if all {
            meters.frames().flush(now)
        } else {
            meters.frames().poll(now)
        };
        self.record_frames(window);
        let redrawn = if all {
            meters.redraws().flush(now)
        } else {
            meters.redraws().poll(now)
        };
        self.record_redraws(redrawn);
        let samples = if all {
            meters.samples().flush(now)
        } else {
            meters.samples().poll(now)
        };
        self.record_samples(samples);
        let loads = meters.pages().poll(now);
        self.record_loads(loads);
        self.count_dropped();
    }

    /// Counts events that the state machines had no room for.
    fn count_dropped(&self) {
        let meters = &self.meters;
        let dropped = [
            (Signal::PageLoads, meters.pages().take_dropped()),
            (Signal::Traffic, meters.traffic().take_dropped()),
            (Signal::AppStarts, meters.start().take_dropped()),
            (Signal::Recompositions, meters.redraws().take_dropped()),
            (Signal::Metrics, meters.samples().take_dropped()),
        ];
        for (signal, events) in dropped.into_iter().filter(|(_, events)| *events > 0) {
            self.losses
                .add(signal, crate::losses::Reason::QueueFull, events);
        }
    }

    pub(crate) fn record_frames(&self, window: Option<FrameWindow<'static>>) {
        if let Some(window) = window {
            self.record(Signal::FrameWindows, |sample_rate| {
                Event::FrameWindow(FrameWindow {
                    sample_rate,
                    ..window
                })
            });
        }
    }

    pub(crate) fn record_loads(&self, loads: impl IntoIterator<Item = PageLoad<'static>>) {
        for load in loads {
            self.record(Signal::PageLoads, |sample_rate| {
                Event::PageLoad(PageLoad {
                    sample_rate,
                    ..load
                })
            });
        }
    }

    pub(crate) fn record_redraws(&self, redrawn: impl IntoIterator<Item = Recomposition<'static>>) {
        for one in redrawn {
            self.record(Signal::Recompositions, |sample_rate| {
                Event::Recomposition(Recomposition { sample_rate, ..one })
            });
        }
    }

    pub(crate) fn record_samples(&self, samples: impl IntoIterator<Item = Metric<'static>>) {
        for sample in samples {
            self.record(Signal::Metrics, |sample_rate| {
                Event::Metric(Metric {
                    sample_rate,
                    ..sample
                })
            });
        }
    }
}
