//! The configuration document: every document ever sent remains readable, and missing keys take their defaults.

use std::collections::BTreeSet;

use serde_json::Value;
use unjank_protocol::JankStrategy;
use unjank_protocol::config::{Document, Monitor, SCHEMA, Upload};

const CONFIG: &str = include_str!("golden/config_v1.json");
/// The same with every key that was added since.
const CONFIG_WITH_PHASES: &str = include_str!("golden/config_v1_phases.json");
const FUTURE: &str = include_str!("golden/config_v1_from_the_future.json");

#[test]
fn a_document_survives_a_round_trip() {
    let document: Document = serde_json::from_str(CONFIG_WITH_PHASES).unwrap();
    assert_eq!(
        serde_json::to_value(&document).unwrap(),
        serde_json::from_str::<Value>(CONFIG_WITH_PHASES).unwrap()
    );
}

#[test]
fn a_document_from_before_a_key_existed_has_its_default() {
    let old: Document = serde_json::from_str(CONFIG).unwrap();
    let mut new: Document = serde_json::from_str(CONFIG_WITH_PHASES).unwrap();
    assert_eq!(new.jank.overrides.len(), 2);
    (new.jank.start_ms, new.jank.overrides) = (10_000, Vec::new());
    assert_eq!(old, new);
}

#[test]
fn an_empty_document_is_the_default() {
    let document: Document = serde_json::from_str("{}").unwrap();
    assert_eq!(document, Document::default());
    assert_eq!(document.schema, SCHEMA);
    assert_eq!(document.poll_interval_s, 900);
    assert_eq!(document.sampling.spans.default, 0.01);
    assert_eq!(document.monitors["fps"].interval_ms, 1_000);
}

#[test]
fn the_default_document_writes_every_key() {
    let golden: Value = serde_json::from_str(CONFIG_WITH_PHASES).unwrap();
    let default = serde_json::to_value(Document::default()).unwrap();
    let written = keys(&default, "");
    assert_eq!(written, keys(&golden, ""));
    assert!(written.contains("/sampling/spans/default"));
}

/// Returns the paths of all keys outside of lists. Those of toggles are the operator's.
fn keys(value: &Value, path: &str) -> BTreeSet<String> {
    let members = value.as_object().filter(|_| path != "/toggles");
    let inner = |(key, value): (&String, &Value)| {
        let path = format!("{path}/{key}");
        let mut found = keys(value, &path);
        found.insert(path);
        found
    };
    members.into_iter().flatten().flat_map(inner).collect()
}

#[test]
fn a_document_of_a_later_version_is_read_with_defaults_for_missing_keys() {
    let document: Document = serde_json::from_str(FUTURE).unwrap();
    let mut expected = Document {
        revision: 43,
        ..Document::default()
    };
    expected.sampling.janks = 0.5;
    expected.sampling.spans.default = 1.0;
    expected.jank.strategies = vec![JankStrategy {
        threshold_ms: 700,
        count: 1,
        period_ms: 0,
    }];
    expected.monitors = [("battery", 60_000), ("cpu", 5_000)]
        .map(|(name, interval_ms)| (name.to_owned(), Monitor { interval_ms }))
        .into();
    assert_eq!(document, expected);
    assert_eq!(document.upload, Upload::default());
}
