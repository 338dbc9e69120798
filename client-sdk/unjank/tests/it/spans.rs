//! Spans: their tree, their location and their fields.

use serde_json::Value;

use crate::collector::Running;

fn named<'s>(spans: &'s [Value], name: &str) -> &'s Value {
    spans.iter().find(|span| span["name"] == name).unwrap()
}

#[test]
fn spans_of_a_thread_form_a_tree() {
    let running = Running::start();
    unjank::set_page("Cart");
    {
        let mut outer = unjank::span("checkout");
        outer.attribute("items", 3);
        outer.event("validated");
        unjank::span("pay").end_ok();
        unjank::span("print").end_error();
    }
    unjank::span("later").end();
    running.flush();
    let spans = running.collector.events("spans");
    assert_eq!(spans.len(), 4);
    let checkout = named(&spans, "checkout");
    for (child, status) in [("pay", "ok"), ("print", "error")] {
        let child = named(&spans, child);
        assert_eq!(child["parent_span_id"], checkout["span_id"]);
        assert_eq!(child["trace_id"], checkout["trace_id"]);
        assert_eq!(child["status"], status);
    }
    assert_eq!(checkout["attributes"]["items"], "3");
    assert_eq!(checkout["events"][0]["name"], "validated");
    assert_eq!(checkout["page"], "Cart");
    assert!(
        checkout["code"]["file"]
            .as_str()
            .unwrap()
            .ends_with("spans.rs")
    );
    assert_eq!(checkout["kind"], "manual");
    let later = named(&spans, "later");
    assert_eq!(later["parent_span_id"], Value::Null);
    assert_ne!(later["trace_id"], checkout["trace_id"]);
}

#[test]
fn spans_that_end_out_of_order_and_on_other_threads_keep_their_parents() {
    let running = Running::start();
    let first = unjank::span("first");
    let second = unjank::span("second");
    drop(first);
    let third = unjank::span("third");
    drop(second);
    drop(third);
    let moved = unjank::span("moved").detach();
    let after = unjank::span("after");
    let context = moved.context();
    std::thread::spawn(move || {
        let _child = unjank::span_in(&context, "elsewhere");
        let _grandchild = unjank::span("deeper");
        drop(moved);
    })
    .join()
    .unwrap();
    drop(after);
    running.flush();
    let spans = running.collector.events("spans");
    let parent = |child: &str, parent: &str| {
        assert_eq!(
            named(&spans, child)["parent_span_id"],
            named(&spans, parent)["span_id"],
            "{child}"
        );
    };
    parent("second", "first");
    parent("third", "second");
    parent("elsewhere", "moved");
    parent("deeper", "elsewhere");
    assert_eq!(named(&spans, "after")["parent_span_id"], Value::Null);
}

#[test]
fn without_the_sdk_every_call_is_harmless() {
    // Ended. No other test can start it while this one runs.
    let mut running = Running::start();
    drop(running.guard.take());
    let mut span = unjank::span("nothing");
    span.attribute("a", 1);
    assert!(!span.is_recorded());
    assert_eq!(span.context().traceparent(), None);
    unjank::metric("m", 1.0);
    assert!(!unjank::flush(std::time::Duration::ZERO));
}

#[test]
fn a_second_start_reports_that_one_is_running() {
    let running = Running::start();
    let second = unjank::init(crate::collector::config(&running.collector));
    assert!(second.problem().unwrap().contains("already running"));
    drop(second);
    unjank::span("still on").end();
    running.flush();
    assert_eq!(running.collector.events("spans").len(), 1);
}

#[test]
fn a_context_from_before_the_start_has_no_effect() {
    let context = unjank::SpanContext::default();
    let running = Running::with(|config| config);
    running.learns(serde_json::json!({"sampling": {"spans": {"default": 0.01}}}));
    let recorded = (0..1_000)
        .filter(|_| unjank::span_in(&context, "a").is_recorded())
        .count();
    assert!(recorded < 100, "{recorded} of 1000 at one in a hundred");
}

#[test]
fn long_texts_are_cut() {
    let running = Running::start();
    let mut span = unjank::span("n".repeat(5_000));
    span.attribute("body", "é".repeat(5_000));
    span.end();
    running.flush();
    let span = &running.collector.events("spans")[0];
    assert_eq!(span["name"].as_str().unwrap().len(), 1_024);
    assert_eq!(span["attributes"]["body"].as_str().unwrap().len(), 1_024);
}

struct Broken;

impl std::fmt::Display for Broken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("half")?;
        Err(std::fmt::Error)
    }
}

#[test]
fn a_value_that_fails_to_format_does_not_panic() {
    let running = Running::start();
    let mut span = unjank::span("here");
    span.attribute("value", Broken);
    let mut moved = unjank::span("moved").detach();
    moved.attribute("value", Broken);
    drop((span, moved));
    running.flush();
    let spans = running.collector.events("spans");
    for name in ["here", "moved"] {
        assert_eq!(named(&spans, name)["attributes"]["value"], "half");
    }
}

/// Records a span while it is dropped.
struct Cleanup;

impl Drop for Cleanup {
    fn drop(&mut self) {
        unjank::span("cleanup").end();
    }
}

#[test]
fn spans_that_a_panic_unwinds_have_the_status_error() {
    let running = Running::start();
    let panicked = std::panic::catch_unwind(|| {
        let _outer = unjank::span("outer");
        let _moved = unjank::span("moved").detach();
        let _cleanup = Cleanup;
        unjank::span("before").end();
        let _inner = unjank::span("inner");
        std::panic::resume_unwind(Box::new("a problem of the app"));
    });
    assert!(panicked.is_err());
    unjank::span("after").end();
    unjank::span("given up").end_cancelled();
    running.flush();
    let spans = running.collector.events("spans");
    let statuses = [
        "outer", "moved", "inner", "cleanup", "before", "after", "given up",
    ]
    .map(|name| named(&spans, name)["status"].as_str().unwrap());
    assert_eq!(
        statuses,
        [
            "error",
            "error",
            "error",
            "unset",
            "unset",
            "unset",
            "cancelled"
        ]
    );
}

#[test]
fn spans_of_threads_that_ended_and_of_bursts_arrive_once_and_in_order() {
    let running = Running::start();
    let record = |first: u32, count: u32| {
        for number in first..first + count {
            unjank::span(number.to_string()).end();
        }
    };
    let threads = [(0, 10), (1_000, 1_000), (10_000, 3_000)];
    std::thread::scope(|scope| {
        for (first, count) in threads {
            scope.spawn(move || record(first, count));
        }
    });
    record(20_000, 100);
    running.flush();
    let spans = running.collector.events("spans");
    let numbers: Vec<u32> = spans
        .iter()
        .map(|span| span["name"].as_str().unwrap().parse().unwrap())
        .collect();
    for (first, count) in [(0, 10), (1_000, 1_000), (10_000, 3_000), (20_000, 100)] {
        let own: Vec<u32> = numbers
            .iter()
            .copied()
            .filter(|number| (first..first + count).contains(number))
            .collect();
        assert_eq!(own, (first..first + count).collect::<Vec<_>>());
    }
    assert_eq!(numbers.len(), 4_110);
}

#[test]
fn each_span_has_its_own_attributes() {
    let running = Running::start();
    // Spans with few attributes go another way than spans with many, with events or with names of their own.
    for number in 0..200_usize {
        let mut outer = unjank::span("outer");
        (0..number % 7).for_each(|name| outer.attribute(name.to_string(), number));
        let mut inner = unjank::span("inner");
        (0..number % 3).for_each(|name| inner.attribute(name.to_string(), number + 1_000));
        if number % 5 == 0 {
            inner.event("an event");
        }
        // In turns, so that they also end out of order.
        if number % 2 == 0 {
            drop(outer);
        }
        drop(inner);
        unjank::span("plain").end();
    }
    running.flush();
    let spans = running.collector.events("spans");
    let of = |name| spans.iter().filter(move |span| span["name"] == name);
    let attributes = |count: usize, value: usize| -> Value {
        let all = (0..count).map(|name| (name.to_string(), value.to_string().into()));
        Value::Object(all.collect())
    };
    let own = |span: &Value| match &span["attributes"] {
        Value::Null => Value::Object(serde_json::Map::default()),
        attributes => attributes.clone(),
    };
    for (number, (outer, inner)) in of("outer").zip(of("inner")).enumerate() {
        assert_eq!(own(outer), attributes(number % 7, number));
        assert_eq!(own(inner), attributes(number % 3, number + 1_000));
    }
    assert_eq!((of("outer").count(), of("inner").count()), (200, 200));
    assert!(of("plain").all(|span| own(span) == attributes(0, 0)));
}
