//! Monitors: values that are sampled at an interval, or reported when they change. The remote configuration switches each one on
//! by name.

mod battery;
mod memory;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod memory_limit;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use unjank_monitors::{Series, Uptime};
use unjank_protocol::Signal;
use unjank_protocol::config::Monitor;

use self::battery::Battery;
use self::memory::Memory;
use super::client::{self, Shared};
use super::metric::record;
use super::metric_provider::MetricProvider;
use crate::clock::{Moment, Times, process_cpu_time};
use crate::config::Mode;

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

/// The same, with attributes of the app: at most 8, whose names and values are cut at 1 KiB. Values with different attributes are
/// aggregated apart, and each combination counts as one of the 64 metrics. The server groups and filters by them (`attribute.` and the
/// name).
///
/// ```
/// unjank::sample_with("cache", "cache_hit_percent", 93.0, &[("cache", "images")]);
/// ```
pub fn sample_with(monitor: &str, metric: &str, value: f64, attributes: &[(&str, &str)]) {
    client::with(|shared| {
        let series = Series {
            monitor,
            metric,
            attributes,
        };
        let ended = shared
            .meters
            .samples()
            .sample_of(series, value, Uptime::now());
        shared.record_samples(ended);
    });
}

/// The providers, and when each is due.
#[derive(Default)]
pub(crate) struct Monitors(Vec<Due>);

struct Due {
    provider: Box<dyn MetricProvider>,
    /// Whether the app added it.
    is_own: bool,
    next: Option<Moment>,
}

impl Monitors {
    pub(crate) fn new(own: Vec<Box<dyn MetricProvider>>) -> Self {
        let built_in: [Box<dyn MetricProvider>; 4] = [
            Box::new(Fps::default()),
            Box::new(Cpu::default()),
            Box::new(Memory),
            Box::new(Battery::default()),
        ];
        let due = |is_own| {
            move |provider| Due {
                provider,
                is_own,
                next: None,
            }
        };
        // A provider of the app replaces the built-in one of the same name.
        let name = |one: &dyn MetricProvider| {
            catch_unwind(AssertUnwindSafe(|| one.name().to_owned())).ok()
        };
        let names: Vec<String> = own.iter().filter_map(|one| name(&**one)).collect();
        let built_in = built_in
            .into_iter()
            .filter(|one| !names.iter().any(|own| own == one.name()));
        let own: Vec<Due> = own.into_iter().map(due(true)).collect();
        Self(built_in.map(due(false)).chain(own).collect())
    }

    /// Samples the providers that are due.
    pub(crate) fn poll(&mut self, shared: &Shared) {
        let now = Moment::now();
        let settings = shared.settings.load();
        if !settings.collects() || settings.off.has(Signal::Metrics) {
            self.0.iter_mut().for_each(|due| due.next = None);
            return;
        }
        let is_lab = shared.config.mode != Mode::Production;
        for due in &mut self.0 {
            // A provider that panics in `name` has none.
            let name = catch_unwind(AssertUnwindSafe(|| due.provider.name().to_owned()));
            let monitor = name.ok().and_then(|name| {
                let named = settings.document.monitors.get(&name).cloned();
                // Without a server, nothing else would switch it on.
                let is_on = || shared.switches.named(&name) != Some(false);
                named.or_else(|| (due.is_own && is_lab && is_on()).then(Monitor::default))
            });
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
                provider.sample(&mut |name, value| record(shared, name.into(), value));
            }));
            sampled.unwrap_or_default();
        }
    }

    /// Returns when the next provider is due.
    pub(crate) fn next(&self) -> Option<Moment> {
        self.0.iter().filter_map(|due| due.next).min()
    }
}

/// CPU and memory, for the live view.
#[derive(Default)]
pub(crate) struct Resources(Cpu);

impl Resources {
    /// Reports `cpu_percent` since the previous call, and the memory.
    pub(crate) fn sample(&mut self, report: &mut dyn FnMut(&'static str, f64)) {
        self.0.sample(report);
        Memory.sample(report);
    }
}

/// Frames per second of the time in which frames were wanted: a still screen has none, and costs nothing.
#[derive(Default)]
struct Fps {
    /// Frames, and the time in which they were wanted, in microseconds.
    last: Option<(u64, u64)>,
}

impl MetricProvider for Fps {
    fn name(&self) -> &str {
        "fps"
    }

    #[expect(clippy::cast_precision_loss, reason = "frames of one interval are few")]
    fn sample(&mut self, report: &mut dyn FnMut(&'static str, f64)) {
        let now = client::installed().map(|shared| {
            let frames = shared.meters.frames().totals();
            (frames.drawn, frames.active_us)
        });
        let Some((drawn, active_us)) = now else {
            return;
        };
        let (before, since_us) = self.last.replace((drawn, active_us)).unwrap_or_default();
        let (drawn, active_us) = (
            drawn.saturating_sub(before),
            active_us.saturating_sub(since_us),
        );
        if drawn > 0 && active_us > 0 {
            report("fps", drawn as f64 * 1_000_000.0 / active_us as f64);
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

    fn sample(&mut self, report: &mut dyn FnMut(&'static str, f64)) {
        let (now, Some(used)) = (Moment::now(), process_cpu_time()) else {
            return;
        };
        if let Some((since, before)) = self.last.replace((now, used)) {
            let passed = now.since(since).as_secs_f64().max(0.001);
            let used = used.saturating_sub(before).as_secs_f64();
            report("cpu_percent", used / passed * 100.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Own;

    impl MetricProvider for Own {
        fn name(&self) -> &'static str {
            "battery"
        }

        fn sample(&mut self, _report: &mut dyn FnMut(&'static str, f64)) {}
    }

    #[test]
    fn a_provider_of_the_app_replaces_the_built_in_one_of_its_name() {
        let own = |monitors: Monitors| -> Vec<(String, bool)> {
            let all = monitors.0.iter();
            all.map(|due| (due.provider.name().to_owned(), due.is_own))
                .collect()
        };
        let expected = ["fps", "cpu", "memory", "battery"].map(|name| (name.to_owned(), false));
        assert_eq!(own(Monitors::new(Vec::new())), expected);
        let mut replaced = expected.to_vec();
        replaced[3].1 = true;
        assert_eq!(own(Monitors::new(vec![Box::new(Own)])), replaced);
    }
}
