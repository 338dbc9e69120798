//! Spans of tasks that share a thread, on a real runtime.

use serde_json::Value;
use tokio::sync::oneshot;
use tokio::task::{LocalSet, yield_now};

use crate::collector::Running;

fn run(future: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    LocalSet::new().block_on(&runtime, future);
}

fn named<'s>(spans: &'s [Value], name: &str) -> &'s Value {
    let found = spans.iter().find(|span| span["name"] == name);
    found.unwrap_or_else(|| panic!("no span {name} in {spans:#?}"))
}

fn parent<'s>(spans: &'s [Value], name: &str) -> &'s Value {
    let id = &named(spans, name)["parent_span_id"];
    let found = spans.iter().find(|span| span["span_id"] == *id);
    found.map_or(&Value::Null, |span| &span["name"])
}

#[test]
fn a_span_held_over_an_await_does_not_adopt_spans_of_other_tasks() {
    let running = Running::start();
    run(async {
        let (started, wait) = oneshot::channel();
        let (ended, go_on) = oneshot::channel();
        let first = tokio::task::spawn_local(async move {
            let _held = unjank::span("held");
            started.send(()).unwrap();
            go_on.await.unwrap();
            unjank::span("own child").end();
        });
        let second = tokio::task::spawn_local(async move {
            wait.await.unwrap();
            let outer = unjank::span("stranger");
            unjank::span("child of the stranger").end();
            yield_now().await;
            outer.end();
            ended.send(()).unwrap();
        });
        first.await.unwrap();
        second.await.unwrap();
    });
    running.flush();
    let spans = running.collector.events("spans");
    assert_eq!(spans.len(), 4);
    assert_eq!(parent(&spans, "stranger"), &Value::Null);
    assert_ne!(
        named(&spans, "stranger")["trace_id"],
        named(&spans, "held")["trace_id"]
    );
    assert_eq!(parent(&spans, "child of the stranger"), "stranger");
    assert_eq!(parent(&spans, "own child"), "held");
}

#[unjank::traced(name = "request")]
async fn request(child: &'static str) {
    yield_now().await;
    unjank::span(child).end();
}

#[test]
fn traced_futures_of_one_task_do_not_mix() {
    let running = Running::start();
    run(async {
        tokio::join!(request("a"), request("b"));
        let mut upload = unjank::span("upload").detach();
        let context = upload.context();
        tokio::task::spawn_local(async move {
            unjank::span_in(&context, "chunk").end();
        })
        .await
        .unwrap();
        upload.attribute("chunks", 1);
        upload.end_ok();
    });
    running.flush();
    let spans = running.collector.events("spans");
    let (a, b) = (named(&spans, "a"), named(&spans, "b"));
    assert_ne!(a["parent_span_id"], b["parent_span_id"]);
    assert_eq!(
        (parent(&spans, "a"), parent(&spans, "b")),
        (&"request".into(), &"request".into())
    );
    assert_eq!(parent(&spans, "chunk"), "upload");
}

#[test]
fn an_aborted_task_is_cancelled_and_one_that_panics_failed() {
    #[unjank::traced(name = "aborted")]
    async fn forever() {
        std::future::pending::<()>().await;
    }
    #[unjank::traced(name = "panicked")]
    async fn fails() {
        yield_now().await;
        std::panic::resume_unwind(Box::new("failed"));
    }
    let running = Running::start();
    run(async {
        let task = tokio::task::spawn_local(forever());
        yield_now().await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        assert!(
            tokio::task::spawn_local(fails())
                .await
                .unwrap_err()
                .is_panic()
        );
    });
    running.flush();
    let spans = running.collector.events("spans");
    assert_eq!(named(&spans, "aborted")["status"], "cancelled");
    assert_eq!(named(&spans, "panicked")["status"], "error");
}

#[test]
fn spans_of_a_spawned_task_are_children_of_the_span_that_spawned_it() {
    #[unjank::traced(name = "part")]
    async fn part(number: u32) {
        yield_now().await;
        unjank::span(format!("detail {number}")).end();
    }
    let running = Running::start();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    runtime.block_on(async {
        let outer = unjank::span("outer");
        let first = unjank::spawn(async {
            part(1).await;
            // A task of a task.
            unjank::spawn(part(2)).await.unwrap();
        });
        let mut set = tokio::task::JoinSet::new();
        set.spawn(unjank::inherit(async { unjank::span("in a set").end() }));
        drop(outer); // ends before its tasks do
        unjank::span("after").end();
        first.await.unwrap();
        set.join_all().await;
        unjank::spawn(async { unjank::span("without a parent").end() })
            .await
            .unwrap();
    });
    running.flush();
    let spans = running.collector.events("spans");
    let parts: Vec<_> = spans.iter().filter(|span| span["name"] == "part").collect();
    assert_eq!(parts.len(), 2);
    for part in &parts {
        assert_eq!(part["parent_span_id"], named(&spans, "outer")["span_id"]);
    }
    assert_eq!(parent(&spans, "detail 1"), "part");
    assert_eq!(parent(&spans, "detail 2"), "part");
    assert_eq!(parent(&spans, "in a set"), "outer");
    assert_eq!(parent(&spans, "after"), &Value::Null);
    assert_eq!(parent(&spans, "without a parent"), &Value::Null);
}
