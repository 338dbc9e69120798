//! Refreshes the snapshot after each change in the control database, by whichever server.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use unjank_database::{
    Control, ControlError, DeviceKey, DeviceKeyAlgorithm, DeviceTokens, Document, DocumentKind,
    ProjectSettings, Quotas, SavedForward,
};
use unjank_foundation::clock::{Clock, UnixTime};
use unjank_foundation::shares::Holder;
use unjank_foundation::source_links::SourceLinks;
use unjank_foundation::trace_links::TraceLinks;
use unjank_remote_config::{Compiled, Configuration};
use unjank_stacks::RuleSet;

use super::device_access::{Access, Key, Project, Snapshot, SymbolRevisions};
use super::device_token::DeviceKeys;
use super::instance_secret::InstanceSecret;
use super::quota::Meter;
use super::rule_sets;
use super::signal_meter::SignalMeter;
use crate::forward::{Forward, secret_context};
use crate::ingest::{Device, Scrubbing, ScrubbingDocument};

/// The snapshot is refreshed at least this often, even without a notification.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(1);

/// The task that keeps [`Access`] current.
pub struct Refresher {
    pub control: Control,
    pub access: Arc<Access>,
    pub secret: Arc<InstanceSecret>,
    pub clock: Clock,
    /// The maximum number of events in a batch.
    pub largest_batch: u32,
    pub default_rules: Arc<RuleSet>,
}

impl Refresher {
    pub async fn run(self, shutdown: CancellationToken) {
        let mut changes = self.control.subscribe();
        loop {
            let pause = match self.refresh().await {
                Ok(()) => LONGEST_SILENCE,
                Err(error) => {
                    tracing::warn!(%error, "cannot read the control database; the previous snapshot stays in force");
                    PAUSE_AFTER_FAILURE
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = sleep(pause) => {}
                changed = changes.changed() => if changed.is_err() { return },
            }
        }
    }

    async fn refresh(&self) -> Result<(), ControlError> {
        let before = self.access.snapshot();
        let (uses, now) = (before.take_uses(), self.clock.now());
        if !uses.is_empty()
            && let Err(error) = self.control.touch_ingest_keys(&uses, now).await
        {
            tracing::debug!(%error, "cannot record the last use of ingest keys");
        }
        let moment = SnapshotInputs {
            now: self.clock.now(),
            before: &before,
            largest_batch: self.largest_batch,
            default_rules: &self.default_rules,
        };
        let snapshot = load(&self.control, &self.secret, &moment).await?;
        self.access.swap(snapshot);
        Ok(())
    }
}

/// The inputs of a snapshot besides the control database.
pub struct SnapshotInputs<'s> {
    pub now: UnixTime,
    /// The previous snapshot. Unchanged parts are reused, and so is the quota usage of keys and projects.
    pub before: &'s Snapshot,
    /// The maximum number of events in a batch. Every quota above zero admits such a batch eventually.
    pub largest_batch: u32,
    /// The rules of projects that have saved none.
    pub default_rules: &'s Arc<RuleSet>,
}

impl SnapshotInputs<'_> {
    /// Returns the previous meter, updated to the current quotas.
    fn meter(&self, before: Option<&Arc<Meter>>, quotas: Quotas) -> Arc<Meter> {
        let (largest, now) = (self.largest_batch, self.now);
        let Some(meter) = before else {
            return Arc::new(Meter::new(quotas, largest, now));
        };
        meter.change(quotas, largest, now);
        Arc::clone(meter)
    }

    /// Returns a project's latest rules. If they do not compile, the previous ones stay in force.
    async fn rules(&self, id: &str, document: Option<&Document>) -> Arc<RuleSet> {
        let Some(document) = document else {
            return Arc::clone(self.default_rules);
        };
        let (known, revision) = (self.before.rules.get(id), rule_sets::revision(document));
        if let Some(known) = known.filter(|known| known.id().revision == revision) {
            return Arc::clone(known);
        }
        let text = document.text.clone();
        match compiled(move || RuleSet::parse(revision, text)).await {
            Ok(rules) => Arc::new(rules),
            Err(error) => {
                tracing::error!(project = id, revision, %error, "the saved rules are not valid on this server; the previous ones stay in force");
                Arc::clone(known.unwrap_or(self.default_rules))
            }
        }
    }

    /// Adds the meters of a project to the snapshot.
    fn meters(&self, id: &Arc<str>, settings: &ProjectSettings, snapshot: &mut Snapshot) {
        let meter = self.meter(self.before.meters.get(id), settings.quotas);
        snapshot.meters.insert(Arc::clone(id), meter);
        let known = self.before.signal_meters.get(id);
        let now = (self.largest_batch, self.now);
        if let Some(meter) = SignalMeter::new(known, &settings.signal_quotas, now) {
            snapshot.signal_meters.insert(Arc::clone(id), meter);
        }
    }
}

fn by_project(documents: &[Document]) -> HashMap<&str, &Document> {
    let pairs = documents
        .iter()
        .map(|document| (document.project.as_str(), document));
    pairs.collect()
}

/// Loads a snapshot from the control database.
pub async fn load(
    control: &Control,
    secret: &InstanceSecret,
    moment: &SnapshotInputs<'_>,
) -> Result<Snapshot, ControlError> {
    let SnapshotInputs { before, now, .. } = *moment;
    let mut snapshot = Snapshot::default();
    let documents = control
        .latest_documents(DocumentKind::Configuration)
        .await?;
    let documents = by_project(&documents);
    let rule_sets = control.latest_documents(DocumentKind::RuleSet).await?;
    let rule_sets = by_project(&rule_sets);
    let mut with_tokens = HashSet::new();
    for project in control.projects().await? {
        let id: Arc<str> = Arc::from(project.id.as_str());
        let rules = moment.rules(&id, rule_sets.get(&*id).copied()).await;
        snapshot.rules.insert(Arc::clone(&id), rules);
        moment.meters(&id, &project.settings, &mut snapshot);
        if project.settings.device_tokens == DeviceTokens::Required {
            with_tokens.insert(Arc::clone(&id));
        }
        let known = before.projects.get(&id);
        let document = documents.get(&*id).copied();
        if let Some(project) = configured(&id, document, known).await {
            snapshot.projects.insert(id, project);
        }
    }
    for (project, document) in control.all_scrubbing().await? {
        let id: Arc<str> = Arc::from(project);
        if let Some(scrubbing) = scrubbing(&id, document.as_str(), before).await {
            snapshot.scrubbing.insert(id, scrubbing);
        }
    }
    add_links(control, before, &mut snapshot).await?;
    add_forwards(control, secret, before, &mut snapshot).await?;
    for (project, files, repaired) in control.symbol_revisions().await? {
        let revisions = SymbolRevisions { files, repaired };
        snapshot.symbols.insert(Arc::from(project), revisions);
    }
    let storage = control.storage_of_all().await?.into_iter();
    let full = storage.filter(|project| project.is_over_quota);
    snapshot.full = full.map(|project| Arc::from(project.project)).collect();
    for key in control.active_ingest_keys(now).await? {
        let device = Device {
            project: Arc::from(key.project.as_str()),
            apps: key.app_ids.map(Arc::from),
            install_id: None,
        };
        let known = before.keys.get(&key.hash);
        let used_at = known.map(|known| Arc::clone(&known.used_at));
        let known = known.map(|known| &known.meter);
        let entry = Key {
            id: key.id,
            used_at: used_at.unwrap_or_default(),
            device: Arc::new(device),
            is_not_enough: with_tokens.contains(key.project.as_str()),
            expires_at: key.expires_at,
            meter: moment.meter(known, key.quotas),
            holder: Holder::new("key", &key.hash.0),
            project: Holder::new("project", key.project.as_bytes()),
        };
        snapshot.keys.insert(key.hash, entry);
    }
    for key in control.active_device_keys().await? {
        if let Err(error) = add_device_key(&mut snapshot.device_keys, &key, secret) {
            tracing::error!(project = key.project, kid = %key.id, error, "cannot use a device key");
        }
    }
    Ok(snapshot)
}

/// Compiles a saved document off the request threads.
async fn compiled<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        // Only a panic or the end of the process stops blocking work early. The panic is propagated.
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    }
}

/// Returns a project with its latest configuration. If that does not compile, the previous one stays in force.
async fn configured(
    id: &str,
    document: Option<&Document>,
    known: Option<&Arc<Project>>,
) -> Option<Arc<Project>> {
    let revision = document.map_or(0, |document| u64::try_from(document.revision).unwrap_or(0));
    if let Some(known) = known.filter(|known| known.configuration.revision() == revision) {
        return Some(Arc::clone(known));
    }
    let text = document.map(|document| document.text.clone());
    let compiled = compiled(move || {
        let configuration = match text {
            Some(text) => Configuration::from_json(text.as_bytes()),
            None => Ok(Configuration::default()),
        };
        let configuration = configuration.map_err(|fault| vec![fault])?;
        Compiled::new(&configuration, revision)
    });
    match compiled.await {
        Ok(configuration) => Some(Arc::new(Project { configuration })),
        Err(faults) => {
            tracing::error!(
                project = id,
                revision,
                ?faults,
                "the saved configuration is not valid on this server; the previous one stays in force"
            );
            known.cloned()
        }
    }
}

/// Returns a project's scrubbing rules. If they do not compile, the previous ones stay in force.
async fn scrubbing(id: &Arc<str>, document: &str, before: &Snapshot) -> Option<Arc<Scrubbing>> {
    let known = before.scrubbing.get(id);
    let document = serde_json::from_str::<ScrubbingDocument>(document);
    let scrubbing = match document {
        Ok(document) => {
            if let Some(known) = known.filter(|known| *known.document() == document) {
                return Some(Arc::clone(known));
            }
            let scrubbing = compiled(move || Scrubbing::new(document)).await;
            scrubbing.map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    match scrubbing {
        Ok(scrubbing) => Some(Arc::new(scrubbing)),
        Err(error) => {
            tracing::error!(project = %id, error, "the saved scrubbing rules are not valid on this server; the previous ones stay in force");
            known.cloned()
        }
    }
}

/// Adds the links of all projects to the snapshot.
async fn add_links(
    control: &Control,
    before: &Snapshot,
    snapshot: &mut Snapshot,
) -> Result<(), ControlError> {
    for (project, document) in control.all_source_links().await? {
        let id: Arc<str> = Arc::from(project);
        let read = setting(document.as_str(), SourceLinks::new);
        if let Some(links) = in_force(&id, "source links", read, &before.source_links) {
            snapshot.source_links.insert(id, links);
        }
    }
    for (project, document) in control.all_trace_links().await? {
        let id: Arc<str> = Arc::from(project);
        let read = setting(document.as_str(), TraceLinks::new);
        if let Some(links) = in_force(&id, "trace links", read, &before.trace_links) {
            snapshot.trace_links.insert(id, links);
        }
    }
    Ok(())
}

/// Adds to the snapshot what projects forward.
async fn add_forwards(
    control: &Control,
    secret: &InstanceSecret,
    before: &Snapshot,
    snapshot: &mut Snapshot,
) -> Result<(), ControlError> {
    for (project, saved) in control.all_forwards().await? {
        let id: Arc<str> = Arc::from(project);
        let context = secret_context(&id);
        let forward = setting(saved.as_str(), |saved: SavedForward| {
            let headers = saved.headers(|sealed| secret.open(&context, sealed))?;
            Forward::new(saved.document, &headers).map_err(|error| error.to_string())
        });
        let Some(forward) = forward.transpose() else {
            continue;
        };
        if let Some(forward) = in_force(&id, "forward", forward, &before.forward) {
            snapshot.forward.insert(id, forward);
        }
    }
    Ok(())
}

/// Reads a saved setting.
fn setting<D: DeserializeOwned, L, E: Display>(
    document: &str,
    new: impl FnOnce(D) -> Result<L, E>,
) -> Result<L, String> {
    let document = serde_json::from_str(document).map_err(|error| error.to_string())?;
    new(document).map_err(|error| error.to_string())
}

/// Returns a setting of a project. If the saved one is not valid, the previous one stays in force.
fn in_force<T>(
    id: &Arc<str>,
    setting: &str,
    read: Result<T, String>,
    before: &HashMap<Arc<str>, Arc<T>>,
) -> Option<Arc<T>> {
    match read {
        Ok(value) => Some(Arc::new(value)),
        Err(error) => {
            tracing::error!(project = %id, setting, error, "the saved setting is not valid on this server; the previous one stays in force");
            before.get(id).cloned()
        }
    }
}

fn add_device_key(
    keys: &mut DeviceKeys,
    key: &DeviceKey,
    secret: &InstanceSecret,
) -> Result<(), String> {
    let project = Arc::from(key.project.as_str());
    let (kid, material) = (key.id.to_string(), key.material.0.as_str());
    if key.algorithm == DeviceKeyAlgorithm::Hs256 {
        let secret = secret.open(&key.project, material);
        let material = secret.map_err(|error| error.to_string())?;
        return keys.add(&project, &kid, key.algorithm, &material);
    }
    keys.add(&project, &kid, key.algorithm, material)
}
