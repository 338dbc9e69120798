//! Reporters learn of a stall while it goes on, and when it is over.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use unjank::protocol::{Frame, Jank};
use unjank::{CaptureError, Event, MainLoop, Mode, Reporter, StackSource};

use crate::collector::Running;

struct Fixed;

impl StackSource for Fixed {
    fn capture(&self, _depth: usize) -> Result<Vec<Frame<'static>>, CaptureError> {
        Ok(vec![Frame {
            function: "waits_for_the_disk".into(),
            ..Frame::default()
        }])
    }
}

#[derive(Debug, PartialEq)]
enum Heard {
    Began(String, i64),
    Ended(String, i64),
}

struct Listener(Mutex<SyncSender<Heard>>);

impl Listener {
    fn hears(&self, heard: Heard) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sender.send(heard).unwrap();
    }
}

impl Reporter for Listener {
    fn stall_began(&self, stall: &Jank<'_>) {
        assert_eq!(&*stall.stack[0].function, "waits_for_the_disk");
        assert_eq!(&*stall.page, "Cart");
        assert!(stall.duration_ms >= 100);
        self.hears(Heard::Began(
            stall.thread.to_string(),
            stall.start.as_micros(),
        ));
    }

    fn report(&self, event: &Event) {
        if let Event::Jank(stall) = event {
            self.hears(Heard::Ended(
                stall.thread.to_string(),
                stall.start.as_micros(),
            ));
        }
    }
}

#[test]
fn a_listener_hears_of_a_stall_before_it_is_over_and_once() {
    let (sender, heard) = sync_channel(16);
    let running = Running::with(|config| {
        config
            .mode(Mode::Development)
            .reporter(Listener(Mutex::new(sender)))
    });
    unjank::set_page("Cart");
    let main_loop = MainLoop::with_stacks(Fixed);
    let longest = Duration::from_secs(30);
    for _ in 0..2 {
        main_loop.begin();
        // The main loop is blocked until the listener knows it: without the call, the test fails here.
        let Heard::Began(thread, start) = heard.recv_timeout(longest).unwrap() else {
            panic!("the end came first");
        };
        std::thread::sleep(Duration::from_millis(1_200)); // the duration of the stall is noted again
        main_loop.end();
        running.flush();
        assert_eq!(heard.recv_timeout(longest), Ok(Heard::Ended(thread, start)));
        assert!(heard.try_recv().is_err());
    }
}

/// A source that has no stack.
struct Never;

impl StackSource for Never {
    fn capture(&self, _depth: usize) -> Result<Vec<Frame<'static>>, CaptureError> {
        Err(CaptureError::ThreadEnded)
    }
}

/// Passes on why stalls have no stack, while they go on and when they are over.
struct Reasons(Mutex<SyncSender<String>>);

impl Reasons {
    fn hears(&self, stall: &Jank<'_>) {
        let sender = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sender.send(stall.stack_missing.to_string()).unwrap();
    }
}

impl Reporter for Reasons {
    fn stall_began(&self, stall: &Jank<'_>) {
        self.hears(stall);
    }

    fn report(&self, event: &Event) {
        if let Event::Jank(stall) = event {
            self.hears(stall);
        }
    }
}

#[test]
fn a_stall_that_goes_on_says_why_it_has_no_stack() {
    let (sender, heard) = sync_channel(16);
    let running = Running::with(|config| {
        config
            .mode(Mode::Development)
            .reporter(Reasons(Mutex::new(sender)))
    });
    let watch = unjank::live::watch();
    let main_loop = MainLoop::with_stacks(Never);
    main_loop.begin();
    // The main loop is blocked until the listener knows it.
    let reason = heard.recv_timeout(Duration::from_secs(30)).unwrap();
    assert_eq!(reason, CaptureError::ThreadEnded.to_string());
    let shown = watch.read().stall.unwrap();
    assert!(shown.under_way);
    assert_eq!(shown.stack_missing, reason);
    main_loop.end();
    running.flush();
    assert_eq!(heard.recv_timeout(Duration::from_secs(30)), Ok(reason));
}
