//! What a server knows about the batches it accepted.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

const SIGNALS: [&str; 8] = [
    "spans",
    "frame_windows",
    "janks",
    "traffic",
    "page_loads",
    "metrics",
    "app_starts",
    "recompositions",
];

/// Batches as a server stores them: each id once. Checks that the same id always comes with the same events.
pub(crate) struct Stored(BTreeMap<String, Value>);

impl Stored {
    pub(crate) fn new(taken: Vec<Value>) -> Self {
        let mut stored: BTreeMap<String, Value> = BTreeMap::new();
        for batch in taken {
            let batch_id = batch["batch_id"].as_str().unwrap().to_owned();
            let known = stored.entry(batch_id).or_insert_with(|| batch.clone());
            for signal in SIGNALS {
                assert_eq!(
                    known[signal], batch[signal],
                    "a retry should be the same batch"
                );
            }
        }
        let stored = Self(stored);
        let spans = stored.events("spans");
        let ids: BTreeSet<&str> = spans
            .iter()
            .map(|span| span["span_id"].as_str().unwrap())
            .collect();
        assert_eq!(ids.len(), spans.len(), "each span should be stored once");
        stored
    }

    pub(crate) fn batches(&self) -> impl Iterator<Item = &Value> {
        self.0.values()
    }

    pub(crate) fn events(&self, signal: &str) -> Vec<&Value> {
        let lists = self.batches().filter_map(|batch| batch[signal].as_array());
        lists.flatten().collect()
    }

    /// Returns the numbers of the spans. Checks that each is stored once.
    pub(crate) fn numbers(&self) -> BTreeSet<u64> {
        let spans = self.events("spans");
        let numbers: BTreeSet<u64> = spans.iter().map(|span| number(span)).collect();
        assert_eq!(
            numbers.len(),
            spans.len(),
            "each number should be stored once"
        );
        numbers
    }

    pub(crate) fn traffic(&self, amount: &str) -> u64 {
        let rows = self.events("traffic");
        rows.iter().map(|row| row[amount].as_u64().unwrap()).sum()
    }

    /// Returns the losses of a signal by reason.
    pub(crate) fn dropped(&self, signal: &str) -> BTreeMap<String, u64> {
        let mut dropped = BTreeMap::new();
        let lists = self
            .batches()
            .filter_map(|batch| batch["sdk_health"]["dropped"].as_array());
        for one in lists.flatten().filter(|one| one["signal"] == signal) {
            let reason = one["reason"].as_str().unwrap().to_owned();
            *dropped.entry(reason).or_default() += one["count"].as_u64().unwrap();
        }
        dropped
    }
}

pub(crate) fn number(span: &Value) -> u64 {
    let number = span["attributes"]["number"].as_str();
    number.unwrap().parse().unwrap()
}
