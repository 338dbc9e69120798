//! The installs that an override matches, by app version, device model and earlier override.

use std::sync::Arc;

use hashbrown::HashMap;

use super::device::Device;

/// Counts of the installs that one override matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    pub installs: u64,
    /// By app version. Installs that did not report one are omitted.
    pub versions: HashMap<String, u64>,
    /// By device model. Installs that did not report one are omitted.
    pub devices: HashMap<String, u64>,
    /// By earlier override that matches the install as well.
    pub earlier: HashMap<Arc<str>, u64>,
}

impl Reach {
    /// Adds an install. `earlier` are the overrides before this one that match it.
    pub(super) fn add(&mut self, device: &Device<'_>, earlier: &[Arc<str>]) {
        self.installs += 1;
        for (counts, value) in [
            (&mut self.versions, device.app_version),
            (&mut self.devices, device.device_model),
        ] {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                *counts.entry_ref(value).or_default() += 1;
            }
        }
        for id in earlier {
            *self.earlier.entry(Arc::clone(id)).or_default() += 1;
        }
    }
}
