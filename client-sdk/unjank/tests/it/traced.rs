//! `#[traced]`: names, locations, kinds, errors and futures.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use serde_json::Value;

use crate::collector::Running;

struct Idle;

impl Wake for Idle {
    fn wake(self: Arc<Self>) {}
}

/// Polls a future until it is ready, without waiting for its waker.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let waker = Waker::from(Arc::new(Idle));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(answer) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return answer;
        }
    }
}

/// Ready at the second poll.
async fn pause() {
    let mut polled = false;
    std::future::poll_fn(move |_| {
        if std::mem::replace(&mut polled, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

fn spans(running: &Running) -> Vec<Value> {
    running.flush();
    running.collector.events("spans")
}

fn named<'s>(spans: &'s [Value], name: &str) -> &'s Value {
    let found = spans.iter().find(|span| span["name"] == name);
    found.unwrap_or_else(|| panic!("no span {name} in {spans:#?}"))
}

/// The line of the function below.
const TWICE: u32 = line!() + 3;

#[unjank::traced]
fn twice<T>(of: &T, _times: [u8; 2]) -> (T, T)
where
    T: Clone + PartialEq,
{
    (of.clone(), of.clone())
}

#[test]
fn a_function_has_a_name_and_a_location() {
    let running = Running::start();
    assert_eq!(twice(&1, [0, 0]), (1, 1));
    let spans = spans(&running);
    let span = named(&spans, "it::traced::twice");
    assert_eq!(span["kind"], "method");
    assert_eq!(span["status"], "unset");
    let code = &span["code"];
    assert_eq!(code["class"], "it::traced");
    assert_eq!(code["function"], "twice(&T, [u8; 2])");
    assert!(code["file"].as_str().unwrap().ends_with("traced.rs"));
    assert_eq!(code["line"], TWICE);
}

struct Cart<'n, T> {
    name: &'n str,
    items: Vec<T>,
}

#[unjank::traced(tag = "checkout", err)]
impl<'n, T: Clone> Cart<'n, T> {
    #[unjank::traced(init)]
    fn new(name: &'n str) -> Self {
        Self {
            name,
            items: Vec::new(),
        }
    }

    // The line of the function below.
    const ADD: u32 = line!() + 2;

    fn add(&mut self, item: T) -> &mut T {
        self.items.push(item);
        self.items.last_mut().unwrap()
    }

    fn first(&mut self) -> Result<&mut T, String> {
        let name = self.name;
        self.items.first_mut().ok_or_else(|| name.to_owned())
    }

    #[unjank::traced(skip)]
    fn len(&self) -> usize {
        self.items.len()
    }

    #[unjank::traced(name = "everything")]
    fn iter(&self) -> impl Iterator<Item = &T> {
        self.items.iter()
    }
}

#[unjank::traced]
impl<T> Drop for Cart<'_, T> {
    fn drop(&mut self) {
        self.items.clear();
    }
}

#[test]
fn methods_are_named_after_their_type_and_constructors_have_kind_init() {
    let running = Running::start();
    {
        let mut cart = Cart::new("mine");
        assert!(cart.first().is_err());
        *cart.add(1) += 1;
        assert_eq!(cart.first(), Ok(&mut 2));
        assert_eq!((cart.len(), cart.iter().count()), (1, 1));
    }
    let spans = spans(&running);
    let names: Vec<_> = spans
        .iter()
        .map(|span| span["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "it::traced::Cart",
            "it::traced::Cart::first",
            "it::traced::Cart::add",
            "it::traced::Cart::first",
            "everything",
            "it::traced::Cart::drop",
        ]
    );
    let kinds: Vec<_> = spans.iter().map(|span| &span["kind"]).collect();
    assert_eq!(
        kinds,
        ["init", "method", "method", "method", "method", "method"]
    );
    let statuses: Vec<_> = spans.iter().map(|span| &span["status"]).collect();
    assert_eq!(
        statuses,
        ["unset", "error", "unset", "unset", "unset", "unset"]
    );
    assert_eq!(spans[2]["code"]["class"], "it::traced::Cart");
    assert_eq!(spans[2]["code"]["function"], "add(&mut self, T)");
    // Each method has its own line, although the attribute is on the block.
    assert_eq!(spans[2]["code"]["line"], Cart::<()>::ADD);
}

#[unjank::traced(err)]
fn parse(text: &str) -> Result<Box<dyn std::fmt::Display>, Box<dyn std::error::Error>> {
    if text.is_empty() {
        return Err("empty".into());
    }
    let number: u64 = text.parse()?;
    Ok(Box::new(number))
}

#[expect(unsafe_code, reason = "unsafe functions are traced too")]
#[unjank::traced]
/// # Safety
/// There are no requirements.
unsafe fn daring(mut number: u8) -> u8 {
    number += 1;
    number
}

#[unjank::traced(err)]
fn lines(text: &str) -> Result<impl Iterator<Item = &str> + use<'_>, ()> {
    if text.is_empty() {
        Err(())
    } else {
        Ok(text.lines())
    }
}

#[test]
#[expect(unsafe_code, reason = "unsafe functions are traced too")]
fn errors_set_the_status_if_requested_however_a_function_returns() {
    let running = Running::start();
    assert_eq!(parse("7").unwrap().to_string(), "7");
    assert!(parse("").is_err() && parse("x").is_err());
    // SAFETY: the function has no requirements.
    assert_eq!(unsafe { daring(1) }, 2);
    assert!(lines("").is_err());
    assert_eq!(lines("a\nb").unwrap().count(), 2);
    let spans = spans(&running);
    let statuses: Vec<_> = spans.iter().map(|span| &span["status"]).collect();
    assert_eq!(
        statuses,
        ["unset", "error", "error", "unset", "error", "unset"]
    );
}

#[unjank::traced(err, tags("network", "startup"))]
async fn fetch<'p>(
    path: &'p str,
    fail: bool,
) -> Result<Box<dyn Fn() -> &'p str + Send + 'p>, String> {
    pause().await;
    unjank::span("inside").end();
    if fail {
        Err("no")?;
    }
    Ok(Box::new(move || path))
}

#[unjank::traced]
fn boxed(number: u8) -> std::pin::Pin<Box<dyn Future<Output = u8> + Send>> {
    let more = number + 1;
    Box::pin(async move {
        pause().await;
        more
    })
}

#[unjank::traced]
async fn nothing() {}

#[test]
fn futures_enter_their_span_while_they_are_polled() {
    fn sendable<F: Future + Send>(future: F) -> F {
        future
    }
    let running = Running::start();
    let outer = unjank::span("outer");
    assert_eq!(block_on(sendable(fetch("/a", false))).unwrap()(), "/a");
    assert!(block_on(fetch("/b", true)).is_err());
    assert_eq!(block_on(boxed(1)), 2);
    block_on(nothing());
    drop(outer);
    let spans = spans(&running);
    let names: Vec<_> = spans
        .iter()
        .map(|span| span["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "inside",
            "it::traced::fetch",
            "inside",
            "it::traced::fetch",
            "it::traced::boxed",
            "it::traced::nothing",
            "outer",
        ]
    );
    assert_eq!(spans[0]["parent_span_id"], spans[1]["span_id"]);
    assert_eq!(spans[1]["parent_span_id"], spans[6]["span_id"]);
    assert_eq!(
        (&spans[1]["status"], &spans[3]["status"]),
        (&"unset".into(), &"error".into())
    );
}

#[test]
fn a_future_that_is_dropped_ends_its_span_and_one_never_polled_has_none() {
    let running = Running::start();
    drop(fetch("/never", false));
    {
        let waker = Waker::from(Arc::new(Idle));
        let mut future = Box::pin(fetch("/cancelled", false));
        let mut context = Context::from_waker(&waker);
        assert!(future.as_mut().poll(&mut context).is_pending());
        // The future's span is not the parent of spans between its polls.
        unjank::span("between").end();
    }
    let spans = spans(&running);
    assert_eq!(spans.len(), 2);
    assert_eq!(named(&spans, "between")["parent_span_id"], Value::Null);
    assert_eq!(named(&spans, "it::traced::fetch")["status"], "cancelled");
}

#[test]
fn a_future_first_polled_before_the_start_has_no_span_and_its_children_are_roots() {
    let waker = Waker::from(Arc::new(Idle));
    let mut context = Context::from_waker(&waker);
    let mut running = Running::start();
    drop(running.guard.take());
    let mut future = Box::pin(fetch("/early", false));
    assert!(future.as_mut().poll(&mut context).is_pending());
    running.restart(|config| config.mode(unjank::Mode::Test));
    assert!(future.as_mut().poll(&mut context).is_ready());
    let spans = spans(&running);
    assert_eq!(spans.len(), 1);
    assert_eq!(named(&spans, "inside")["parent_span_id"], Value::Null);
}

struct Engine;

impl Engine {
    #[unjank::traced(name = "engine", tag = "other")]
    fn cold() -> Self {
        Self
    }

    #[unjank::traced(name = "engine", tag = "checkout")]
    fn warm() -> Self {
        Self
    }
}

#[test]
fn names_and_tags_select_what_is_traced_at_run_time() {
    let running = Running::with(|config| config);
    running.collector.configure(serde_json::json!({
        "sampling": {"session_rate": 1.0, "spans": {"default": 1.0}},
        "tracing": {"enabled": true, "tags": ["checkout"], "deny": [".*::add"]},
    }));
    let polls = running.collector.polls();
    let mut running = running;
    running.restart(|config| config);
    running.polled(polls + 1);
    let mut cart = Cart::new("mine");
    cart.add(1);
    assert!(cart.first().is_ok());
    twice(&1, [0, 0]);
    // The same name, but different tags.
    let (Engine, Engine) = (Engine::cold(), Engine::warm());
    let spans = spans(&running);
    let names: Vec<_> = spans
        .iter()
        .map(|span| span["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["it::traced::Cart", "it::traced::Cart::first", "engine"]
    );
}
