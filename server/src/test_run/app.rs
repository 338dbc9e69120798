//! Apps and devices of a run, and the losses and overhead of the SDK.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use unjank_protocol::{Resource, SdkHealth};
use uuid::Uuid;

/// Maximum number of listed values per property.
const MOST: usize = 50;

/// Apps and devices of a run; usually one of each.
#[derive(Debug, Default)]
pub struct AppFacts {
    /// Identifier, version and build.
    pub apps: BTreeSet<String>,
    /// Manufacturer, model and class.
    pub devices: BTreeSet<String>,
    /// Operating system and version.
    pub systems: BTreeSet<String>,
    pub locales: BTreeSet<String>,
    pub refresh_hz: BTreeSet<u16>,
    /// Name and version.
    pub sdks: BTreeSet<String>,
    pub installs: BTreeSet<Uuid>,
    pub sessions: BTreeSet<Uuid>,
}

/// The field that a resource in a report file has in addition to one in a batch.
#[derive(Deserialize)]
pub(super) struct Session {
    #[serde(default)]
    pub(super) session_id: Option<Uuid>,
}

impl AppFacts {
    pub(super) fn add(&mut self, resource: &Resource<'_>, session: Option<Uuid>) {
        let build = match resource.build {
            0 => String::new(),
            build => format!("({build})"),
        };
        keep(
            &mut self.apps,
            joined(&[&resource.app_id, &resource.app_version, &build]),
        );
        let class = match &*resource.device_class {
            "" => String::new(),
            class => format!("[{class}]"),
        };
        keep(
            &mut self.devices,
            joined(&[
                &resource.device_manufacturer,
                &resource.device_model,
                &class,
            ]),
        );
        keep(
            &mut self.systems,
            joined(&[&resource.os_name, &resource.os_version]),
        );
        keep(&mut self.locales, resource.locale.to_string());
        keep(
            &mut self.sdks,
            joined(&[&resource.sdk_name, &resource.sdk_version]),
        );
        if resource.refresh_hz > 0 && self.refresh_hz.len() < MOST {
            self.refresh_hz.insert(resource.refresh_hz);
        }
        if !resource.install_id.is_nil() {
            self.installs.insert(resource.install_id);
        }
        self.sessions
            .extend(session.filter(|session| !session.is_nil()));
    }
}

fn keep(known: &mut BTreeSet<String>, new: String) {
    if !new.is_empty() && known.len() < MOST {
        known.insert(new);
    }
}

fn joined(parts: &[&str]) -> String {
    let present: Vec<&str> = parts
        .iter()
        .copied()
        .filter(|part| !part.is_empty())
        .collect();
    present.join(" ")
}

/// The losses and overhead that the SDK reports.
#[derive(Debug, Default)]
pub struct Losses {
    /// Number of health reports. Without any, the losses are unknown, not zero.
    pub reports: u64,
    /// Number of events by signal and reason.
    pub dropped: BTreeMap<(&'static str, String), u64>,
    pub overhead_us: u64,
    pub upload_bytes: u64,
    /// The largest queue on a device.
    pub queue_bytes: u64,
}

impl Losses {
    pub(super) fn add(&mut self, health: &SdkHealth<'_>) {
        self.reports += 1;
        // A report file may have any number: only the server checks events.
        self.overhead_us = self.overhead_us.saturating_add(health.overhead_us);
        self.upload_bytes = self.upload_bytes.saturating_add(health.upload_bytes);
        self.queue_bytes = self.queue_bytes.max(health.queue_bytes);
        for dropped in &health.dropped {
            let key = (dropped.signal.as_str(), dropped.reason.to_string());
            if self.dropped.len() < MOST || self.dropped.contains_key(&key) {
                let count = self.dropped.entry(key).or_default();
                *count = count.saturating_add(dropped.count);
            }
        }
    }
}
