//! Plans who sends what, and when. Planning is sequential and happens before anything is built.

use std::time::Duration;

use unjank_random::{Random, whole};

/// How batches are spread over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Rate {
    /// Open loop: this many batches per second are scheduled to start, regardless of the server.
    PerSecond(f64),
    /// Closed loop: the next batch starts as soon as a connection is free. Finds the highest rate.
    Max,
}

/// Distribution of the gaps between scheduled starts in an open loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Arrivals {
    /// Random gaps, as from independent devices.
    Poisson,
    /// Equal gaps.
    Even,
}

/// A planned batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Index within the run, from 0.
    pub(crate) seq: u64,
    /// Scheduled start, relative to the start of the run. `None` in a closed loop.
    pub(crate) at: Option<Duration>,
    /// Index of the device that sends it.
    pub(crate) device: u64,
    /// Number of its session within the run.
    pub(crate) session: u64,
    /// Index of the upload within the session, from 0.
    pub(crate) part: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct PlanSettings {
    pub(crate) seed: u64,
    pub(crate) rate: Rate,
    pub(crate) arrivals: Arrivals,
    pub(crate) devices: u64,
    /// Last scheduled start. `None` continues until stopped.
    pub(crate) duration: Option<Duration>,
    /// Maximum number of batches.
    pub(crate) batches: Option<u64>,
}

struct Session {
    number: u64,
    device: u64,
    next_part: u64,
    parts: u64,
}

/// Plans one batch after another. Only some of the devices are active at a time: a session uploads several times, then the
/// session of another device takes its place.
pub(crate) struct Planner {
    settings: PlanSettings,
    random: Random,
    gaps: Random,
    active: Vec<Session>,
    most_active: usize,
    sessions: u64,
    seq: u64,
    at: f64,
}

impl Planner {
    pub(crate) fn new(settings: PlanSettings) -> Self {
        Self {
            random: Random::seeded(&[settings.seed, 1]),
            gaps: Random::seeded(&[settings.seed, 2]),
            active: Vec::new(),
            most_active: usize::try_from(settings.devices.div_ceil(4)).unwrap_or(usize::MAX),
            sessions: 0,
            seq: 0,
            at: 0.0,
            settings,
        }
    }

    fn session(&mut self) -> &mut Session {
        let slots = self.most_active as u64;
        let slot = usize::try_from(self.random.below(slots)).unwrap_or_default();
        let slot = slot.min(self.active.len());
        let over = self
            .active
            .get(slot)
            .is_none_or(|session| session.next_part >= session.parts);
        if over {
            // Some installs are used far more than others.
            let place = self.random.unit().powi(2) * self.settings.devices as f64;
            let session = Session {
                number: self.sessions,
                device: whole(place.floor()).min(self.settings.devices.saturating_sub(1)),
                next_part: 0,
                parts: 1 + self.random.long_tail(4.0, 0.8, 120),
            };
            self.sessions += 1;
            if slot < self.active.len() {
                self.active[slot] = session;
            } else {
                self.active.push(session);
            }
        }
        &mut self.active[slot]
    }

    fn next_start(&mut self) -> Option<Duration> {
        let Rate::PerSecond(rate) = self.settings.rate else {
            return None;
        };
        let mean = 1.0 / rate;
        self.at += match self.settings.arrivals {
            Arrivals::Poisson => self.gaps.exponential(mean),
            Arrivals::Even => mean,
        };
        Some(Duration::from_secs_f64(self.at))
    }
}

impl Iterator for Planner {
    type Item = Plan;

    fn next(&mut self) -> Option<Plan> {
        if self
            .settings
            .batches
            .is_some_and(|batches| self.seq >= batches)
        {
            return None;
        }
        let at = self.next_start();
        if let (Some(at), Some(duration)) = (at, self.settings.duration)
            && at > duration
        {
            return None;
        }
        let seq = self.seq;
        self.seq += 1;
        let session = self.session();
        let part = session.next_part;
        session.next_part += 1;
        Some(Plan {
            seq,
            at,
            device: session.device,
            session: session.number,
            part,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    fn settings(arrivals: Arrivals) -> PlanSettings {
        PlanSettings {
            seed: 5,
            rate: Rate::PerSecond(200.0),
            arrivals,
            devices: 300,
            duration: Some(Duration::from_secs(20)),
            batches: None,
        }
    }

    #[test]
    fn the_seed_determines_the_plan() {
        let plans: Vec<Plan> = Planner::new(settings(Arrivals::Poisson)).collect();
        assert_eq!(
            plans,
            Planner::new(settings(Arrivals::Poisson)).collect::<Vec<_>>()
        );
        let other = PlanSettings {
            seed: 6,
            ..settings(Arrivals::Poisson)
        };
        assert_ne!(plans, Planner::new(other).collect::<Vec<_>>());
    }

    #[test]
    fn both_kinds_of_arrivals_keep_the_rate() {
        for arrivals in [Arrivals::Poisson, Arrivals::Even] {
            let count = Planner::new(settings(arrivals)).count();
            assert!((3_700..4_300).contains(&count), "{arrivals:?}: {count}");
        }
    }

    #[test]
    fn a_session_stays_on_one_device_and_numbers_its_uploads() {
        let mut sessions: HashMap<u64, (u64, u64)> = HashMap::new();
        for plan in Planner::new(settings(Arrivals::Even)) {
            let known = sessions.entry(plan.session).or_insert((plan.device, 0));
            assert_eq!(*known, (plan.device, plan.part));
            known.1 += 1;
            assert!(plan.device < 300);
        }
        assert!(
            sessions.values().any(|(_, parts)| *parts > 3),
            "no session uploads several times"
        );
    }

    #[test]
    fn a_closed_loop_has_no_schedule_and_ends_after_the_given_number() {
        let settings = PlanSettings {
            rate: Rate::Max,
            batches: Some(10),
            ..settings(Arrivals::Even)
        };
        let plans: Vec<Plan> = Planner::new(settings).collect();
        assert_eq!(plans.len(), 10);
        assert!(plans.iter().all(|plan| plan.at.is_none()));
    }
}
