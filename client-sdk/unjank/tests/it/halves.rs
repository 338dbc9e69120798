//! Batches that are too large go in halves, and nothing of them is stored twice.

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

/// What a server stores that knows batches by their ids, and by those of the batches they were cut from.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<BTreeMap<String, Value>>>);

impl Store {
    /// Stores a batch unless it is there; answers its receipt.
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
fn a_batch_that_is_too_large_comes_in_halves() {
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
fn a_batch_that_was_stored_without_an_answer_and_is_too_large_later_is_stored_once() {
    let folder = tempfile::tempdir().unwrap();
    let test = |config: unjank::Config| config.mode(Mode::Test).data_dir(folder.path());
    let mut running = Running::with(test);
    let store = Store::default();
    let storing = store.clone();
    running.collector.answer(move |batch| {
        storing.take(batch);
        Err(TransportError("the answer is lost".to_owned()))
    });
    spans(0..7);
    running.flush();
    // A proxy that takes less stands before the server now, and goes away while the halves are sent.
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
    assert!(running.collector.batches().len() >= 7, "single spans came");
    let stored = store.numbers();
    assert_eq!(stored.len(), 7, "{stored:?}");
}

#[test]
fn an_event_that_is_too_large_alone_is_counted_and_the_others_arrive() {
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
