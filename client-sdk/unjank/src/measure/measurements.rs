//! Records what the meters have measured.

use unjank_monitors::Uptime;
use unjank_protocol::{FrameWindow, Metric, PageLoad, Recomposition, Signal};

use super::client::Shared;
use super::suspensions::suspended_us_since;
use crate::clock::Times as _;
use crate::deliver::losses::Reason;
use crate::event::Event;

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
            self.losses.add(signal, Reason::QueueFull, events);
        }
    }

    /// Whether the process ran all the time that an event took, which ends now. If not, counts the event as lost.
    pub(crate) fn ran_for(&self, took_ms: i64, signal: Signal) -> bool {
        let took_us = u64::try_from(took_ms).unwrap_or_default() * 1_000;
        let ran = suspended_us_since(Uptime::now().minus(took_us)) == 0;
        if !ran {
            self.losses.add(signal, Reason::Suspended, 1);
        }
        ran
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
            if !self.ran_for(load.total_ms, Signal::PageLoads) {
                continue;
            }
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
            self.record_metric(sample);
        }
    }
}
