//! Validates rules. Every fault names its field.

use serde::Serialize;
use serde_json::Value;
use unjank_foundation::clock::{DAY, UnixTime};
use utoipa::ToSchema;

use crate::alerts::rule::{Condition, Effect, Rule};
use crate::query::NamedQuery;
use crate::store::reads::{Better, Subject, subject};

/// A fault of a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RuleFault {
    /// The field, such as `metric.measure`. Empty if the fault concerns the whole rule.
    pub path: String,
    pub message: String,
}

const WEEK_MINUTES: u32 = 10_080;
const LONGEST_WINDOW: u32 = 43_200;
const DAY_MINUTES: u32 = 1_440;
const LONGEST_UNSEEN: u32 = 60;
const MOST_DIMENSIONS: usize = 2;
const MOST_FILTERS: usize = 20;

impl Rule {
    /// Parses and validates a rule.
    ///
    /// # Errors
    /// If the value does not have the shape of a rule, or the rule cannot be evaluated.
    pub fn from_value(value: Value) -> Result<Self, Vec<RuleFault>> {
        let rule: Self = serde_path_to_error::deserialize(value).map_err(|error| {
            let path = error.path().to_string();
            let path = if path == "." { String::new() } else { path };
            vec![fault(path, error.into_inner().to_string())]
        })?;
        let faults = rule.faults();
        if faults.is_empty() {
            Ok(rule)
        } else {
            Err(faults)
        }
    }

    /// Parses a saved rule.
    ///
    /// # Errors
    /// If a newer version of the server saved it.
    pub fn from_text(text: &str) -> Result<Self, Vec<RuleFault>> {
        let value = serde_json::from_str(text)
            .map_err(|error| vec![fault("", format!("not JSON: {error}"))])?;
        Self::from_value(value)
    }

    fn faults(&self) -> Vec<RuleFault> {
        let mut faults = Vec::new();
        let name = self.name.chars().count();
        if self.name.trim().is_empty() || name > 200 || self.name.chars().any(char::is_control) {
            faults.push(fault(
                "name",
                "must be 1 to 200 characters without control characters",
            ));
        }
        if self.owner.chars().count() > 200 || self.owner.chars().any(char::is_control) {
            faults.push(fault(
                "owner",
                "must be at most 200 characters without control characters",
            ));
        }
        let mut within = |path: &str, value: u32, least: u32, most: u32| {
            if !(least..=most).contains(&value) {
                faults.push(fault(path, format!("must be between {least} and {most}")));
            }
        };
        within("window_minutes", self.window_minutes, 5, LONGEST_WINDOW);
        within("for_minutes", self.for_minutes, 0, WEEK_MINUTES);
        within("keep_minutes", self.keep_minutes, 0, WEEK_MINUTES);
        within("least_samples", self.least_samples, 1, 1_000_000_000);
        if self.mute_windows.len() > 20 {
            faults.push(fault("mute_windows", "must have at most 20 entries"));
        }
        for (place, window) in self.mute_windows.iter().enumerate() {
            if !window.fits() {
                let message = "`from` and `to` must be times such as 22:30, and `utc_offset_minutes` must be between -840 and 840";
                faults.push(fault(format!("mute_windows[{place}]"), message));
            }
        }
        if let Some(action) = &self.action {
            faults.extend(action.faults(&self.metric));
        }
        match subject(&self.metric.signal) {
            None => faults.push(fault("metric.signal", "unknown signal")),
            Some(subject) => {
                self.check_metric(subject, &mut faults);
                self.check_condition(subject, &mut faults);
            }
        }
        faults
    }

    /// Checks the names with the query API, which also supplies the messages.
    fn check_metric(&self, subject: &'static Subject, faults: &mut Vec<RuleFault>) {
        let metric = &self.metric;
        if metric.by.len() > MOST_DIMENSIONS {
            faults.push(fault("metric.by", "must have at most 2 dimensions"));
        }
        if metric.filters.len() > MOST_FILTERS {
            faults.push(fault("metric.filters", "must have at most 20 filters"));
        }
        if metric.by.len() > MOST_DIMENSIONS || metric.filters.len() > MOST_FILTERS {
            return;
        }
        let unfit = |path: String, ask: NamedQuery| {
            let asked = ask.table("project", subject.name, UnixTime::default() + DAY);
            asked.err().map(|error| fault(path, error.0))
        };
        let measure = NamedQuery {
            measures: vec![metric.measure.clone()],
            ..NamedQuery::default()
        };
        faults.extend(unfit("metric.measure".to_owned(), measure));
        for (place, name) in metric.by.iter().enumerate() {
            let by = NamedQuery {
                by: vec![name.clone()],
                ..NamedQuery::default()
            };
            faults.extend(unfit(format!("metric.by[{place}]"), by));
        }
        for (name, values) in &metric.filters {
            let filters = values.iter().map(|value| (name.clone(), value.clone()));
            let filters = NamedQuery {
                filters: filters.collect(),
                ..NamedQuery::default()
            };
            faults.extend(unfit(format!("metric.filters.{name}"), filters));
            if values.is_empty() {
                let empty = "must have at least one value: add one, or remove the filter";
                faults.push(fault(format!("metric.filters.{name}"), empty));
            }
        }
    }

    fn check_condition(&self, subject: &'static Subject, faults: &mut Vec<RuleFault>) {
        let compares = !matches!(self.condition, Condition::Absence {});
        if compares && subject.is_by_day() && !self.window_minutes.is_multiple_of(DAY_MINUTES) {
            faults.push(fault(
                "window_minutes",
                "must be whole days, such as 1440: this signal is stored per day",
            ));
        }
        match &self.condition {
            Condition::Threshold {
                above,
                below,
                recover,
            } => check_threshold(*above, *below, *recover, faults),
            Condition::Regression { effect, .. } => {
                self.check_effect(subject, effect, faults);
                if subject.dimension("app_version").is_none() {
                    let message = "cannot be compared by version: this signal has no `app_version`";
                    faults.push(fault("metric.signal", message));
                }
                let versions = ["app_version", "build"];
                let names = |name: &&str| {
                    self.metric.by.iter().any(|one| one == name)
                        || self.metric.filters.contains_key(*name)
                };
                if let Some(version) = versions.iter().find(|name| names(name)) {
                    let message =
                        format!("a regression always compares versions: remove `{version}`");
                    faults.push(fault("metric", message));
                }
            }
            Condition::LastWeek { effect } => {
                self.check_effect(subject, effect, faults);
                let whole = self.window_minutes >= 60
                    && self.window_minutes.is_multiple_of(60)
                    && self.window_minutes <= WEEK_MINUTES;
                let days = self.window_minutes >= 3 * DAY_MINUTES;
                if !whole || days && !self.window_minutes.is_multiple_of(DAY_MINUTES) {
                    let message = "must be whole hours below 3 days, whole days from 3 days on, and at most a week";
                    faults.push(fault("window_minutes", message));
                }
            }
            Condition::Appearance { unseen_days } => {
                if !(1..=LONGEST_UNSEEN).contains(unseen_days) {
                    let message = format!("must be between 1 and {LONGEST_UNSEEN}");
                    faults.push(fault("condition.unseen_days", message));
                }
                if self.metric.by.is_empty() {
                    let message = "must have a dimension whose new values the rule finds";
                    faults.push(fault("metric.by", message));
                }
            }
            Condition::Absence {} => {
                if subject.arrival().is_none() {
                    let message = "has no arrival times: watch `usage` instead";
                    faults.push(fault("metric.signal", message));
                }
            }
        }
    }

    fn check_effect(&self, subject: &Subject, effect: &Effect, faults: &mut Vec<RuleFault>) {
        let mut within = |path: &str, fits: bool, range: &str| {
            if !fits {
                faults.push(fault(format!("condition.effect.{path}"), range));
            }
        };
        let relative = (0.0..=100.0).contains(&effect.least_relative);
        within(
            "least_relative",
            relative,
            "must be between 0 and 100, where 0.2 is 20 %",
        );
        let absolute = effect.least_absolute >= 0.0 && effect.least_absolute.is_finite();
        within("least_absolute", absolute, "must be 0 or more");
        let significance = effect.significance > 0.0 && effect.significance <= 1.0;
        within(
            "significance",
            significance,
            "must be above 0 and at most 1",
        );
        let recover = (0.0..=1.0).contains(&effect.recover);
        within("recover", recover, "must be between 0 and 1");
        let effect_asked = effect.least_relative > 0.0 || effect.least_absolute > 0.0;
        within(
            "least_relative",
            effect_asked,
            "set `least_relative` or `least_absolute` above 0",
        );
        let measure = subject.measure(&self.metric.measure);
        let known = measure.is_none_or(|one| one.better != Better::Neither);
        let message = "set `up` or `down`: for this measure neither direction is worse by default";
        within("worse", known || effect.worse.is_some(), message);
    }
}

fn check_threshold(
    above: Option<f64>,
    below: Option<f64>,
    recover: Option<f64>,
    faults: &mut Vec<RuleFault>,
) {
    let (bound, good) = match (above, below) {
        (Some(above), None) => (above, recover.is_none_or(|recover| recover <= above)),
        (None, Some(below)) => (below, recover.is_none_or(|recover| recover >= below)),
        _ => {
            faults.push(fault("condition", "set either `above` or `below`"));
            return;
        }
    };
    if !bound.is_finite() || !good {
        let message = "must not be on the bad side of the bound";
        faults.push(fault("condition.recover", message));
    }
}

fn fault(path: impl Into<String>, message: impl Into<String>) -> RuleFault {
    RuleFault {
        path: path.into(),
        message: message.into(),
    }
}
