//! How many different names and stacks a project sends in an hour. Without a bound, identifiers in names (or an attack) would fill
//! dictionaries, roll-ups and screens.
//!
//! Each server counts on its own, from its start.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hashbrown::{DefaultHashBuilder, HashTable};
use unjank_foundation::clock::{HOUR, UnixTime};

/// A kind of name with a bound of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dimension {
    SpanName,
    Function,
    MetricName,
    Page,
    TrafficSource,
    Stack,
    App,
    AppVersion,
    Channel,
    Mode,
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

    /// The reason on the Ingest health page.
    pub(crate) const fn as_str(self) -> &'static str {
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
            Self::Mode => "mode",
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

    /// The divisor of the configured bound: names from code vary most.
    const fn divisor(self) -> usize {
        match self {
            Self::SpanName | Self::Function | Self::Stack => 1,
            Self::Page | Self::DeviceModel => 2,
            _ => 10,
        }
    }
}

/// The names that projects sent in this hour.
#[derive(Debug)]
pub struct RecentNames {
    /// The bound of the dimensions that vary most. The other dimensions have a fraction of it.
    bound: usize,
    projects: Mutex<HashMap<Arc<str>, Arc<Mutex<Hour>>>>,
}

impl RecentNames {
    /// Admits `bound` different names per project, hour and [`Dimension`], or a fraction of `bound` for dimensions that vary little.
    pub fn new(bound: usize) -> Self {
        Self {
            bound,
            projects: Mutex::default(),
        }
    }

    /// The names of one project, for a batch received at that time and scrubbed by the rules with that id.
    pub(crate) fn of_project(
        &self,
        project: &Arc<str>,
        received_at: UnixTime,
        scrubbing_id: u64,
    ) -> ProjectNames {
        let mut projects = self.projects.lock().unwrap_or_else(PoisonError::into_inner);
        let hour = Arc::clone(projects.entry(Arc::clone(project)).or_default());
        drop(projects);
        let hasher = hour
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .hasher
            .clone();
        ProjectNames {
            hour,
            hasher,
            received_at,
            scrubbing_id,
            bound: self.bound,
        }
    }
}

/// The names that one project sent in this hour.
pub(crate) struct ProjectNames {
    /// Locked for a moment only, because scrubbing takes a while and other requests wait.
    hour: Arc<Mutex<Hour>>,
    hasher: DefaultHashBuilder,
    received_at: UnixTime,
    scrubbing_id: u64,
    bound: usize,
}

impl ProjectNames {
    /// A hash with a random seed, for what is compared within one request.
    pub(crate) fn hash(&self, value: impl Hash) -> u64 {
        self.hasher.hash_one(value)
    }

    /// Whether the name was admitted in this hour. It was scrubbed at that time.
    pub(crate) fn knows(&self, dimension: Dimension, name: &str) -> bool {
        self.hour().knows(dimension, self.hasher.hash_one(name))
    }

    /// Whether the name was admitted in this hour or there is room for it.
    pub(crate) fn admits(&self, dimension: Dimension, name: &str) -> bool {
        self.admits_fingerprint(dimension, self.hasher.hash_one(name))
    }

    /// The same for a stack, which has a fingerprint already.
    pub(crate) fn admits_fingerprint(&self, dimension: Dimension, fingerprint: u64) -> bool {
        self.hour().admits(dimension, fingerprint, self.bound)
    }

    fn hour(&self) -> MutexGuard<'_, Hour> {
        let mut hour = self.hour.lock().unwrap_or_else(PoisonError::into_inner);
        hour.turn_to(self.received_at.number_of(HOUR));
        // The names of this hour were scrubbed by other rules and have to be scrubbed again.
        if hour.scrubbing_id != self.scrubbing_id {
            hour.scrubbing_id = self.scrubbing_id;
            (hour.current, hour.previous) = Default::default();
        }
        hour
    }
}

/// Fingerprints of the names that one project sent in one hour.
#[derive(Debug, Default)]
struct Hour {
    number: i64,
    hasher: DefaultHashBuilder,
    /// The rules that scrubbed the names.
    scrubbing_id: u64,
    current: [HashTable<u64>; Dimension::COUNT],
    previous: [HashTable<u64>; Dimension::COUNT],
}

impl Hour {
    fn turn_to(&mut self, number: i64) {
        // A request of the last hour may come late. A clock that was set back begins a new hour.
        if number <= self.number && self.number - number <= 1 {
            return;
        }
        // Names of the previous hour have priority over new names.
        let follows = number == self.number + 1;
        let current = std::mem::take(&mut self.current);
        self.previous = if follows { current } else { Default::default() };
        self.number = number;
    }

    fn knows(&self, dimension: Dimension, fingerprint: u64) -> bool {
        holds(self.current.get(dimension as usize), fingerprint)
    }

    fn admits(&mut self, dimension: Dimension, fingerprint: u64, bound: usize) -> bool {
        if self.knows(dimension, fingerprint) {
            return true;
        }
        let was_there = holds(self.previous.get(dimension as usize), fingerprint);
        let Some(current) = self.current.get_mut(dimension as usize) else {
            return true;
        };
        let bound = (bound / dimension.divisor()).max(1);
        // Twice the bound at most, so that names of the previous hour cannot accumulate.
        if current.len() >= bound && !(was_there && current.len() < 2 * bound) {
            return false;
        }
        current.insert_unique(fingerprint, fingerprint, |one| *one);
        true
    }
}

fn holds(table: Option<&HashTable<u64>>, fingerprint: u64) -> bool {
    table.is_some_and(|table| table.find(fingerprint, |one| *one == fingerprint).is_some())
}
