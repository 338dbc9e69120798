//! Each round reconciles the overrides that incidents have created in the remote configuration with those they should have.
//!
//! An override is saved in the same way as a user's edit. It expires at a fixed time and is removed when its incident ends. All state
//! is in the control database.

pub(crate) mod cohort;
pub(crate) mod placement;
pub(crate) mod rates;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use unjank_database::{
    ActionNote, ActionState, Actor, AlertRule, ControlError, DocumentChange, DocumentKind,
    Incident, IncidentState, JsonText,
};
use unjank_foundation::clock::HOUR;
use unjank_protocol::config::Document;
use unjank_remote_config::{Device, INCIDENT_ID_PREFIX, Override};

use crate::access::configurations::{Draft, SaveError, compile, save};
use crate::alerts::incident::evaluator::Evaluator;
use crate::alerts::overrides::cohort::span_names;
use crate::alerts::overrides::rates::{Patch, TargetRates, with, without};
use crate::alerts::rule::Rule;
use crate::alerts::rule::action::{Action, ActionOutcome, SamplingRates};

const KIND: DocumentKind = DocumentKind::Configuration;
/// How many times a round tries a save that conflicts with other saves.
pub(crate) const SAVE_ATTEMPTS: usize = 5;

/// Dimensions whose values identify a person.
const PERSONAL: [&str; 3] = ["install_id", "session_id", "user_id"];

/// The change that an override needs.
enum Due {
    Nothing,
    /// The override has ended, and the configuration needs no change.
    Note(Box<ActionOutcome>),
    Save(Value, Box<ActionOutcome>),
}

/// The saved configuration.
pub(crate) struct Current {
    pub(crate) value: Value,
    pub(crate) revision: i64,
    /// The document for devices that match no override.
    pub(crate) base: Document,
}

impl Evaluator {
    /// Removes overrides that have ended, then places new ones. The next round retries failures.
    pub(crate) async fn act(&self, rules: &[AlertRule]) {
        if let Err(error) = self.reconcile_all(rules).await {
            tracing::warn!(%error, "failed to reconcile the overrides of incidents");
        }
        for row in rules {
            let Ok(rule) = Rule::from_text(row.document.as_str()) else {
                continue;
            };
            if let Some(action) = &rule.action
                && let Err(error) = self.place_all(row, &rule, action).await
            {
                tracing::warn!(%error, rule = %row.id, "failed to place the overrides of an alert rule");
            }
        }
    }

    async fn reconcile_all(&self, rules: &[AlertRule]) -> Result<(), ControlError> {
        for incident in self.control.incidents_with_overrides().await? {
            let row = rules.iter().find(|row| row.id == incident.rule);
            let rule = row.and_then(|row| Rule::from_text(row.document.as_str()).ok());
            if let Err(error) = self.reconcile(&incident, rule).await {
                tracing::warn!(%error, incident = %incident.id, "failed to reconcile the override of an incident");
            }
        }
        Ok(())
    }

    /// Ends or updates the override of an incident if it is no longer wanted, present or effective.
    async fn reconcile(&self, incident: &Incident, rule: Option<Rule>) -> Result<(), SaveError> {
        let Some(acted) = acted(incident) else {
            return Ok(());
        };
        let rule = match rule {
            Some(rule) if rule.action.as_ref() == Some(&acted.asked) => Some(rule),
            _ => self.saved_rule(incident).await?,
        };
        let rule = rule.as_ref();
        for _ in 0..SAVE_ATTEMPTS {
            let current = self.current(&incident.project).await?;
            let (value, acted) = match self.due(&current, incident, rule, &acted) {
                Due::Nothing => return Ok(()),
                Due::Note(ended) => {
                    let noted = self.note(incident, &ended).await;
                    return Ok(noted?);
                }
                Due::Save(value, acted) => (value, acted),
            };
            match self.write(incident, value, current.revision, *acted).await {
                Err(SaveError::Control(ControlError::Conflict { .. })) => {}
                done => return done,
            }
        }
        Ok(())
    }

    /// Reads the rule of an incident again, because the override may have been placed by another server for a later revision than the one
    /// that this round began with.
    async fn saved_rule(&self, incident: &Incident) -> Result<Option<Rule>, ControlError> {
        let rule = self.control.alert_rule(&incident.project, incident.rule);
        match rule.await {
            Ok(row) if row.enabled => Ok(Rule::from_text(row.document.as_str()).ok()),
            Ok(_) | Err(ControlError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn due(
        &self,
        current: &Current,
        incident: &Incident,
        rule: Option<&Rule>,
        acted: &ActionOutcome,
    ) -> Due {
        let there = find(&current.value, &id_of(incident));
        let by_hand = |what: &str| Due::Note(Box::new(self.ended(acted, what.to_owned())));
        if there.is_none() {
            return by_hand("the override was removed by hand");
        }
        if there != acted.written {
            return by_hand("the override was changed by hand and is no longer managed");
        }
        if let Some(because) = self.end_reason(incident, rule, acted) {
            let value = without(&current.value, &id_of(incident)).0;
            return Due::Save(value, Box::new(self.ended(acted, because)));
        }
        let updated = rule.and_then(|rule| self.updated(current, rule, incident, acted));
        updated.map_or(Due::Nothing, |(value, acted)| {
            Due::Save(value, Box::new(acted))
        })
    }

    /// Returns why the override of an incident must end, or `None` if it need not.
    fn end_reason(
        &self,
        incident: &Incident,
        rule: Option<&Rule>,
        acted: &ActionOutcome,
    ) -> Option<String> {
        if incident.state == IncidentState::Resolved {
            let because = incident.resolved_because.as_deref().unwrap_or("resolved");
            return Some(format!("the incident ended: {because}"));
        }
        if rule.is_none_or(|rule| rule.action.as_ref() != Some(&acted.asked)) {
            return Some("the rule's action was changed".to_owned());
        }
        let expired = self.clock.now() >= acted.until;
        expired.then(|| "the override expired".to_owned())
    }

    /// Recomputes the override after an edit of the base, so that it still raises rates and never lowers one. Returns `None` if nothing changes.
    fn updated(
        &self,
        current: &Current,
        rule: &Rule,
        incident: &Incident,
        acted: &ActionOutcome,
    ) -> Option<(Value, ActionOutcome)> {
        let mut target = target(incident, rule, &acted.asked);
        target.rates = SamplingRates::from_names(&acted.rates);
        let Patch { value: patch, .. } = target.over(&current.base, 1.0);
        if patch.is_empty() {
            let ended = self.ended(acted, "the base already has these rates".to_owned());
            return Some((without(&current.value, &id_of(incident)).0, ended));
        }
        let mut written = acted.written.clone()?;
        written.patch = patch.into();
        let value = with(&current.value, text(&written)?);
        let updated = || ActionOutcome {
            written: Some(written.clone()),
            ..acted.clone()
        };
        let same = value == with_written(&current.value, acted);
        (!same).then(|| (value, updated()))
    }

    fn ended(&self, acted: &ActionOutcome, because: String) -> ActionOutcome {
        ActionOutcome {
            state: ActionState::Ended,
            because: Some(because),
            ended_at: Some(self.clock.now()),
            ..acted.clone()
        }
    }

    pub(crate) fn acted(&self, action: &Action, state: ActionState) -> ActionOutcome {
        let now = self.clock.now();
        ActionOutcome {
            state,
            because: None,
            asked: action.clone(),
            revision: None,
            rates: BTreeMap::new(),
            foreseen_events_per_day: 0.0,
            installs: 0,
            notes: Vec::new(),
            at: now,
            until: now + HOUR * action.hours,
            ended_at: None,
            written: None,
        }
    }

    /// Saves the next revision and the incident's record of it in one transaction.
    pub(crate) async fn write(
        &self,
        incident: &Incident,
        configuration: Value,
        expected_revision: i64,
        mut acted: ActionOutcome,
    ) -> Result<(), SaveError> {
        acted.revision = Some(expected_revision + 1);
        let what = match &acted.because {
            Some(because) => format!("override removed: {because}"),
            None => "override placed".to_owned(),
        };
        // The note outlives an erasure, in the revision and the audit log.
        let is_personal = |name: &&str| incident.labels.contains_key(*name);
        let about = match PERSONAL.iter().any(is_personal) {
            true => incident.title.clone(),
            false => format!("{}: {} {}", incident.title, incident.summary, incident.link),
        };
        let about: String = about.chars().take(1_000).collect();
        let draft = Draft {
            configuration,
            note: format!("incident {}: {what}. {about}", incident.id),
            expected_revision,
            change: DocumentChange::Saved,
            action: Some(note_of(incident, &acted)),
        };
        let (actor, now) = (alerts(), self.clock.now());
        let saved = save(&self.control, &incident.project, draft, &actor, now).await?;
        let revision = saved.document.revision;
        tracing::info!(what, revision, incident = %incident.id, "an incident changed the remote configuration");
        Ok(())
    }

    pub(crate) async fn note(
        &self,
        incident: &Incident,
        acted: &ActionOutcome,
    ) -> Result<(), ControlError> {
        // If another server recorded an outcome first, its record is kept.
        let _first = self
            .control
            .save_action_outcome(note_of(incident, acted))
            .await?;
        Ok(())
    }

    pub(crate) async fn current(&self, project: &str) -> Result<Current, SaveError> {
        let (value, revision) = match self.control.latest_document(KIND, project).await {
            Ok(document) => {
                let value = serde_json::from_str(&document.text);
                let unread =
                    |_| ControlError::Invalid("the configuration is not valid JSON".to_owned());
                (value.map_err(unread)?, document.revision)
            }
            Err(ControlError::NotFound) => (json!({}), 0),
            Err(error) => return Err(error.into()),
        };
        let bare = match value.get("base") {
            Some(base) => json!({ "base": base }),
            None => json!({}),
        };
        let bare = compile(bare, 0, &alerts()).await?.compiled;
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

fn note_of(incident: &Incident, acted: &ActionOutcome) -> ActionNote {
    ActionNote {
        incident: incident.id,
        before: incident.action.clone(),
        state: acted.state,
        outcome: JsonText::new(acted),
    }
}

/// The author of the revisions that incidents save.
pub(crate) fn alerts() -> Actor {
    Actor::system("alerts")
}

pub(crate) fn id_of(incident: &Incident) -> String {
    format!("{INCIDENT_ID_PREFIX}{}", incident.id)
}

/// Returns the saved outcome of an incident's action. An unreadable one, of a newer version, is logged and not touched.
pub(crate) fn acted(incident: &Incident) -> Option<ActionOutcome> {
    let outcome = incident.action.as_ref()?.read();
    outcome
        .inspect_err(|error| tracing::warn!(%error, incident = %incident.id, "cannot read the outcome of an action"))
        .ok()
}

pub(crate) fn target(incident: &Incident, rule: &Rule, action: &Action) -> TargetRates {
    TargetRates {
        rates: action.sampling,
        names: span_names(&incident.labels, &rule.metric),
        tracing: action.tracing,
    }
}

fn find(configuration: &Value, id: &str) -> Option<Override> {
    let mut list = configuration.get("overrides")?.as_array()?.iter();
    let found = list.find(|one| one["id"] == id)?;
    serde_json::from_value(found.clone()).ok()
}

pub(crate) fn text(written: &Override) -> Option<Value> {
    serde_json::to_value(written).ok()
}

/// Returns the configuration with the override serialized by this server, so that a difference in formatting is not a change.
fn with_written(configuration: &Value, acted: &ActionOutcome) -> Value {
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
