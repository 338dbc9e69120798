//! The cost of each call on the calling thread: median and 99th percentile of the time, and allocations.
//!
//! Run with `cargo bench -p unjank --bench calls`. Calls are timed in groups of 64, because reading the clock costs as much as a
//! call. The cost of an empty group is subtracted.
//!
//! Spans come in bursts of 4,096 here, more than apps record at once. After each burst the background thread frees them and glibc
//! returns the memory to the system, so the next burst faults it in page by page. To see the cost of the calls alone, set
//! `MALLOC_TRIM_THRESHOLD_=1000000000` in the environment.
#![expect(clippy::print_stdout, reason = "printing the results is its purpose")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use unjank::{Config, Mode, Request, Response, Transport, TransportError};

/// Counts allocations of the measuring thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

#[expect(
    unsafe_code,
    reason = "an allocator is unsafe; this one only counts and forwards calls"
)]
// SAFETY: every call is forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let counted = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        counted.unwrap_or_default();
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// A server that accepts everything and has a configuration.
struct Server {
    document: &'static str,
}

impl Transport for Server {
    fn send(&self, request: Request<'_>) -> Result<Response, TransportError> {
        let body = if request.method == "GET" {
            self.document.to_owned()
        } else {
            let json = zstd::stream::decode_all(request.body);
            let batch: serde_json::Value =
                serde_json::from_slice(&json.unwrap_or_default()).unwrap_or_default();
            format!(r#"{{"batch_id":{},"accepted":1}}"#, batch["batch_id"])
        };
        Ok(Response {
            status: if request.method == "GET" { 200 } else { 202 },
            etag: Some("\"1\"".to_owned()),
            body: body.into_bytes(),
            ..Response::default()
        })
    }
}

const GROUP: u32 = 64;
const GROUPS: usize = 4_000;

/// Returns the CPU time of the process while the SDK has nothing to do, in microseconds per second.
fn idle() -> f64 {
    let used = || {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
        time.tv_sec as f64 * 1e6 + time.tv_nsec as f64 / 1e3
    };
    let (before, seconds) = (used(), 10);
    std::thread::sleep(Duration::from_secs(seconds));
    (used() - before) / seconds as f64
}

/// Returns the median and the 99th percentile in nanoseconds, and the allocations, per call.
fn measure(mut call: impl FnMut()) -> (f64, f64, f64) {
    // Warm up: the allocator and the queue touch their memory for the first time, which happens once in the life of an app.
    groups(&mut call);
    let before = ALLOCATIONS.with(Cell::get);
    let mut groups = groups(&mut call);
    let allocations = ALLOCATIONS.with(Cell::get) - before;
    groups.sort_unstable();
    let at = |part: usize| {
        let group = groups.get(GROUPS * part / 100).copied().unwrap_or_default();
        group.as_secs_f64() * 1e9 / f64::from(GROUP)
    };
    let calls = f64::from(GROUP) * GROUPS as f64;
    (at(50), at(99), allocations as f64 / calls)
}

fn groups(call: &mut impl FnMut()) -> Vec<Duration> {
    let mut groups = Vec::with_capacity(GROUPS);
    while groups.len() < GROUPS {
        let begun = Instant::now();
        for _ in 0..GROUP {
            call();
        }
        groups.push(begun.elapsed());
        // Let the background thread catch up, or else the cost of a full queue is measured.
        if groups.len() % 64 == 0 {
            std::thread::sleep(Duration::from_millis(30));
        }
    }
    groups
}

fn row(name: &str, wanted: &str, call: impl FnMut()) {
    let (median, worst, allocations) = measure(call);
    println!("| {name} | {median:.1} | {worst:.1} | {allocations:.2} | {wanted} |");
}

fn start(document: &'static str) -> unjank::Guard {
    let config = Config::new("http://127.0.0.1:1", "key")
        .app("com.example.bench", "1.0.0")
        .mode(Mode::Production)
        .queue_events(1 << 16)
        .start_jitter(Duration::ZERO)
        .transport(Server { document });
    let guard = unjank::init(config);
    while unjank::toggle("ready").is_none() {
        std::thread::sleep(Duration::from_millis(1));
    }
    guard
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
    let guard = start(
        r#"{"sampling": {"spans": {"default": 1.0}, "metrics": 1.0, "frame_windows": 1.0}, "toggles": {"ready": true}}"#,
    );
    row("span, recorded", "≤ 150, one allocation", || {
        drop(black_box(unjank::span("checkout")));
    });
    traced_rows("recorded", "≤ 150, one allocation");
    let outer = unjank::span("outer");
    row(
        "span, recorded, inside another",
        "≤ 150, one allocation",
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
    let guard = start(r#"{"monitors": {}, "toggles": {"ready": true}}"#);
    let alone = idle();
    let watched = unjank::MainLoop::of_this_thread();
    println!(
        "\nIdle: {alone:.0} µs of CPU per second, {:.0} with a watched main loop.",
        idle()
    );
    drop((watched, guard));
}
