//! A test run of the shop, to compare builds: opens the cart repeatedly and writes all measurements to a report file. Needs no
//! server.

use std::path::Path;
use std::time::Duration;

use unjank::{AppStartKind, Config, Device, LaunchKind, Mode, ReportFile};

/// Number of times the cart is opened.
const TIMES: u32 = 25;
/// Number of articles in the cart.
const ARTICLES: u64 = 400;

/// Opens the cart with this build's way to compute the total. Returns whether the report was written.
pub(crate) fn run(report: &Path, data_dir: &Path, total: fn(&[u64]) -> u64) -> bool {
    let Ok(file) = ReportFile::create(report) else {
        return false;
    };
    // The measurements stay on this machine.
    let config = Config::new("", "")
        .app("com.example.shop", "4.12.0")
        .device(Device {
            refresh_hz: 60,
            ..Device::default()
        })
        .mode(Mode::Test)
        .offline(true)
        .data_dir(data_dir)
        .reporter(file);
    let guard = unjank::init(config);
    unjank::app_start(AppStartKind::Cold).finish();
    let prices: Vec<u64> = (1..=ARTICLES).collect();
    for _ in 0..TIMES {
        let page = unjank::page_load("CartActivity", LaunchKind::Warm);
        page.first_draw();
        let drawing = unjank::span("draw_cart");
        std::thread::sleep(Duration::from_millis(5));
        drawing.end();
        let reckoning = unjank::span("total_price");
        let sum = std::hint::black_box(total(std::hint::black_box(&prices)));
        reckoning.end();
        assert_eq!(
            sum,
            ARTICLES * (ARTICLES + 1) / 2,
            "the prices should add up"
        );
        page.final_draw();
    }
    let written = guard.problem().is_none() && unjank::flush(Duration::from_secs(30));
    drop(guard);
    written
}
