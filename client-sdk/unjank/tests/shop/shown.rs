//! Runs the code that the web interface shows to a person who sets up an app. The server receives the promised data.
#![expect(
    non_snake_case,
    reason = "the page replaces these names by the reader's URL and key"
)]

use serde_json::json;

use crate::server::Server;

const APP: &str = "com.example.shop";

fn first_data(SERVER: &str, KEY: &str) {
    include!("../../../../dashboards/web/src/start/first_data.rs")
}

fn calls() {
    include!("../../../../dashboards/web/src/nodata/calls.rs")
}

#[test]
fn the_code_that_the_pages_show_sends_each_signal() {
    let server = Server::start("");
    server.configure(&json!({
        "base": {"pages": [{"page": "Cart", "api": ["/cart"]}], "toggles": {"configured": true}}
    }));
    first_data(&server.url(), "demo");
    let config = unjank::Config::new(server.url(), "demo").app(APP, "4.12.0");
    let guard = unjank::init(config.mode(unjank::Mode::Development));
    server.wait("fetching the configuration", || {
        unjank::toggle("configured").is_some()
    });
    calls();
    // The page shows one frame. A frame window begins with the second.
    for _ in 0..10 {
        let vsync = std::time::Instant::now();
        std::thread::sleep(std::time::Duration::from_millis(10));
        unjank::frame(vsync, std::time::Instant::now());
    }
    assert_eq!(guard.problem(), None);
    assert!(unjank::flush(std::time::Duration::from_secs(20)));
    drop(guard);
    server.wait("draining the log", || server.is_drained());
    // The first program and the calls each send one.
    let spans = server.sql("SELECT count() FROM spans WHERE name = 'checkout'");
    assert_eq!(spans, "2");
    for (rows, expected) in [
        ("frame_windows", "1"),
        ("page_loads", "2"),
        (
            "page_loads ARRAY JOIN requests.path AS path WHERE path = '/cart'",
            "1",
        ),
        ("metrics WHERE name = 'cart_items'", "1"),
        ("app_starts", "2"),
        (
            "app_starts ARRAY JOIN phases.name AS phase WHERE phase = 'database'",
            "1",
        ),
        ("recompositions", "1"),
        ("traffic WHERE rx_bytes = 20480", "1"),
    ] {
        let count = server.sql(&format!("SELECT count() FROM {rows}"));
        assert_eq!(count, expected, "{rows}");
    }
}
