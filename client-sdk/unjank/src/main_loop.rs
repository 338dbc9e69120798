//! The main loop: its messages are timed, and while one takes too long another thread looks at its stack.

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
use crate::event::Event;
use crate::frames::Times;
use crate::losses::Reason;

/// How often the watchdog looks for an SDK that is not there or switched off.
const IDLE: Duration = Duration::from_millis(500);

/// The main loop of the app. Say when it begins and ends to work on a message; what lies between is its own time. How long a message
/// may take says the remote configuration (`jank`). While it lives there is one more thread, the watchdog, which sleeps as long as
/// nothing is collected.
///
/// ```
/// let main_loop = unjank::MainLoop::of_this_thread();
/// for _message in 0..3 {
///     main_loop.begin();
///     // … handle the message …
///     main_loop.end();
/// }
/// main_loop.beat(); // where only the beginning of a round is known
/// main_loop.beat(); // the round before took from there to here
/// ```
#[derive(Debug)]
pub struct MainLoop {
    clock: Arc<LoopClock>,
    /// Whether the clock knows of a message that has begun: one that began or ended while nothing was collected is none.
    open: Cell<bool>,
}

impl MainLoop {
    /// The loop of this thread, which counts as the main one from now on. Its stack is taken by a signal where that is possible
    /// (Linux and Android on x86-64 and aarch64); elsewhere stalls come without stacks: see [`MainLoop::with_stacks`].
    #[must_use]
    pub fn of_this_thread() -> Self {
        match Sampler::for_this_thread() {
            Ok(sampler) => Self::start(Some(Box::new(sampler))),
            Err(_) => Self::start(None),
        }
    }

    /// The same, with stacks from the host: `Thread.getStackTrace()` of Java, `thread_get_state` of Apple's systems. See
    /// [`StackSource`] for one.
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
        // Without it stalls are not seen, and nothing else is different.
        let _unwatched = spawned.is_err();
        Self {
            clock,
            open: Cell::new(false),
        }
    }

    /// Work on a message begins; one that is open ends. Nothing while nothing is collected.
    #[inline]
    pub fn begin(&self) {
        if client::is_on() {
            self.clock.begin(Uptime::now());
            self.open.set(true);
        } else if self.open.get() {
            self.close();
        }
    }

    /// Work on a message is over: nothing, when none began.
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

    /// For loops that only know that they go round: the time since the last call was one message.
    #[inline]
    pub fn beat(&self) {
        self.end();
        self.begin();
    }
}

/// The thread that looks at the main one.
struct Watchdog {
    clock: Weak<LoopClock>,
    thread: String,
    source: Option<Box<dyn StackSource>>,
    /// Stacks of stalls that are not over: when the stall began, when in it, what was seen.
    stacks: Vec<(Uptime, u32, Vec<Frame<'static>>)>,
}

/// The watch over the loop, and which client and which edition of its settings it was told.
struct Watching {
    client: u32,
    edition: u32,
    watch: StallWatch,
}

/// The watch as it is to be now: settings and surroundings may have changed, or the whole client.
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

/// Frames of the stack that nobody looks at.
const WARM_UP_DEPTH: usize = 64;
/// Stacks kept at once: those of one stall are given away when it is over.
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
                // The first stack takes longest, since symbols are read for it: not while the main thread is in need.
                drop(self.stack(WARM_UP_DEPTH));
            }
            let watch = current_watch(&mut watching, &shared);
            clock.set_long(watch.shortest_us());
            let pause = self.look(&shared, &clock, watch);
            drop((clock, shared));
            thread::sleep(pause);
        }
    }

    /// Looks once. Answers when to look again.
    fn look(&mut self, shared: &Shared, clock: &LoopClock, watch: &mut StallWatch) -> Duration {
        let watched = watch.watch(clock, Uptime::now());
        if let Some(request) = watched.capture {
            self.capture(request, clock);
        }
        for stall in watched.finished {
            let began = stall.began;
            self.report(shared, stall);
            // Those of messages before it are of stalls that were none after all.
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
        // A stack that is taken after the stall blames whoever came next. It is taken at once; what takes time is to read it,
        // and the stall may end meanwhile.
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
        // A source of the host that panics has no stack for us.
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
