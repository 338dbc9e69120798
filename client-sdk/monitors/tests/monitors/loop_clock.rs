//! The clock between two real threads. A loom test in the crate tries every interleaving of a few steps.

use std::sync::Arc;
use std::thread;

use unjank_monitors::{LoopClock, Uptime};

const MESSAGES: u64 = 200_000;

/// Runs one message. Every third is long, and its duration identifies it.
fn run(clock: &LoopClock, number: u64) {
    let long = number.is_multiple_of(3);
    let took = if long { 500 + number % 7 } else { 10 };
    let began = Uptime::from_micros(number * 1_000);
    clock.begin(began);
    clock.end(began.plus(took));
}

#[test]
fn long_messages_are_seen_once_intact_and_in_order_or_counted_as_lost() {
    let clock = Arc::new(LoopClock::default());
    clock.set_long(500);
    let main = thread::spawn({
        let clock = clock.clone();
        move || (1..=MESSAGES).for_each(|number| run(&clock, number))
    });
    let (mut seen, mut last) = (0, 0);
    loop {
        let over = main.is_finished();
        let running = clock.running();
        while let Some(message) = clock.take_finished() {
            let number = message.began.as_micros() / 1_000;
            assert!(number > last && number.is_multiple_of(3));
            assert_eq!(message.ended.micros_since(message.began), 500 + number % 7);
            last = number;
            seen += 1;
        }
        if over {
            assert_eq!(running, None);
            break;
        }
    }
    main.join().unwrap();
    assert_eq!(seen + clock.take_lost(), MESSAGES / 3);
}

#[test]
fn a_nested_loop_counts_by_its_own_messages() {
    let clock = LoopClock::default();
    clock.begin(Uptime::from_millis(0));
    clock.begin(Uptime::from_millis(1_000));
    clock.end(Uptime::from_millis(1_400));
    clock.end(Uptime::from_millis(9_000));
    let message = clock.take_finished().unwrap();
    assert_eq!(message.began, Uptime::from_millis(1_000));
    assert_eq!(
        clock.take_finished(),
        None,
        "the outer message should be dropped"
    );
}
