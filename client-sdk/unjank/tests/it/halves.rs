//! Batches that are too large are sent in halves, and no event is stored twice.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use unjank::{Mode, TransportError};

use crate::collector::{Running, receipt, status};

fn spans(numbers: std::ops::Range<u64>) {
    for number in numbers {
        let mut span = unjank::span("checkout");
        span.attribute("number", number);
    }
}

fn numbers(batches: &[Value]) -> Vec<String> {
    let lists = batches.iter().filter_map(|batch| batch["spans"].as_array());
    let numbers = lists.flatten().map(|span| &span["attributes"]["number"]);
    numbers.map(Value::to_string).collect()
}

fn is_large(batch: &Value, most: usize) -> bool {
    batch["spans"].as_array().map_or(0, Vec::len) > most
}

/// A server's store. It deduplicates batches by their ids and by those of their ancestors.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<BTreeMap<String, Value>>>);

impl Store {
    /// Stores a batch unless it is a duplicate. Returns its receipt.
    fn take(&self, batch: &Value) -> unjank::Response {
        let mut stored = self.0.lock().unwrap();
        let ancestors = batch["split_from"].as_array().into_iter().flatten();
        let mut ids = ancestors.chain([&batch["batch_id"]]);
        let duplicate = ids.any(|id| stored.contains_key(id.as_str().unwrap()));
        if !duplicate {
            let batch_id = batch["batch_id"].as_str().unwrap();
            stored.insert(batch_id.to_owned(), batch.clone());
        }
        let body = json!({"batch_id": batch["batch_id"], "accepted": 1, "duplicate": duplicate});
        unjank::Response {
            body: body.to_string().into_bytes(),
            ..receipt(batch)
        }
    }

    fn numbers(&self) -> Vec<String> {
        let stored: Vec<Value> = self.0.lock().unwrap().values().cloned().collect();
        numbers(&stored)
    }
}

#[test]
fn a_batch_that_is_too_large_is_sent_in_halves() {
    let running = Running::start();
    running.collector.answer(|batch| {
        Ok(if is_large(batch, 2) {
            status(413)
        } else {
            receipt(batch)
        })
    });
    spans(0..7);
    running.flush();
    let arrived = numbers(&running.collector.batches());
    assert_eq!(arrived.len(), 7);
    assert_eq!(arrived.into_iter().collect::<BTreeSet<_>>().len(), 7);
}

#[test]
fn a_batch_stored_without_a_receipt_and_split_later_is_stored_once() {
    let folder = tempfile::tempdir().unwrap();
    let test = |config: unjank::Config| config.mode(Mode::Test).data_dir(folder.path());
    let mut running = Running::with(test);
    let store = Store::default();
    let storing = store.clone();
    running.collector.answer(move |batch| {
        storing.take(batch);
        Err(TransportError("the response is lost".to_owned()))
    });
    spans(0..7);
    running.flush();
    // A proxy with a lower limit is in front of the server now, and disconnects while the halves are sent.
    running.collector.answer(|batch| match is_large(batch, 4) {
        true => Ok(status(413)),
        false => Err(TransportError("unplugged".to_owned())),
    });
    running.flush();
    running.restart(test);
    let storing = store.clone();
    running.collector.answer(move |batch| {
        Ok(if is_large(batch, 1) {
            status(413)
        } else {
            storing.take(batch)
        })
    });
    running.flush();
    running.flush();
    assert!(
        running.collector.batches().len() >= 7,
        "spans should arrive one by one"
    );
    let stored = store.numbers();
    assert_eq!(stored.len(), 7, "{stored:?}");
}

#[test]
fn a_single_event_that_is_too_large_is_counted_and_the_others_arrive() {
    let running = Running::start();
    running.collector.answer(|batch| {
        let huge = numbers(std::slice::from_ref(batch)).contains(&"\"3\"".to_owned());
        Ok(if huge { status(413) } else { receipt(batch) })
    });
    spans(0..5);
    running.flush();
    running.flush();
    let batches = running.collector.batches();
    let arrived: BTreeSet<String> = numbers(&batches).into_iter().collect();
    let expected = ["\"0\"", "\"1\"", "\"2\"", "\"4\""];
    assert!(arrived.iter().eq(expected.iter()), "{arrived:?}");
    let dropped = batches
        .iter()
        .filter_map(|batch| batch["sdk_health"]["dropped"].as_array());
    let dropped: Vec<&Value> = dropped.flatten().collect();
    let once = json!({"signal": "spans", "reason": "too_large", "count": 1});
    assert_eq!(dropped, [&once]);
}

#[test]
fn a_proxy_that_takes_nothing_gets_few_requests_and_loses_nothing() {
    let running = Running::start();
    let asked = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&asked);
    running.collector.answer(move |_| {
        *counted.lock().unwrap() += 1;
        Ok(status(413))
    });
    (0..1_000).for_each(|_| unjank::span("checkout").end());
    (0..4).for_each(|_| running.flush());
    let asked = *asked.lock().unwrap();
    assert!(asked < 30, "{asked} requests");
    let problem = unjank::problem().unwrap_or_default();
    assert!(problem.contains("takes no batch of this size"), "{problem}");
    assert!(running.collector.events("sdk_health").is_empty());
}
