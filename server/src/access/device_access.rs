//! The access data of all requests: keys, projects and quotas, in memory and replaced as a whole.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock};

use arc_swap::ArcSwap;
use unjank_database::SecretHash;
use unjank_foundation::clock::UnixTime;
use unjank_foundation::fingerprint::fingerprint;
use unjank_foundation::shares::Holder;
use unjank_foundation::source_links::SourceLinks;
use unjank_foundation::trace_links::TraceLinks;
use unjank_protocol::Resource;
use unjank_remote_config::Compiled;
use unjank_stacks::RuleSet;
use uuid::Uuid;

use super::device_token::{DeviceKeys, TokenError};
use super::quota::{Budget, Meter};
use super::signal_meter::SignalMeter;
use crate::forward::Forward;
use crate::ingest::{Device, Scrubbing};

/// The control database at one moment, in the form that requests need.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(super) keys: HashMap<SecretHash, Key>,
    pub(super) projects: HashMap<Arc<str>, Arc<Project>>,
    /// The rules of every project: its own or the server's.
    pub(super) rules: HashMap<Arc<str>, Arc<RuleSet>>,
    /// The usage of each project, for its quotas.
    pub(super) meters: HashMap<Arc<str>, Arc<Meter>>,
    /// The same for projects that limit single signals.
    pub(super) signal_meters: HashMap<Arc<str>, Arc<SignalMeter>>,
    pub(super) device_keys: DeviceKeys,
    /// The scrubbing rules of projects that changed the default.
    pub(super) scrubbing: HashMap<Arc<str>, Arc<Scrubbing>>,
    /// The source links of projects that have set them.
    pub(super) source_links: HashMap<Arc<str>, Arc<SourceLinks>>,
    /// The links from traces to another system, of projects that have set them.
    pub(super) trace_links: HashMap<Arc<str>, Arc<TraceLinks>>,
    /// What projects forward to other collectors.
    pub(super) forward: HashMap<Arc<str>, Arc<Forward>>,
    /// The revisions of the symbol files of each project.
    pub(super) symbols: HashMap<Arc<str>, SymbolRevisions>,
    /// Projects that have used up their disk quota.
    pub(super) full: HashSet<Arc<str>>,
}

impl Snapshot {
    /// Whether there is no key for any device.
    pub fn is_closed(&self) -> bool {
        self.keys.is_empty() && self.device_keys.is_empty()
    }

    /// The classification rules of every project.
    pub fn rules(&self) -> impl Iterator<Item = (&Arc<str>, &Arc<RuleSet>)> {
        self.rules.iter()
    }

    /// The keys that were used since the last call, with the time of their last use.
    pub(super) fn take_uses(&self) -> Vec<(Uuid, UnixTime)> {
        let uses = self
            .keys
            .values()
            .map(|key| (key.id, key.used_at.swap(0, Ordering::Relaxed)));
        uses.filter(|(_, at)| *at != 0)
            .map(|(id, at)| (id, UnixTime::from_micros(at)))
            .collect()
    }

    fn budget(&self, key: Option<&Arc<Meter>>, project: &str) -> Budget {
        Budget {
            key: key.cloned(),
            project: self.meters.get(project).cloned(),
            signals: self.signal_meters.get(project).cloned(),
            is_full: self.full.contains(project),
        }
    }
}

/// An ingest key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) id: Uuid,
    /// The last use in microseconds since the epoch; 0 if there was none since the last save.
    pub(super) used_at: Arc<AtomicI64>,
    pub(super) device: Arc<Device>,
    pub(super) expires_at: Option<UnixTime>,
    pub(super) meter: Arc<Meter>,
    pub(super) holder: Holder,
    pub(super) project: Holder,
    /// Whether its project requires device tokens.
    pub(super) is_not_enough: bool,
}

/// Why an ingest key is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyError {
    /// Unknown, revoked or expired.
    Unknown,
    /// The project requires device tokens.
    TokenRequired,
}

/// The sender of a request and its quotas.
#[derive(Clone, Debug)]
pub struct Caller {
    pub device: Arc<Device>,
    pub budget: Budget,
    /// The ingest key, or the install of a device token.
    pub holder: Holder,
    pub project: Holder,
}

/// A project in the snapshot.
#[derive(Debug)]
pub struct Project {
    pub configuration: Compiled,
}

/// The revision of a project's symbol files, and the revision up to which stored stacks are repaired.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SymbolRevisions {
    pub files: u64,
    pub repaired: u64,
}

/// The current snapshot.
#[derive(Debug, Default)]
pub struct Access(ArcSwap<Snapshot>);

impl Access {
    pub fn new(snapshot: Snapshot) -> Self {
        Self(ArcSwap::from_pointee(snapshot))
    }

    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.0.load_full()
    }

    pub(super) fn swap(&self, snapshot: Snapshot) {
        self.0.store(Arc::new(snapshot));
    }

    /// The sender with an ingest key. Keys are compared by hash, so the time of the comparison reveals nothing.
    pub fn device(&self, key: &str, now: UnixTime) -> Result<Caller, KeyError> {
        let snapshot = self.0.load();
        let key = snapshot.keys.get(&SecretHash::new(key));
        let key = key.filter(|key| key.expires_at.is_none_or(|end| end > now));
        let key = key.ok_or(KeyError::Unknown)?;
        if key.is_not_enough {
            return Err(KeyError::TokenRequired);
        }
        key.used_at.store(now.as_micros(), Ordering::Relaxed);
        Ok(Caller {
            device: Arc::clone(&key.device),
            budget: snapshot.budget(Some(&key.meter), &key.device.project),
            holder: key.holder,
            project: key.project,
        })
    }

    /// The sender with a device token: one install of one project, with the project's quotas.
    pub fn device_by_token(&self, token: &str, now: UnixTime) -> Result<Caller, TokenError> {
        let snapshot = self.0.load();
        let holder = snapshot.device_keys.verify(token, now)?;
        let budget = snapshot.budget(None, &holder.project);
        let of = fingerprint(&[holder.project.as_bytes(), holder.install_id.as_bytes()]);
        let project = Holder::new("project", holder.project.as_bytes());
        let device = Device {
            project: holder.project,
            apps: None,
            install_id: Some(holder.install_id),
        };
        Ok(Caller {
            device: Arc::new(device),
            budget,
            holder: Holder::new("install", &of.to_le_bytes()),
            project,
        })
    }

    pub fn project(&self, id: &str) -> Option<Arc<Project>> {
        self.0.load().projects.get(id).cloned()
    }

    /// The scrubbing rules of a project.
    pub fn scrubbing(&self, project: &str) -> Arc<Scrubbing> {
        static BUILT_IN: LazyLock<Arc<Scrubbing>> = LazyLock::new(Arc::default);
        let own = self.0.load().scrubbing.get(project).cloned();
        own.unwrap_or_else(|| Arc::clone(&BUILT_IN))
    }

    /// The `ETag` of the configuration that the device of a batch would get from a poll. `None` when a condition depends on the network,
    /// because a batch spans several networks.
    pub fn config_etag(
        &self,
        project: &str,
        resource: &Resource<'_>,
        now: UnixTime,
    ) -> Option<Arc<str>> {
        let project = self.project(project)?;
        if project.configuration.asks_for_network() {
            return None;
        }
        let install_id = resource.install_id.to_string();
        let device = unjank_remote_config::Device {
            app_id: Some(&resource.app_id),
            app_version: Some(&resource.app_version),
            build: (resource.build > 0).then_some(resource.build),
            os_name: Some(&resource.os_name),
            os_version: Some(&resource.os_version),
            device_model: Some(&resource.device_model),
            device_class: Some(&resource.device_class),
            network: None,
            locale: Some(&resource.locale),
            sdk_version: Some(&resource.sdk_version),
            user_id: Some(&resource.user_id),
            install_id: Some(&install_id),
        };
        let resolved = project.configuration.resolve(&device, now);
        Some(Arc::clone(&resolved.etag))
    }

    /// How frames of a project link to source lines.
    pub fn source_links(&self, project: &str) -> Arc<SourceLinks> {
        let own = self.0.load().source_links.get(project).cloned();
        own.unwrap_or_default()
    }

    /// How traces of a project link to another system.
    pub fn trace_links(&self, project: &str) -> Arc<TraceLinks> {
        let own = self.0.load().trace_links.get(project).cloned();
        own.unwrap_or_default()
    }

    /// What a project forwards to another collector.
    pub fn forward(&self, project: &str) -> Option<Arc<Forward>> {
        self.0.load().forward.get(project).cloned()
    }

    /// The revision of a project's symbol files, and the revision up to which stored stacks are repaired.
    pub fn symbol_revisions(&self, project: &str) -> SymbolRevisions {
        let snapshot = self.0.load();
        snapshot.symbols.get(project).copied().unwrap_or_default()
    }

    /// The classification rules of a project.
    pub fn rules(&self, project: &str) -> Option<Arc<RuleSet>> {
        self.0.load().rules.get(project).cloned()
    }
}

#[cfg(test)]
mod tests {
    use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
    use serde_json::json;
    use unjank_database::{DeviceKeyAlgorithm, Quotas};

    use super::*;
    use crate::access::Cost;

    const NOW_S: i64 = 1_795_176_000;
    const NOW: UnixTime = UnixTime::from_secs(NOW_S);
    const SECRET: &str = "a-secret-of-the-shop-that-is-long-enough";

    fn token() -> String {
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some("1".to_owned());
        let install = Uuid::new_v4();
        let claims = json!({"aud": "shop", "sub": install, "exp": NOW_S + 600});
        encode(
            &header,
            &claims,
            &EncodingKey::from_secret(SECRET.as_bytes()),
        )
        .unwrap()
    }

    #[test]
    fn device_tokens_share_the_quota_of_their_project() {
        let shop: Arc<str> = Arc::from("shop");
        let quotas = Quotas {
            events_per_second: Some(1),
            bytes_per_day: None,
        };
        let mut snapshot = Snapshot::default();
        let added = snapshot
            .device_keys
            .add(&shop, "1", DeviceKeyAlgorithm::Hs256, SECRET);
        added.unwrap();
        let meter = Arc::new(Meter::new(quotas, 20, NOW));
        snapshot.meters.insert(shop, meter);
        let access = Access::new(snapshot);
        let (one, other) = (token(), token());
        let one = access.device_by_token(&one, NOW).unwrap();
        let all = Cost {
            events: 20,
            bytes: 1,
        };
        one.budget.charge(all, NOW).unwrap();
        let other = access.device_by_token(&other, NOW).unwrap();
        assert!(other.budget.admit(None, NOW).is_err());
    }
}
