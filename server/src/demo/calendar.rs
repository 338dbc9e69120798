//! Simulates when people open the app, by hour and weekday.

use unjank_random::{Dice, Random};

use super::Plan;
use super::population::Install;
use super::session::{Session, SimulatedSession};
use super::stacks::Stack;

pub(super) const HOUR_US: i64 = 3_600_000_000;
pub(super) const DAY_US: i64 = 24 * HOUR_US;

/// Relative use in each hour of the user's local day, from midnight.
const HOURS: [f64; 24] = [
    0.25, 0.12, 0.08, 0.06, 0.06, 0.1, 0.3, 0.7, 0.95, 0.9, 0.85, 0.95, 1.25, 1.15, 0.9, 0.85,
    0.95, 1.15, 1.5, 1.9, 2.2, 2.1, 1.5, 0.7,
];
/// Relative use on each day of the week, from Monday.
const WEEKDAYS: [f64; 7] = [0.92, 0.88, 0.9, 0.95, 1.05, 1.2, 1.3];

/// Returns all sessions of a day, unordered. Days are 24 hours long and count from the start of the month, which can be at any
/// time of day.
pub(super) fn uses_of_day<'p>(
    plan: &Plan,
    installs: &'p [Install],
    stacks: &'p [Stack],
    day: u32,
) -> Vec<(&'p Install, SimulatedSession)> {
    let begin = plan.begin() + i64::from(day) * DAY_US;
    let hours = Dice::new(HOURS);
    let mut sessions = Vec::new();
    for install in installs {
        let random = &mut Random::seeded(&[plan.seed, 2, install.number, u64::from(day)]);
        let expected = install.uses_a_day * WEEKDAYS[weekday(begin)];
        let uses = expected.floor() + f64::from(u8::from(random.chance(expected.fract())));
        for number in 0..unjank_random::whole(uses) {
            let at = begin + time_of_day(install, begin, &hours, random);
            let gone = (at - plan.begin()) as f64 / (i64::from(plan.days) * DAY_US) as f64;
            let random = Random::seeded(&[plan.seed, 3, install.number, u64::from(day), number]);
            sessions.push((
                install,
                Session::new(install, stacks, (at, gone), random).simulate(),
            ));
        }
    }
    sessions
}

/// Returns the weekday, with 0 for Monday. The first day of the epoch was a Thursday.
fn weekday(at: i64) -> usize {
    usize::try_from((at.div_euclid(DAY_US) + 3).rem_euclid(7)).unwrap_or_default()
}

/// Returns a time of day in microseconds after `begin`. The hours are distributed by the install's local time.
fn time_of_day(install: &Install, begin: i64, hours: &Dice, random: &mut Random) -> i64 {
    let hour = i64::try_from(hours.roll(random)).unwrap_or_default() - install.hours_ahead;
    let within = i64::try_from(random.below(HOUR_US.unsigned_abs())).unwrap_or_default();
    (hour * HOUR_US + within - begin).rem_euclid(DAY_US)
}
