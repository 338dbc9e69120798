//! The main loop: times its messages, and captures its stack from another thread while a message takes too long.

use std::cell::Cell;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use unjank_monitors::{
    CaptureRequest, FinishedStall, LoopClock, Samples, StallWatch, Uptime, bounded,
};
use unjank_protocol::{Frame, Jank, JankSample, Signal};
use unjank_stack_sampler::{Sampler, StackSource};

use crate::client::{self, Shared};
use crate::clock::Times;
use crate::event::Event;
use crate::losses::Reason;

/// How often the watchdog checks whether the SDK is running and switched on, while it is not.
const IDLE: Duration = Duration::from_millis(500);

/// Times the messages of the app's main loop. Call [`MainLoop::begin`] before the loop handles a message and [`MainLoop::end`]
/// after it. The remote configuration (`jank`) sets how long a message may take before it counts as a stall. Each value runs one
/// more thread, the watchdog, which sleeps while nothing is collected.
///
/// ```
/// let main_loop = unjank::MainLoop::of_this_thread();
/// for _message in 0..3 {
///     main_loop.begin();
///     // … handle the message …
///     main_loop.end();
/// }
/// main_loop.beat(); // for loops that only know when a round begins
/// main_loop.beat(); // the first round took from there to here
/// ```
#[derive(Debug)]
pub struct MainLoop {
    clock: Arc<LoopClock>,
    /// Whether the clock knows of an open message. One that began or ended while nothing was collected does not count.
    open: Cell<bool>,
}

impl MainLoop {
    /// Creates the main loop of this thread, which counts as the main thread from now on. On Linux and Android on x86-64 and
    /// aarch64, a signal captures the thread's stack. Elsewhere, stalls have no stacks; use [`MainLoop::with_stacks`] there.
    #[must_use]
    pub fn of_this_thread() -> Self {
        match Sampler::for_this_thread() {
            Ok(sampler) => Self::start(Some(Box::new(sampler))),
            Err(_) => Self::start(None),
        }
    }

    /// The same, with stacks from the host, such as `Thread.getStackTrace()` of Java or `thread_get_state` of Apple's systems.
    /// See [`StackSource`] for an example.
    ///
    /// ```
    /// # struct Java;
    /// # impl unjank::StackSource for Java {
    /// #     fn capture(&self, _: usize) -> Result<Vec<unjank::protocol::Frame<'static>>, unjank::CaptureError> {
    /// #         Err(unjank::CaptureError::ThreadEnded)
    /// #     }
    /// # }
    /// let main_loop = unjank::MainLoop::with_stacks(Java);
    /// main_loop.begin();
    /// ```
    #[must_use]
    pub fn with_stacks(source: impl StackSource + 'static) -> Self {
        Self::start(Some(Box::new(source)))
    }

    fn start(source: Option<Box<dyn StackSource>>) -> Self {
        crate::mark_main_thread();
        let clock = Arc::new(LoopClock::default());
        let watchdog = Watchdog {
            clock: Arc::downgrade(&clock),
            thread: bounded(thread::current().name().unwrap_or("main")).to_owned(),
            source,
            stacks: Vec::new(),
        };
        let spawned = thread::Builder::new()
            .name("unjank-watchdog".to_owned())
            .spawn(move || watchdog.run());
        // If the thread does not start, stalls go unnoticed and everything else works.
        let _unwatched = spawned.is_err();
        Self {
            clock,
            open: Cell::new(false),
        }
    }

    /// Marks the beginning of a message, and the end of one that is still open. While nothing is collected, no message begins.
    #[inline]
    pub fn begin(&self) {
        if client::is_on() {
            self.clock.begin(Uptime::now());
            self.open.set(true);
        } else if self.open.get() {
            self.close();
        }
    }

    /// Marks the end of a message. Does nothing if none is open.
    #[inline]
    pub fn end(&self) {
        if self.open.get() {
            self.close();
        }
    }

    fn close(&self) {
        self.open.set(false);
        self.clock.end(Uptime::now());
    }

    /// For loops that only know when a round begins: the time since the last call counts as one message.
    #[inline]
    pub fn beat(&self) {
        self.end();
        self.begin();
    }
}

/// The thread that watches the main one.
struct Watchdog {
    clock: Weak<LoopClock>,
    thread: String,
    source: Option<Box<dyn StackSource>>,
    /// Stacks of stalls that are not over: when the stall began, the offset into it in milliseconds, and the frames.
    stacks: Vec<(Uptime, u32, Vec<Frame<'static>>)>,
}

/// The watch over the loop, and the client and edition of its settings that it was configured from.
struct Watching {
    client: u32,
    edition: u32,
    watch: StallWatch,
}

/// Returns the watch after updating it. The settings, the surroundings or the whole client may have changed.
fn current_watch<'w>(watching: &'w mut Option<Watching>, shared: &Shared) -> &'w mut StallWatch {
    let edition = shared.edition();
    let settings = shared.settings.load();
    let config = &settings.document.jank;
    watching.take_if(|watching| watching.client != shared.id);
    let watching = watching.get_or_insert_with(|| Watching {
        client: shared.id,
        edition,
        watch: StallWatch::new(config, Samples::default(), shared.scene()),
    });
    if watching.edition != edition {
        watching.watch.set_config(config);
        watching.edition = edition;
    }
    watching.watch.set_scene(shared.scene());
    &mut watching.watch
}

/// Depth of the stack that warms up the sampler and is discarded.
const WARM_UP_DEPTH: usize = 64;
/// Maximum number of stacks kept at once. A stall takes its own along when it is over.
const MOST_STACKS: usize = 64;

impl Watchdog {
    fn run(mut self) {
        let mut watching = None;
        while let Some(clock) = self.clock.upgrade() {
            let Some(shared) = client::current() else {
                watching = None;
                drop(clock);
                thread::sleep(IDLE);
                continue;
            };
            if watching.is_none() {
                // The first stack takes longest, because it reads the symbols: do that while the main thread is not stalled.
                drop(self.stack(WARM_UP_DEPTH));
            }
            let watch = current_watch(&mut watching, &shared);
            clock.set_long(watch.shortest_us());
            let pause = self.look(&shared, &clock, watch);
            drop((clock, shared));
            thread::sleep(pause);
        }
    }

    /// Checks the loop once. Returns how long to wait until the next check.
    fn look(&mut self, shared: &Shared, clock: &LoopClock, watch: &mut StallWatch) -> Duration {
        let watched = watch.watch(clock, Uptime::now());
        if let Some(request) = watched.capture {
            self.capture(request, clock);
        }
        for stall in watched.finished {
            let began = stall.began;
            self.report(shared, stall);
            // Stacks of earlier messages belong to no stall.
            self.stacks.retain(|(of, ..)| *of > began);
        }
        let lost = clock.take_lost();
        if lost > 0 {
            shared.losses.add(Signal::Janks, Reason::QueueFull, lost);
        }
        let pause = watch.look_again_in_us(clock.running(), Uptime::now());
        Duration::from_micros(pause.clamp(1_000, 500_000))
    }

    fn capture(&mut self, request: CaptureRequest, clock: &LoopClock) {
        // A stack that is captured after the stall would blame other code. The capture itself is immediate. Reading the stack
        // takes time, and the stall may end before that is done.
        if !clock.is_running(request.began) || self.stacks.len() >= MOST_STACKS {
            return;
        }
        let depth = usize::try_from(request.max_frames).unwrap_or(usize::MAX);
        if let Some(stack) = self.stack(depth) {
            self.stacks.push((request.began, request.offset_ms, stack));
        }
    }

    fn stack(&self, depth: usize) -> Option<Vec<Frame<'static>>> {
        let source = self.source.as_ref()?;
        // If the host's source panics, there is no stack.
        let taken =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| source.capture(depth)));
        taken.ok()?.ok()
    }

    fn report(&mut self, shared: &Shared, stall: FinishedStall) {
        let mut stacks = self
            .stacks
            .extract_if(.., |(began, ..)| *began == stall.began);
        let first = stacks.next();
        let samples = stacks.map(|(_, offset_ms, stack)| JankSample { offset_ms, stack });
        let samples = samples.collect();
        shared.record(Signal::Janks, |sample_rate| {
            Event::Jank(Jank {
                thread: self.thread.clone().into(),
                stack: first.map(|(_, _, stack)| stack).unwrap_or_default(),
                samples,
                run_log: shared.meters.log().lines(),
                sample_rate,
                ..stall.jank
            })
        });
    }
}
