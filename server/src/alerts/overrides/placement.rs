//! Places the override of an incident: for which devices, at which rates, and with how many additional events.

use std::sync::Arc;

use serde_json::Value;
use tokio::time::timeout;
use unjank_database::{ActionState, AlertRule, ControlError, Incident};
use unjank_remote_config::{Condition, Override};

use crate::access::Project;
use crate::access::configurations::{SaveError, compile};
use crate::access::preview::{Proposal, preview};
use crate::alerts::incident::evaluator::{Evaluator, PATIENCE};
use crate::alerts::overrides::cohort::cohort;
use crate::alerts::overrides::rates::{Patch, TargetRates, with};
use crate::alerts::overrides::{Current, SAVE_ATTEMPTS, acted, alerts, id_of, target, text};
use crate::alerts::rule::Rule;
use crate::alerts::rule::action::{Action, ActionOutcome};

/// How many times a raise is reduced to fit the budget.
const SMALLER: usize = 6;
/// The maximum number of overrides of incidents in a project. All overrides together may be 1,024.
const MOST_PLACED: usize = 20;

/// Why nothing was placed.
enum Not {
    /// Permanent. The reason is saved on the incident.
    Refused(String),
    /// Temporary. The next round tries again.
    Yet(String),
}

impl From<ControlError> for Not {
    fn from(error: ControlError) -> Self {
        Self::Yet(error.to_string())
    }
}

/// An incident whose rule has an action.
struct Case<'c> {
    incident: &'c Incident,
    action: &'c Action,
    when: Condition,
    target: TargetRates,
    /// The events per day that the rule's other incidents leave over.
    budget: f64,
}

impl Evaluator {
    pub(crate) async fn place_all(
        &self,
        row: &AlertRule,
        rule: &Rule,
        action: &Action,
    ) -> Result<(), ControlError> {
        for incident in self.control.incidents_to_act_on(row.id).await? {
            let placed = timeout(PATIENCE, Box::pin(self.place(&incident, rule, action)));
            let why = match placed.await {
                Ok(Ok(())) => continue,
                Ok(Err(Not::Refused(why))) => why,
                Ok(Err(Not::Yet(why))) => {
                    tracing::warn!(why, incident = %incident.id, "the override of an incident cannot be placed yet");
                    return Ok(());
                }
                Err(_) => {
                    "the estimate of additional events took longer than 30 seconds".to_owned()
                }
            };
            tracing::info!(why, incident = %incident.id, "the override of an incident was refused");
            let mut refused = self.acted(action, ActionState::Refused);
            refused.because = Some(why);
            self.note(&incident, &refused).await?;
        }
        Ok(())
    }

    async fn place(&self, incident: &Incident, rule: &Rule, action: &Action) -> Result<(), Not> {
        let mut others = self.control.incidents_with_overrides().await?;
        others.retain(|other| other.project == incident.project);
        if others.len() >= MOST_PLACED {
            let message = format!("incidents of this project already have {MOST_PLACED} overrides");
            return Err(Not::Refused(message));
        }
        let of_rule = others.iter().filter(|other| other.rule == incident.rule);
        let spent: f64 = of_rule
            .filter_map(acted)
            .map(|acted| acted.foreseen_events_per_day)
            .sum();
        let when = cohort(&incident.labels, &rule.metric).map_err(Not::Refused)?;
        let case = Case {
            incident,
            action,
            when,
            target: target(incident, rule, action),
            budget: as_f64(action.events_per_day) - spent,
        };
        for _ in 0..SAVE_ATTEMPTS {
            let current = self.current(&incident.project).await.map_err(not)?;
            let (value, acted) = self.plan(&case, &current).await?;
            match self.write(incident, value, current.revision, acted).await {
                Err(SaveError::Control(ControlError::Conflict { .. })) => {}
                done => return done.map_err(not),
            }
        }
        Err(Not::Yet(
            "the saves of the remote configuration kept conflicting".to_owned(),
        ))
    }

    /// Returns the largest raise that fits the budget, estimated on the installs of the last 24 hours.
    async fn plan(
        &self,
        case: &Case<'_>,
        current: &Current,
    ) -> Result<(Value, ActionOutcome), Not> {
        let (mut target, mut part, mut notes) = (case.target.clone(), 1.0, Vec::new());
        for _ in 0..SMALLER {
            let patch = target.over(&current.base, part);
            if patch.value.is_empty() {
                break;
            }
            let mut acted = self.acted(case.action, ActionState::Placed);
            let written = self.written(case, &acted, &patch);
            let one = text(&written).unwrap_or_default();
            let value = with(&current.value, one);
            let actor = alerts();
            let proposed = compile(value.clone(), 0, &actor).await;
            let now = compile(current.value.clone(), 0, &actor).await;
            let (proposed, now) = (proposed.map_err(not)?.compiled, now.map_err(not)?.compiled);
            let proposal = Proposal {
                enabled: Vec::new(),
                project: case.incident.project.clone(),
                current: Arc::new(Project { configuration: now }),
                proposed,
                now: self.clock.now(),
            };
            let found = preview(&self.judge.clickhouse, proposal).await;
            let found = found.map_err(|failure| Not::Yet(failure.to_string()))?;
            let outlook = &found.outlook;
            let signals = || outlook.signals.iter();
            let unknown = signals().find(|one| {
                one.proposed.is_none() && patch.rates.contains_key(one.signal.as_str())
            });
            if let Some(unknown) = unknown {
                let name = unknown.signal.as_str();
                target.leave_out(name);
                notes.push(format!(
                    "`{name}` is not raised: no install sends any, so the number of events cannot be estimated"
                ));
                continue;
            }
            if outlook.changed == 0 {
                let message = "none of the installs of the last 24 hours would send more";
                return Err(Not::Refused(message.to_owned()));
            }
            let more = signals().filter_map(|one| Some(one.proposed? - one.current));
            let more = more.sum::<f64>() * found.scale();
            if more > case.budget {
                part *= (case.budget / more).max(0.0) * 0.999;
                continue;
            }
            if found.truncated {
                notes.push(
                    "there are too many kinds of spans to read them all: the estimate is too low"
                        .to_owned(),
                );
            }
            notes.extend(
                outlook
                    .unmodelled
                    .iter()
                    .map(|section| format!("the effect of `{section}` is not estimated")),
            );
            acted.rates = patch.rates;
            acted.foreseen_events_per_day = more.max(0.0);
            acted.installs = rounded(as_f64(outlook.changed) * found.scale());
            acted.notes = notes;
            acted.written = Some(written);
            return Ok((value, acted));
        }
        let left = case.budget.max(0.0);
        Err(Not::Refused(match part < 1.0 {
            true => {
                format!("no raise fits the remaining budget of {left:.0} events per day")
            }
            false if notes.is_empty() => "the base already has these rates".to_owned(),
            false => notes.join("; "),
        }))
    }

    fn written(&self, case: &Case<'_>, acted: &ActionOutcome, patch: &Patch) -> Override {
        let incident = case.incident;
        let note = format!("{}: {} {}", incident.title, incident.summary, incident.link);
        Override {
            id: id_of(incident),
            // At most 1,024 bytes in any script.
            note: note.chars().take(250).collect(),
            enabled: true,
            when: case.when.clone(),
            patch: patch.value.clone().into(),
            expires_at: Some(acted.until.into()),
        }
    }
}

fn not(error: SaveError) -> Not {
    match error {
        SaveError::Control(error) => error.into(),
        SaveError::Busy(error) => Not::Yet(error.to_string()),
        SaveError::Faults(faults) => {
            let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
            Not::Refused(format!(
                "the configuration would be invalid: {}",
                faults.join("; ")
            ))
        }
    }
}

#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
fn as_f64(count: u64) -> f64 {
    count as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are positive and far below 2^53"
)]
fn rounded(count: f64) -> u64 {
    count.round() as u64
}
