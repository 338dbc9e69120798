//! A shop in a terminal: a main loop, pages, requests to its own server, and three real stalls.
//!
//! Run `make run`, and then `cargo run -p unjank --example shop`. The example prints as JSON what it did, to compare with what
//! arrived at the server. With `--report FILE` it is a test run without a server, to compare with one of another build: see
//! `shop_slow.rs`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::exit,
    clippy::expect_used,
    reason = "an example that prints its results"
)]

mod backend;
mod prices;
mod rehearsal;
mod stalls;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use unjank::{AppStartKind, Config, Device, LaunchKind, MainLoop, Mode, Network, Transferred};

use crate::backend::Backend;

/// `--server URL --key KEY --data-dir FOLDER`, with defaults that match `make run`. `--report FILE` makes it a test run.
struct Arguments {
    report: Option<PathBuf>,
    server: String,
    key: String,
    data_dir: PathBuf,
}

fn arguments() -> Arguments {
    let mut found = Arguments {
        report: None,
        server: "http://127.0.0.1:8080".to_owned(),
        key: "demo".to_owned(),
        data_dir: PathBuf::from("data/shop"),
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next();
        match (word.as_str(), value) {
            ("--server", Some(value)) => found.server = value,
            ("--key", Some(value)) => found.key = value,
            ("--report", Some(value)) => found.report = Some(PathBuf::from(value)),
            ("--data-dir", Some(value)) => found.data_dir = PathBuf::from(value),
            _ => {
                eprintln!("shop [--server URL] [--key KEY] [--data-dir FOLDER] [--report FILE]");
                std::process::exit(2);
            }
        }
    }
    found
}

fn main() {
    let Arguments {
        report,
        server,
        key,
        data_dir,
    } = arguments();
    if let Some(report) = report {
        let written = rehearsal::run(&report, &data_dir, prices::total);
        assert!(written, "cannot write {}", report.display());
        return;
    }
    let config = Config::new(server, key)
        .app("com.example.shop", "4.12.0")
        .build(41_200)
        .device(Device {
            refresh_hz: 60,
            class: "high".to_owned(),
            locale: "de-DE".to_owned(),
            ..Device::default()
        })
        .mode(Mode::Test)
        .start_jitter(Duration::ZERO)
        .data_dir(&data_dir);
    let guard = unjank::init(config);
    if let Some(problem) = guard.problem() {
        eprintln!("nothing is collected: {problem}");
    }
    unjank::set_network(Network::Wifi);
    let start = unjank::app_start(AppStartKind::Cold);
    let backend = start.phase("backend", Backend::start);
    let main_loop = MainLoop::of_this_thread();
    // Give the watchdog time to start: a real app does not stall in its first millisecond.
    std::thread::sleep(Duration::from_millis(100));
    start.finish();
    // The configuration lists the requests of each page. A real app has it from its last run.
    unjank::flush(Duration::from_secs(5));

    let page = open_main_page(&backend);
    let frames = scroll_feed(&main_loop);
    let stalls = stall(&main_loop);
    let sent = unjank::flush(Duration::from_secs(15));
    println!(
        "{}",
        json!({"page": page, "frames": frames, "stalls": stalls, "traffic": backend.bytes(), "sent": sent})
    );
    drop(guard);
}

/// Makes two requests with a first draw before them and a final draw after. Returns the parts as timed by this program.
fn open_main_page(backend: &Backend) -> Value {
    let _span = unjank::span("open_main_page");
    let begun = Instant::now();
    let millis = |from: Instant, to: Instant| to.saturating_duration_since(from).as_millis();
    let page = unjank::page_load("MainActivity", LaunchKind::Cold);
    std::thread::sleep(Duration::from_millis(40));
    page.first_draw();
    let shown = Instant::now();
    let asked = Instant::now();
    for path in ["/home/head", "/poi/filter"] {
        let request = unjank::request(path);
        let answer = backend.get(path);
        request.end(200);
        unjank::traffic(Transferred {
            host: "api.example.com",
            mime_type: "application/json",
            tx_bytes: answer.sent,
            rx_bytes: answer.received,
            answered: true,
        });
    }
    let answered = Instant::now();
    std::thread::sleep(Duration::from_millis(30));
    page.final_draw();
    let drawn = Instant::now();
    json!({
        "t1_ms": millis(begun, shown), "t2_ms": millis(asked, answered),
        "t3_ms": millis(answered, drawn), "total_ms": millis(begun, drawn),
    })
}

/// Draws 120 frames at 60 Hz, two of which take 100 ms: each leaves the previous frame on screen for six refreshes instead of
/// one.
fn scroll_feed(main_loop: &MainLoop) -> Value {
    unjank::set_page("FeedActivity");
    let budget = Duration::from_nanos(16_666_667);
    let mut vsync = Instant::now();
    for number in 0..120 {
        let work = if number % 60 == 30 {
            Duration::from_millis(100)
        } else {
            Duration::from_millis(8)
        };
        main_loop.begin();
        wait_until(vsync);
        wait_until(vsync + work);
        // The display shows what is ready at its refresh; these are the exact times this program aimed for.
        unjank::frame(vsync, vsync + work);
        main_loop.end();
        while vsync < Instant::now() {
            vsync += budget;
        }
    }
    json!({"drawn": 120, "dropped": 2 * 5})
}

fn wait_until(time: Instant) {
    std::thread::sleep(time.saturating_duration_since(Instant::now()));
}

/// Handles three messages that take more than two seconds each.
fn stall(main_loop: &MainLoop) -> Value {
    unjank::set_page("CartActivity");
    let culprits: [(&str, fn()); 3] = [
        ("parse_catalog", stalls::parse_catalog),
        ("save_order", stalls::save_order),
        ("wait_for_cache", stalls::wait_for_cache),
    ];
    let mut stalls = Vec::new();
    for (culprit, message) in culprits {
        unjank::breadcrumb(culprit);
        let begun = Instant::now();
        main_loop.begin();
        message();
        main_loop.end();
        stalls.push(json!({"culprit": culprit, "duration_ms": begun.elapsed().as_millis()}));
        std::thread::sleep(Duration::from_millis(300));
    }
    Value::Array(stalls)
}
