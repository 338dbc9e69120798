//! Measures calls, and runs the SDK without a network. Shared with `client-sdk/comparison`.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use unjank::protocol::Batch;
use unjank::{Config, Mode, Request, Response, Transport, TransportError};
use unjank_columns::{Bounds, MEDIA_TYPE};

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

/// Spans that arrived at the [`Server`].
pub(crate) static SENT: AtomicU64 = AtomicU64::new(0);
/// CPU time in nanoseconds that the [`Server`] took from the SDK's threads.
pub(crate) static SERVED: AtomicU64 = AtomicU64::new(0);

/// Returns the CPU time of this thread or of the whole process, in nanoseconds.
pub(crate) fn cpu_nanos(of: rustix::time::ClockId) -> u64 {
    let time = rustix::time::clock_gettime(of);
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

impl Transport for Server {
    fn send(&self, request: Request<'_>) -> Result<Response, TransportError> {
        let begun = cpu_nanos(rustix::time::ClockId::ThreadCPUTime);
        let body = if request.method == "GET" {
            self.document.to_owned()
        } else {
            let content = zstd::stream::decode_all(request.body).unwrap_or_default();
            let is_columnar = request.headers.contains(&("content-type", MEDIA_TYPE));
            let batch: Batch<'_> = if is_columnar {
                let read = unjank_columns::read(&content, &Bounds::default());
                read.map(|read| read.batch).unwrap_or_default()
            } else {
                serde_json::from_slice(&content).unwrap_or_default()
            };
            SENT.fetch_add(batch.spans.len() as u64, Ordering::Relaxed);
            format!(r#"{{"batch_id":"{}","accepted":1}}"#, batch.batch_id)
        };
        let served = cpu_nanos(rustix::time::ClockId::ThreadCPUTime) - begun;
        SERVED.fetch_add(served, Ordering::Relaxed);
        Ok(Response {
            status: if request.method == "GET" { 200 } else { 202 },
            etag: Some("\"1\"".to_owned()),
            accept_post: Some(MEDIA_TYPE.to_owned()),
            body: body.into_bytes(),
            ..Response::default()
        })
    }
}

const GROUP: u32 = 64;
const GROUPS: usize = 4_000;

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

/// Returns the argument that selects rows by a part of their name, if there is one.
pub(crate) fn selected() -> Option<String> {
    std::env::args().skip(1).find(|one| !one.starts_with("--"))
}

pub(crate) fn row(name: &str, wanted: &str, call: impl FnMut()) {
    if selected().is_some_and(|part| !name.contains(&part)) {
        return;
    }
    let (median, worst, allocations) = measure(call);
    println!("| {name} | {median:.1} | {worst:.1} | {allocations:.2} | {wanted} |");
}

pub(crate) fn start(document: &'static str) -> unjank::Guard {
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
