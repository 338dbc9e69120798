//! Replays a rule on past data, with the verdicts and the state machine of live evaluation. Nothing is saved.

use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::alerts::incident::evaluator::{Step, held};
use crate::alerts::judge::verdict::Group;
use crate::alerts::judge::{Case, Judge, OpenGroup, judge};
use crate::alerts::rule::Rule;
use crate::clock::{UnixTime, micros};
use crate::query::QueryError;
use crate::store::control::{AlertState, Evaluated, Incident, JsonText};

/// The clock counts microseconds, so that a step is at least one.
const LEAST_STEP: Duration = Duration::from_micros(1);

/// A rule, and the period to replay it on.
pub struct Replay<'r> {
    pub project: &'r str,
    pub rule: &'r Rule,
    pub from: UnixTime,
    pub to: UnixTime,
    /// The time from one evaluation to the next. Longer if `patience` does not suffice for so many.
    pub step: Duration,
    /// The replay stops after this time.
    pub patience: Duration,
}

/// A transition that would have happened.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = AlertTransition)]
pub struct Transition {
    pub at: UnixTime,
    /// `fired`, `resolved` or `mix_shift`.
    pub what: &'static str,
    pub group: Group,
    /// One line with the numbers, or the reason for the end.
    pub summary: String,
    /// Path and query of the screen with the same numbers.
    pub link: String,
}

/// How far a replay got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplayProgress {
    pub evaluations: u64,
    /// The time of the last evaluation.
    pub until: UnixTime,
    pub complete: bool,
}

/// States and open incidents in memory.
#[derive(Default)]
struct Memory {
    states: Vec<AlertState>,
    open: Vec<Incident>,
}

/// Evaluates a rule at each step of a period and reports the transitions.
///
/// # Errors
/// If a query fails.
pub async fn replay(
    judged_by: &Judge,
    replay: &Replay<'_>,
    mut report: impl FnMut(Transition),
) -> Result<ReplayProgress, QueryError> {
    let began = Instant::now();
    let mut memory = Memory::default();
    let mut tried = ReplayProgress::default();
    let mut now = replay.from;
    while now <= replay.to {
        if began.elapsed() >= replay.patience {
            return Ok(tried);
        }
        let held: Vec<OpenGroup> = memory.states.iter().filter_map(held).collect();
        let case = Case {
            project: replay.project,
            rule: replay.rule,
            held: &held,
            now,
        };
        let verdicts = judge(judged_by, &case).await?;
        let mut done = Evaluated::new((Uuid::nil(), 0), None, now);
        let step = Step {
            rule: Uuid::nil(),
            case: &case,
            mutes: &[],
        };
        step.follow(memory.states.clone(), &verdicts, &mut done);
        memory.keep(done).into_iter().for_each(&mut report);
        tried.evaluations += 1;
        tried.until = now;
        if now == replay.to {
            break;
        }
        let step = affordable(replay, began.elapsed(), tried.evaluations, now);
        now += step;
        // Evaluate the end of the period even with long steps.
        if step > replay.step {
            now = now.min(replay.to);
        }
    }
    tried.complete = true;
    Ok(tried)
}

/// Returns the step that fits the rest of the period into the time left, at the speed so far. The speed counts once a quarter of the
/// time is used.
fn affordable(replay: &Replay<'_>, elapsed: Duration, evaluations: u64, now: UnixTime) -> Duration {
    if elapsed < replay.patience / 4 {
        return replay.step.max(LEAST_STEP);
    }
    let each = (elapsed.as_micros() / u128::from(evaluations.max(1))).max(1);
    // Keep a reserve, because firing groups take more queries.
    let left = replay.patience.saturating_sub(elapsed).as_micros() / 10 * 9;
    let count = u64::try_from(left / each).unwrap_or(u64::MAX).max(1);
    let rest = micros(replay.to.since(now)).unsigned_abs();
    let even = Duration::from_micros(rest.div_ceil(count));
    even.max(replay.step).max(LEAST_STEP)
}

impl Memory {
    /// Applies an evaluation as the control database does, and returns the transitions.
    fn keep(&mut self, done: Evaluated) -> Vec<Transition> {
        let at = done.at;
        let mut happened = Vec::new();
        for (id, because) in done.resolved {
            let place = self.open.iter().position(|incident| incident.id == id);
            happened.extend(place.map(|place| {
                let mut ended = transition(self.open.swap_remove(place), at, "resolved");
                ended.summary = because.to_owned();
                ended
            }));
        }
        for incident in done.opened {
            let firing = incident.resolved_at.is_none();
            let what = if firing { "fired" } else { "mix_shift" };
            happened.push(transition(incident.clone(), at, what));
            if firing {
                self.open.push(incident);
            }
        }
        let changed = |key: &JsonText| {
            done.ok.contains(key) || done.states.iter().any(|state| state.group_key == *key)
        };
        self.states.retain(|state| !changed(&state.group_key));
        self.states.extend(done.states);
        happened
    }
}

fn transition(incident: Incident, at: UnixTime, what: &'static str) -> Transition {
    Transition {
        at,
        what,
        group: incident.group_key.read().unwrap_or_default(),
        summary: incident.summary,
        link: incident.link,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_get_longer_when_time_is_too_short_for_all() -> Result<(), Vec<crate::alerts::RuleFault>>
    {
        let rule = Rule::from_value(serde_json::json!({
            "name": "Spans", "metric": {"signal": "spans", "measure": "count"}, "condition": {"kind": "threshold", "above": 1.0},
        }))?;
        let replay = |patience| Replay {
            project: "shop",
            rule: &rule,
            from: UnixTime::default(),
            to: UnixTime::from_micros(1_000),
            step: LEAST_STEP,
            patience,
        };
        let second = Duration::from_secs(1);
        let step = |replay: &Replay<'_>, elapsed, evaluations| {
            let now = UnixTime::from_micros(100);
            affordable(replay, elapsed, evaluations, now).as_micros()
        };
        let hasty = replay(12 * second);
        assert_eq!(step(&hasty, second, 1), 1, "too early");
        // Nine tenths of the nine seconds left, at one second each: eight more evaluations.
        assert_eq!(step(&hasty, 3 * second, 3), 113);
        assert_eq!(step(&hasty, 13 * second, 3), 900);
        let patient = replay(Duration::MAX);
        assert_eq!(step(&patient, 3 * second, 3), 1);
        Ok(())
    }
}
