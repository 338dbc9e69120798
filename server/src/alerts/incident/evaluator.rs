//! Evaluation rounds: a round evaluates every rule on its own and saves the results.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{Instant, MissedTickBehavior, interval, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use unjank_database::{
    AlertRule, AlertState, Control, ControlError, Evaluated, GroupState, Incident, IncidentKind,
    IncidentState, JsonText, Mute, Severity, new_id,
};
use unjank_foundation::clock::{Clock, UnixTime};
use uuid::Uuid;

use crate::access::Lease;
use crate::alerts::incident::link::link;
use crate::alerts::incident::moved_mutes::rename_mutes;
use crate::alerts::incident::states::{GroupStatus, MIX_SHIFT, Next, Observation, Timing, next};
use crate::alerts::judge::contributors::moved;
use crate::alerts::judge::evidence::{evidence, summary};
use crate::alerts::judge::verdict::Verdict;
use crate::alerts::judge::{Case, Judge, OpenGroup, judge};
use crate::alerts::rule::{Condition, Rule, minutes};
use crate::metrics::AlertMetrics;

/// An evaluation that takes longer has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// Rows reach ClickHouse some seconds after the server accepted them, so a round evaluates a time this far in the past.
const SETTLES: Duration = Duration::from_secs(15);

/// Evaluates the rules of all projects.
pub struct Evaluator {
    pub judge: Judge,
    pub control: Control,
    pub metrics: AlertMetrics,
    pub clock: Clock,
    pub every: Duration,
    pub lease: Lease,
}

/// The numbers of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    pub rules: usize,
    pub failed: usize,
    pub opened: usize,
    pub resolved: usize,
}

impl Evaluator {
    /// Runs a round at each interval while this server holds the lease. Skips a round if the previous one is still running.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut every = interval(self.every);
        every.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let rounds = async {
            loop {
                every.tick().await;
                self.lease.during(self.settled_round()).await;
            }
        };
        self.lease.until(shutdown, Box::pin(rounds)).await;
    }

    async fn settled_round(&self) {
        self.round(self.clock.now() - SETTLES).await;
    }

    /// Evaluates all rules as of `now`, which is some seconds ago so that the rows have arrived. A failure is saved on its rule.
    pub async fn round(&self, now: UnixTime) -> Round {
        let timer = self.metrics.round_seconds.start_timer();
        let mut round = Round::default();
        let rules = match self.control.enabled_alert_rules().await {
            Ok(rules) => rules,
            Err(error) => {
                tracing::warn!(%error, "failed to read the alert rules");
                return round;
            }
        };
        for row in &rules {
            round.rules += 1;
            match self.rule(row, now, &mut round).await {
                Ok(outcome) => self.count(outcome),
                Err(error) => {
                    round.failed += 1;
                    tracing::warn!(%error, rule = %row.id, "the state of an alert rule cannot be read or saved");
                    self.count("failed");
                }
            }
        }
        self.act(&rules).await;
        if let Ok(firing) = self.control.firing_incidents().await {
            self.metrics.firing.set(firing);
        }
        self.metrics.rounds.inc();
        self.metrics.last_round.set(self.clock.now().as_secs());
        timer.observe_duration();
        round
    }

    fn count(&self, outcome: &str) {
        self.metrics.rules.with_label_values(&[outcome]).inc();
    }

    /// Evaluates one rule and saves the result.
    async fn rule(
        &self,
        row: &AlertRule,
        now: UnixTime,
        round: &mut Round,
    ) -> Result<&'static str, ControlError> {
        let mut done = Evaluated::new((row.id, row.revision), row.evaluated_at, now);
        match self.judged(row, now, &mut done).await {
            Ok(outcome) => done.outcome = outcome,
            Err(NotEvaluated::Control(error)) => return Err(error),
            Err(NotEvaluated::Rule(error)) => {
                round.failed += 1;
                // Nothing is known, so the states stay as they are.
                done.error = Some(error);
            }
        }
        let (outcome, opened) = (done.outcome, done.opened.len());
        let resolved = done.resolved.len();
        if self.control.save_evaluation(done).await? {
            round.opened += opened;
            round.resolved += resolved;
        }
        Ok(outcome)
    }

    /// Evaluates a rule and fills `done`.
    async fn judged(
        &self,
        row: &AlertRule,
        now: UnixTime,
        done: &mut Evaluated,
    ) -> Result<&'static str, NotEvaluated> {
        let rule = match Rule::from_text(row.document.as_str()) {
            Ok(rule) => rule,
            Err(faults) => {
                let faults: Vec<_> = faults
                    .into_iter()
                    .map(|fault| format!("{}: {}", fault.path, fault.message))
                    .collect();
                return Err(NotEvaluated::Rule(faults.join("; ")));
            }
        };
        let states = self.control.alert_states(row.id).await?;
        let mut states = self.follow_moves(row, states, done).await?;
        // Mutes apply at once, unlike rows, which must settle first.
        let real_now = now + SETTLES;
        let mut mutes = self.control.mutes(&row.project, real_now).await?;
        mutes.retain(|mute| mute.holds_at(real_now));
        let mut open: Vec<OpenGroup> = states.iter().filter_map(held).collect();
        let mut verdicts = self.verdicts(&case(row, &rule, &open, now)).await?;
        // A group that moves meanwhile would have a verdict under its new name, and so a second incident.
        if !self.moves(row, &states).await?.is_empty() {
            states = self.follow_moves(row, states, done).await?;
            open = states.iter().filter_map(held).collect();
            verdicts = self.verdicts(&case(row, &rule, &open, now)).await?;
        }
        rename_mutes(&mut mutes, &done.moved);
        let case = case(row, &rule, &open, now);
        let step = Step {
            rule: row.id,
            case: &case,
            mutes: &mutes,
        };
        let outcome = step.follow(states, &verdicts, done);
        // The breakdown is optional, so all incidents share one deadline for it.
        let until = Instant::now() + PATIENCE;
        for incident in &mut done.opened {
            tracing::info!(
                rule = rule.name,
                incident = %incident.id,
                "an incident was opened"
            );
            let of = |verdict: &&Verdict| verdict.group_key() == incident.group_key;
            if let Some(verdict) = verdicts.iter().find(of) {
                let mut evidence = evidence(&case, verdict);
                let asked = moved(&self.judge, &case, verdict);
                evidence.moved = timeout_at(until, asked).await.unwrap_or_default();
                incident.evidence = JsonText::new(&evidence);
            }
        }
        Ok(outcome)
    }

    async fn verdicts(&self, case: &Case<'_>) -> Result<Vec<Verdict>, NotEvaluated> {
        match timeout(PATIENCE, judge(&self.judge, case)).await {
            Ok(Ok(verdicts)) => Ok(verdicts),
            Ok(Err(error)) => Err(NotEvaluated::Rule(error.to_string())),
            Err(_) => {
                let late = "the evaluation took longer than 30 seconds";
                Err(NotEvaluated::Rule(late.to_owned()))
            }
        }
    }
}

fn case<'c>(row: &'c AlertRule, rule: &'c Rule, held: &'c [OpenGroup], now: UnixTime) -> Case<'c> {
    Case {
        project: &row.project,
        rule,
        held,
        now,
    }
}

/// Why a rule was not evaluated.
pub(super) enum NotEvaluated {
    /// To be saved on the rule.
    Rule(String),
    Control(ControlError),
}

impl From<ControlError> for NotEvaluated {
    fn from(error: ControlError) -> Self {
        Self::Control(error)
    }
}

/// Applies the verdicts on a rule to its states.
pub(crate) struct Step<'s> {
    pub(crate) rule: Uuid,
    pub(crate) case: &'s Case<'s>,
    pub(crate) mutes: &'s [Mute],
}

impl Step<'_> {
    pub(crate) fn follow(
        &self,
        states: Vec<AlertState>,
        verdicts: &[Verdict],
        done: &mut Evaluated,
    ) -> &'static str {
        let mut states = states;
        let known = verdicts
            .iter()
            .any(|verdict| verdict.observed != Observation::Unknown);
        for verdict in verdicts {
            let key = verdict.group_key();
            let place = states.iter().position(|state| state.group_key == key);
            let before = place.map(|place| states.swap_remove(place));
            self.group(key, before, Some(verdict), done);
        }
        // A group without a verdict is unknown.
        for state in states {
            self.group(state.group_key.clone(), Some(state), None, done);
        }
        let has = |wanted| done.states.iter().any(|state| state.state == wanted);
        match () {
            () if has(GroupState::Firing) => "firing",
            () if has(GroupState::Pending) => "pending",
            () if known => "ok",
            () => "no_data",
        }
    }

    fn group(
        &self,
        key: JsonText,
        before: Option<AlertState>,
        verdict: Option<&Verdict>,
        done: &mut Evaluated,
    ) {
        let now = self.case.now;
        let observed = verdict.map_or(Observation::Unknown, |verdict| verdict.observed);
        let standing = before.as_ref().map_or(GroupStatus::Ok, standing);
        let incident = before.as_ref().and_then(|state| state.incident);
        let because = match next(standing, observed, self.patience(&key), now) {
            Next::Stay(GroupStatus::Ok) => {
                done.ok.extend(before.map(|_| key));
                return;
            }
            Next::Stay(standing) => {
                let base = before.and_then(|state| state.base);
                done.states.push(state(key, standing, base, incident));
                return;
            }
            Next::Open => {
                if let Some(verdict) = verdict {
                    let firing = self.open(key, verdict, IncidentKind::Alert, done);
                    done.states.push(firing);
                }
                return;
            }
            Next::NoteShift => None,
            Next::Resolve(because) => Some(because),
        };
        done.resolved.extend(incident.zip(because));
        match verdict.filter(|_| observed == Observation::MixShift) {
            Some(verdict) => {
                let shifted = self.open(key, verdict, IncidentKind::MixShift, done);
                done.states.push(shifted);
            }
            None => done.ok.push(key),
        }
    }

    fn patience(&self, key: &JsonText) -> Timing {
        let (rule, now) = (self.case.rule, self.case.now);
        let muted = rule.mute_windows.iter().any(|window| window.holds(now))
            || self.mutes.iter().any(|mute| mute.concerns(self.rule, key));
        Timing {
            pending_for: minutes(rule.for_minutes),
            keep_for: match rule.condition {
                // The rule watches for missing data, so missing data must not end the incident.
                Condition::Absence {} => Duration::MAX,
                _ => minutes(rule.keep_minutes),
            },
            muted,
        }
    }

    /// Opens an incident and returns the state of its group.
    fn open(
        &self,
        key: JsonText,
        verdict: &Verdict,
        kind: IncidentKind,
        done: &mut Evaluated,
    ) -> AlertState {
        let now = self.case.now;
        let incident = self.incident(key.clone(), verdict, kind);
        let standing = match kind {
            IncidentKind::Alert => GroupStatus::Firing {
                since: now,
                seen_at: now,
            },
            IncidentKind::MixShift => GroupStatus::Shifted { since: now },
        };
        let id = incident.id;
        done.opened.push(incident);
        state(key, standing, verdict.sides.base_version.clone(), Some(id))
    }

    fn incident(&self, group_key: JsonText, verdict: &Verdict, kind: IncidentKind) -> Incident {
        let (case, rule) = (self.case, self.case.rule);
        let shift = kind == IncidentKind::MixShift;
        let severity = if shift { Severity::Info } else { rule.severity };
        let mut labels = BTreeMap::from([
            ("alertname".to_owned(), rule.name.clone()),
            ("severity".to_owned(), severity.as_str().to_owned()),
            ("project".to_owned(), case.project.to_owned()),
            ("rule".to_owned(), self.rule.to_string()),
        ]);
        if !rule.owner.is_empty() {
            labels.insert("owner".to_owned(), rule.owner.clone());
        }
        for (name, value) in &verdict.group {
            labels.insert(name.clone(), value.clone());
        }
        if let Some(version) = &verdict.sides.version {
            labels.insert("app_version".to_owned(), version.clone());
        }
        let mut summary = summary(rule, verdict);
        if shift {
            summary.push_str("; only the mix of devices changed");
        }
        Incident {
            id: new_id(case.now),
            project: case.project.to_owned(),
            rule: self.rule,
            group_key,
            kind,
            title: rule.name.clone(),
            severity,
            owner: rule.owner.clone(),
            labels,
            summary,
            link: link(case.project, rule, &verdict.group, &verdict.sides),
            evidence: JsonText::new(&evidence(case, verdict)),
            state: if shift {
                IncidentState::Resolved
            } else {
                IncidentState::Firing
            },
            started_at: case.now,
            resolved_at: shift.then_some(case.now),
            resolved_because: shift.then(|| MIX_SHIFT.to_owned()),
            acknowledged_at: None,
            acknowledged_by: None,
            assignee: None,
            action: None,
        }
    }
}

pub(crate) fn held(state: &AlertState) -> Option<OpenGroup> {
    if state.state != GroupState::Firing {
        return None;
    }
    Some(OpenGroup {
        group: state.group_key.read().ok()?,
        base: state.base.clone(),
    })
}

fn standing(state: &AlertState) -> GroupStatus {
    let since = state.since;
    match state.state {
        GroupState::Pending => GroupStatus::Pending { since },
        GroupState::Shifted => GroupStatus::Shifted { since },
        GroupState::Firing => GroupStatus::Firing {
            since,
            seen_at: state.seen_at,
        },
    }
}

fn state(
    group_key: JsonText,
    standing: GroupStatus,
    base: Option<String>,
    incident: Option<Uuid>,
) -> AlertState {
    let (state, since, seen_at) = match standing {
        GroupStatus::Firing { since, seen_at } => (GroupState::Firing, since, seen_at),
        GroupStatus::Shifted { since } => (GroupState::Shifted, since, since),
        GroupStatus::Pending { since } => (GroupState::Pending, since, since),
        // Never saved.
        GroupStatus::Ok => (
            GroupState::Pending,
            UnixTime::default(),
            UnixTime::default(),
        ),
    };
    AlertState {
        group_key,
        state,
        since,
        seen_at,
        base,
        incident,
    }
}
