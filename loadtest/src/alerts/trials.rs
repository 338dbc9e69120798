//! Roll-outs with a change: measures how soon a slow-down is found, and whether a different mix of devices is recognized as such.

use std::fmt::Write;

use anyhow::{Result, anyhow};
use serde_json::Value;

use super::Bench;
use super::simulate::{Course, Happened};
use crate::console;
use crate::fleet::{Added, BATCHES, DAY, Fleet, HOUR, MONDAY, Releases, SPANS, SlowDown, Stretch};

/// A kind of roll-out.
#[derive(Clone, Copy)]
struct Kind {
    name: &'static str,
    factor: f64,
    /// Share of the installs with the new version that are slower.
    share: f64,
    /// Whether the new version has twice as many weak devices.
    mixed: bool,
    wanted: Wanted,
}

#[derive(Clone, Copy, PartialEq)]
enum Wanted {
    /// At least nine in ten fire within a quarter of an hour.
    Soon,
    /// Reported, but not judged.
    Shown,
    Shift,
    Nothing,
}

const fn slower(name: &'static str, factor: f64, wanted: Wanted) -> Kind {
    Kind {
        name,
        factor,
        share: 1.0,
        mixed: false,
        wanted,
    }
}

const KINDS: [Kind; 8] = [
    slower("nothing", 1.0, Wanted::Nothing),
    slower("5 % slower", 1.05, Wanted::Shown),
    slower("10 % slower", 1.1, Wanted::Soon),
    slower("20 % slower", 1.2, Wanted::Soon),
    Kind {
        share: 0.5,
        ..slower("20 % slower for half of the installs", 1.2, Wanted::Shown)
    },
    Kind {
        mixed: true,
        ..slower("twice as many weak devices", 1.0, Wanted::Shift)
    },
    Kind {
        mixed: true,
        ..slower(
            "10 % slower, twice as many weak devices",
            1.1,
            Wanted::Shown,
        )
    },
    Kind {
        mixed: true,
        ..slower("20 % slower, twice as many weak devices", 1.2, Wanted::Soon)
    },
];

/// With 0.75 `checkout` spans per session and a fifth of the fleet: 5,000 samples per hour in the new version.
const SESSIONS_AN_HOUR: f64 = 33_300.0;
const NEW: f64 = 0.2;
/// Share of all sessions. Raises weak devices from 30 % to 60 % of the new version's sessions, given that strong devices update
/// sooner.
const ADDED: f64 = 0.11;
const WATCHED: &str = "checkout";
/// Seconds after the release.
const WATCHED_FOR: f64 = 2_700.0;

struct Trial {
    project: String,
    /// Time of the release, in seconds since the epoch.
    at: f64,
}

/// The roll-outs to try.
pub(super) struct Rollouts<'r> {
    /// Number of each kind.
    pub(super) trials: u64,
    /// Minutes between two evaluations.
    pub(super) step: u64,
    /// The kinds to try, or all if there are none.
    pub(super) only: &'r [String],
}

/// Returns the table, whether the results are as required, and the number of evaluations.
pub(super) async fn report(bench: &Bench, rollouts: &Rollouts<'_>) -> Result<(String, bool, u64)> {
    let Rollouts { trials, step, only } = *rollouts;
    let rule = super::rules::of_spans(&bench.templates)?;
    let mut text = format!(
        "Rule: `{rule}`\n\n| the new version brings | roll-outs | fired | within 15 min | minutes: median | p90 | most | mix shift reported | others fired |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    let (mut well, mut evaluations) = (true, 0);
    let wanted = |kind: &Kind| only.is_empty() || only.iter().any(|one| one == kind.name);
    for (place, kind) in KINDS.iter().enumerate().filter(|(_, kind)| wanted(kind)) {
        let mut minutes = Vec::new();
        let (mut shifts, mut others) = (0, 0);
        let mut all = Vec::new();
        for number in 0..trials {
            all.push(fill(bench, kind, place, number).await?);
        }
        bench.simulator.roll_up()?;
        for (trial, happened) in all.iter().zip(run_two_by_two(bench, &rule, &all, step)?) {
            minutes.extend(first(&happened, "fired").map(|one| one.minutes_after(trial.at)));
            evaluations += happened.evaluations;
            shifts += u64::from(first(&happened, "mix_shift").is_some());
            let other = happened.transitions.iter();
            others += other
                .filter(|one| one.what == "fired" && !of_watched(one))
                .inspect(|one| console::say(&format!("{}: {}", trial.project, one.summary)))
                .count();
        }
        minutes.sort_by(f64::total_cmp);
        let soon = minutes.iter().filter(|one| **one <= 15.0).count();
        let at = |share: f64| {
            let place = unjank_random::whole((minutes.len().max(1) - 1) as f64 * share) as usize;
            minutes
                .get(place)
                .map_or("-".to_owned(), |it| format!("{it:.0}"))
        };
        let row = format!(
            "| {} | {trials} | {} | {soon} | {} | {} | {} | {shifts} | {others} |",
            kind.name,
            minutes.len(),
            at(0.5),
            at(0.9),
            at(1.0)
        );
        console::say(&row);
        writeln!(text, "{row}")?;
        let nearly = |count: usize| count as f64 >= 0.9 * trials as f64;
        well &= match kind.wanted {
            Wanted::Soon => nearly(soon),
            Wanted::Shown => true,
            Wanted::Shift => minutes.is_empty() && nearly(usize::try_from(shifts)?),
            Wanted::Nothing => minutes.is_empty(),
        };
    }
    Ok((text, well, evaluations))
}

fn run_two_by_two(
    bench: &Bench,
    rule: &Value,
    trials: &[Trial],
    step: u64,
) -> Result<Vec<Happened>> {
    let run = |trial: &Trial| {
        let course = Course {
            from: trial.at,
            to: trial.at + WATCHED_FOR,
            step,
        };
        let rules = std::slice::from_ref(rule);
        bench.simulator.run(&trial.project, rules, course)
    };
    let (one, other) = trials.split_at(trials.len() / 2);
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(|| other.iter().map(run).collect::<Result<Vec<_>>>());
        (
            one.iter().map(run).collect::<Result<Vec<_>>>(),
            other.join(),
        )
    });
    let other = other.map_err(|_| anyhow!("a simulation thread panicked"))?;
    Ok([one?, other?].concat())
}

fn of_watched(one: &super::simulate::Transition) -> bool {
    one.group.get("name").is_some_and(|name| name == WATCHED)
}

fn first<'h>(happened: &'h Happened, what: &str) -> Option<&'h super::simulate::Transition> {
    happened
        .transitions
        .iter()
        .find(|one| one.what == what && of_watched(one))
}

/// Fills the fleet of a roll-out unless it exists, from ten minutes before the hour of the release until the end of the evaluated
/// time.
async fn fill(bench: &Bench, kind: &Kind, place: usize, number: u64) -> Result<Trial> {
    let hours = number as f64 * 31.0 % 144.0;
    let at = MONDAY + hours * HOUR + number as f64 * 7.0 % 50.0 * 60.0;
    let fleet = Fleet {
        seed: 1_000 * (place as u64 + 1) + number,
        installs: 50_000,
        releases: Releases::Step { at, share: NEW },
        slow_down: Some(SlowDown {
            factor: kind.factor,
            version: 2,
            share: kind.share,
            from: at,
        }),
        added: kind.mixed.then_some(Added {
            share: ADDED,
            from: at,
        }),
    };
    let begin = (at / HOUR).floor() * HOUR - 600.0;
    let seconds = at + WATCHED_FOR + 60.0 - begin;
    debug_assert!(
        seconds < DAY,
        "a period of a day or more would follow the hours and weekdays"
    );
    let stretch = Stretch {
        part: 0,
        begin,
        seconds,
        sessions: unjank_random::whole(SESSIONS_AN_HOUR * seconds / HOUR),
    };
    let project = fleet
        .fill(&bench.clickhouse, &[SPANS, BATCHES], &[stretch])
        .await?;
    Ok(Trial { project, at })
}
