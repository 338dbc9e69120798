//! Each round, what incidents placed in the remote configuration is held against what they are to have placed: overrides that end by
//! themselves, saved as people save, and taken back when the incident is over. Nothing here is remembered outside of the control database.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::timeout;
use unjank_protocol::Timestamp;
use unjank_protocol::config::Document;

use super::action::{Acted, Action};
use super::cohort::{cohort, span_names};
use super::evaluator::{Evaluator, PATIENCE};
use super::raise::{Patch, Wish, with, without};
use super::rule::Rule;
use crate::control::Project;
use crate::control::configurations::{Draft, SaveError, compile, save};
use crate::control::preview::{Proposal, preview};
use crate::remote_config::{Device, Override, PLACED};
use crate::store::control::{
    ActionNote, ActionState, Actor, AlertRule, ControlError, DocumentKind, Incident, IncidentState,
};

const KIND: DocumentKind = DocumentKind::Configuration;
/// How often a save is tried in a round when others save at the same time.
const TRIES: usize = 5;
/// How often a raise is made smaller until it fits the budget.
const SMALLER: usize = 6;
/// Of the 1,024 overrides of a project, incidents take no more.
const MOST_PLACED: usize = 20;
const HOUR: i64 = 3_600_000_000;

/// Why nothing was placed.
enum Not {
    /// For good: it is said on the incident.
    Refused(String),
    /// The next round tries again.
    Yet(String),
}

impl From<ControlError> for Not {
    fn from(error: ControlError) -> Self {
        Self::Yet(error.to_string())
    }
}

/// An incident of a rule that acts.
struct Case<'c> {
    incident: &'c Incident,
    action: &'c Action,
    when: crate::remote_config::Condition,
    wish: Wish,
    /// Events a day that the rule's other incidents leave.
    budget: f64,
}

/// A configuration as it is.
struct Current {
    value: Value,
    revision: i64,
    /// What devices get whom no override is for.
    base: Document,
}

impl Evaluator {
    /// Takes back what is over, then places what is new. What fails is tried in the next round.
    pub(super) async fn act(&self, rules: &[AlertRule]) {
        if let Err(error) = self.look_after_all(rules).await {
            tracing::warn!(%error, "overrides of incidents are not looked after");
        }
        for row in rules {
            let Ok(rule) = Rule::from_text(&row.document) else {
                continue;
            };
            if let Some(action) = &rule.action
                && let Err(error) = self.place_all(row, &rule, action).await
            {
                tracing::warn!(%error, rule = %row.id, "an alert rule does not act yet");
            }
        }
    }

    async fn look_after_all(&self, rules: &[AlertRule]) -> Result<(), ControlError> {
        for incident in self.control.incidents_with_overrides().await? {
            let row = rules.iter().find(|row| row.id == incident.rule);
            let rule = row.and_then(|row| Rule::from_text(&row.document).ok());
            if let Err(error) = self.look_after(&incident, rule.as_ref()).await {
                tracing::warn!(%error, incident = %incident.id, "an override is not looked after");
            }
        }
        Ok(())
    }

    /// Whether its override is still wanted, still there, and still raises.
    async fn look_after(&self, incident: &Incident, rule: Option<&Rule>) -> Result<(), SaveError> {
        let Some(acted) = acted(incident) else {
            return Ok(());
        };
        let id = id_of(incident);
        for _ in 0..TRIES {
            let current = self.current(&incident.project).await?;
            let there = find(&current.value, &id);
            let because = match &there {
                None => {
                    Some("somebody took the override out of the remote configuration".to_owned())
                }
                Some(_) if there != acted.written => {
                    Some("somebody changed the override, and looks after it from now on".to_owned())
                }
                Some(_) => self.over(incident, rule, &acted),
            };
            let ours = there.is_some() && there == acted.written;
            let (value, acted) = match (because, rule) {
                (Some(because), _) => {
                    let ended = self.ended(&acted, because);
                    if !ours {
                        self.note(incident, ActionState::Ended, &ended).await?;
                        return Ok(());
                    }
                    (without(&current.value, &id).0, ended)
                }
                (None, Some(rule)) => match self.again(&current, rule, incident, &acted) {
                    Some(again) => again,
                    None => return Ok(()),
                },
                (None, None) => return Ok(()),
            };
            match self.write(incident, (value, current.revision), acted).await {
                Err(SaveError::Control(ControlError::Conflict { .. })) => {}
                done => return done,
            }
        }
        Ok(())
    }

    /// Why the override of an incident is over.
    fn over(&self, incident: &Incident, rule: Option<&Rule>, acted: &Acted) -> Option<String> {
        if incident.state == IncidentState::Resolved {
            let because = incident.resolved_because.as_deref().unwrap_or("resolved");
            return Some(format!("the incident ended: {because}"));
        }
        if rule.is_none_or(|rule| rule.action.as_ref() != Some(&acted.asked)) {
            return Some("the rule's action was changed".to_owned());
        }
        let over = self.clock.now() >= acted.until;
        over.then(|| "its time is over".to_owned())
    }

    /// The override anew where the configuration was edited around it: it must go on raising, and lower nothing.
    fn again(
        &self,
        current: &Current,
        rule: &Rule,
        incident: &Incident,
        acted: &Acted,
    ) -> Option<(Value, Acted)> {
        let mut wish = wish(incident, rule, &acted.asked);
        let rates = serde_json::to_value(&acted.rates).unwrap_or_default();
        wish.rates = serde_json::from_value(rates).unwrap_or_default();
        let Patch { value: patch, .. } = wish.over(&current.base, 1.0);
        if patch.is_empty() {
            let ended = self.ended(acted, "the devices send as much without it".to_owned());
            return Some((without(&current.value, &id_of(incident)).0, ended));
        }
        let mut written = acted.written.clone()?;
        written.patch = patch.into();
        let value = with(&current.value, text(&written)?);
        let anew = || Acted {
            written: Some(written.clone()),
            ..acted.clone()
        };
        let same = value == with_written(&current.value, acted);
        (!same).then(|| (value, anew()))
    }

    fn ended(&self, acted: &Acted, because: String) -> Acted {
        Acted {
            state: ActionState::Ended.as_str().to_owned(),
            because: Some(because),
            ended_at: Some(self.clock.now()),
            ..acted.clone()
        }
    }

    async fn place_all(
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
                    tracing::warn!(why, incident = %incident.id, "an incident does not act yet");
                    return Ok(());
                }
                Err(_) => "what it would bring could not be foreseen in 30 seconds".to_owned(),
            };
            tracing::info!(why, incident = %incident.id, "an incident does not act");
            let mut refused = self.acted(action, ActionState::Refused);
            refused.because = Some(why);
            self.note(&incident, ActionState::Refused, &refused).await?;
        }
        Ok(())
    }

    async fn place(&self, incident: &Incident, rule: &Rule, action: &Action) -> Result<(), Not> {
        let mut others = self.control.incidents_with_overrides().await?;
        others.retain(|other| other.project == incident.project);
        if others.len() >= MOST_PLACED {
            let message = format!("incidents of the project have {MOST_PLACED} overrides already");
            return Err(Not::Refused(message));
        }
        let of_rule = others.iter().filter(|other| other.rule == incident.rule);
        let spent: f64 = of_rule
            .filter_map(acted)
            .map(|acted| acted.foreseen_events_per_day)
            .sum();
        let when = cohort(&labels(incident), &rule.metric).map_err(Not::Refused)?;
        let case = Case {
            incident,
            action,
            when,
            wish: wish(incident, rule, action),
            budget: as_f64(action.events_per_day) - spent,
        };
        for _ in 0..TRIES {
            let current = self.current(&incident.project).await.map_err(not)?;
            let (value, acted) = self.plan(&case, &current).await?;
            match self.write(incident, (value, current.revision), acted).await {
                Err(SaveError::Control(ControlError::Conflict { .. })) => {}
                done => return done.map_err(not),
            }
        }
        Err(Not::Yet(
            "others save the remote configuration all the time".to_owned(),
        ))
    }

    /// The largest raise that fits the budget, tried on the installs of the last 24 hours.
    async fn plan(&self, case: &Case<'_>, current: &Current) -> Result<(Value, Acted), Not> {
        let (mut wish, mut part, mut notes) = (case.wish.clone(), 1.0, Vec::new());
        for _ in 0..SMALLER {
            let patch = wish.over(&current.base, part);
            if patch.value.is_empty() {
                break;
            }
            let mut acted = self.acted(case.action, ActionState::Placed);
            let written = self.written(case, &acted, &patch);
            let one = text(&written).unwrap_or_default();
            let value = with(&current.value, one);
            let proposed = compile(value.clone(), 0).map_err(not)?.compiled;
            let now = compile(current.value.clone(), 0).map_err(not)?.compiled;
            let proposal = Proposal {
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
                wish.leave_out(name);
                notes.push(format!(
                    "`{name}` stays: no install sends any, so that nothing can be foreseen"
                ));
                continue;
            }
            if outlook.changed == 0 {
                let message = "of the installs of the last 24 hours none would send more";
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
                    "too many kinds of spans to read them all: more is to be expected".to_owned(),
                );
            }
            notes.extend(
                outlook
                    .unmodelled
                    .iter()
                    .map(|section| format!("what `{section}` changes is not foreseen")),
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
                format!("nothing fits the {left:.0} events per day that are left of the budget")
            }
            false if notes.is_empty() => "the devices send as much already".to_owned(),
            false => notes.join("; "),
        }))
    }

    fn written(&self, case: &Case<'_>, acted: &Acted, patch: &Patch) -> Override {
        let incident = case.incident;
        let note = format!("{}: {} {}", incident.title, incident.summary, incident.link);
        Override {
            id: id_of(incident),
            // Within 1,024 bytes whatever the letters are.
            note: note.chars().take(250).collect(),
            enabled: true,
            when: case.when.clone(),
            patch: patch.value.clone().into(),
            expires_at: Some(Timestamp::from_micros(acted.until)),
        }
    }

    fn acted(&self, action: &Action, state: ActionState) -> Acted {
        let now = self.clock.now();
        Acted {
            state: state.as_str().to_owned(),
            because: None,
            asked: action.clone(),
            revision: None,
            rates: BTreeMap::new(),
            foreseen_events_per_day: 0.0,
            installs: 0,
            notes: Vec::new(),
            at: now,
            until: now + i64::from(action.hours) * HOUR,
            ended_at: None,
            written: None,
        }
    }

    /// Saves the next revision, and what the incident remembers of it, in one transaction.
    async fn write(
        &self,
        incident: &Incident,
        (configuration, expected_revision): (Value, i64),
        mut acted: Acted,
    ) -> Result<(), SaveError> {
        acted.revision = Some(expected_revision + 1);
        let ended = acted.state == ActionState::Ended.as_str();
        let state = if ended {
            ActionState::Ended
        } else {
            ActionState::Placed
        };
        let what = match &acted.because {
            Some(because) => format!("override taken back, {because}"),
            None => "override placed".to_owned(),
        };
        let about = format!("{}: {} {}", incident.title, incident.summary, incident.link);
        let about: String = about.chars().take(1_000).collect();
        let draft = Draft {
            configuration,
            note: format!("incident {}: {what}. {about}", incident.id),
            expected_revision,
            action: Some(note_of(incident, state, &acted)),
        };
        let (actor, now) = (Actor::system("alerts"), self.clock.now());
        let saved = save(&*self.control, &incident.project, draft, &actor, now).await?;
        let revision = saved.document.revision;
        tracing::info!(what, revision, incident = %incident.id, "an incident changed the remote configuration");
        Ok(())
    }

    async fn note(
        &self,
        incident: &Incident,
        state: ActionState,
        acted: &Acted,
    ) -> Result<(), ControlError> {
        // Who was first is right too.
        let _first = self
            .control
            .note_action(note_of(incident, state, acted))
            .await?;
        Ok(())
    }

    async fn current(&self, project: &str) -> Result<Current, SaveError> {
        let (value, revision) = match self.control.latest_document(KIND, project).await {
            Ok(document) => {
                let value = serde_json::from_str(&document.text);
                let unread =
                    |_| ControlError::Invalid("the configuration does not read".to_owned());
                (value.map_err(unread)?, document.revision)
            }
            Err(ControlError::NotFound) => (json!({}), 0),
            Err(error) => return Err(error.into()),
        };
        let bare = match value.get("base") {
            Some(base) => json!({ "base": base }),
            None => json!({}),
        };
        let bare = compile(bare, 0)?.compiled;
        let base = bare
            .resolve(&Device::default(), self.clock.now())
            .document
            .clone();
        Ok(Current {
            value,
            revision,
            base,
        })
    }
}

fn not(error: SaveError) -> Not {
    match error {
        SaveError::Control(error) => error.into(),
        SaveError::Faults(faults) => {
            let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
            Not::Refused(format!(
                "the configuration would have faults: {}",
                faults.join("; ")
            ))
        }
    }
}

fn note_of(incident: &Incident, state: ActionState, acted: &Acted) -> ActionNote {
    ActionNote {
        incident: incident.id,
        before: incident.action.clone(),
        state,
        text: serde_json::to_string(acted).unwrap_or_default(),
    }
}

fn id_of(incident: &Incident) -> String {
    format!("{PLACED}{}", incident.id)
}

fn acted(incident: &Incident) -> Option<Acted> {
    serde_json::from_str(incident.action.as_deref()?).ok()
}

fn labels(incident: &Incident) -> BTreeMap<String, String> {
    serde_json::from_str(&incident.labels).unwrap_or_default()
}

fn wish(incident: &Incident, rule: &Rule, action: &Action) -> Wish {
    Wish {
        rates: action.sampling,
        names: span_names(&labels(incident), &rule.metric),
        tracing: action.tracing,
    }
}

fn find(configuration: &Value, id: &str) -> Option<Override> {
    let mut list = configuration.get("overrides")?.as_array()?.iter();
    let found = list.find(|one| one["id"] == id)?;
    serde_json::from_value(found.clone()).ok()
}

fn text(written: &Override) -> Option<Value> {
    serde_json::to_value(written).ok()
}

/// The configuration as it is, with the override in the form in which it is written here.
fn with_written(configuration: &Value, acted: &Acted) -> Value {
    let mut configuration = configuration.clone();
    let list = configuration
        .get_mut("overrides")
        .and_then(Value::as_array_mut);
    if let Some(written) = acted.written.as_ref()
        && let Some(own) = list.and_then(|list| list.iter_mut().find(|one| one["id"] == written.id))
        && let Some(text) = text(written)
    {
        *own = text;
    }
    configuration
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
