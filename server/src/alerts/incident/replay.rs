//! Replays a rule on past data, with the verdicts and the state machine of live evaluation. Nothing is saved.

use std::time::Duration;

use serde::Serialize;
use unjank_database::{AlertState, Evaluated, Incident, JsonText};
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::alerts::incident::evaluator::{Step, held};
use crate::alerts::judge::verdict::{Group, Verdict};
use crate::alerts::judge::{Case, Judge, OpenGroup, judge};
use crate::alerts::rule::Rule;
use crate::query::QueryError;

/// The clock counts microseconds, so that a step is at least one.
pub(super) const LEAST_STEP: Duration = Duration::from_micros(1);

/// A rule, and the period to replay it on.
pub struct Replay<'r> {
    pub project: &'r str,
    pub rule: &'r Rule,
    pub from: UnixTime,
    pub to: UnixTime,
    /// The time from one evaluation to the next.
    pub step: Duration,
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

/// The verdicts of one evaluation.
pub(super) struct PastRound {
    pub(super) at: UnixTime,
    pub(super) verdicts: Vec<Verdict>,
}

/// States and open incidents in memory.
#[derive(Default)]
pub(super) struct Memory {
    states: Vec<AlertState>,
    open: Vec<Incident>,
}

/// Evaluates a rule at each step of a period and reports the transitions. Returns the number of evaluations.
///
/// # Errors
/// If a query fails.
pub async fn replay(
    judged_by: &Judge,
    replay: &Replay<'_>,
    mut report: impl FnMut(Transition),
) -> Result<u64, QueryError> {
    let mut memory = Memory::default();
    let mut evaluations = 0;
    let mut now = replay.from;
    while now <= replay.to {
        let held = memory.held();
        let case = Case {
            project: replay.project,
            rule: replay.rule,
            held: &held,
            now,
        };
        let verdicts = judge(judged_by, &case).await?;
        memory
            .follow(&case, &verdicts)
            .into_iter()
            .for_each(&mut report);
        evaluations += 1;
        now += replay.step.max(LEAST_STEP);
    }
    Ok(evaluations)
}

impl Memory {
    /// Returns the groups with open incidents.
    pub(super) fn held(&self) -> Vec<OpenGroup> {
        self.states.iter().filter_map(held).collect()
    }

    /// Applies the verdicts of an evaluation and returns the transitions.
    pub(super) fn follow(&mut self, case: &Case<'_>, verdicts: &[Verdict]) -> Vec<Transition> {
        let mut done = Evaluated::new((Uuid::nil(), 0), None, case.now);
        let step = Step {
            rule: Uuid::nil(),
            case,
            mutes: &[],
        };
        step.follow(self.states.clone(), verdicts, &mut done);
        self.keep(done)
    }

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
