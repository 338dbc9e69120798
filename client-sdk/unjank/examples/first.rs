//! The first minutes with the SDK: a span and a stall, sent to a server on this machine.

use std::time::Duration;

use unjank::{Config, MainLoop, Mode};

fn main() {
    let server = std::env::args().nth(1); // without it, the server of `make run`
    let guard = unjank::init(
        Config::new(server.as_deref().unwrap_or("http://127.0.0.1:8080"), "demo")
            .app("com.example.shop", "4.12.0")
            .mode(Mode::Development),
    );
    let main_loop = MainLoop::of_this_thread();
    // The watchdog of the main loop starts.
    std::thread::sleep(Duration::from_millis(50));
    main_loop.begin(); // your event loop handles a message
    {
        let _span = unjank::span("checkout");
        std::thread::sleep(Duration::from_millis(400)); // too long for a user
    }
    main_loop.end();
    drop(guard); // sends what is left
}
