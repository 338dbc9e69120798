//! Errors that the app handles, and panics.

use std::panic::catch_unwind;

use serde_json::{Value, json};
use unjank::Mode;

use crate::collector::Running;

fn spans(running: &Running) -> Vec<Value> {
    running.flush();
    running.collector.events("spans")
}

#[test]
fn a_handled_error_is_a_span_in_its_trace_whatever_the_rate_of_spans() {
    let running = Running::start();
    unjank::set_page("Cart");
    {
        let _span = unjank::span("checkout");
        unjank::error("cart.count", "12a".parse::<u32>().unwrap_err());
    }
    let read = spans(&running);
    let named = |name: &str| read.iter().find(|span| span["name"] == name).unwrap();
    let (error, checkout) = (named("cart.count"), named("checkout"));
    assert_eq!(
        (&error["name"], &error["status"]),
        (&json!("cart.count"), &json!("error"))
    );
    assert_eq!(
        error["attributes"]["error"],
        "invalid digit found in string"
    );
    assert_eq!(error["page"], "Cart");
    assert_eq!(error["trace_id"], checkout["trace_id"]);
    assert_eq!(error["parent_span_id"], checkout["span_id"]);
    assert!(
        error["code"]["file"]
            .as_str()
            .unwrap()
            .ends_with("errors.rs")
    );
    drop(running);
    let running = Running::with(|config| config);
    running.learns(json!({"sampling": {"spans": {"default": 0.0}}}));
    unjank::error("cart.count", "x".repeat(2_000));
    let read = spans(&running);
    assert_eq!(read.len(), 1, "{read:?}");
    assert_eq!(
        read[0]["attributes"]["error"].as_str().unwrap().len(),
        1_024
    );
    running.learns(json!({"sampling": {"session_rate": 0.0}}));
    unjank::error("cart.count", "nothing is collected");
    assert_eq!(spans(&running).len(), 1);
}

#[inline(never)]
fn gives_up() {
    panic!("the cart has {} items", 13);
}

#[test]
fn panics_are_reported_with_message_place_and_stack_if_the_app_wants_that() {
    let running = Running::start();
    assert!(catch_unwind(gives_up).is_err());
    assert!(spans(&running).is_empty(), "the app did not ask for it");
    drop(running);
    let running = Running::with(|config| config.mode(Mode::Test).report_panics(true));
    let caught = std::thread::Builder::new()
        .name("cart".to_owned())
        .spawn(gives_up)
        .unwrap();
    assert!(caught.join().is_err());
    let read = spans(&running);
    assert_eq!(read.len(), 1, "{read:?}");
    let panic = &read[0];
    assert_eq!(
        (&panic["name"], &panic["status"]),
        (&json!("panic"), &json!("error"))
    );
    assert_eq!(panic["attributes"]["error"], "the cart has 13 items");
    assert_eq!(panic["thread"], "cart");
    assert!(
        panic["code"]["file"]
            .as_str()
            .unwrap()
            .ends_with("errors.rs")
    );
    let stack: Vec<&str> = panic["events"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|line| line["name"].as_str())
        .collect();
    assert!(stack.len() <= 64);
    // The innermost frame is the code that panicked, not the machinery of the panic.
    assert!(stack[0].contains("gives_up"), "{stack:#?}");
    // The hook that was there before still runs, and the reports are bounded.
    for _ in 0..40 {
        assert!(catch_unwind(gives_up).is_err());
    }
    let read = spans(&running);
    assert!(read.len() <= 20, "{}", read.len());
    let dropped: u64 = running
        .collector
        .batches()
        .iter()
        .filter_map(|batch| batch["sdk_health"]["dropped"].as_array().cloned())
        .flatten()
        .filter(|one| one["signal"] == "spans" && one["reason"] == "rate_limited")
        .filter_map(|one| one["count"].as_u64())
        .sum();
    assert_eq!(read.len() as u64 + dropped, 41);
}
