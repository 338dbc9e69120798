//! The running SDK: the state that all threads of the app share, and the switch that every call checks first.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::{ArcSwap, ArcSwapOption};
use crossbeam_queue::ArrayQueue;
use unjank_monitors::{Scene, Uptime};
use unjank_protocol::{Jank, Network, Signal, Text};
use unjank_stack_sampler::forks;

use super::foreground_state::AppState;
use super::meters::Meters;
use super::rings::Rings;
use super::sampling::Settings;
use super::span_record::{Queued, SpanRecord, Waiting};
use super::switches::Switches;
use super::system_trace::SystemTrace;
use super::ticks;
use super::urgent::{Urgent, UrgentChannel};
use super::users::{Turn, Users};
use crate::clock::{Moment, WallClock, utc_offset_s};
use crate::config::{Config, Mode};
use crate::deliver::losses::{Losses, Reason};
use crate::deliver::problem::Problem;
use crate::deliver::worker::requests::Requests;
use crate::event::Event;
use crate::names::{NameId, Names};
use crate::random::draw;

/// State shared by all threads.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Distinguishes this client from earlier ones in the same process.
    pub(crate) id: u32,
    pub(crate) config: Config,
    /// The trace of the system, if the app forwards spans to it.
    pub(crate) system_trace: Option<SystemTrace>,
    pub(crate) wall: WallClock,
    pub(crate) meters: Meters,
    /// How far local time is ahead of UTC, in seconds.
    pub(crate) utc_offset_s: AtomicI32,
    pub(crate) names: Names,
    pub(crate) settings: ArcSwap<Settings>,
    pub(crate) switches: Switches,
    pub(crate) urgent: UrgentChannel,
    /// Incremented with each change of the settings, so that threads drop what they cached of them.
    edition: AtomicU32,
    /// Each event with the turn of the user it belongs to.
    queue: ArrayQueue<(Turn, Queued)>,
    /// Recorded spans. They go to the queue only if there is no room here.
    pub(crate) rings: Rings,
    pub(crate) losses: Losses,
    page: AtomicU32,
    network: AtomicU8,
    pub(crate) foreground: AtomicBool,
    pub(crate) app_state: AppState,
    pub(crate) users: Users,
    /// The hosts whose traffic HTTP layers count.
    #[cfg(feature = "tower")]
    pub(crate) measured_hosts: crate::measured_hosts::Hosts,
    pub(crate) requests: Requests,
    pub(crate) problem: Problem,
    /// The stall of a main loop that is not over.
    pub(crate) stall: Mutex<UnderWay>,
    /// The value of [`forks`] in the process that this client belongs to.
    forks: u32,
    /// When this client was created, in milliseconds since the process began.
    created_ms: u64,
}

/// A stall that is not over, as it would be reported now.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    /// Changes with the stall.
    pub(crate) edition: u64,
    pub(crate) stall: Option<Jank<'static>>,
}

impl Shared {
    pub(crate) fn new(config: Config, settings: Settings) -> Self {
        static CLIENTS: AtomicU32 = AtomicU32::new(0);
        ticks::prepare();
        Self {
            id: CLIENTS.fetch_add(1, Ordering::Relaxed).wrapping_add(1),
            system_trace: None,
            queue: ArrayQueue::new(config.queue_events),
            rings: Rings::new(config.queue_events),
            wall: WallClock::new(),
            meters: Meters::new(&settings.document, config.device.refresh_hz),
            utc_offset_s: AtomicI32::new(utc_offset_s()),
            names: Names::default(),
            switches: Switches::new(&settings.document.monitors),
            settings: ArcSwap::from_pointee(settings),
            urgent: UrgentChannel::open(&config.hooks.on_urgent),
            edition: AtomicU32::new(0),
            losses: Losses::default(),
            page: AtomicU32::new(0),
            network: AtomicU8::new(network_code(Network::Unknown)),
            foreground: AtomicBool::new(true),
            app_state: AppState::default(),
            users: Users::default(),
            #[cfg(feature = "tower")]
            measured_hosts: crate::measured_hosts::Hosts::default(),
            requests: Requests::default(),
            stall: Mutex::default(),
            problem: Problem::new(config.mode == Mode::Development),
            forks: forks(),
            created_ms: Moment::now().millis(),
            config,
        }
    }

    /// Opens the marker if the app wants it.
    pub(crate) fn open_system_trace(&mut self) {
        let Some(marker) = &self.config.system_trace else {
            return;
        };
        match SystemTrace::open(marker) {
            Ok(trace) => self.system_trace = Some(trace),
            Err(error) => self.problem.print(&format!(
                "spans are not forwarded to the system: {}: {error}",
                marker.display()
            )),
        }
    }

    /// Returns whether this client belongs to the process that created this one by `fork`. Its background thread does not exist
    /// here.
    pub(crate) fn is_inherited(&self) -> bool {
        self.forks != forks()
    }

    /// Returns whether a span that began then, in milliseconds since the process began, began in the process that created this one by
    /// `fork`, and is recorded there.
    pub(crate) fn is_of_parent(&self, began_ms: u64) -> bool {
        self.forks > 0 && began_ms < self.created_ms
    }

    /// Never blocks: counts an event that does not fit as lost.
    pub(crate) fn push(&self, queued: Queued) {
        if let Err((_, lost)) = self.queue.push((self.users.turn(), queued)) {
            self.losses.add(lost.signal(), Reason::QueueFull, 1);
        }
        // Half of the queue is left for events until the background thread wakes up.
        if self.queue.len() == self.queue.capacity() / 2 {
            self.hurry();
        }
    }

    /// Wakes the background thread up.
    pub(crate) fn hurry(&self) {
        self.requests.change(|state| state.hurry = true);
    }

    /// Records an event of any signal except spans, if sampling keeps it. `event` gets the sample rate that the event carries.
    pub(crate) fn record(&self, signal: Signal, event: impl FnOnce(f64) -> Event) {
        if let Some(sample_rate) = self.draw_rate(signal) {
            self.push(Queued::Event(Box::new(event(sample_rate))));
        }
    }

    /// Draws whether sampling keeps an event. Returns the sample rate that it carries.
    pub(crate) fn draw_rate(&self, signal: Signal) -> Option<f64> {
        let settings = self.settings.load();
        let share = settings.share(signal);
        share.keeps(draw()).then(|| settings.sample_rate(share))
    }

    /// Drops queued events, because consent was withdrawn.
    pub(crate) fn forget_queued(&self) {
        while let Some((_, queued)) = self.pop() {
            self.losses.add(queued.signal(), Reason::Disabled, 1);
        }
    }

    /// Notes the current stall, or that there is none.
    pub(crate) fn note_stall(&self, stall: Option<Jank<'static>>) {
        self.note_stall_and(stall, || ());
    }

    /// Notes the stall and runs `report` under one lock, so that readers see both changes or neither.
    pub(crate) fn note_stall_and(&self, stall: Option<Jank<'static>>, report: impl FnOnce()) {
        let mut now = self.stall.lock().unwrap_or_else(PoisonError::into_inner);
        report();
        let is_first = now.stall.is_none() && stall.is_some();
        if let Some(stall) = stall.as_ref().filter(|_| is_first) {
            self.urgent
                .notify(|| Urgent::StallBegan(Box::new(stall.clone())));
        }
        now.edition = now.edition.wrapping_add(1);
        now.stall = stall;
        drop(now);
        if is_first {
            self.requests.change(|state| state.hurry = true);
        }
    }

    /// Takes the waiting events, in turn from the rings of the threads and from the queue.
    pub(crate) fn pop(&self) -> Option<(Turn, Waiting)> {
        let of_ring = |record: SpanRecord| (record.turn, Waiting::Span(record));
        self.rings.pop_or(of_ring, || {
            let (turn, queued) = self.queue.pop()?;
            Some((turn, Waiting::Queued(queued)))
        })
    }

    pub(crate) fn page(&self) -> NameId {
        NameId(self.page.load(Ordering::Relaxed))
    }

    pub(crate) fn page_name(&self) -> Text<'static> {
        self.names.name(self.page()).to_string().into()
    }

    pub(crate) fn set_page(&self, name: &str) {
        self.page.store(self.names.id(name).0, Ordering::Relaxed);
    }

    pub(crate) fn network(&self) -> Network {
        let code = usize::from(self.network.load(Ordering::Relaxed));
        Network::ALL.get(code).copied().unwrap_or_default()
    }

    pub(crate) fn set_network(&self, network: Network) {
        self.network.store(network_code(network), Ordering::Relaxed);
    }

    pub(crate) fn edition(&self) -> u32 {
        self.edition.load(Ordering::Acquire)
    }

    /// Returns the current surroundings of the app.
    pub(crate) fn scene(&self) -> Scene {
        let now = Moment::now();
        let uptime = Uptime::from_micros(u64::try_from(now.micros()).unwrap_or_default());
        Scene {
            page: self.names.name(self.page()).to_string(),
            network: self.network(),
            foreground: self.foreground.load(Ordering::Relaxed),
            wall: unjank_monitors::WallClock::new(uptime, self.wall.at(now)),
        }
    }

    pub(crate) fn set_settings(&self, settings: Settings) {
        self.switches
            .renew(settings, |settings| self.put_settings(settings));
    }

    /// Applies settings. They already include the switches of the app.
    pub(crate) fn put_settings(&self, settings: Settings) {
        self.meters.set_config(&settings.document);
        self.settings.store(Arc::new(settings));
        self.edition.fetch_add(1, Ordering::Release);
    }
}

fn network_code(network: Network) -> u8 {
    let place = Network::ALL.iter().position(|one| *one == network);
    place
        .and_then(|place| u8::try_from(place).ok())
        .unwrap_or_default()
}

/// Whether anything is collected. Every call checks this first.
static ON: AtomicBool = AtomicBool::new(false);
/// Incremented when the client changes, so that threads drop an old one they cached.
static GENERATION: AtomicU32 = AtomicU32::new(0);
static CURRENT: ArcSwapOption<Shared> = ArcSwapOption::const_empty();

#[inline]
pub(crate) fn is_on() -> bool {
    ON.load(Ordering::Relaxed)
}

pub(crate) fn switch(on: bool) {
    ON.store(on, Ordering::Relaxed);
}

/// Makes a client the current one; `None` removes it.
pub(crate) fn install(shared: Option<Arc<Shared>>) {
    CURRENT.store(shared);
    GENERATION.fetch_add(1, Ordering::Release);
}

/// Returns the flag that every call checks first.
pub(crate) fn switch_of_collection() -> &'static AtomicBool {
    &ON
}

/// Returns the client, even while it is switched off.
pub(crate) fn installed() -> Option<Arc<Shared>> {
    CURRENT.load_full().filter(|shared| !shared.is_inherited())
}

/// Returns the client if it is switched on.
pub(crate) fn current() -> Option<Arc<Shared>> {
    if is_on() { installed() } else { None }
}

thread_local! {
    static KNOWN: RefCell<Known> = const { RefCell::new(Known::NONE) };
}

/// The client as this thread last saw it. Reading this copy is cheaper than loading the shared one.
pub(crate) struct Known {
    generation: u32,
    shared: Option<Arc<Shared>>,
}

impl Known {
    pub(crate) const NONE: Self = Self {
        generation: 0,
        shared: None,
    };

    /// Returns the client as this thread last saw it.
    #[inline]
    pub(crate) fn now(&self) -> Option<&Shared> {
        self.shared.as_deref()
    }

    /// Returns the client, if there is one and it is switched on.
    #[inline]
    pub(crate) fn current(&mut self) -> Option<&Arc<Shared>> {
        if !is_on() {
            return None;
        }
        let generation = GENERATION.load(Ordering::Acquire);
        if self.generation != generation {
            *self = Self {
                generation,
                shared: installed(),
            };
        }
        self.shared.as_ref()
    }
}

/// Runs a closure with the client, if there is one and it is switched on.
#[inline]
pub(crate) fn with<R>(run: impl FnOnce(&Arc<Shared>) -> R) -> Option<R> {
    if !is_on() {
        return None;
    }
    // A thread that is ending, or a nested call from inside the SDK, does nothing.
    KNOWN
        .try_with(|known| known.try_borrow_mut().ok()?.current().map(run))
        .ok()
        .flatten()
}

/// Returns why nothing arrives at the server, like [`crate::Guard::problem`]. `None` before [`crate::init`].
///
/// ```
/// if let Some(problem) = unjank::problem() {
///     eprintln!("performance data does not arrive: {problem}");
/// }
/// ```
#[must_use]
pub fn problem() -> Option<String> {
    installed().and_then(|shared| shared.problem.text())
}
