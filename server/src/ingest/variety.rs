//! How many different names and stacks a project may send in an hour. More would fill dictionaries, roll-ups and screens with what
//! nobody can read: identifiers in names, or an attack.
//!
//! What is above is stored under the name `(other)`, and counted. Each server counts for itself, from its start. On the way, every text is
//! scrubbed; a name only when it was not stored in this hour before.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::{DefaultHashBuilder, HashTable};
use unjank_protocol::{Attributes, Batch, Frame, Resource, Signal, Text};

use super::check::Event;
use super::jank;
use super::scrub::{Found, Kind};
use super::scrubbing::Scrubbing;
use crate::store::Outcome;

/// The name under which everything above the bound is stored.
const OTHER: &str = "(other)";
const HOUR_US: i64 = 3_600_000_000;

/// What has a bound of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dimension {
    SpanName,
    Function,
    MetricName,
    Page,
    TrafficSource,
    Stack,
    App,
    AppVersion,
    Channel,
    OsName,
    OsVersion,
    DeviceModel,
    DeviceManufacturer,
    DeviceClass,
    Locale,
    Sdk,
    SdkVersion,
}

impl Dimension {
    const COUNT: usize = Self::SdkVersion as usize + 1;

    /// As the reason on Ingest health says it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::SpanName => "span_name",
            Self::Function => "function",
            Self::MetricName => "metric_name",
            Self::Page => "page",
            Self::TrafficSource => "traffic_source",
            Self::Stack => "stack",
            Self::App => "app_id",
            Self::AppVersion => "app_version",
            Self::Channel => "channel",
            Self::OsName => "os_name",
            Self::OsVersion => "os_version",
            Self::DeviceModel => "device_model",
            Self::DeviceManufacturer => "device_manufacturer",
            Self::DeviceClass => "device_class",
            Self::Locale => "locale",
            Self::Sdk => "sdk_name",
            Self::SdkVersion => "sdk_version",
        }
    }

    /// What part of the bound a dimension has. Names from code vary most.
    const fn share(self) -> usize {
        match self {
            Self::SpanName | Self::Function | Self::Stack => 1,
            Self::Page | Self::DeviceModel => 2,
            _ => 10,
        }
    }
}

/// What projects sent in this hour.
#[derive(Debug)]
pub struct Variety {
    /// The bound of the dimensions that vary most. The others have a part of it.
    most: usize,
    projects: Mutex<HashMap<Arc<str>, Arc<Mutex<Hour>>>>,
}

impl Variety {
    pub fn new(most: usize) -> Self {
        Self {
            most,
            projects: Mutex::default(),
        }
    }

    fn project(&self, project: &Arc<str>) -> Arc<Mutex<Hour>> {
        let mut projects = self.projects.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(projects.entry(Arc::clone(project)).or_default())
    }

    /// Scrubs all texts, and renames what is above the bounds. Answers how many texts of a signal were changed, and why. `unknown` answers
    /// the fingerprint of a stack that is not stored yet.
    pub(super) fn bound(
        &self,
        (project, received_at): (&Arc<str>, i64),
        (batch, scrubbing): (&mut Batch<'_>, &Scrubbing),
        unknown: impl Fn(&[Frame<'_>]) -> Option<u64>,
    ) -> Vec<Changed> {
        let stacks = batch.janks.iter().flat_map(jank::stacks);
        let mut stacks: Vec<Option<u64>> = stacks.map(|frames| unknown(frames)).collect();
        stacks.reverse();
        let hour = self.project(project);
        let mut bounds = Bounds {
            hour: &hour,
            received_at,
            scrubbing,
            most: self.most,
            signal: Signal::Other,
            changed: Vec::new(),
        };
        bounds.resource(&mut batch.resource);
        bounds.events(&mut batch.spans);
        bounds.events(&mut batch.frame_windows);
        bounds.events(&mut batch.janks);
        bounds.events(&mut batch.traffic);
        bounds.events(&mut batch.page_loads);
        bounds.events(&mut batch.metrics);
        bounds.events(&mut batch.app_starts);
        bounds.events(&mut batch.recompositions);
        bounds.events(batch.sdk_health.as_mut_slice());
        for jank in &mut batch.janks {
            let samples = jank.samples.iter_mut().map(|sample| &mut sample.stack);
            let all = std::iter::once(&mut jank.stack).chain(samples);
            for stack in all.filter(|stack| !stack.is_empty()) {
                bounds.stack(stack, stacks.pop().flatten());
            }
        }
        let changed = bounds.changed;
        for Changed { reason, .. } in &changed {
            tracing::debug!(%project, reason, app = &*batch.resource.app_id, version = &*batch.resource.app_version,
                "texts were scrubbed or renamed");
        }
        changed
    }
}

fn lock(hour: &Mutex<Hour>, received_at: i64, scrubbing: u64) -> MutexGuard<'_, Hour> {
    let mut hour = hour.lock().unwrap_or_else(PoisonError::into_inner);
    let number = received_at.div_euclid(HOUR_US);
    // A request of the last hour may come late; a clock that was set back begins a new hour.
    if number > hour.number || hour.number - number > 1 {
        // The names of the hour before stay, whatever comes first in this one.
        let follows = number == hour.number + 1;
        let before = std::mem::take(&mut hour.seen);
        *hour = Hour {
            number,
            hasher: hour.hasher.clone(),
            scrubbing: hour.scrubbing,
            before: if follows { before } else { Default::default() },
            ..Hour::default()
        };
    }
    // Names of this hour were scrubbed by other rules. They have to be scrubbed again.
    if hour.scrubbing != scrubbing {
        hour.scrubbing = scrubbing;
        (hour.seen, hour.before) = Default::default();
    }
    hour
}

/// Texts of a signal that were changed before they are stored.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) signal: Signal,
    /// Renamed or scrubbed.
    pub(super) outcome: Outcome,
    pub(super) reason: &'static str,
    pub(super) texts: u32,
}

/// Fingerprints of what one project sent in one hour.
#[derive(Debug, Default)]
struct Hour {
    number: i64,
    hasher: DefaultHashBuilder,
    /// The rules that the names were scrubbed by.
    scrubbing: u64,
    seen: [HashTable<u64>; Dimension::COUNT],
    /// Of the hour before.
    before: [HashTable<u64>; Dimension::COUNT],
}

impl Hour {
    fn knows(&self, dimension: Dimension, fingerprint: u64) -> bool {
        holds(self.seen.get(dimension as usize), fingerprint)
    }

    /// Whether it was sent before in this hour, or there is room for it.
    fn admits(&mut self, dimension: Dimension, fingerprint: u64, most: usize) -> bool {
        if self.knows(dimension, fingerprint) {
            return true;
        }
        let was_there = holds(self.before.get(dimension as usize), fingerprint);
        let Some(seen) = self.seen.get_mut(dimension as usize) else {
            return true;
        };
        let most = (most / dimension.share()).max(1);
        // Twice as many at most, so that an hour cannot grow from the one before.
        if seen.len() >= most && !(was_there && seen.len() < 2 * most) {
            return false;
        }
        seen.insert_unique(fingerprint, fingerprint, |one| *one);
        true
    }
}

fn holds(table: Option<&HashTable<u64>>, fingerprint: u64) -> bool {
    table.is_some_and(|table| table.find(fingerprint, |one| *one == fingerprint).is_some())
}

/// Scrubs texts, renames what has no room, and counts both.
pub(super) struct Bounds<'h> {
    /// Locked for a moment only: others wait for it, and scrubbing takes a while.
    hour: &'h Mutex<Hour>,
    received_at: i64,
    scrubbing: &'h Scrubbing,
    most: usize,
    signal: Signal,
    changed: Vec<Changed>,
}

impl<'h> Bounds<'h> {
    fn events<E: Event>(&mut self, events: &mut [E]) {
        self.signal = E::SIGNAL;
        for event in events {
            event.bound_names(self);
        }
    }

    pub(super) fn name(&mut self, dimension: Dimension, name: &mut Text<'_>) {
        if name.is_empty() {
            return;
        }
        // What was stored in this hour was scrubbed then.
        let hour = self.lock();
        let mut fingerprint = hour.hasher.hash_one(name.as_str());
        if hour.knows(dimension, fingerprint) {
            return;
        }
        drop(hour);
        let has_changed = self.text(name);
        let mut hour = self.lock();
        if has_changed {
            fingerprint = hour.hasher.hash_one(name.as_str());
        }
        let is_admitted = hour.admits(dimension, fingerprint, self.most);
        drop(hour);
        if !is_admitted {
            *name = Text::from(OTHER);
            self.count(Outcome::Limited, dimension.as_str());
        }
    }

    fn lock(&self) -> MutexGuard<'h, Hour> {
        lock(self.hour, self.received_at, self.scrubbing.id())
    }

    /// Scrubs a text of which there may be any number. Answers whether it changed.
    pub(super) fn text(&mut self, text: &mut Text<'_>) -> bool {
        let scrubbed = self.scrubbing.text(text);
        self.replaced(text, scrubbed)
    }

    pub(super) fn attributes(&mut self, attributes: &mut Attributes<'_>) {
        for (name, value) in &mut attributes.0 {
            let scrubbed = self.scrubbing.attribute(name, value);
            self.replaced(value, scrubbed);
        }
    }

    /// Takes the scrubbed text, if there is one, and counts what was found.
    fn replaced(&mut self, text: &mut Text<'_>, scrubbed: Option<(String, Found)>) -> bool {
        let Some((scrubbed, found)) = scrubbed else {
            return false;
        };
        *text = Text::from(scrubbed);
        for kind in Kind::ALL.into_iter().filter(|kind| found.has(*kind)) {
            self.count(Outcome::Scrubbed, kind.as_str());
        }
        true
    }

    fn resource(&mut self, resource: &mut Resource<'_>) {
        self.text(&mut resource.user_id);
        for (dimension, name) in [
            (Dimension::App, &mut resource.app_id),
            (Dimension::AppVersion, &mut resource.app_version),
            (Dimension::Channel, &mut resource.channel),
            (Dimension::OsName, &mut resource.os_name),
            (Dimension::OsVersion, &mut resource.os_version),
            (Dimension::DeviceModel, &mut resource.device_model),
            (
                Dimension::DeviceManufacturer,
                &mut resource.device_manufacturer,
            ),
            (Dimension::DeviceClass, &mut resource.device_class),
            (Dimension::Locale, &mut resource.locale),
            (Dimension::Sdk, &mut resource.sdk_name),
            (Dimension::SdkVersion, &mut resource.sdk_version),
        ] {
            self.name(dimension, name);
        }
    }

    fn stack(&mut self, stack: &mut Vec<Frame<'_>>, unknown: Option<u64>) {
        let Some(fingerprint) = unknown else {
            return;
        };
        let is_admitted = self.lock().admits(Dimension::Stack, fingerprint, self.most);
        if !is_admitted {
            stack.clear();
            stack.push(Frame {
                function: Text::from(OTHER),
                ..Frame::default()
            });
            self.signal = Signal::Janks;
            self.count(Outcome::Limited, Dimension::Stack.as_str());
        }
    }

    fn count(&mut self, outcome: Outcome, reason: &'static str) {
        let signal = self.signal;
        let mut known = self.changed.iter_mut();
        let same =
            |one: &&mut Changed| (one.signal, one.outcome, one.reason) == (signal, outcome, reason);
        match known.find(same) {
            Some(one) => one.texts += 1,
            None => self.changed.push(Changed {
                signal,
                outcome,
                reason,
                texts: 1,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 1_795_176_000_000_000;

    fn page_loads(pages: impl IntoIterator<Item = usize>) -> Batch<'static> {
        let load = |page: usize| {
            let load =
                format!(r#"{{"page":"p{page}","start":"2026-11-20T12:00:00Z","total_ms":1}}"#);
            serde_json::from_str::<unjank_protocol::PageLoad<'_>>(load.leak()).unwrap()
        };
        Batch {
            page_loads: pages.into_iter().map(load).collect(),
            ..Batch::default()
        }
    }

    fn pages(batch: &Batch<'_>) -> Vec<String> {
        let loads = batch.page_loads.iter();
        loads.map(|load| load.page.to_string()).collect()
    }

    #[test]
    fn names_above_the_bound_are_stored_as_other_until_the_next_hour() {
        let (variety, shop) = (Variety::new(4), Arc::from("shop"));
        let mut batch = page_loads([1, 2, 3, 1, 4]);
        let renamed = variety.bound((&shop, NOW), (&mut batch, &Scrubbing::default()), |_| None);
        assert_eq!(pages(&batch), ["p1", "p2", OTHER, "p1", OTHER]);
        let expected = Changed {
            signal: Signal::PageLoads,
            outcome: Outcome::Limited,
            reason: "page",
            texts: 2,
        };
        assert_eq!(renamed, [expected]);
        for (project, at) in [(&Arc::from("other"), NOW), (&shop, NOW + HOUR_US)] {
            let mut batch = page_loads([3, 4]);
            let renamed =
                variety.bound((project, at), (&mut batch, &Scrubbing::default()), |_| None);
            assert_eq!((pages(&batch).len(), renamed.len()), (2, 0));
            assert_eq!(pages(&batch), ["p3", "p4"]);
        }
    }

    #[test]
    fn stacks_above_the_bound_become_one_and_known_ones_stay() {
        let (variety, shop) = (Variety::new(1), Arc::from("shop"));
        let jank = |function: &'static str| {
            let jank = format!(
                r#"{{"start":"2026-11-20T12:00:00Z","duration_ms":1,"stack":[{{"function":"{function}"}}]}}"#
            );
            serde_json::from_str::<unjank_protocol::Jank<'_>>(jank.leak()).unwrap()
        };
        let mut batch = Batch {
            janks: ["a", "b", "known"].map(jank).into(),
            ..Batch::default()
        };
        let unknown = |frames: &[Frame<'_>]| match frames[0].function.as_str() {
            "known" => None,
            other => Some(other.len() as u64 + u64::from(other.as_bytes()[0])),
        };
        let renamed = variety.bound((&shop, NOW), (&mut batch, &Scrubbing::default()), unknown);
        let janks = batch.janks.iter();
        let functions: Vec<_> = janks.map(|jank| jank.stack[0].function.as_str()).collect();
        assert_eq!(functions, ["a", OTHER, "known"]);
        assert_eq!((renamed.len(), renamed[0].texts), (1, 1));
    }
}
