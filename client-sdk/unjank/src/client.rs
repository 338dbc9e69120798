//! The running SDK: the state that all threads of the app share, and the switch that every call checks first.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, AtomicU32, Ordering};

use arc_swap::{ArcSwap, ArcSwapOption};
use crossbeam_queue::ArrayQueue;
use unjank_monitors::{Scene, Uptime};
use unjank_protocol::{Network, Signal, Text};

use crate::clock::{Moment, WallClock, utc_offset_s};
use crate::config::Config;
use crate::event::Event;
use crate::losses::{Losses, Reason};
use crate::meters::Meters;
use crate::names::{NameId, Names};
use crate::random::draw;
use crate::requests::Requests;
use crate::sampling::Settings;
use crate::span_record::Queued;
use crate::users::{Turn, Users};

/// State shared by all threads.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Distinguishes this client from earlier ones in the same process.
    pub(crate) id: u32,
    pub(crate) config: Config,
    pub(crate) wall: WallClock,
    pub(crate) meters: Meters,
    /// How far local time is ahead of UTC, in seconds.
    pub(crate) utc_offset_s: AtomicI32,
    pub(crate) names: Names,
    pub(crate) settings: ArcSwap<Settings>,
    /// Incremented with each change of the settings, so that threads drop what they cached of them.
    edition: AtomicU32,
    /// Each event with the turn of the user it belongs to.
    queue: ArrayQueue<(Turn, Queued)>,
    pub(crate) losses: Losses,
    page: AtomicU32,
    network: AtomicU8,
    pub(crate) foreground: AtomicBool,
    pub(crate) users: Users,
    pub(crate) requests: Requests,
}

impl Shared {
    pub(crate) fn new(config: Config, settings: Settings) -> Self {
        static CLIENTS: AtomicU32 = AtomicU32::new(0);
        Self {
            id: CLIENTS.fetch_add(1, Ordering::Relaxed).wrapping_add(1),
            queue: ArrayQueue::new(config.queue_events),
            wall: WallClock::new(),
            meters: Meters::new(&settings.document, config.device.refresh_hz),
            utc_offset_s: AtomicI32::new(utc_offset_s()),
            names: Names::default(),
            settings: ArcSwap::from_pointee(settings),
            edition: AtomicU32::new(0),
            losses: Losses::default(),
            page: AtomicU32::new(0),
            network: AtomicU8::new(network_code(Network::Unknown)),
            foreground: AtomicBool::new(true),
            users: Users::default(),
            requests: Requests::default(),
            config,
        }
    }

    /// Never blocks: counts an event that does not fit as lost.
    pub(crate) fn push(&self, queued: Queued) {
        if let Err((_, lost)) = self.queue.push((self.users.turn(), queued)) {
            self.losses.add(lost.signal(), Reason::QueueFull, 1);
        }
        // Half of the queue is left for events until the background thread wakes up.
        if self.queue.len() == self.queue.capacity() / 2 {
            self.requests.change(|state| state.hurry = true);
        }
    }

    /// Records an event of any signal except spans, if sampling keeps it. `event` gets the sample rate that the event carries.
    pub(crate) fn record(&self, signal: Signal, event: impl FnOnce(f64) -> Event) {
        let settings = self.settings.load();
        let share = settings.share(signal);
        if share.keeps(draw()) {
            let event = event(settings.sample_rate(share));
            self.push(Queued::Event(Box::new(event)));
        }
    }

    /// Drops what is queued, because consent was withdrawn.
    pub(crate) fn forget_queued(&self) {
        while let Some((_, queued)) = self.pop() {
            self.losses.add(queued.signal(), Reason::Disabled, 1);
        }
    }

    pub(crate) fn pop(&self) -> Option<(Turn, Queued)> {
        self.queue.pop()
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

/// Returns the client, even while it is switched off.
pub(crate) fn installed() -> Option<Arc<Shared>> {
    CURRENT.load_full()
}

/// Returns the client if it is switched on.
pub(crate) fn current() -> Option<Arc<Shared>> {
    if is_on() { installed() } else { None }
}

thread_local! {
    static KNOWN: RefCell<Known> = const { RefCell::new(Known { generation: 0, shared: None }) };
}

/// The client as this thread last saw it. Reading this copy is cheaper than loading the shared one.
struct Known {
    generation: u32,
    shared: Option<Arc<Shared>>,
}

/// Runs a closure with the client, if there is one and it is switched on.
#[inline]
pub(crate) fn with<R>(run: impl FnOnce(&Arc<Shared>) -> R) -> Option<R> {
    if !is_on() {
        return None;
    }
    // A thread that is ending, or a nested call from inside the SDK, does nothing.
    KNOWN
        .try_with(|known| {
            let mut known = known.try_borrow_mut().ok()?;
            let generation = GENERATION.load(Ordering::Acquire);
            if known.generation != generation {
                *known = Known {
                    generation,
                    shared: installed(),
                };
            }
            known.shared.as_ref().map(run)
        })
        .ok()
        .flatten()
}
