//! What every request is checked against: in memory, swapped whole.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::credential::{CredentialHash, digest};
use super::device_token::{DeviceKeys, TokenError};
use crate::ingest::Device;
use crate::remote_config::Compiled;

/// The state of the control database at one moment, in the form in which requests need it.
#[derive(Debug, Default)]
pub struct Snapshot {
    pub(super) keys: HashMap<CredentialHash, Key>,
    pub(super) projects: HashMap<Arc<str>, Arc<Project>>,
    pub(super) device_keys: DeviceKeys,
}

impl Snapshot {
    /// Whether no device can get in.
    pub fn is_closed(&self) -> bool {
        self.keys.is_empty() && self.device_keys.is_empty()
    }
}

/// An ingest key.
#[derive(Debug)]
pub(super) struct Key {
    pub(super) device: Arc<Device>,
    pub(super) expires_at: Option<i64>,
}

/// What a project's devices are told.
#[derive(Debug)]
pub struct Project {
    pub configuration: Compiled,
}

/// The snapshot of now.
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

    /// The device behind an ingest key. Keys are compared by hash, so that time tells nothing about them.
    pub fn device(&self, key: &str, now: i64) -> Option<Arc<Device>> {
        let snapshot = self.0.load();
        let key = snapshot.keys.get(&digest(key))?;
        key.expires_at
            .is_none_or(|end| end > now)
            .then(|| Arc::clone(&key.device))
    }

    /// The device a token speaks for: one install of one project.
    pub fn device_by_token(&self, token: &str, now: i64) -> Result<Arc<Device>, TokenError> {
        let holder = self.0.load().device_keys.verify(token, now)?;
        Ok(Arc::new(Device {
            project: holder.project,
            apps: None,
            install_id: Some(holder.install_id),
        }))
    }

    pub fn project(&self, id: &str) -> Option<Arc<Project>> {
        self.0.load().projects.get(id).cloned()
    }
}
