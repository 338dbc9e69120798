//! How long the app took to start: cold, warm or hot, and by phases.

use unjank_protocol::{AppStart, AppStartKind, Phase, Text};

use crate::uptime::{millis, millis_u32};
use crate::{Scene, Uptime, bounded};

/// Maximum number of phases in an event.
const PHASES: usize = 64;

/// Maximum duration of a start, 5 minutes. A longer one waited for something other than the app.
const LONGEST_US: u64 = 300_000_000;

/// Returns the kind of a start: **cold** if the process was created for it, **warm** if the process existed and its screen was
/// created, **hot** if the screen existed as well. A process that was created earlier for background work is not new.
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
/// A start ends with the first draw of a screen. A start that the user leaves earlier, or that takes more than five minutes, is
/// not reported; neither are phases after the 64th. [`take_dropped`](Self::take_dropped) counts both.
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
    /// Begins a start. Drops one that is still open, because its result is unknown.
    pub fn begin(&mut self, kind: AppStartKind, now: Uptime) {
        self.cancel();
        self.running = Some(Running {
            kind,
            began: now,
            phases: Vec::new(),
        });
    }

    /// Begins a phase of the start. The name is cut at 1 KiB. Phases may overlap. Does nothing if no start is open.
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

    /// Ends the open phase of this name that began last.
    pub fn phase_end(&mut self, name: &str, now: Uptime) {
        let name = bounded(name);
        let phases = self.running.iter_mut().flat_map(|now| &mut now.phases);
        let mut open = phases.rev().filter(|phase| phase.ended.is_none());
        if let Some(phase) = open.find(|phase| phase.name == name) {
            phase.ended = Some(now);
        }
    }

    /// Ends the start with the first draw, together with its open phases.
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
            sample_rate: 1.0,
        })
    }

    /// Drops the start, because the app left the foreground before it drew.
    pub fn cancel(&mut self) {
        let was_running = self.running.take().is_some();
        self.dropped = self.dropped.saturating_add(u64::from(was_running));
    }

    /// Returns the number of starts and phases dropped since the last call.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}
