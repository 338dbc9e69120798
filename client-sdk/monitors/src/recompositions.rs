//! Redraws of UI functions, counted per page, function and cause in windows.

use std::collections::HashMap;

use unjank_protocol::{Recomposition, Text};

use crate::uptime::millis;
use crate::{Scene, Uptime, bounded};

/// Maximum number of pairs of function and cause in one window.
const PAIRS: usize = 256;

/// Counts redraws. A window begins with the first redraw and ends after its length or with its page. Each pair of function and
/// cause becomes one event. A window holds at most 256 pairs; redraws of further pairs are dropped and counted.
///
/// ```
/// use unjank_monitors::{Recompositions, Scene, Uptime};
/// let at = Uptime::from_millis;
/// let mut redraws = Recompositions::new(10_000, Scene::new("CartActivity"));
/// for number in 0..58 {
///     assert!(redraws.redrawn("CartList", "CartState.items", at(number * 100)).is_empty());
/// }
/// let events = redraws.flush(at(8_000));
/// assert_eq!((events[0].count, events[0].window_ms), (58, 8_000));
/// ```
#[derive(Debug)]
pub struct Recompositions {
    window_us: u64,
    scene: Scene,
    start: Option<Uptime>,
    /// By function, then by cause, so that a lookup allocates no strings.
    counts: HashMap<String, Vec<(String, u32)>>,
    pairs: usize,
    dropped: u64,
}

impl Recompositions {
    /// Creates a counter with windows of `window_ms`, from 1,000 to 60,000.
    #[must_use]
    pub fn new(window_ms: u32, scene: Scene) -> Self {
        let mut redraws = Self {
            window_us: 0,
            scene,
            start: None,
            counts: HashMap::new(),
            pairs: 0,
            dropped: 0,
        };
        redraws.set_window(window_ms);
        redraws
    }

    /// Sets the length of windows, from 1,000 to 60,000 ms. Also applies to the open one.
    pub fn set_window(&mut self, window_ms: u32) {
        self.window_us = u64::from(window_ms.clamp(1_000, 60_000)).saturating_mul(1_000);
    }

    /// Sets the scene that events report. A change of the page ends the window.
    #[must_use]
    pub fn set_scene(&mut self, now: Uptime, scene: Scene) -> Vec<Recomposition<'static>> {
        let mut ended = Vec::new();
        if scene.page != self.scene.page {
            ended = self.flush(now);
        }
        self.scene = scene;
        ended
    }

    /// Counts a redraw of `function` caused by a change of `cause` (empty if unknown). Names are cut at 1 KiB. Returns the
    /// previous window if it is over.
    #[must_use]
    pub fn redrawn(
        &mut self,
        function: &str,
        cause: &str,
        now: Uptime,
    ) -> Vec<Recomposition<'static>> {
        let (function, cause) = (bounded(function), bounded(cause));
        let ended = self.poll(now);
        self.start.get_or_insert(now);
        let causes = self.counts.get_mut(function);
        let known = causes.and_then(|causes| causes.iter_mut().find(|(known, _)| known == cause));
        if let Some((_, count)) = known {
            *count = count.saturating_add(1);
        } else if self.pairs < PAIRS {
            self.pairs = self.pairs.saturating_add(1);
            let causes = self.counts.entry(function.to_owned()).or_default();
            causes.push((cause.to_owned(), 1));
        } else {
            self.dropped = self.dropped.saturating_add(1);
        }
        ended
    }

    /// Ends the window if its time is over.
    #[must_use]
    pub fn poll(&mut self, now: Uptime) -> Vec<Recomposition<'static>> {
        match self.start {
            Some(start) if now.micros_since(start) >= self.window_us => self.flush(now),
            _ => Vec::new(),
        }
    }

    /// Ends the window, however short it is. Events are ordered by function, then by cause.
    #[must_use]
    pub fn flush(&mut self, now: Uptime) -> Vec<Recomposition<'static>> {
        let Some(start) = self.start.take() else {
            return Vec::new();
        };
        let lasted = now.micros_since(start).min(self.window_us);
        self.pairs = 0;
        let scene = &self.scene;
        let functions = self.counts.drain();
        let mut events: Vec<_> = functions
            .flat_map(|(function, causes)| {
                let event = move |(cause, count)| Recomposition {
                    function: Text::from(function.clone()),
                    page: scene.page_text(),
                    start: scene.wall.time(start),
                    window_ms: millis(lasted),
                    count,
                    cause: Text::from(cause),
                    uptime_ms: start.as_millis(),
                    network: scene.network,
                    sample_rate: 1.0,
                };
                causes.into_iter().map(event)
            })
            .collect();
        events.sort_by(|one, other| {
            (&one.function, &one.cause).cmp(&(&other.function, &other.cause))
        });
        events
    }

    /// Returns the number of redraws dropped since the last call.
    pub fn take_dropped(&mut self) -> u64 {
        std::mem::take(&mut self.dropped)
    }
}
