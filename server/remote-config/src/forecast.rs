//! Forecasts the effect of a proposed configuration on installs seen recently: which overrides match which installs,
//! and how many events would be sent.
//!
//! The number of events that occurred on a device is estimated from the events it sent: a sampled event represents 1 /
//! sample rate events (Horvitz–Thompson). With other sampling rates the same events would occur but another share would
//! be sent: Σ occurred × share. Installs that sent no events of a signal because their share is zero are assumed to
//! behave like the average install that sent some.

use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use unjank_foundation::clock::UnixTime;
use unjank_protocol::Signal;
use unjank_protocol::config::Document;

use super::compiled::Compiled;
use super::device::Device;
use super::reach::Reach;
use super::resolve::Resolved;
use super::sampling::Kept;

/// A forecast in progress. Add the installs first, then the volumes each one sent.
pub struct Forecast<'c> {
    current: &'c Compiled,
    proposed: &'c Compiled,
    now: UnixTime,
    /// The cohort of each install.
    installs: HashMap<u128, usize>,
    cohorts: Vec<Cohort>,
    by_answers: HashMap<(Arc<str>, Arc<str>), usize>,
    matched: HashMap<Arc<str>, Reach>,
}

/// Installs that share both the current and the proposed document.
struct Cohort {
    installs: u64,
    changed: bool,
    before: Kept,
    after: Kept,
    unmodelled: Vec<&'static str>,
    volumes: HashMap<(Signal, Box<str>), Volume>,
}

/// A number of events of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Volume {
    sent: f64,
    happened: f64,
}

/// The result of a forecast.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForecastResult {
    pub installs: u64,
    /// The number of installs whose document would change.
    pub changed: u64,
    /// The installs each override matches. Overrides without a match are omitted.
    pub matched: HashMap<Arc<str>, Reach>,
    pub signals: Vec<SignalForecast>,
    /// Sections of the document that change for at least one install and affect the volume in a way that no sampling
    /// rate predicts.
    pub unmodelled: Vec<&'static str>,
}

/// Events of one signal in the examined period.
#[derive(Clone, Debug, PartialEq)]
pub struct SignalForecast {
    pub signal: Signal,
    /// Events sent.
    pub sent: f64,
    /// Events that would be sent with the current configuration. Differs from `sent` if the configuration changed
    /// within the period.
    pub current: f64,
    /// Events that would be sent after the change. `None` if no install sent such events, but some would after the change.
    pub proposed: Option<f64>,
}

impl<'c> Forecast<'c> {
    /// Both configurations must have the same revision, because documents of different revisions always differ.
    #[must_use]
    pub fn new(current: &'c Compiled, proposed: &'c Compiled, now: UnixTime) -> Self {
        Self {
            current,
            proposed,
            now,
            installs: HashMap::new(),
            cohorts: Vec::new(),
            by_answers: HashMap::new(),
            matched: HashMap::new(),
        }
    }

    /// Adds an install, with the attributes of its device.
    pub fn install(&mut self, id: u128, device: &Device<'_>) {
        let before = self.current.resolve(device, self.now);
        let after = self.proposed.resolve(device, self.now);
        for (index, matched) in after.matched.iter().enumerate() {
            let earlier = after.matched.get(..index).unwrap_or_default();
            let reach = self.matched.entry(Arc::clone(matched)).or_default();
            reach.add(device, earlier);
        }
        let answers = (Arc::clone(&before.etag), Arc::clone(&after.etag));
        let cohorts = &mut self.cohorts;
        let cohort = *self.by_answers.entry(answers).or_insert_with(|| {
            cohorts.push(Cohort::new(&before, &after));
            cohorts.len() - 1
        });
        if self.installs.insert(id, cohort).is_none()
            && let Some(cohort) = self.cohorts.get_mut(cohort)
        {
            cohort.installs += 1;
        }
    }

    /// Adds the events an install sent of a signal: `sent` events that represent `happened` events, if they carried a
    /// sample rate.
    pub fn volume(
        &mut self,
        install: u128,
        signal: Signal,
        name: &str,
        sent: f64,
        happened: Option<f64>,
    ) {
        let cohort = self.installs.get(&install);
        let Some(cohort) = cohort.and_then(|cohort| self.cohorts.get_mut(*cohort)) else {
            return;
        };
        let share = cohort.before.share(signal, name);
        let happened = happened.unwrap_or(if share > 0.0 { sent / share } else { sent });
        let volume = cohort.volumes.entry((signal, name.into())).or_default();
        volume.sent += sent;
        volume.happened += happened;
    }

    #[must_use]
    pub fn finish(self) -> ForecastResult {
        let cohorts = &self.cohorts;
        let signals = Signal::ALL
            .iter()
            .filter(|signal| **signal != Signal::Other);
        let signals = signals.map(|signal| outlook(*signal, cohorts)).collect();
        let mut unmodelled: Vec<_> = cohorts
            .iter()
            .flat_map(|cohort| cohort.unmodelled.iter().copied())
            .collect();
        unmodelled.sort_unstable();
        unmodelled.dedup();
        let installs = |cohorts: &mut dyn Iterator<Item = &Cohort>| {
            cohorts.map(|cohort| cohort.installs).sum()
        };
        ForecastResult {
            installs: installs(&mut cohorts.iter()),
            changed: installs(&mut cohorts.iter().filter(|cohort| cohort.changed)),
            signals,
            unmodelled,
            matched: self.matched,
        }
    }
}

impl Cohort {
    fn new(before: &Resolved, after: &Resolved) -> Self {
        Self {
            installs: 0,
            changed: before.etag != after.etag,
            before: Kept::new(&before.document),
            after: Kept::new(&after.document),
            unmodelled: unmodelled(&before.document, &after.document),
            volumes: HashMap::new(),
        }
    }

    fn volume(&self, signal: Signal, name: &str) -> Volume {
        let key = (signal, Box::from(name));
        self.volumes.get(&key).copied().unwrap_or_default()
    }
}

/// Returns the changed sections that affect how many events occur: the traced code, the thresholds of stalls and frame
/// windows, the monitors.
fn unmodelled(before: &Document, after: &Document) -> Vec<&'static str> {
    let traced = |document: &Document| {
        let tracing = document.tracing.clone();
        (tracing.allow, tracing.deny, tracing.tags)
    };
    let sections = [
        ("frames", before.frames != after.frames),
        ("jank", before.jank != after.jank),
        ("monitors", before.monitors != after.monitors),
        ("tracing", traced(before) != traced(after)),
    ];
    let differ = sections.into_iter().filter(|(_, differs)| *differs);
    differ.map(|(section, _)| section).collect()
}

fn outlook(signal: Signal, cohorts: &[Cohort]) -> SignalForecast {
    let names: HashSet<&str> = cohorts
        .iter()
        .flat_map(|cohort| cohort.volumes.keys())
        .filter(|(of, _)| *of == signal)
        .map(|(_, name)| &**name)
        .collect();
    let (mut sent, mut current, mut proposed) = (0.0, 0.0, 0.0);
    for name in &names {
        let average = average(signal, name, cohorts);
        for cohort in cohorts {
            let volume = cohort.volume(signal, name);
            let before = cohort.before.share(signal, name);
            let happened = if before > 0.0 || volume.happened > 0.0 {
                volume.happened
            } else {
                average * as_f64(cohort.installs)
            };
            sent += volume.sent;
            current += happened * before;
            proposed += happened * cohort.after.share(signal, name);
        }
    }
    let begins = |cohort: &Cohort| {
        cohort.before.share(signal, "") <= 0.0 && cohort.after.share(signal, "") > 0.0
    };
    let unknown = names.is_empty() && cohorts.iter().any(begins);
    SignalForecast {
        signal,
        sent,
        current,
        proposed: (!unknown).then_some(proposed),
    }
}

/// Returns the average number of events per install, over the installs that send them.
fn average(signal: Signal, name: &str, cohorts: &[Cohort]) -> f64 {
    let sending = || {
        cohorts
            .iter()
            .filter(|cohort| cohort.before.share(signal, name) > 0.0)
    };
    let installs: u64 = sending().map(|cohort| cohort.installs).sum();
    let happened: f64 = sending()
        .map(|cohort| cohort.volume(signal, name).happened)
        .sum();
    happened / as_f64(installs.max(1))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "counts of installs are far below 2^53"
)]
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::Configuration;

    fn compiled(configuration: Value) -> Compiled {
        let configuration = Configuration::from_value(configuration).unwrap();
        Compiled::new(&configuration, 7).unwrap()
    }

    /// 100 installs, the first 40 of them on Android.
    fn with_installs<'c>(current: &'c Compiled, proposed: &'c Compiled) -> Forecast<'c> {
        let mut forecast = Forecast::new(current, proposed, UnixTime::default());
        for id in 0..100_u128 {
            let install_id = uuid::Uuid::from_u128(id).to_string();
            let device = Device {
                os_name: Some(if id < 40 { "android" } else { "ios" }),
                install_id: Some(&install_id),
                ..Device::default()
            };
            forecast.install(id, &device);
        }
        forecast
    }

    fn signal(outlook: &ForecastResult, signal: Signal) -> &SignalForecast {
        let mut signals = outlook.signals.iter();
        signals.find(|one| one.signal == signal).unwrap()
    }

    #[test]
    fn an_override_raises_the_volume_of_its_installs() {
        let current = compiled(json!({"base": {"sampling": {"janks": 0.1}}}));
        let proposed = compiled(json!({"base": {"sampling": {"janks": 0.1}}, "overrides": [
            {"id": "android", "when": {"os_name": ["android"]}, "patch": {"sampling": {"janks": 1.0}}}]}));
        let mut forecast = with_installs(&current, &proposed);
        for id in 0..100 {
            forecast.volume(id, Signal::Janks, "", 2.0, Some(20.0));
        }
        let outlook = forecast.finish();
        assert_eq!((outlook.installs, outlook.changed), (100, 40));
        assert_eq!(outlook.matched["android"].installs, 40);
        let janks = signal(&outlook, Signal::Janks);
        assert_eq!((janks.sent, janks.current.round()), (200.0, 200.0));
        assert_eq!(janks.proposed.unwrap().round(), 40.0 * 20.0 + 60.0 * 2.0);
    }

    #[test]
    fn installs_that_send_nothing_yet_are_assumed_average() {
        let current = compiled(json!({"base": {"sampling": {"janks": 0.0}}, "overrides": [
            {"id": "android", "when": {"os_name": ["android"]}, "patch": {"sampling": {"janks": 0.5}}}]}));
        let proposed = compiled(json!({"base": {"sampling": {"janks": 0.5}}}));
        let mut forecast = with_installs(&current, &proposed);
        for id in 0..40 {
            forecast.volume(id, Signal::Janks, "", 3.0, Some(6.0));
        }
        let outlook = forecast.finish();
        assert_eq!(outlook.changed, 60);
        assert_eq!(
            signal(&outlook, Signal::Janks).proposed.unwrap().round(),
            300.0
        );
    }

    #[test]
    fn a_signal_that_no_install_sends_is_not_predicted() {
        let current = compiled(json!({"base": {"sampling": {"recompositions": 0.0}}}));
        let proposed = compiled(json!({"base": {"sampling": {"recompositions": 0.5}}}));
        let outlook = with_installs(&current, &proposed).finish();
        assert_eq!(signal(&outlook, Signal::Recompositions).proposed, None);
        assert_eq!(signal(&outlook, Signal::Janks).proposed, Some(0.0));
    }

    #[test]
    fn spans_are_predicted_by_name() {
        let spans = |rate: f64| {
            compiled(
                json!({"base": {"sampling": {"spans": {"default": 0.1, "overrides": [{"name": "check*", "rate": rate}]}}}}),
            )
        };
        let (current, proposed) = (spans(0.1), spans(1.0));
        let mut forecast = with_installs(&current, &proposed);
        forecast.volume(1, Signal::Spans, "checkout", 1.0, Some(10.0));
        forecast.volume(1, Signal::Spans, "search", 1.0, Some(10.0));
        let outlook = forecast.finish();
        let spans = signal(&outlook, Signal::Spans);
        assert_eq!(spans.proposed.unwrap().round(), 11.0);
    }

    #[test]
    fn changes_that_no_rate_predicts_are_listed() {
        let current = compiled(json!({}));
        let proposed = compiled(
            json!({"base": {"jank": {"anr_ms": 6000}, "tracing": {"allow": ["com\\.example\\..*"]},
            "upload": {"interval_s": 30}}}),
        );
        let outlook = with_installs(&current, &proposed).finish();
        assert_eq!(outlook.unmodelled, ["jank", "tracing"]);
        assert_eq!(outlook.changed, 100);
    }
}
