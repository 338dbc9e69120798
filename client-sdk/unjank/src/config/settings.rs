//! The settings in force: those of the server, of the app, and of the mode.

use serde_json::Value;
use unjank_protocol::JankStrategy;
use unjank_protocol::config::Document;

use super::{Config, Mode};

/// Feedback that takes longer feels slow.
const NOTICEABLE_MS: u32 = 100;

/// Objects whose keys the app and the server choose.
const FREE: [&str; 2] = ["monitors", "toggles"];

impl Config {
    /// The configuration until one is fetched.
    pub(crate) fn first_document(&self) -> Document {
        let mut document = Document::default();
        if self.mode == Mode::Production {
            // Enough to show that collection works, too little for a new app to flood the server.
            document.sampling.session_rate = 0.1;
        }
        self.with_local(self.preset(document))
    }

    /// Applies the mode and the settings of the app to the configuration that the server sent.
    pub(crate) fn remote_document(&self, document: Document) -> Document {
        let document = self.preset(document);
        match self.local_wins {
            true => self.with_local(document),
            false => document,
        }
    }

    fn preset(&self, document: Document) -> Document {
        match self.mode {
            Mode::Production => document,
            Mode::Development => sensitive(everything(document)),
            Mode::Test => everything(document),
        }
    }

    fn with_local(&self, document: Document) -> Document {
        if self.local_settings.is_null() {
            return document;
        }
        // `problem_of_settings` has checked them.
        merged(&document, &self.local_settings).unwrap_or(document)
    }

    /// Says what is wrong with the settings of the app.
    pub(crate) fn problem_of_settings(&self) -> Option<String> {
        let problem = |what: String| Some(format!("`Config::local_settings`: {what}"));
        if self.local_settings.is_null() {
            return None;
        }
        if !self.local_settings.is_object() {
            return problem("give a JSON object".to_owned());
        }
        let known = serde_json::to_value(Document::default()).unwrap_or_default();
        if let Some(path) = unknown(&self.local_settings, &known, "") {
            return problem(format!("there is no key `{path}`"));
        }
        match merged(&Document::default(), &self.local_settings) {
            Ok(_) => None,
            Err(error) => problem(error.to_string()),
        }
    }
}

fn merged(document: &Document, patch: &Value) -> Result<Document, serde_json::Error> {
    let mut value = serde_json::to_value(document)?;
    merge(&mut value, patch);
    serde_json::from_value(value)
}

/// Replaces the values that a patch has. Objects are merged, everything else is replaced.
fn merge(value: &mut Value, patch: &Value) {
    match (value, patch) {
        (_, Value::Null) => {}
        (Value::Object(own), Value::Object(patch)) => {
            for (key, patch) in patch {
                merge(own.entry(key).or_insert(Value::Null), patch);
            }
        }
        (value, patch) => *value = patch.clone(),
    }
}

/// Returns the path of the first key that a document does not have.
fn unknown(patch: &Value, known: &Value, path: &str) -> Option<String> {
    let (patch, known) = (patch.as_object()?, known.as_object()?);
    patch.iter().find_map(|(key, patch)| {
        let path = format!("{path}{}{key}", if path.is_empty() { "" } else { "." });
        match known.get(key) {
            None => Some(path),
            Some(_) if FREE.contains(&path.as_str()) => None,
            Some(known) => unknown(patch, known, &path),
        }
    })
}

/// Reports a stall as soon as a user could notice it.
fn sensitive(mut document: Document) -> Document {
    document.jank.strategies = vec![JankStrategy {
        threshold_ms: NOTICEABLE_MS,
        count: 1,
        period_ms: 0,
    }];
    document.jank.overrides.clear();
    document.jank.max_stacks_per_session = 1_000;
    document
}

/// Changes a configuration to keep every event.
fn everything(mut document: Document) -> Document {
    document.enabled = true;
    document.tracing.enabled = true;
    let sampling = &mut document.sampling;
    sampling.session_rate = 1.0;
    sampling.spans.default = 1.0;
    sampling.spans.overrides.clear();
    for rate in [
        &mut sampling.frame_windows,
        &mut sampling.janks,
        &mut sampling.page_loads,
        &mut sampling.metrics,
        &mut sampling.recompositions,
    ] {
        *rate = 1.0;
    }
    document
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn config(settings: Value) -> Config {
        Config::new("http://127.0.0.1:1", "k")
            .app("a", "1")
            .local_settings(settings)
    }

    #[test]
    fn local_settings_apply_until_the_server_sends_some_or_always() {
        let local = json!({"jank": {"anr_ms": 7_000}, "monitors": {"battery": {"interval_ms": 500}}, "upload": null});
        let remote = || Document {
            poll_interval_s: 60,
            ..Document::default()
        };
        let config = config(local);
        assert_eq!(config.problem_of_settings(), None);
        let first = config.first_document();
        assert_eq!((first.jank.anr_ms, first.jank.stack_depth), (7_000, 64));
        assert_eq!(first.monitors["battery"].interval_ms, 500);
        assert!(first.monitors.contains_key("cpu"));
        assert_eq!(config.remote_document(remote()).jank.anr_ms, 5_000);
        let always = config.local_wins(true).remote_document(remote());
        assert_eq!((always.jank.anr_ms, always.poll_interval_s), (7_000, 60));
    }

    #[test]
    fn a_wrong_setting_is_named() {
        for (settings, expected) in [
            (
                json!({"upload": {"intervall_s": 5}}),
                "there is no key `upload.intervall_s`",
            ),
            (json!({"jank": {"anr_ms": "long"}}), "invalid type: string"),
            (json!([1]), "give a JSON object"),
        ] {
            let problem = config(settings).problem_of_settings().unwrap_or_default();
            assert!(problem.contains(expected), "{problem}");
        }
    }
}
