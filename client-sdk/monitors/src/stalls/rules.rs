//! Which rules apply to a message: those of its page and phase, or those of all others.

use unjank_protocol::config::{JankOverride, Janks};
use unjank_protocol::{Glob, JankStrategy};

use super::rule::Rule;
use crate::Uptime;

/// Entries and strategies beyond this number are ignored.
const MOST: usize = 16;

/// The rules of a configuration.
#[derive(Debug, Default)]
pub(super) struct Rules {
    sets: Vec<Set>,
    /// Until when a message begins in the phase `start`.
    started: Uptime,
}

/// The rules for some messages.
#[derive(Debug)]
struct Set {
    page: Option<Glob>,
    phase: Phase,
    /// What the set was made of, to recognize it in the next configuration.
    of: Option<(String, String)>,
    rules: Vec<Rule>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Any,
    Start,
    Later,
}

impl Rules {
    /// Applies settings. A strategy that stays in its place keeps its counts.
    pub(super) fn set_config(&mut self, config: &Janks) {
        self.started = Uptime::from_millis(u64::from(config.start_ms.min(600_000)));
        let mut before = std::mem::take(&mut self.sets);
        let overrides = config.overrides.iter().take(MOST);
        self.sets = overrides.filter_map(Set::of_override).collect();
        self.sets.push(Set {
            page: None,
            phase: Phase::Any,
            of: None,
            rules: rules(&config.strategies),
        });
        for set in &mut self.sets {
            let known = before.iter_mut().find(|known| known.of == set.of);
            if let Some(known) = known {
                set.keep_counts_of(known);
            }
        }
    }

    /// Returns the rules for a message that began at `began` and runs on `page`. The first set that matches applies.
    pub(super) fn of(&mut self, began: Uptime, page: &str) -> &mut [Rule] {
        let phase = if began < self.started {
            Phase::Start
        } else {
            Phase::Later
        };
        let set = self.sets.iter_mut().find(|set| set.matches(phase, page));
        set.map(|set| &mut set.rules[..]).unwrap_or_default()
    }

    /// Returns the thresholds of all rules, in milliseconds.
    pub(super) fn thresholds(&self) -> impl Iterator<Item = u32> {
        let rules = self.sets.iter().flat_map(|set| &set.rules);
        rules.map(|rule| rule.strategy.threshold_ms)
    }
}

impl Set {
    fn of_override(one: &JankOverride) -> Option<Self> {
        let phase = match one.phase.as_str() {
            "" => Phase::Any,
            "start" => Phase::Start,
            "later" => Phase::Later,
            _ => return None,
        };
        Some(Self {
            page: (!one.page.is_empty()).then(|| Glob::new(&one.page)),
            phase,
            of: Some((one.page.clone(), one.phase.clone())),
            rules: rules(&one.strategies),
        })
    }

    fn matches(&self, phase: Phase, page: &str) -> bool {
        (self.phase == Phase::Any || self.phase == phase)
            && self.page.as_ref().is_none_or(|glob| glob.matches(page))
    }

    fn keep_counts_of(&mut self, before: &mut Self) {
        for rule in &mut self.rules {
            let mut known = before.rules.iter();
            if let Some(position) = known.position(|known| known.strategy == rule.strategy) {
                *rule = before.rules.swap_remove(position);
            }
        }
    }
}

fn rules(strategies: &[JankStrategy]) -> Vec<Rule> {
    let strategies = strategies.iter().take(MOST);
    strategies.map(|strategy| Rule::new(*strategy)).collect()
}
