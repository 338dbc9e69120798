//! Monitors: values that are sampled at an interval, or reported when they change. The remote configuration switches each one on
//! by name.

mod memory;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use unjank_monitors::Uptime;

use self::memory::Memory;
use crate::client::{self, Shared};
use crate::clock::Moment;
use crate::clock::Times;
use crate::metric_provider::MetricProvider;

/// Reports a new value of a monitor. Values of one interval are aggregated into one event with minimum, maximum and mean. Does
/// nothing while nothing is collected or the monitor is off: the remote configuration switches it on by name, as with
/// [`MetricProvider`].
///
/// At most 64 metrics are aggregated at once. Values of further metrics, and values that are not finite, are counted as lost. The
/// name of the metric includes the unit and is cut at 1 KiB.
///
/// ```
/// unjank::sample("thermal", "thermal_headroom", 0.7);
/// ```
pub fn sample(monitor: &str, metric: &str, value: f64) {
    client::with(|shared| {
        let ended = shared
            .meters
            .samples()
            .sample(monitor, metric, value, Uptime::now());
        shared.record_samples(ended);
    });
}

/// The providers, and when each is due.
#[derive(Default)]
pub(crate) struct Monitors(Vec<Due>);

struct Due {
    provider: Box<dyn MetricProvider>,
    next: Option<Moment>,
}

impl Monitors {
    pub(crate) fn new(own: Vec<Box<dyn MetricProvider>>) -> Self {
        let mut providers: Vec<Box<dyn MetricProvider>> = vec![
            Box::new(Fps::default()),
            Box::new(Cpu::default()),
            Box::new(Memory),
        ];
        providers.extend(own);
        let due = |provider| Due {
            provider,
            next: None,
        };
        Self(providers.into_iter().map(due).collect())
    }

    /// Samples the providers that are due.
    pub(crate) fn poll(&mut self, shared: &Shared) {
        let now = Moment::now();
        let settings = shared.settings.load();
        if !settings.collects() {
            self.0.iter_mut().for_each(|due| due.next = None);
            return;
        }
        for due in &mut self.0 {
            // A provider that panics in `name` has none.
            let name = catch_unwind(AssertUnwindSafe(|| due.provider.name().to_owned()));
            let monitor = name
                .ok()
                .and_then(|name| settings.document.monitors.get(&name));
            let Some(monitor) = monitor else {
                due.next = None;
                continue;
            };
            if due.next.is_some_and(|next| now < next) {
                continue;
            }
            let interval = Duration::from_millis(u64::from(monitor.interval_ms.max(100)));
            due.next = Some(now.after(interval));
            let provider = &mut due.provider;
            // A provider that panics is sampled again next time.
            let sampled = catch_unwind(AssertUnwindSafe(|| {
                provider
                    .sample(&mut |name, value| crate::metric::record(shared, name.into(), value));
            }));
            sampled.unwrap_or_default();
        }
    }

    /// Returns when the next provider is due.
    pub(crate) fn next(&self) -> Option<Moment> {
        self.0.iter().filter_map(|due| due.next).min()
    }
}

/// Frames per second, while frames are drawn.
#[derive(Default)]
struct Fps {
    last: Option<(Moment, u64)>,
}

impl MetricProvider for Fps {
    fn name(&self) -> &str {
        "fps"
    }

    #[expect(clippy::cast_precision_loss, reason = "frames of one interval are few")]
    fn sample(&mut self, tell: &mut dyn FnMut(&'static str, f64)) {
        let Some(drawn) = client::installed().map(|shared| shared.meters.frames().drawn()) else {
            return;
        };
        let now = Moment::now();
        let last = self.last.replace((now, drawn));
        if let Some((since, before)) = last
            && drawn > before
        {
            let seconds = now.since(since).as_secs_f64().max(0.001);
            tell("fps", drawn.saturating_sub(before) as f64 / seconds);
        }
    }
}

/// The CPU time of this process, in percent of one core.
#[derive(Default)]
struct Cpu {
    last: Option<(Moment, Duration)>,
}

impl MetricProvider for Cpu {
    fn name(&self) -> &str {
        "cpu"
    }

    fn sample(&mut self, tell: &mut dyn FnMut(&'static str, f64)) {
        let (now, Some(used)) = (Moment::now(), process_cpu()) else {
            return;
        };
        if let Some((since, before)) = self.last.replace((now, used)) {
            let passed = now.since(since).as_secs_f64().max(0.001);
            let used = used.saturating_sub(before).as_secs_f64();
            tell("cpu_percent", used / passed * 100.0);
        }
    }
}

#[cfg(unix)]
#[expect(clippy::unnecessary_wraps, reason = "other systems return `None`")]
fn process_cpu() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u32::try_from(time.tv_nsec).unwrap_or_default();
    Some(Duration::new(seconds, nanos))
}

#[cfg(not(unix))]
fn process_cpu() -> Option<Duration> {
    None
}
