//! Stalls of the main loop: which of them count, and when to capture their stacks. Runs on the watchdog thread.
//!
//! # The rules (Hertz)
//! A message counts once for a strategy (T, N, period P), as soon as it has lasted T. The strategy fires with the N-th message
//! that counts within P (measured between their starts), **while that message runs**. It then stays quiet until P has passed
//! since that message began, so that it fires once per period rather than once per message. With N = 1 and P = 0, it fires for
//! every message of at least T. Strategies run side by side. A stall for which several fire is one event, with the strategy of
//! the highest T.
//!
//! A stall of at least `anr_ms` is an ANR and is always reported. If no strategy fired, its strategy is (`anr_ms`, 1, 0).
//!
//! # Stacks
//! The first stack is due as soon as a strategy fires, and further ones every 100 ms, up to 8 per stall ([`Samples`]).
//! `max_stacks_per_session` bounds all of them. Further stacks may use at most half of that, so that a few long stalls do not use
//! up the first stacks of later ones. Beyond the bound, stalls are reported without stacks.
//!
//! If a message turns out to be long only after it has ended (because the watchdog was late), it is reported without a stack: a
//! stack captured after the stall would blame unrelated code.
//!
//! A stall for which no stack was requested says why (`stack_missing`).
//!
//! # Suspensions
//! Time in which the process did not run does not count ([`StallWatch::set_suspensions`]).

mod rule;
mod rules;

use unjank_protocol::config::Janks;
use unjank_protocol::{Jank, JankEnd, JankKind, JankStrategy, Text};

use self::rules::Rules;
use crate::uptime::{millis, millis_u32};
use crate::{LoopClock, Scene, Uptime};

/// How many stacks of a stall are captured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Samples {
    /// Time between two stacks, in microseconds.
    pub every_us: u64,
    /// Maximum number of stacks per stall, including the first. An event holds 64 further ones.
    pub per_stall: u32,
}

impl Default for Samples {
    /// Every 100 ms, at most 8.
    fn default() -> Self {
        Self {
            every_us: 100_000,
            per_stall: 8,
        }
    }
}

/// A request to capture a stack of the main thread now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CaptureRequest {
    /// When the stall's message began, which identifies the stall. See [`LoopClock::is_running`].
    pub began: Uptime,
    /// The number of this stack within the stall, from 0.
    pub sample: u32,
    /// Time since the stall began, in milliseconds: the `offset_ms` of a further sample.
    pub offset_ms: u32,
    /// Maximum number of frames to capture, innermost first.
    pub max_frames: u32,
}

/// A stall that is over, to be sent with the stacks that were captured for it.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedStall {
    /// When the stall began, as in its [`CaptureRequest`]s.
    pub began: Uptime,
    /// How many stacks were requested.
    pub requested: u32,
    /// The event; `thread`, `stack`, `samples` and `run_log` are empty. If no stack was requested, `stack_missing` says why.
    pub jank: Jank<'static>,
}

/// The result of one check of the loop.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Watched {
    /// Stalls that are over.
    pub finished: Vec<FinishedStall>,
    /// The stack that is due now, if any. Capture it before anything else.
    pub capture: Option<CaptureRequest>,
}

/// Decides which messages of a loop are stalls.
///
/// ```
/// use unjank_monitors::{LoopClock, Samples, Scene, StallWatch, Uptime};
/// use unjank_protocol::config::Janks;
///
/// let clock = LoopClock::default();
/// let mut watch = StallWatch::new(&Janks::default(), Samples::default(), Scene::new("Feed"));
/// clock.begin(Uptime::from_millis(1_000));
/// assert!(watch.watch(&clock, Uptime::from_millis(2_999)).capture.is_none());
/// let capture = watch.watch(&clock, Uptime::from_millis(3_001)).capture.expect("2 s are over");
/// assert_eq!(capture.offset_ms, 2_001);
/// clock.end(Uptime::from_millis(3_300));
/// let stall = &watch.watch(&clock, Uptime::from_millis(3_350)).finished[0];
/// assert_eq!((stall.jank.duration_ms, stall.jank.strategy.threshold_ms), (2_300, 2_000));
/// ```
#[derive(Debug)]
pub struct StallWatch {
    rules: Rules,
    anr_ms: u32,
    max_frames: u32,
    max_stacks: u32,
    samples: Samples,
    scene: Scene,
    current: Option<Current>,
    last_end: Uptime,
    stacks: u32,
    further_stacks: u32,
    suspensions: Vec<(Uptime, Uptime)>,
}

/// The message that is being watched.
#[derive(Debug)]
struct Current {
    began: Uptime,
    /// The strategy that fired, and the surroundings at that time.
    held: Option<(JankStrategy, Scene)>,
    requested: u32,
    next_sample: Uptime,
    /// Whether a stack was due, and those of the session were used up.
    refused: bool,
}

impl StallWatch {
    /// Creates a watch for one loop and one session.
    #[must_use]
    pub fn new(config: &Janks, samples: Samples, scene: Scene) -> Self {
        let mut watch = Self {
            rules: Rules::default(),
            anr_ms: 0,
            max_frames: 0,
            max_stacks: 0,
            samples,
            scene,
            current: None,
            last_end: Uptime::default(),
            stacks: 0,
            further_stacks: 0,
            suspensions: Vec::new(),
        };
        watch.set_config(config);
        watch
    }

    /// Applies settings, clamped to the protocol's ranges; strategies after the 16th of a list, and
    /// overrides after the 16th, are ignored. A strategy that stays keeps its
    /// counts, and a stall in progress keeps the strategy that fired.
    pub fn set_config(&mut self, config: &Janks) {
        self.rules.set_config(config);
        self.anr_ms = config.anr_ms.clamp(1_000, 60_000);
        self.max_frames = config.stack_depth.clamp(1, 128);
        self.max_stacks = config.max_stacks_per_session.min(1_000);
    }

    /// Sets the surroundings. A stall reports those at the time it was detected.
    pub fn set_scene(&mut self, scene: Scene) {
        self.scene = scene;
    }

    /// Sets when the process did not run, begin and end in order, without overlaps, from the end of the last message on. A message does not
    /// last in that time.
    pub fn set_suspensions(&mut self, suspensions: Vec<(Uptime, Uptime)>) {
        self.suspensions = suspensions;
    }

    /// Returns when the last message ended that was long enough to matter.
    #[must_use]
    pub fn last_end(&self) -> Uptime {
        self.last_end
    }

    /// Starts a new session, which resets the count of stacks.
    pub fn new_session(&mut self) {
        self.stacks = 0;
        self.further_stacks = 0;
    }

    /// Checks the loop: calls [`finished`](Self::finished) for each message that has ended, and then [`due`](Self::due).
    pub fn watch(&mut self, clock: &LoopClock, now: Uptime) -> Watched {
        // `running` has to be read first; see the `loop_clock` module.
        let running = clock.running();
        let ended = std::iter::from_fn(|| clock.take_finished());
        let finished = ended
            .filter_map(|message| self.finished(message.began, message.ended))
            .collect();
        let capture = running.and_then(|began| self.due(began, now));
        clock.set_long(self.shortest_us());
        Watched { finished, capture }
    }

    /// Returns a request if a stack is due now, given that the message that began at `began` is running.
    #[must_use]
    pub fn due(&mut self, began: Uptime, now: Uptime) -> Option<CaptureRequest> {
        if began < self.last_end {
            return None;
        }
        self.notice(began, now);
        let current = self.current.as_mut()?;
        current.held.as_ref()?;
        let further = current.requested > 0;
        let spent = self.stacks >= self.max_stacks
            || (further && self.further_stacks >= self.max_stacks / 2)
            || current.requested >= self.samples.per_stall;
        current.refused |= spent && !further;
        if spent || now < current.next_sample {
            return None;
        }
        let sample = current.requested;
        current.requested = sample.saturating_add(1);
        current.next_sample = now.plus(self.samples.every_us);
        self.stacks = self.stacks.saturating_add(1);
        self.further_stacks = self.further_stacks.saturating_add(u32::from(further));
        Some(CaptureRequest {
            began,
            sample,
            offset_ms: millis_u32(self.lasted_us(began, now)),
            max_frames: self.max_frames,
        })
    }

    /// Ends a message. Returns its stall if a strategy fired or if it was an ANR. Call this for messages in order, at least for
    /// those that last [`shortest_us`](Self::shortest_us).
    #[must_use]
    pub fn finished(&mut self, began: Uptime, ended: Uptime) -> Option<FinishedStall> {
        if began < self.last_end {
            return None;
        }
        self.notice(began, ended);
        self.last_end = ended.max(began);
        let current = self.current.take()?;
        self.stall(&current, ended)
    }

    /// Returns the stall in progress as it would be reported if it ended now. Keep it on disk during a long stall, because an app
    /// that is killed by the system or the user never reaches the end.
    #[must_use]
    pub fn so_far(&self, now: Uptime) -> Option<FinishedStall> {
        self.stall(self.current.as_ref()?, now)
    }

    /// Returns the shortest message that can matter, in microseconds. [`LoopClock`] need not hand over shorter ones.
    #[must_use]
    pub fn shortest_us(&self) -> u64 {
        let held = self.current.as_ref().and_then(|now| now.held.as_ref());
        let held = held.map(|(strategy, _)| strategy.threshold_ms);
        let shortest = self
            .rules
            .thresholds()
            .chain(held)
            .fold(self.anr_ms, u32::min);
        u64::from(shortest).saturating_mul(1_000)
    }

    /// Returns how long the watchdog may sleep, in microseconds, at least 1 ms: until the running message reaches the next
    /// threshold or sample. If the loop is idle, this is the shortest threshold, because a message may begin at any time.
    #[must_use]
    pub fn look_again_in_us(&self, running: Option<Uptime>, now: Uptime) -> u64 {
        let shortest = self.shortest_us();
        let Some(began) = running else {
            return shortest;
        };
        let lasted = self.lasted_us(began, now);
        let thresholds = self.rules.thresholds().chain([self.anr_ms]);
        let next = thresholds
            .map(|threshold_ms| u64::from(threshold_ms).saturating_mul(1_000))
            .filter_map(|threshold| threshold.checked_sub(lasted))
            .filter(|left| *left > 0)
            .min();
        let current = self.current.as_ref().filter(|now| now.began == began);
        let sampling = current
            .filter(|now| now.held.is_some() && now.requested < self.samples.per_stall)
            .map(|current| current.next_sample.micros_since(now));
        // A message that has passed all thresholds will end, and the next one may be long, too.
        let sleep = next.into_iter().chain(sampling).fold(shortest, u64::min);
        sleep.max(1_000)
    }

    /// Returns for how long a message has lasted while the process ran, in microseconds.
    fn lasted_us(&self, began: Uptime, now: Uptime) -> u64 {
        let suspended = self.suspensions.iter();
        let suspended =
            suspended.map(|(from, until)| now.min(*until).micros_since(began.max(*from)));
        now.micros_since(began).saturating_sub(suspended.sum())
    }

    /// Updates the current message and the rules to the time `now`.
    fn notice(&mut self, began: Uptime, now: Uptime) {
        let same = self.current.take().filter(|current| current.began == began);
        let mut current = same.unwrap_or(Current {
            began,
            held: None,
            requested: 0,
            next_sample: began,
            refused: false,
        });
        let lasted = self.lasted_us(began, now);
        for rule in self.rules.of(began, &self.scene.page) {
            if !rule.holds(began, lasted) {
                continue;
            }
            let scene = current.held.take().map_or_else(
                || (rule.strategy, self.scene.clone()),
                |(strategy, scene)| (higher(strategy, rule.strategy), scene),
            );
            current.held = Some(scene);
        }
        if current.held.is_none() && lasted >= u64::from(self.anr_ms).saturating_mul(1_000) {
            let strategy = JankStrategy {
                threshold_ms: self.anr_ms,
                count: 1,
                period_ms: 0,
            };
            current.held = Some((strategy, self.scene.clone()));
        }
        self.current = Some(current);
    }

    fn stall(&self, current: &Current, ended: Uptime) -> Option<FinishedStall> {
        let (strategy, scene) = current.held.as_ref()?;
        let lasted = self.lasted_us(current.began, ended);
        let anr = lasted >= u64::from(self.anr_ms).saturating_mul(1_000);
        let jank = Jank {
            kind: if anr { JankKind::Anr } else { JankKind::Jank },
            page: scene.page_text(),
            start: scene.wall.time(current.began),
            duration_ms: millis(lasted),
            ended: JankEnd::Finished,
            thread: Text::default(),
            foreground: scene.foreground,
            strategy: *strategy,
            uptime_ms: current.began.as_millis(),
            network: scene.network,
            stack: Vec::new(),
            stack_missing: self.why_not_requested(current),
            samples: Vec::new(),
            run_log: Vec::new(),
            sample_rate: 1.0,
        };
        Some(FinishedStall {
            began: current.began,
            requested: current.requested,
            jank,
        })
    }

    /// Returns why no stack of the message was requested; empty if one was.
    fn why_not_requested(&self, current: &Current) -> Text<'static> {
        if current.requested > 0 {
            return Text::default();
        }
        match (current.refused, self.max_stacks) {
            (false, _) => Text::from("the stall was noticed only after its end"),
            (true, 0) => Text::from(format!("stacks are switched off: {SETTING} is 0")),
            (true, most) => Text::from(format!(
                "the stacks of this session were used up: {SETTING} is {most}"
            )),
        }
    }
}

/// Names the setting that bounds the number of stacks.
const SETTING: &str = "jank.max_stacks_per_session";

fn higher(one: JankStrategy, other: JankStrategy) -> JankStrategy {
    if other.threshold_ms > one.threshold_ms {
        other
    } else {
        one
    }
}
