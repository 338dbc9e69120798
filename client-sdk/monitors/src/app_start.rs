//! How long the app took to start: cold, warm or hot, with phases.

use unjank_protocol::{AppStart, AppStartKind, Phase, Text};

use crate::uptime::{millis, millis_u32};
use crate::{Scene, Uptime, bounded};

/// Phases an event may hold.
const PHASES: usize = 64;

/// A start that takes longer was waiting for something else than the app: 5 minutes.
const LONGEST_US: u64 = 300_000_000;

/// What kind of start it is: **cold** when the process was made for it, **warm** when the process lived and its screen was
/// made, **hot** when the screen lived, too. A process that was made earlier for work in the background is not new.
///
/// ```
/// use unjank_monitors::start_kind;
/// use unjank_protocol::AppStartKind;
/// assert_eq!(start_kind(true, true), AppStartKind::Cold);
/// assert_eq!(start_kind(false, true), AppStartKind::Warm);
/// assert_eq!(start_kind(false, false), AppStartKind::Hot);
/// ```
#[must_use]
pub const fn start_kind(new_process: bool, new_screen: bool) -> AppStartKind {
    match (new_process, new_screen) {
        (true, _) => AppStartKind::Cold,
        (false, true) => AppStartKind::Warm,
        (false, false) => AppStartKind::Hot,
    }
}

/// Times one start at a time.
///
/// A start ends with the first draw of a screen. One that the user leaves before, or that takes more than five minutes,
/// is not reported; nor are phases past the 64th. Both are counted by [`take_dropped`](Self::take_dropped).
///
/// ```
/// use unjank_monitors::{AppStartTimer, Scene, Uptime, start_kind};
/// let at = Uptime::from_millis;
/// let mut timer = AppStartTimer::default();
/// timer.begin(start_kind(true, true), at(0));
/// timer.phase_begin("di", at(100));
/// timer.phase_end("di", at(310));
/// let start = timer.finish(at(1_430), &Scene::new("MainActivity")).expect("it was begun");
/// assert_eq!((start.duration_ms, start.phases[0].duration_ms), (1_430, 210));
/// ```
#[derive(Debug, Default)]
pub struct AppStartTimer {
    running: Option<Running>,
    dropped: u64,
}

#[derive(Debug)]
struct Running {
    kind: AppStartKind,
    began: Uptime,
    phases: Vec<Timed>,
}

#[derive(Debug)]
struct Timed {
    name: String,
    began: Uptime,
    ended: Option<Uptime>,
}

impl AppStartTimer {
    /// A start begins. One that is under way is dropped: what came of it is not known.
    pub fn begin(&mut self, kind: AppStartKind, now: Uptime) {
        self.cancel();
        self.running = Some(Running {
            kind,
            began: now,
            phases: Vec::new(),
        });
    }

    /// A part of the start begins; its name is cut at 1 KiB. Parts may overlap, and nothing happens while no start is under way.
    pub fn phase_begin(&mut self, name: &str, now: Uptime) {
        let Some(running) = &mut self.running else {
            return;
        };
        if running.phases.len() >= PHASES {
            self.dropped = self.dropped.saturating_add(1);
            return;
        }
        running.phases.push(Timed {
            name: bounded(name).to_owned(),
            began: now,
            ended: None,
        });
    }

    /// The part of that name that was begun last and is not over ends.
    pub fn phase_end(&mut self, name: &str, now: Uptime) {
        let name = bounded(name);
        let phases = self.running.iter_mut().flat_map(|now| &mut now.phases);
        let mut open = phases.rev().filter(|phase| phase.ended.is_none());
        if let Some(phase) = open.find(|phase| phase.name == name) {
            phase.ended = Some(now);
        }
    }

    /// The first draw: the start is over, and so are its open parts.
    #[must_use]
    pub fn finish(&mut self, now: Uptime, scene: &Scene) -> Option<AppStart<'static>> {
        let running = self.running.take()?;
        let took = now.micros_since(running.began);
        if took > LONGEST_US {
            self.dropped = self.dropped.saturating_add(1);
            return None;
        }
        let phases = running.phases.into_iter().map(|phase| {
            let ended = phase.ended.unwrap_or(now);
            Phase {
                name: Text::from(phase.name),
                duration_ms: millis_u32(ended.micros_since(phase.began)),
            }
        });
        Some(AppStart {
            kind: running.kind,
            start: scene.wall.time(running.began),
            duration_ms: millis(took),
            page: scene.page_text(),
            network: scene.network,
            phases: phases.collect(),
        })
    }

    /// The app left the foreground before it drew: there is no start to report.
    pub fn cancel(&mut self) {
        let was_running = self.running.take().is_some();
        self.dropped = self.dropped.saturating_add(u64::from(was_running));
    }

    /// Starts and parts that are not reported, since the last call.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}
