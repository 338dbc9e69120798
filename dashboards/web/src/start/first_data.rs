{
    let guard = unjank::init(
        unjank::Config::new(SERVER, KEY)
            .app("com.example.shop", "4.12.0")
            .mode(unjank::Mode::Development), // keeps every event, and prints what happens
    );
    {
        let _span = unjank::span("checkout");
        std::thread::sleep(std::time::Duration::from_millis(40));
    }
    drop(guard); // sends what is left
}
