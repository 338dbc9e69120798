//! Functions and rules of the app: filters, reporters, urgent events, decisions about spans.

use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use unjank::protocol::SpanKind;
use unjank::{Config, Event, MainLoop, Mode, Reporter, Transferred, Urgent};

use crate::collector::{Running, receipt};

fn names(running: &Running) -> Vec<String> {
    running.flush();
    let spans = running.collector.events("spans");
    let name = |span: &Value| span["name"].as_str().unwrap().to_owned();
    spans.iter().map(name).collect()
}

#[test]
fn filters_run_in_order_until_one_drops_the_event() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let later = Arc::clone(&seen);
    let running = Running::with(|config| {
        let config = config.mode(Mode::Test).before_send(|event| {
            if let Event::Span(span) = event {
                span.name = format!("{}!", span.name.as_str()).into();
                return span.name.as_str() != "secret!";
            }
            true
        });
        config.before_send(move |event| {
            if let Event::Span(span) = event {
                later.lock().unwrap().push(span.name.as_str().to_owned());
                span.name = format!("{}?", span.name.as_str()).into();
            }
            true
        })
    });
    unjank::span("secret").end();
    unjank::span("open").end();
    assert_eq!(names(&running), ["open!?"]);
    assert_eq!(*seen.lock().unwrap(), ["open!"]);
}

#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<Event>>>);

impl Reporter for Seen {
    fn report(&self, event: &Event) {
        self.0.lock().unwrap().push(event.clone());
    }
}

impl Seen {
    fn sent_bytes(&self) -> Vec<u64> {
        let seen = self.0.lock().unwrap();
        let bytes = seen.iter().filter_map(|event| match event {
            Event::Traffic(traffic) => Some(traffic.tx_bytes),
            _ => None,
        });
        bytes.collect()
    }

    fn spans(&self) -> usize {
        let seen = self.0.lock().unwrap();
        let spans = seen.iter().filter(|event| matches!(event, Event::Span(_)));
        spans.count()
    }
}

fn send(tx_bytes: u64) {
    unjank::traffic(Transferred {
        host: "api.example.com",
        tx_bytes,
        answered: true,
        ..Transferred::default()
    });
}

#[test]
fn reporters_see_each_sum_of_traffic_once() {
    for offline in [false, true] {
        let seen = Seen::default();
        let running = Running::with(|config| {
            let config = config.mode(Mode::Test).offline(offline);
            config.reporter(seen.clone())
        });
        send(3);
        send(4);
        running.flush();
        running.flush();
        send(5);
        drop(running);
        assert_eq!(seen.sent_bytes(), [7, 5], "offline: {offline}");
    }
}

#[test]
fn traffic_that_an_earlier_process_reported_is_not_reported_again() {
    let (folder, seen) = (tempfile::tempdir().unwrap(), Seen::default());
    let test = |config: Config| {
        let config = config.mode(Mode::Test).data_dir(folder.path());
        config.reporter(seen.clone())
    };
    let mut running = Running::with(test);
    running
        .collector
        .answer(|_| Err(unjank::TransportError("in a tunnel".to_owned())));
    send(7);
    running.flush();
    running.restart(test);
    running.collector.answer(|batch| Ok(receipt(batch)));
    running.flush();
    assert_eq!(seen.sent_bytes(), [7]);
    assert_eq!(running.collector.events("traffic").len(), 1);
}

fn told(urgent: &Receiver<Urgent>) -> Urgent {
    urgent.recv_timeout(Duration::from_secs(10)).unwrap()
}

fn stalls_from_200_ms(config: Config) -> Config {
    let strategy = json!([{"threshold_ms": 200, "count": 1, "period_ms": 0}]);
    config
        .mode(Mode::Test)
        .local_settings(json!({"jank": {"strategies": strategy}, "monitors": {}}))
        .local_wins(true)
}

#[test]
fn a_stall_is_told_while_it_lasts_and_while_the_network_is_stuck() {
    let (found, urgent) = sync_channel(64);
    let running = Running::with(|config| {
        stalls_from_200_ms(config).on_urgent(move |urgent| found.send(urgent.clone()).unwrap())
    });
    let (asked, is_asked) = sync_channel(64);
    let (free, is_free) = sync_channel::<()>(1);
    running.collector.answer(move |batch| {
        asked.send(()).unwrap();
        // Until the other end is gone.
        let _gone = is_free.recv().is_err();
        Ok(receipt(batch))
    });
    let main_loop = MainLoop::of_this_thread();
    unjank::span("cause of a batch").end();
    let flushing = std::thread::spawn(|| unjank::flush(Duration::from_secs(10)));
    is_asked.recv_timeout(Duration::from_secs(10)).unwrap();
    main_loop.begin();
    let Urgent::StallBegan(began) = told(&urgent) else {
        panic!("no stall began")
    };
    main_loop.end();
    let Urgent::StallEnded(ended) = told(&urgent) else {
        panic!("no stall ended")
    };
    drop(free);
    assert!(flushing.join().unwrap());
    assert!(began.duration_ms >= 200 && ended.duration_ms >= began.duration_ms);
    assert_eq!(began.start, ended.start);
}

#[test]
fn a_panic_is_told_before_the_guard_is_gone_and_listeners_may_panic() {
    let (found, urgent) = sync_channel(64);
    let running = Running::with(|config| {
        let config = config
            .mode(Mode::Test)
            .on_urgent(|_| panic!("a bug in a listener"));
        config.on_urgent(move |urgent| found.send(urgent.clone()).unwrap())
    });
    let thread = std::thread::Builder::new().name("loader".to_owned());
    let failed = thread.spawn(|| panic!("no cart")).unwrap().join();
    assert!(failed.is_err());
    drop(running);
    let Ok(Urgent::Panic {
        thread,
        message,
        place,
    }) = urgent.try_recv()
    else {
        panic!("no panic was told")
    };
    assert_eq!((thread.as_str(), message.as_str()), ("loader", "no cart"));
    assert!(place.contains("hooks.rs:"), "{place}");
    assert!(
        urgent.try_recv().is_err(),
        "the panic of the listener should not be told"
    );
}

#[test]
fn a_slow_listener_loses_messages_and_nothing_waits_for_it() {
    let (found, urgent) = sync_channel(64);
    let (free, is_free) = sync_channel::<()>(1);
    let is_free = Mutex::new(is_free);
    let running = Running::with(|config| {
        config.mode(Mode::Test).on_urgent(move |urgent| {
            found.send(urgent.clone()).unwrap();
            let _gone = is_free.lock().unwrap().recv().is_err();
        })
    });
    let fail = || std::thread::spawn(|| panic!("again")).join().is_err();
    assert!(fail());
    told(&urgent);
    // The listener is busy with the first one, and 16 wait.
    assert!((0..20).all(|_| fail()));
    drop(free);
    drop(running);
    let rest: Vec<Urgent> = urgent.try_iter().collect();
    let missed = rest.iter().filter_map(|urgent| match urgent {
        Urgent::Missed(count) => Some(*count),
        _ => None,
    });
    assert_eq!(missed.sum::<u64>(), 4);
    assert_eq!(rest.len(), 16 + 1);
}

#[test]
fn the_app_decides_about_each_span() {
    let running = Running::with(|config| {
        config.mode(Mode::Test).should_trace(|span| {
            unjank::span("inside").end();
            assert!(span.name != "panic", "a bug in the app");
            span.name != "unwanted" || span.line == 0
        })
    });
    let above = unjank::span("above");
    let unwanted = unjank::span("unwanted");
    assert!(!unwanted.is_recorded());
    unjank::span("below").end();
    drop(unwanted);
    unjank::span("panic").end();
    drop(above);
    assert_eq!(names(&running), ["below", "above"]);
    let spans = running.collector.events("spans");
    assert_eq!(spans[0]["parent_span_id"], spans[1]["span_id"]);
}

#[test]
fn the_app_cannot_add_spans_that_the_settings_leave_out() {
    let running = Running::with(|config| {
        let off = json!({"tracing": {"deny": ["denied"]}});
        config
            .mode(Mode::Test)
            .local_settings(off)
            .local_wins(true)
            .should_trace(|_| true)
    });
    unjank::span("denied").end();
    unjank::span("other").end();
    assert_eq!(names(&running), ["other"]);
}

mod network {
    #[unjank::traced]
    pub(super) fn fetch() {}
}

#[test]
fn patterns_give_tags_by_name_module_and_file() {
    let running = Running::with(|config| {
        let patterns = "check* = wanted\n*::network* = other, wanted\n*/traced_items.rs = wanted\n";
        let tagged = json!({"tracing": {"tags": ["wanted"]}});
        config
            .mode(Mode::Test)
            .local_settings(tagged)
            .local_wins(true)
            .span_tags(patterns.parse().unwrap())
            .should_trace(|span| !span.has_tag("other") || span.kind == SpanKind::Method)
    });
    unjank::span("checkout").end();
    unjank::span(format!("check {}", 1)).end();
    unjank::span("search").end();
    network::fetch();
    let names = names(&running);
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(&names[..2], ["checkout", "check 1"]);
    assert!(names[2].ends_with("network::fetch"), "{names:?}");
}

#[unjank::traced]
fn quick() {}

#[unjank::traced]
fn of_quick() {
    quick();
}

#[unjank::traced]
fn of_operation() {
    of_quick();
    unjank::span("operation").end();
}

#[unjank::traced]
fn of_detached() -> unjank::DetachedSpan {
    unjank::span("detached").detach()
}

#[unjank::traced]
fn of_outliving() -> unjank::Span {
    unjank::span("outliving")
}

#[unjank::traced]
fn of_thread() -> unjank::SpanContext {
    unjank::span("context").context()
}

#[unjank::traced]
async fn of_task() {
    quick();
}

#[unjank::traced]
async fn task_of_operation() {
    unjank::span("operation").end();
    tokio::task::yield_now().await;
}

#[unjank::traced]
async fn task_of_task() {
    of_task().await;
}

#[unjank::traced(err)]
fn failing() -> Result<(), String> {
    Err("no cart".to_owned())
}

#[unjank::traced]
fn slow() {
    std::thread::sleep(Duration::from_millis(5));
}

fn last(name: &str) -> &str {
    name.rsplit("::").next().unwrap_or(name)
}

#[test]
fn short_methods_are_dropped_and_counted_and_no_span_loses_its_parent() {
    // Every method is shorter than this.
    let hour = Duration::from_secs(3_600);
    let running = Running::with(|config| config.mode(Mode::Test).min_method_duration(hour));
    of_quick();
    of_operation();
    of_detached().end_ok();
    drop(of_outliving());
    let context = of_thread();
    std::thread::spawn(move || unjank::span_in(&context, "other thread").end())
        .join()
        .unwrap();
    tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap()
        .block_on(async {
            of_task().await;
            task_of_operation().await;
            task_of_task().await;
        });
    assert!(failing().is_err());
    running.flush();
    let spans = running.collector.events("spans");
    let mut names: Vec<_> = spans
        .iter()
        .map(|span| last(span["name"].as_str().unwrap()))
        .collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "context",
            "detached",
            "failing",
            "of_detached",
            "of_operation",
            "of_outliving",
            "of_thread",
            "operation",
            "operation",
            "other thread",
            "outliving",
            "task_of_operation",
            "task_of_task"
        ]
    );
    let ids: Vec<_> = spans.iter().map(|span| &span["span_id"]).collect();
    let parents = spans.iter().map(|span| &span["parent_span_id"]);
    assert!(
        parents
            .filter(|id| !id.is_null())
            .all(|id| ids.contains(&id)),
        "{spans:?}"
    );
    running.flush();
    let batches = running.collector.batches();
    let lists = batches
        .iter()
        .filter_map(|batch| batch["sdk_health"]["dropped"].as_array());
    let short = lists.flatten().filter(|one| one["reason"] == "too_short");
    // `quick` four times, `of_quick` twice, `of_task` twice.
    let counts = short.filter_map(|one| one["count"].as_u64());
    assert_eq!(counts.sum::<u64>(), 8);
}

#[test]
fn longer_methods_are_kept() {
    let least = Duration::from_millis(1);
    let running = Running::with(|config| config.mode(Mode::Test).min_method_duration(least));
    slow();
    assert_eq!(names(&running).len(), 1);
}

#[test]
fn development_can_print_only() {
    let (folder, seen) = (tempfile::tempdir().unwrap(), Seen::default());
    let data = folder.path().join("data");
    let running = Running::with(|config| {
        config
            .mode(Mode::Development)
            .data_dir(&data)
            .print_only(true)
            .before_send(|_| false)
            .reporter(seen.clone())
    });
    unjank::span("checkout").end();
    send(3);
    running.flush();
    assert_eq!((seen.spans(), seen.sent_bytes()), (1, vec![3]));
    assert_eq!(
        running.collector.polls() + running.collector.batches().len(),
        0
    );
    assert!(!data.exists());
}

#[test]
fn other_modes_ignore_print_only() {
    let running = Running::with(|config| config.mode(Mode::Test).print_only(true));
    unjank::span("checkout").end();
    assert_eq!(names(&running), ["checkout"]);
}
