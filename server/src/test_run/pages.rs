//! The numbers of each page: frames, loads, CPU, memory, stalls.

use std::collections::{BTreeMap, HashMap};

use unjank_protocol::{FrameWindow, Jank, Metric, PageLoad};

use super::samples::{CPU, MEMORY};
use super::spans::OTHERS;
use super::spread::{Spread, Summary};
use super::{samples, weight};

/// Maximum number of pages, for apps that put numbers into names.
const MOST_PAGES: usize = 1_000;
/// Maximum number of points in a page's line chart.
const MOST_POINTS: usize = 200;

/// One screen of the app.
#[derive(Clone, Debug, Default)]
pub struct Page {
    pub name: String,
    pub frames: Option<Frames>,
    /// In percent of one core.
    pub cpu: Option<Level>,
    /// In bytes.
    pub memory: Option<Level>,
    pub loads: Option<Loads>,
    pub stalls: f64,
    pub stalled_ms: f64,
}

/// Frames of all windows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Frames {
    pub shown_ms: f64,
    /// The time in which frames were wanted: a still screen wants none.
    pub wanted_s: f64,
    pub drawn: f64,
    pub dropped: f64,
    pub slow: f64,
    pub frozen: f64,
    /// The most frames dropped in a row.
    pub longest_drop: u32,
    pub jank_ms: f64,
    pub delay_ms: f64,
    /// Time in microseconds since the epoch, and frames per second.
    pub over_time: Vec<(i64, f64)>,
}

impl Frames {
    pub(super) fn add(&mut self, other: &Self) {
        self.shown_ms += other.shown_ms;
        self.wanted_s += other.wanted_s;
        self.drawn += other.drawn;
        self.dropped += other.dropped;
        self.slow += other.slow;
        self.frozen += other.frozen;
        self.longest_drop = self.longest_drop.max(other.longest_drop);
        self.jank_ms += other.jank_ms;
        self.delay_ms += other.delay_ms;
        self.over_time.extend_from_slice(&other.over_time);
    }

    #[must_use]
    pub fn fps(&self) -> Option<f64> {
        (self.wanted_s > 0.0).then(|| self.drawn / self.wanted_s)
    }

    #[must_use]
    pub fn slow_share(&self) -> Option<f64> {
        share(self.slow, self.drawn)
    }

    #[must_use]
    pub fn frozen_share(&self) -> Option<f64> {
        share(self.frozen, self.drawn)
    }

    #[must_use]
    pub fn jank_share(&self) -> Option<f64> {
        share(self.jank_ms, self.shown_ms)
    }
}

fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| (part / whole).min(1.0))
}

impl From<&FrameWindow<'_>> for Frames {
    fn from(window: &FrameWindow<'_>) -> Self {
        let weight = weight(window.sample_rate);
        #[expect(clippy::cast_precision_loss, reason = "a day at most")]
        let shown_ms = window.duration_ms.max(0) as f64;
        let refresh_hz = f64::from(if window.refresh_hz == 0 {
            60
        } else {
            window.refresh_hz
        });
        let wanted = f64::from(window.frames_drawn) + f64::from(window.frames_dropped);
        let mut frames = Self {
            shown_ms: shown_ms * weight,
            wanted_s: wanted / refresh_hz * weight,
            drawn: f64::from(window.frames_drawn) * weight,
            dropped: f64::from(window.frames_dropped) * weight,
            slow: f64::from(window.slow_frames) * weight,
            frozen: f64::from(window.frozen_frames) * weight,
            longest_drop: window.longest_drop,
            jank_ms: f64::from(window.jank_ms) * weight,
            delay_ms: f64::from(window.delay_ms) * weight,
            over_time: Vec::new(),
        };
        frames.over_time = frames
            .fps()
            .map(|fps| (window.start.as_micros(), fps))
            .into_iter()
            .collect();
        frames
    }
}

/// A value that varies over time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Level {
    pub mean: f64,
    pub min: f64,
    pub max: f64,
    /// The difference between the last sample and the first.
    pub growth: f64,
    /// The weighted number of samples.
    pub count: f64,
    pub over_time: Vec<(i64, f64)>,
}

/// Samples in order of arrival.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    points: Vec<(i64, f64)>,
    sum: f64,
    count: f64,
    least: Option<f64>,
    most: Option<f64>,
}

impl Samples {
    pub(super) fn add(&mut self, metric: &Metric<'_>) {
        if !metric.value.is_finite() {
            return;
        }
        let count = samples(metric);
        self.points.push((metric.time.as_micros(), metric.value));
        self.sum += metric.value * count;
        self.count += count;
        let least = metric.min.unwrap_or(metric.value);
        let most = metric.max.unwrap_or(metric.value);
        self.least = Some(self.least.map_or(least, |known| known.min(least)));
        self.most = Some(self.most.map_or(most, |known| known.max(most)));
    }

    pub(super) fn level(mut self) -> Option<Level> {
        self.points.sort_by_key(|(time, _)| *time);
        let ((_, first), (_, last)) = (*self.points.first()?, *self.points.last()?);
        Some(Level {
            mean: self.sum / self.count,
            min: self.least?,
            max: self.most?,
            growth: last - first,
            count: self.count,
            over_time: thinned(self.points),
        })
    }
}

/// Reduces points to what a line chart needs. Each is the mean of its neighbours.
fn thinned(mut points: Vec<(i64, f64)>) -> Vec<(i64, f64)> {
    points.sort_by_key(|(time, _)| *time);
    let together = points.len().div_ceil(MOST_POINTS).max(1);
    #[expect(clippy::cast_precision_loss, reason = "neighbours are few")]
    let mean = |some: &[(i64, f64)]| {
        (
            some[0].0,
            some.iter().map(|(_, value)| value).sum::<f64>() / some.len() as f64,
        )
    };
    points.chunks(together).map(mean).collect()
}

/// Loads of a page.
#[derive(Clone, Debug)]
pub struct Loads {
    pub count: f64,
    pub t1_ms: Part,
    pub t2_ms: Part,
    pub t3_ms: Part,
    pub total_ms: Part,
    pub outcomes: BTreeMap<&'static str, f64>,
}

/// One part of a load; `None` if it was not measured.
pub type Part = Option<Summary>;

#[derive(Default)]
struct LoadTimes {
    parts: [Spread; 4],
    count: f64,
    outcomes: BTreeMap<&'static str, f64>,
}

impl LoadTimes {
    fn add(&mut self, load: &PageLoad<'_>) {
        let weight = weight(load.sample_rate);
        self.count += weight;
        *self.outcomes.entry(load.outcome.as_str()).or_default() += weight;
        let times = [load.t1_ms, load.t2_ms, load.t3_ms, Some(load.total_ms)];
        for (part, time) in self.parts.iter_mut().zip(times) {
            #[expect(clippy::cast_precision_loss, reason = "a day at most")]
            if let Some(time) = time {
                part.add(time as f64, weight);
            }
        }
    }

    fn loads(self) -> Option<Loads> {
        let [t1_ms, t2_ms, t3_ms, total_ms] = self.parts.map(Spread::summary);
        (self.count > 0.0).then_some(Loads {
            count: self.count,
            t1_ms,
            t2_ms,
            t3_ms,
            total_ms,
            outcomes: self.outcomes,
        })
    }
}

#[derive(Default)]
struct OfPage {
    frames: Option<Frames>,
    cpu: Samples,
    memory: Samples,
    loads: LoadTimes,
    stalls: f64,
    stalled_ms: f64,
}

/// Collects pages from events.
#[derive(Default)]
pub(super) struct PagesByName(HashMap<String, OfPage>);

impl PagesByName {
    fn page(&mut self, name: &str) -> &mut OfPage {
        let full = self.0.len() >= MOST_PAGES && !self.0.contains_key(name);
        let name = if full { OTHERS } else { name };
        self.0.entry(name.to_owned()).or_default()
    }

    pub(super) fn add_window(&mut self, window: &FrameWindow<'_>) {
        let new = Frames::from(window);
        match &mut self.page(&window.page).frames {
            Some(frames) => frames.add(&new),
            none => *none = Some(new),
        }
    }

    pub(super) fn add_load(&mut self, load: &PageLoad<'_>) {
        self.page(&load.page).loads.add(load);
    }

    pub(super) fn add_stall(&mut self, jank: &Jank<'_>) {
        let weight = weight(jank.sample_rate);
        let page = self.page(&jank.page);
        page.stalls += weight;
        #[expect(clippy::cast_precision_loss, reason = "a day at most")]
        let duration = jank.duration_ms as f64;
        page.stalled_ms += duration * weight;
    }

    /// Adds the metric if pages show it, and returns whether they do.
    pub(super) fn add_metric(&mut self, metric: &Metric<'_>) -> bool {
        match &*metric.name {
            CPU => self.page(&metric.page).cpu.add(metric),
            MEMORY => self.page(&metric.page).memory.add(metric),
            _ => return false,
        }
        true
    }

    /// Returns the pages by lost time, most first.
    pub(super) fn sorted(self) -> Vec<Page> {
        let pages = self.0.into_iter().map(|(name, page)| Page {
            name,
            frames: page.frames.map(|frames| Frames {
                over_time: thinned(frames.over_time.clone()),
                ..frames
            }),
            cpu: page.cpu.level(),
            memory: page.memory.level(),
            loads: page.loads.loads(),
            stalls: page.stalls,
            stalled_ms: page.stalled_ms,
        });
        let mut pages: Vec<_> = pages.collect();
        let lost = |page: &Page| {
            page.stalled_ms + page.frames.as_ref().map_or(0.0, |frames| frames.jank_ms)
        };
        pages.sort_by(|one, other| {
            lost(other)
                .total_cmp(&lost(one))
                .then_with(|| one.name.cmp(&other.name))
        });
        pages
    }
}
