//! Ingest keys from the settings. They are added to the control database at start.

use std::collections::BTreeMap;
use std::str::FromStr;

/// `key=app_id,…`, as in the setting. `Debug` does not reveal the keys.
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
                .ok_or("each entry must be `key=app_id`, or `key=*` for any app")?;
            if key.is_empty() || app.is_empty() {
                return Err("a key or an app id is empty; each entry must be `key=app_id`, or `key=*` for any app".to_owned());
            }
            keys.push((key.to_owned(), app.to_owned()));
        }
        Ok(Self(keys))
    }
}

/// Joins the lists of several flags.
impl FromIterator<Self> for IngestKeys {
    fn from_iter<L: IntoIterator<Item = Self>>(lists: L) -> Self {
        Self(lists.into_iter().flat_map(|list| list.0).collect())
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

    /// Rejects keys that can be guessed if the server is reachable from other machines.
    ///
    /// # Errors
    /// If a key is too short.
    pub fn check_length(&self, is_local: bool) -> Result<(), String> {
        let short = self.0.iter().any(|(key, _)| key.len() < LEAST_LENGTH);
        if short && !is_local {
            return Err(format!(
                "an ingest key in the settings has fewer than {LEAST_LENGTH} characters, but the server is reachable from other machines: \
                 anyone who guesses the key can send events. Use a random key, for example from `openssl rand -hex 16`"
            ));
        }
        Ok(())
    }
}

/// The minimum length of a key that an operator chooses, in characters.
const LEAST_LENGTH: usize = 16;

/// A key from the settings and the apps it is valid for. `None` means any app.
pub struct SeedKey<'k> {
    pub key: &'k str,
    pub apps: Option<Vec<String>>,
}

impl IngestKeys {
    /// Returns each key once, with all its apps.
    pub fn seeds(&self) -> Vec<SeedKey<'_>> {
        let mut apps: BTreeMap<&str, Vec<String>> = BTreeMap::new();
        for (key, app) in &self.0 {
            apps.entry(key).or_default().push(app.clone());
        }
        let seed = |(key, apps): (_, Vec<String>)| SeedKey {
            key,
            apps: (!apps.iter().any(|app| app == "*")).then_some(apps),
        };
        apps.into_iter().map(seed).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_keys_are_allowed_on_this_machine_only() {
        let (short, long) = ("k=*,a-key-that-is-long=*", "a-key-that-is-long=*");
        let checked =
            |keys: &str, is_local| keys.parse::<IngestKeys>().unwrap().check_length(is_local);
        assert!(checked(short, true).is_ok() && checked(long, false).is_ok());
        let refused = checked(short, false).unwrap_err();
        assert!(
            refused.contains("16 characters") && !refused.contains("k="),
            "{refused}"
        );
    }

    #[test]
    fn a_key_is_valid_for_its_apps_and_a_star_means_any() {
        let keys: IngestKeys = "k1=com.a, k1=com.b,k2=*,k3=com.c,k3=*".parse().unwrap();
        let seeds: Vec<_> = keys
            .seeds()
            .into_iter()
            .map(|seed| (seed.key, seed.apps))
            .collect();
        let both = vec!["com.a".to_owned(), "com.b".to_owned()];
        assert_eq!(seeds, [("k1", Some(both)), ("k2", None), ("k3", None)]);
        assert!("k1".parse::<IngestKeys>().is_err());
        assert!(!format!("{keys:?}").contains("k1"));
    }
}
