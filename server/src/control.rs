//! Who may do what: for now the ingest keys of the settings. A control database takes this place behind the same lookups.

mod credential;
mod device_token;
mod instance_secret;
pub mod password;
mod session_token;

use std::collections::HashMap;
use std::str::FromStr;
use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::ingest::Device;

pub use self::credential::{Credential, CredentialHash, CredentialKind, NoRandomness, digest};
pub use self::device_token::{DeviceKeys, KeyAlgorithm, TokenError, TokenHolder};
pub use self::instance_secret::{InstanceSecret, SecretError};
pub use self::session_token::{SESSION_TOKEN_LIFE_S, SessionHolder, SessionTokens};

/// `key=app_id,…`, as the setting has it. Keys do not print.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct IngestKeys(Vec<(String, String)>);

impl FromStr for IngestKeys {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut keys = Vec::new();
        for entry in text
            .split(',')
            .map(str::trim)
            .filter(|entry| !entry.is_empty())
        {
            let (key, app) = entry
                .split_once('=')
                .ok_or("each entry is `key=app_id`, or `key=*` for any app")?;
            if key.is_empty() || app.is_empty() {
                return Err("a key or an app id is empty: each entry is `key=app_id`, or `key=*` for any app".to_owned());
            }
            keys.push((key.to_owned(), app.to_owned()));
        }
        Ok(Self(keys))
    }
}

impl std::fmt::Debug for IngestKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ingest keys", self.0.len())
    }
}

impl IngestKeys {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The snapshot every request is checked against: in memory, swapped whole.
pub struct Access {
    devices: ArcSwap<HashMap<CredentialHash, Arc<Device>>>,
}

impl Access {
    pub fn new(keys: &IngestKeys, project: &str) -> Self {
        Self {
            devices: ArcSwap::from_pointee(devices(keys, project)),
        }
    }

    /// The device behind an ingest key. Keys are compared by hash, so that time tells nothing about them.
    pub fn device(&self, key: &str) -> Option<Arc<Device>> {
        self.devices.load().get(&digest(key)).cloned()
    }
}

fn devices(keys: &IngestKeys, project: &str) -> HashMap<CredentialHash, Arc<Device>> {
    let mut apps: HashMap<&str, Vec<String>> = HashMap::new();
    for (key, app) in &keys.0 {
        apps.entry(key).or_default().push(app.clone());
    }
    let project: Arc<str> = Arc::from(project);
    let device = |apps: Vec<String>| {
        let any = apps.iter().any(|app| app == "*");
        Arc::new(Device {
            project: Arc::clone(&project),
            apps: (!any).then(|| Arc::from(apps)),
        })
    };
    apps.into_iter()
        .map(|(key, apps)| (digest(key), device(apps)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_for_its_apps_and_a_star_for_any() {
        let keys: IngestKeys = "k1=com.a, k1=com.b,k2=*".parse().unwrap();
        let access = Access::new(&keys, "shop");
        assert_eq!(
            access.device("k1").unwrap().apps.as_deref(),
            Some(&["com.a".to_owned(), "com.b".to_owned()][..])
        );
        assert_eq!(access.device("k2").unwrap().apps, None);
        assert!(access.device("k3").is_none());
        assert!("k1".parse::<IngestKeys>().is_err());
        assert!(!format!("{keys:?}").contains("k1"));
    }
}
