//! Maps a request to a source, by its host and the type of its response.

use std::collections::HashMap;
use std::sync::Arc;

use unjank_protocol::Glob;
use unjank_protocol::config;

pub(super) const OTHER: &str = "other";
const WEB: &str = "web";

/// Maximum number of hosts whose source is cached.
const HOSTS: usize = 256;

/// Maximum length of a host name, in bytes. A longer name is not a host and is not matched.
const LONGEST_HOST: usize = 253;

#[derive(Debug)]
pub(super) struct Sources {
    patterns: Vec<(Arc<str>, Vec<Glob>)>,
    web_mime_types: Vec<String>,
    web: Arc<str>,
    other: Arc<str>,
    /// The source of each host seen; `None` if no pattern matches.
    known: HashMap<String, Option<Arc<str>>>,
}

impl Sources {
    pub(super) fn new(config: &config::Traffic) -> Self {
        let sources = config.sources.iter().take(100);
        let patterns = sources.map(|source| {
            let globs = source.hosts.iter().take(100).map(|glob| Glob::new(glob));
            (Arc::from(source.source.as_str()), globs.collect())
        });
        Self {
            patterns: patterns.collect(),
            web_mime_types: config.web_mime_types.iter().take(100).cloned().collect(),
            web: Arc::from(WEB),
            other: Arc::from(OTHER),
            known: HashMap::new(),
        }
    }

    /// Returns the source of a host that a pattern matches, otherwise `web` for a response of a web type, otherwise `other`.
    pub(super) fn entry(&mut self, host: &str, mime_type: &str) -> Arc<str> {
        let of_host = self.of_host(host);
        of_host.unwrap_or_else(|| {
            let essence = mime_type.split(';').next().unwrap_or_default().trim();
            let mut web = self.web_mime_types.iter();
            let is_web = !essence.is_empty() && web.any(|web| web.eq_ignore_ascii_case(essence));
            if is_web { &self.web } else { &self.other }.clone()
        })
    }

    fn of_host(&mut self, host: &str) -> Option<Arc<str>> {
        if host.len() > LONGEST_HOST {
            return None;
        }
        if let Some(source) = self.known.get(host) {
            return source.clone();
        }
        let claims = |(_, globs): &&(_, Vec<Glob>)| globs.iter().any(|glob| glob.matches(host));
        let source = self.patterns.iter().find(claims);
        let source = source.map(|(source, _)| source.clone());
        if self.known.len() >= HOSTS {
            self.known.clear();
        }
        self.known.insert(host.to_owned(), source.clone());
        source
    }
}
