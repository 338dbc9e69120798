//! The main loop: times its messages, and captures its stack from another thread while a message takes too long.

mod looks;

pub(crate) use self::looks::{logged_now, look_now};

use std::cell::Cell;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use unjank_monitors::{
    CaptureRequest, FinishedStall, LoopClock, Samples, StallWatch, Uptime, bounded,
};
use unjank_protocol::{Frame, Jank, JankSample, LogLine, Signal};
use unjank_stack_sampler::{Sampler, StackSource};

use self::looks::Looks;
use super::app_state::{message_begins, message_ends};
use super::client::{self, Shared};
use super::span_record::Queued;
use super::suspensions;
use super::urgent::Urgent;
use crate::clock::Times;
use crate::deliver::losses::Reason;
use crate::event::Event;

/// How often the watchdog checks whether the SDK is running and switched on, while it is not.
const IDLE: Duration = Duration::from_millis(500);

/// Times the messages of the app's main loop. Call [`MainLoop::begin`] before the loop handles a message and [`MainLoop::end`]
/// after it. The remote configuration (`jank`) sets how long a message may take before it counts as a stall. Each `MainLoop` starts
/// one extra thread, the watchdog, which sleeps while nothing is collected.
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
    /// Ends the watchdog with this value.
    _alive: Arc<()>,
}

impl Drop for MainLoop {
    fn drop(&mut self) {
        self.end();
    }
}

impl MainLoop {
    /// Creates the main loop of this thread, which counts as the main thread from now on. On Linux and Android on x86-64 and
    /// aarch64, the thread's stack is captured: without disturbing the thread while it waits in a system call (Linux on x86-64), by
    /// a signal otherwise. Elsewhere, stalls have no stacks; use [`MainLoop::with_stacks`] there. A stall without a stack says why
    /// (`stack_missing`).
    #[must_use]
    pub fn of_this_thread() -> Self {
        match Sampler::for_this_thread() {
            Ok(sampler) => Self::start(Ok(Box::new(sampler))),
            Err(error) => Self::start(Err(error.to_string())),
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
        Self::start(Ok(Box::new(source)))
    }

    fn start(source: Source) -> Self {
        crate::mark_main_thread();
        let clock = Arc::new(LoopClock::default());
        let alive = Arc::new(());
        let watchdog = Watchdog {
            clock: Arc::clone(&clock),
            alive: Arc::downgrade(&alive),
            thread: bounded(thread::current().name().unwrap_or("main")).to_owned(),
            source,
            captures: Vec::new(),
            noted: None,
        };
        let spawned = thread::Builder::new()
            .name("unjank-watchdog".to_owned())
            .spawn(move || watchdog.run());
        // If the thread does not start, stalls go unnoticed and everything else works.
        let _unwatched = spawned.is_err();
        Self {
            clock,
            open: Cell::new(false),
            _alive: alive,
        }
    }

    /// Marks the beginning of a message, and the end of one that is still open. While nothing is collected, no message begins.
    #[inline]
    pub fn begin(&self) {
        if client::is_on() {
            self.clock.begin(Uptime::now());
            self.open.set(true);
            message_begins();
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
        let now = Uptime::now();
        self.clock.end(now);
        message_ends(now);
    }

    /// For loops that only know when a round begins: the time since the last call counts as one message.
    #[inline]
    pub fn beat(&self) {
        self.end();
        self.begin();
    }
}

/// Where stacks come from, or why there are none.
type Source = Result<Box<dyn StackSource>, String>;

/// The thread that watches the main one.
struct Watchdog {
    clock: Arc<LoopClock>,
    alive: Weak<()>,
    thread: String,
    source: Source,
    /// The captures of stalls that are not over.
    captures: Vec<Capture>,
    noted: Option<Noted>,
}

/// A stack that was captured, or why it was not.
#[derive(Clone)]
struct Capture {
    /// When the stall began.
    began: Uptime,
    offset_ms: u32,
    stack: Result<Vec<Frame<'static>>, String>,
}

/// A stall that is noted in case the process is killed before it is over.
struct Noted {
    began: Uptime,
    at: Uptime,
    /// The sample rate, if sampling keeps the stall.
    sample_rate: Option<f64>,
    /// The log until the stall began.
    log: Vec<LogLine<'static>>,
}

/// How often the duration of a noted stall is updated.
const NOTE_EVERY_US: u64 = 1_000_000;

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
/// Maximum number of captures kept at once; the oldest is dropped. A stall takes its own along when it is over.
const MOST_CAPTURES: usize = 64;

impl Watchdog {
    fn run(mut self) {
        let mut watching = None;
        let looks = Looks::begin(Arc::clone(&self.clock));
        loop {
            // Looks once more after the app's main loop has ended.
            let is_last = self.alive.strong_count() == 0;
            let pause = looks.look(|| self.look(&mut watching));
            if is_last {
                return;
            }
            suspensions::park(pause);
        }
    }

    /// Looks at the loop if the SDK runs and is switched on. Returns how long to wait until the next look.
    fn look(&mut self, watching: &mut Option<Watching>) -> Duration {
        let Some(shared) = client::current().filter(|shared| self.is_wanted(shared)) else {
            // What was seen before consent was withdrawn is gone.
            (*watching, self.noted) = (None, None);
            self.captures.clear();
            return IDLE;
        };
        if watching.is_none() {
            // The first stack takes longest, because it reads the symbols: do that while the main thread is not stalled.
            let _discarded = self.stack(WARM_UP_DEPTH).is_ok();
        }
        let watch = current_watch(watching, &shared);
        let clock = Arc::clone(&self.clock);
        clock.set_long(watch.shortest_us());
        self.check(&shared, &clock, watch)
    }

    /// Returns whether stalls are switched on. A stall that was noted before they were switched off is forgotten.
    fn is_wanted(&mut self, shared: &Shared) -> bool {
        let is_off = shared.settings.load().off.has(Signal::Janks);
        if is_off && self.noted.take().is_some() {
            shared.note_stall(None);
        }
        !is_off
    }

    /// Checks the loop once. Returns how long to wait until the next check.
    fn check(&mut self, shared: &Shared, clock: &LoopClock, watch: &mut StallWatch) -> Duration {
        watch.set_suspensions(suspensions::since(watch.last_end()));
        let watched = watch.watch(clock, Uptime::now());
        if let Some(request) = watched.capture {
            self.capture(request, clock);
        }
        for stall in watched.finished {
            let began = stall.began;
            self.report(shared, stall);
            // Captures of earlier messages belong to no stall.
            self.captures.retain(|capture| capture.began > began);
        }
        let running = clock.running();
        self.note(
            shared,
            watch
                .so_far(Uptime::now())
                .filter(|stall| running == Some(stall.began)),
        );
        let lost = clock.take_lost();
        if lost > 0 {
            shared.losses.add(Signal::Janks, Reason::QueueFull, lost);
        }
        let pause = watch.look_again_in_us(clock.running(), Uptime::now());
        Duration::from_micros(pause.clamp(1_000, 500_000))
    }

    /// Notes the stall that is under way. It is reported when it is over, or at the next start if the process is killed before.
    fn note(&mut self, shared: &Shared, stall: Option<FinishedStall>) {
        let Some(stall) = stall else {
            if self.noted.take().is_some() {
                shared.note_stall(None);
            }
            return;
        };
        let now = Uptime::now();
        let known = self.noted.take().filter(|noted| noted.began == stall.began);
        let is_due = known
            .as_ref()
            .is_none_or(|noted| now.micros_since(noted.at) >= NOTE_EVERY_US);
        let mut noted = known.unwrap_or_else(|| Noted {
            began: stall.began,
            at: now,
            sample_rate: shared.draw_rate(Signal::Janks),
            log: shared.meters.log().lines_until(stall.began),
        });
        if is_due {
            noted.at = now;
        }
        if let Some(sample_rate) = noted.sample_rate.filter(|_| is_due) {
            let captures = self.captures.iter();
            let captures = captures.filter(|capture| capture.began == stall.began);
            let captures = captures.cloned().collect();
            let log = noted.log.clone();
            shared.note_stall(Some(self.event(stall, captures, (sample_rate, log))));
        }
        self.noted = Some(noted);
    }

    fn capture(&mut self, request: CaptureRequest, clock: &LoopClock) {
        // A stack that is captured after the stall would blame other code. The capture itself is immediate. Reading the stack
        // takes time, and the stall may end before that is done.
        let depth = usize::try_from(request.max_frames).unwrap_or(usize::MAX);
        let stack = match clock.is_running(request.began) {
            true => self.stack(depth),
            false => Err("the stall ended before its stack was captured".to_owned()),
        };
        if self.captures.len() >= MOST_CAPTURES {
            self.captures.remove(0);
        }
        self.captures.push(Capture {
            began: request.began,
            offset_ms: request.offset_ms,
            stack,
        });
    }

    fn stack(&self, depth: usize) -> Result<Vec<Frame<'static>>, String> {
        let source = self.source.as_ref().map_err(Clone::clone)?;
        // If the host's source panics, there is no stack.
        let taken =
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| source.capture(depth)));
        match taken {
            Ok(Ok(stack)) if stack.is_empty() => Err("the captured stack was empty".to_owned()),
            Ok(captured) => captured.map_err(|error| error.to_string()),
            Err(_) => Err("the source of stacks panicked".to_owned()),
        }
    }

    fn report(&mut self, shared: &Shared, stall: FinishedStall) {
        let of_stall = |capture: &mut Capture| capture.began == stall.began;
        let captures = self.captures.extract_if(.., of_stall).collect();
        let known = self.noted.take_if(|noted| noted.began == stall.began);
        let was_noted = known.is_some();
        // Drawn once per stall, so that a noted stall and the reported one share the sampling decision.
        let (sample_rate, log) = match known {
            Some(noted) => (noted.sample_rate, noted.log),
            None => (
                shared.draw_rate(Signal::Janks),
                shared.meters.log().lines_until(stall.began),
            ),
        };
        let event = sample_rate.map(|sample_rate| {
            let event = self.event(stall, captures, (sample_rate, log));
            shared
                .urgent
                .notify(|| Urgent::StallEnded(Box::new(event.clone())));
            Event::Jank(event)
        });
        let report = || {
            if let Some(event) = event {
                shared.push(Queued::Event(Box::new(event)));
            }
        };
        match was_noted {
            true => shared.note_stall_and(None, report),
            false => report(),
        }
    }

    fn event(
        &self,
        stall: FinishedStall,
        captures: Vec<Capture>,
        (sample_rate, run_log): (f64, Vec<LogLine<'static>>),
    ) -> Jank<'static> {
        let (mut stack, mut samples, mut missing) = (None, Vec::new(), None);
        for capture in captures {
            match capture.stack {
                Ok(first) if stack.is_none() => stack = Some(first),
                Ok(stack) => samples.push(JankSample {
                    offset_ms: capture.offset_ms,
                    stack,
                }),
                Err(reason) => missing = missing.or(Some(reason)),
            }
        }
        let missing = missing.filter(|_| stack.is_none());
        let stack_missing = match missing {
            Some(reason) => bounded(&reason).to_owned().into(),
            None => stall.jank.stack_missing,
        };
        Jank {
            thread: self.thread.clone().into(),
            stack: stack.unwrap_or_default(),
            stack_missing,
            samples,
            run_log,
            sample_rate,
            ..stall.jank
        }
    }
}
