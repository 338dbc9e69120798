//! Tests the clock under every interleaving of a main thread and a watchdog that the memory model allows.

use loom::sync::Arc;
use loom::thread;

use super::LoopClock;
use crate::{FinishedMessage, Uptime};

fn message(number: u64) -> FinishedMessage {
    FinishedMessage {
        began: Uptime::from_micros(number * 1_000),
        ended: Uptime::from_micros(number * 1_000 + 600),
    }
}

fn run(clock: &LoopClock, messages: u64) {
    for number in 1..=messages {
        clock.begin(message(number).began);
        clock.end(message(number).ended);
    }
}

#[test]
fn every_end_before_the_running_message_is_seen_once_intact_and_in_order() {
    loom::model(|| {
        let clock = Arc::new(LoopClock::default());
        clock.set_long(500);
        let main = thread::spawn({
            let clock = clock.clone();
            move || run(&clock, 2)
        });
        let mut seen = Vec::new();
        for _ in 0..2 {
            let running = clock.running();
            seen.extend(std::iter::from_fn(|| clock.take_finished()));
            if let Some(began) = running {
                let before = began.as_micros() / 1_000 - 1;
                assert!(seen.len() as u64 >= before, "{seen:?} before {began:?}");
            }
        }
        main.join().unwrap();
        seen.extend(std::iter::from_fn(|| clock.take_finished()));
        assert_eq!(seen, [message(1), message(2)]);
        assert_eq!((clock.running(), clock.take_lost()), (None, 0));
    });
}

#[test]
fn a_full_ring_loses_whole_messages_and_counts_them() {
    loom::model(|| {
        let clock = Arc::new(LoopClock::default());
        clock.set_long(500);
        let main = thread::spawn({
            let clock = clock.clone();
            move || run(&clock, 3)
        });
        let mut seen: Vec<_> = clock.take_finished().into_iter().collect();
        main.join().unwrap();
        seen.extend(std::iter::from_fn(|| clock.take_finished()));
        assert_eq!(seen.len() as u64 + clock.take_lost(), 3);
        let sent = [message(1), message(2), message(3)];
        assert_eq!(seen, sent[..seen.len()]);
    });
}
