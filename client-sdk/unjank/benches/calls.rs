//! The cost of each call on the calling thread: median and 99th percentile of the time, and allocations.
//!
//! Run with `cargo bench -p unjank --bench calls`, or `… -- "span, recorded"` for the rows with this text in their names. Calls are
//! timed in groups of 64, because reading the clock costs as much as a call. `make bench-spans` compares spans with those of other
//! libraries.
//!
//! Spans come in bursts of 4,096 here, more than apps record at once. After each burst the background thread frees what
//! they allocated and glibc returns the memory to the system, so the next burst faults it in page by page. To see the cost of the calls alone, set
//! `MALLOC_TRIM_THRESHOLD_=1000000000` in the environment.
#![expect(clippy::print_stdout, reason = "printing the results is its purpose")]

#[path = "calls/harness.rs"]
mod harness;

use std::hint::black_box;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use rustix::time::ClockId;

use self::harness::{SENT, SERVED, cpu_nanos, row, selected, start};

/// Returns the CPU time of the process while the SDK has nothing to do, in microseconds per second.
fn idle() -> f64 {
    let used = || cpu_nanos(ClockId::ProcessCPUTime) as f64 / 1e3;
    let (before, seconds) = (used(), 10);
    std::thread::sleep(Duration::from_secs(seconds));
    (used() - before) / seconds as f64
}

/// Returns the CPU time per sent span that the SDK's threads use, from the ring to the compressed batch, in microseconds.
fn background() -> f64 {
    let guard = start(
        r#"{"sampling": {"spans": {"default": 1.0}}, "budget": {"spans": 1000000}, "monitors": {}, "toggles": {"ready": true}}"#,
    );
    let elsewhere = || {
        let served = SERVED.load(Ordering::Relaxed);
        cpu_nanos(ClockId::ThreadCPUTime) + served
    };
    let (process, other) = (cpu_nanos(ClockId::ProcessCPUTime), elsewhere());
    let sent = SENT.load(Ordering::Relaxed);
    for _ in 0..100 {
        for _ in 0..1_000 {
            unjank::span("checkout").end();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(
        unjank::flush(Duration::from_secs(60)),
        "not everything was sent"
    );
    let used = cpu_nanos(ClockId::ProcessCPUTime) - process - (elsewhere() - other);
    let sent = SENT.load(Ordering::Relaxed) - sent;
    drop(guard);
    used as f64 / 1e3 / sent as f64
}

#[unjank::traced]
#[inline(never)]
fn traced(number: u64) -> u64 {
    number.wrapping_mul(3)
}

#[inline(never)]
fn untraced(number: u64) -> u64 {
    number.wrapping_mul(3)
}

#[unjank::traced]
async fn traced_future(number: u64) -> u64 {
    number.wrapping_mul(3)
}

fn poll_once(future: impl Future<Output = u64>) {
    let mut context = Context::from_waker(Waker::noop());
    let polled = pin!(future).poll(&mut context);
    assert!(black_box(polled).is_ready());
}

/// Measures the same calls in one state of the SDK.
fn traced_rows(state: &str, wanted: &str) {
    row(&format!("traced function, {state}"), wanted, || {
        black_box(traced(black_box(1)));
    });
    row(&format!("traced future, {state}"), wanted, || {
        poll_once(traced_future(black_box(1)));
    });
    tracing_rows(state);
}

#[cfg(feature = "tracing")]
fn tracing_rows(state: &str) {
    use tracing_subscriber::layer::SubscriberExt;

    let subscriber = tracing_subscriber::registry().with(unjank::tracing_layer());
    tracing::subscriber::with_default(subscriber, || {
        row(&format!("span of `tracing`, {state}"), "", || {
            tracing::info_span!("request").in_scope(|| black_box(()));
        });
    });
}

#[cfg(not(feature = "tracing"))]
fn tracing_rows(_: &str) {}

fn recorded_rows() {
    let guard = start(
        r#"{"sampling": {"spans": {"default": 1.0}, "metrics": 1.0, "frame_windows": 1.0}, "toggles": {"ready": true}}"#,
    );
    row("span, recorded", "≤ 60, no allocation", || {
        drop(black_box(unjank::span("checkout")));
    });
    row(
        "span with two attributes, recorded",
        "≤ 120, no allocation",
        || {
            let mut span = unjank::span("checkout");
            span.attribute("items", black_box(3));
            span.attribute("currency", black_box("EUR"));
            drop(black_box(span));
        },
    );
    traced_rows("recorded", "≤ 60, no allocation");
    let outer = unjank::span("outer");
    row(
        "span, recorded, inside another",
        "≤ 60, no allocation",
        || {
            drop(black_box(unjank::span("checkout")));
        },
    );
    drop(outer);
    row("metric, recorded", "", || {
        unjank::metric("battery_percent", black_box(1.0));
    });
    let main_loop = unjank::MainLoop::of_this_thread();
    row("main loop, begin and end of a message", "≤ 60", || {
        main_loop.begin();
        black_box(&main_loop);
        main_loop.end();
    });
    // Frame times of a 60 Hz display, computed beforehand: reading the clock is not part of the call.
    let mut vsync = Instant::now();
    row("frame, in time", "≤ 30", || {
        vsync += Duration::from_nanos(16_666_667);
        unjank::frame(vsync, vsync + Duration::from_millis(8));
    });
    row("traffic of a request", "", || {
        unjank::traffic(black_box(unjank::Transferred {
            host: "api.example.com",
            mime_type: "application/json",
            tx_bytes: 412,
            rx_bytes: 20_480,
            answered: true,
        }));
    });
    drop(guard);
}

fn main() {
    println!("| call | p50 ns | p99 ns | allocations | wanted |\n|---|---|---|---|---|");
    row("nothing (the harness)", "", || {
        black_box(());
    });
    let now = Instant::now();
    row("the clock", "", || {
        black_box(Instant::now());
    });
    row("span, off", "≤ 5", || {
        drop(black_box(unjank::span("checkout")));
    });
    row("frame, off", "≤ 5", || {
        unjank::frame(black_box(now), now);
    });
    row("metric, off", "≤ 5", || {
        unjank::metric("battery_percent", black_box(1.0));
    });
    row("function that is not traced", "", || {
        black_box(untraced(black_box(1)));
    });
    traced_rows("off", "≤ 5");
    let guard = start(
        r#"{"sampling": {"spans": {"default": 0.0}, "metrics": 0.0}, "toggles": {"ready": true}}"#,
    );
    row("span, sampled out", "≤ 30", || {
        drop(black_box(unjank::span("checkout")));
    });
    row("metric, sampled out", "≤ 30", || {
        unjank::metric("battery_percent", black_box(1.0));
    });
    traced_rows("sampled out", "≤ 30");
    drop(guard);
    recorded_rows();
    if selected().is_some_and(|part| !"background".contains(&part)) {
        return;
    }
    println!(
        "\nCPU of the SDK's threads per sent span: {:.2} µs (wanted: ≤ 1).",
        background()
    );
    if selected().is_some() {
        return;
    }
    let guard = start(r#"{"monitors": {}, "toggles": {"ready": true}}"#);
    let alone = idle();
    let watched = unjank::MainLoop::of_this_thread();
    println!(
        "\nIdle: {alone:.0} µs of CPU per second, {:.0} with a watched main loop.",
        idle()
    );
    drop((watched, guard));
}
