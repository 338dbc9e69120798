{
    // spans
    let span = unjank::span("checkout");
    drop(span); // or at the end of its scope
    // janks
    let main_loop = unjank::MainLoop::of_this_thread();
    main_loop.begin(); // before your event loop handles a message
    main_loop.end(); // after it
    // frame_windows
    let vsync = std::time::Instant::now();
    // Draw the frame, then:
    unjank::frame(vsync, std::time::Instant::now());
    // page_loads
    let page = unjank::page_load("Cart", unjank::LaunchKind::Cold);
    page.first_draw();
    page.final_draw();
    // page_requests
    let page = unjank::page_load("Cart", unjank::LaunchKind::Warm);
    // The remote config lists this path for the page:
    unjank::request("/cart").end(200);
    page.final_draw();
    // traffic
    unjank::traffic(unjank::Transferred {
        host: "api.example.com",
        mime_type: "application/json",
        tx_bytes: 412,
        rx_bytes: 20_480,
        answered: true,
    });
    // metrics
    unjank::metric("cart_items", 3.0);
    // app_starts
    // Right after unjank::init:
    let start = unjank::app_start(unjank::AppStartKind::Cold);
    // When the first screen is drawn:
    start.finish();
    // start_phases
    let start = unjank::app_start(unjank::AppStartKind::Warm);
    start.phase("database", || std::fs::exists("shop.db")).ok();
    start.finish();
    // recompositions
    unjank::redrawn("CartList", "CartState.items");
    // end
}
