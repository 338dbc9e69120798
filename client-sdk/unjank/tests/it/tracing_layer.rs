//! Spans of `tracing` recorded by the layer, among spans of the SDK.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use serde_json::{Value, json};
use tracing::{Dispatch, Instrument};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;

use crate::collector::Running;

fn dispatch() -> Dispatch {
    Dispatch::new(tracing_subscriber::registry().with(unjank::tracing_layer()))
}

fn spans(running: &Running) -> Vec<Value> {
    running.flush();
    running.collector.events("spans")
}

fn named<'s>(spans: &'s [Value], name: &str) -> &'s Value {
    let found = spans.iter().find(|span| span["name"] == name);
    found.unwrap_or_else(|| panic!("no span {name} in {spans:#?}"))
}

fn is_parent(spans: &[Value], parent: &str, child: &str) {
    let (parent, child) = (named(spans, parent), named(spans, child));
    assert_eq!(child["parent_span_id"], parent["span_id"], "{child}");
    assert_eq!(child["trace_id"], parent["trace_id"]);
}

#[test]
fn spans_nest_with_fields_places_and_events() {
    let running = Running::start();
    tracing::dispatcher::with_default(&dispatch(), || {
        let outer = tracing::info_span!(
            "outer",
            host = "db-1",
            rows = 3,
            user = tracing::field::Empty
        );
        outer.record("user", "ann");
        outer.record("rows", 4);
        let entered = outer.enter();
        tracing::info_span!(target: "elsewhere", "inner", long = "x".repeat(5_000)).in_scope(
            || {
                tracing::error!(code = 7, "it failed");
            },
        );
        tracing::debug_span!("detail").in_scope(|| unjank::span("below").end());
        drop(entered);
    });
    let spans = spans(&running);
    assert_eq!(spans.len(), 3);
    is_parent(&spans, "outer", "inner");
    is_parent(&spans, "outer", "below");
    let outer = named(&spans, "outer");
    assert_eq!(outer["attributes"]["host"], "db-1");
    assert_eq!(outer["attributes"]["rows"], "4");
    assert_eq!(outer["attributes"]["user"], "ann");
    assert!(outer["attributes"]["busy_us"].is_string());
    assert_eq!(outer["code"]["class"], "it::tracing_layer");
    assert_eq!(outer["code"]["function"], "outer");
    assert!(
        outer["code"]["file"]
            .as_str()
            .unwrap()
            .ends_with("tracing_layer.rs")
    );
    let inner = named(&spans, "inner");
    assert_eq!(inner["status"], "error");
    assert_eq!(inner["events"][0]["name"], "it failed code=7");
    assert_eq!(inner["attributes"]["target"], "elsewhere");
    assert_eq!(inner["attributes"]["long"].as_str().unwrap().len(), 1_024);
}

#[test]
fn a_future_is_one_span_whichever_threads_poll_it() {
    let running = Running::start();
    let dispatch = dispatch();
    let future = async {
        let mut polled = false;
        std::future::poll_fn(move |_| {
            unjank::span("polled").end();
            if std::mem::replace(&mut polled, true) {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    };
    let mut future = tracing::dispatcher::with_default(&dispatch, || {
        Box::pin(future.instrument(tracing::info_span!("request")))
    });
    let mut context = Context::from_waker(Waker::noop());
    tracing::dispatcher::with_default(&dispatch, || {
        assert!(future.as_mut().poll(&mut context).is_pending());
        unjank::span("between").end();
    });
    std::thread::spawn(move || {
        tracing::dispatcher::with_default(&dispatch, || {
            let mut context = Context::from_waker(Waker::noop());
            assert!(pin!(future).as_mut().poll(&mut context).is_ready());
        });
    })
    .join()
    .unwrap();
    let spans = spans(&running);
    let request = named(&spans, "request");
    let polled: Vec<_> = spans
        .iter()
        .filter(|span| span["name"] == "polled")
        .collect();
    assert_eq!(polled.len(), 2);
    assert!(
        polled
            .iter()
            .all(|span| span["parent_span_id"] == request["span_id"])
    );
    assert_eq!(named(&spans, "between")["parent_span_id"], Value::Null);
}

#[test]
fn the_parent_is_the_innermost_span_of_either_library_unless_the_code_names_one() {
    let running = Running::start();
    tracing::dispatcher::with_default(&dispatch(), || {
        let _ours = unjank::span("ours");
        let theirs = tracing::info_span!("theirs");
        let _entered = theirs.enter();
        let _deeper = unjank::span("deeper");
        let deepest = tracing::info_span!("deepest");
        drop(deepest);
        drop(tracing::info_span!(parent: &theirs, "named"));
        drop(tracing::info_span!(parent: None, "root"));
    });
    let spans = spans(&running);
    is_parent(&spans, "ours", "theirs");
    is_parent(&spans, "theirs", "deeper");
    is_parent(&spans, "deeper", "deepest");
    is_parent(&spans, "theirs", "named");
    assert_eq!(named(&spans, "root")["parent_span_id"], Value::Null);
    assert_ne!(
        named(&spans, "root")["trace_id"],
        named(&spans, "ours")["trace_id"]
    );
}

fn configured(document: Value) -> Running {
    let mut running = Running::with(|config| config);
    running.collector.configure(document);
    let polls = running.collector.polls();
    running.restart(|config| config);
    running.polled(polls + 1);
    running
}

#[test]
fn the_remote_configuration_selects_spans_by_name() {
    let running = configured(json!({
        "sampling": {"session_rate": 1.0, "spans": {"default": 0.0, "overrides": [{"name": "kept*", "rate": 1.0}]}},
    }));
    tracing::dispatcher::with_default(&dispatch(), || {
        let _kept = tracing::info_span!("kept").entered();
        let _lost = tracing::info_span!("lost").entered();
        drop(tracing::info_span!("kept-below"));
        unjank::span("kept-ours").end();
    });
    let spans = spans(&running);
    assert_eq!(spans.len(), 3);
    is_parent(&spans, "kept", "kept-below");
    is_parent(&spans, "kept", "kept-ours");
}

#[test]
fn a_trace_is_sampled_as_a_whole() {
    let running = configured(json!({"sampling": {"session_rate": 1.0, "spans": {"default": 0.5}}}));
    tracing::dispatcher::with_default(&dispatch(), || {
        for _ in 0..100 {
            let _outer = tracing::info_span!("outer").entered();
            let inner = tracing::info_span!("inner").entered();
            unjank::span("ours").end();
            drop(tracing::info_span!(parent: inner.id(), "named"));
        }
    });
    let spans = spans(&running);
    let count = |name: &str| spans.iter().filter(|span| span["name"] == name).count();
    let outer = count("outer");
    assert!((20..80).contains(&outer), "{outer}");
    assert_eq!([count("inner"), count("ours"), count("named")], [outer; 3]);
}

#[test]
fn the_level_applies_to_this_layer_alone() {
    let running = Running::start();
    let layer = unjank::tracing_layer_up_to(LevelFilter::WARN);
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(layer));
    tracing::dispatcher::with_default(&dispatch, || {
        drop(tracing::info_span!("info"));
        drop(tracing::warn_span!("warn"));
    });
    let spans = spans(&running);
    assert_eq!(spans.len(), 1);
    named(&spans, "warn");
}

#[test]
fn targets_select_crates_each_with_its_level() {
    let running = Running::start();
    let targets: tracing_subscriber::filter::Targets = "shop=debug,sqlx=warn".parse().unwrap();
    let layer = unjank::tracing_layer_of(targets);
    let dispatch = Dispatch::new(tracing_subscriber::registry().with(layer));
    tracing::dispatcher::with_default(&dispatch, || {
        drop(tracing::debug_span!(target: "shop::cart", "ours"));
        drop(tracing::trace_span!(target: "shop::cart", "too detailed"));
        drop(tracing::info_span!(target: "sqlx", "quiet"));
        drop(tracing::error_span!(target: "hyper", "other"));
    });
    let spans = spans(&running);
    assert_eq!(spans.len(), 1);
    named(&spans, "ours");
}
