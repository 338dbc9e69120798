//! Whether a rule can be evaluated: every fault names its field.

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::rule::{Condition, Effect, Rule};
use crate::query::Ask;
use crate::store::reads::{Better, Subject, subject};

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RuleFault {
    /// The field, such as `metric.measure`; empty: the whole rule.
    pub path: String,
    pub message: String,
}

const WEEK_MINUTES: u32 = 10_080;
const LONGEST_WINDOW: u32 = 43_200;
const DAY_MINUTES: u32 = 1_440;
const MOST_DIMENSIONS: usize = 2;
const MOST_FILTERS: usize = 20;

impl Rule {
    /// Reads a rule and checks it whole.
    ///
    /// # Errors
    /// When it is not of this shape, or could not be evaluated: each fault names its field.
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

    /// Reads a rule that was saved.
    ///
    /// # Errors
    /// When a newer version wrote it.
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
                "1 to 200 characters, none a control character",
            ));
        }
        if self.owner.chars().count() > 200 || self.owner.chars().any(char::is_control) {
            faults.push(fault(
                "owner",
                "at most 200 characters, none a control character",
            ));
        }
        let mut within = |path: &str, value: u32, least: u32, most: u32| {
            if !(least..=most).contains(&value) {
                faults.push(fault(path, format!("{least} to {most}")));
            }
        };
        within("window_minutes", self.window_minutes, 5, LONGEST_WINDOW);
        within("for_minutes", self.for_minutes, 0, WEEK_MINUTES);
        within("keep_minutes", self.keep_minutes, 0, WEEK_MINUTES);
        within("least_samples", self.least_samples, 1, 1_000_000_000);
        if self.mute_windows.len() > 20 {
            faults.push(fault("mute_windows", "at most 20"));
        }
        for (place, window) in self.mute_windows.iter().enumerate() {
            if !window.fits() {
                let message =
                    "`from` and `to` are times such as 22:30, `utc_offset_minutes` is -840 to 840";
                faults.push(fault(format!("mute_windows[{place}]"), message));
            }
        }
        if let Some(action) = &self.action {
            faults.extend(action.faults(&self.metric));
        }
        match subject(&self.metric.signal) {
            None => faults.push(fault(
                "metric.signal",
                "there is no such signal to ask about",
            )),
            Some(subject) => {
                self.check_metric(subject, &mut faults);
                self.check_condition(subject, &mut faults);
            }
        }
        faults
    }

    /// The words are those of questions, and what is wrong with them is said by who answers questions.
    fn check_metric(&self, subject: &'static Subject, faults: &mut Vec<RuleFault>) {
        let metric = &self.metric;
        let unfit = |path: String, ask: Ask| {
            let asked = ask.table("project", subject.name, DAY);
            asked.err().map(|error| fault(path, error.0))
        };
        let measure = Ask {
            measures: vec![metric.measure.clone()],
            ..Ask::default()
        };
        faults.extend(unfit("metric.measure".to_owned(), measure));
        for (place, name) in metric.by.iter().enumerate() {
            let by = Ask {
                by: vec![name.clone()],
                ..Ask::default()
            };
            faults.extend(unfit(format!("metric.by[{place}]"), by));
        }
        for (name, values) in &metric.filters {
            let filters = values.iter().map(|value| (name.clone(), value.clone()));
            let filters = Ask {
                filters: filters.collect(),
                ..Ask::default()
            };
            faults.extend(unfit(format!("metric.filters.{name}"), filters));
            if values.is_empty() {
                let empty = "name at least one value, or leave the filter out";
                faults.push(fault(format!("metric.filters.{name}"), empty));
            }
        }
        if metric.by.len() > MOST_DIMENSIONS {
            faults.push(fault("metric.by", "two dimensions at most"));
        }
        if metric.filters.len() > MOST_FILTERS {
            faults.push(fault("metric.filters", "20 at most"));
        }
    }

    fn check_condition(&self, subject: &'static Subject, faults: &mut Vec<RuleFault>) {
        let compares = !matches!(self.condition, Condition::Absence {});
        if compares && subject.is_by_day() && !self.window_minutes.is_multiple_of(DAY_MINUTES) {
            faults.push(fault(
                "window_minutes",
                "this signal is kept by the day: a window is of whole days, such as 1440",
            ));
        }
        match &self.condition {
            Condition::Threshold {
                above,
                below,
                recover,
            } => check_threshold((*above, *below, *recover), faults),
            Condition::Regression { effect, .. } => {
                self.check_effect(subject, effect, faults);
                if subject.dimension("app_version").is_none() {
                    faults.push(fault("metric.signal", "it is not told by version"));
                }
                let versions = ["app_version", "build"];
                let told = |name: &&str| {
                    self.metric.by.iter().any(|one| one == name)
                        || self.metric.filters.contains_key(*name)
                };
                if let Some(version) = versions.iter().find(|name| told(name)) {
                    let message =
                        format!("a regression compares versions by itself: leave `{version}` out");
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
                    let message = "against last week a window is of whole hours, of whole days from three days on, and no longer than a week";
                    faults.push(fault("window_minutes", message));
                }
            }
            Condition::Absence {} => {
                if subject.arrival().is_none() {
                    let message = "when its rows arrived is not known: watch `usage` instead";
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
        within("least_relative", relative, "0 to 100, where 0.2 is 20 %");
        let absolute = effect.least_absolute >= 0.0 && effect.least_absolute.is_finite();
        within("least_absolute", absolute, "not below 0");
        let significance = effect.significance > 0.0 && effect.significance <= 1.0;
        within("significance", significance, "above 0, at most 1");
        let recover = (0.0..=1.0).contains(&effect.recover);
        within("recover", recover, "0 to 1");
        let effect_asked = effect.least_relative > 0.0 || effect.least_absolute > 0.0;
        within(
            "least_relative",
            effect_asked,
            "an effect must be asked for: above 0, or `least_absolute` is",
        );
        let measure = subject.measure(&self.metric.measure);
        let known = measure.is_none_or(|one| one.better != Better::Neither);
        let said = "say `up` or `down`: the measure does not tell which is bad";
        within("worse", known || effect.worse.is_some(), said);
    }
}

fn check_threshold(
    (above, below, recover): (Option<f64>, Option<f64>, Option<f64>),
    faults: &mut Vec<RuleFault>,
) {
    let (bound, good) = match (above, below) {
        (Some(above), None) => (above, recover.is_none_or(|recover| recover <= above)),
        (None, Some(below)) => (below, recover.is_none_or(|recover| recover >= below)),
        _ => {
            faults.push(fault("condition", "say either `above` or `below`"));
            return;
        }
    };
    if !bound.is_finite() || !good {
        let message = "not on the bad side of the bound";
        faults.push(fault("condition.recover", message));
    }
}

const DAY: i64 = 86_400_000_000;

fn fault(path: impl Into<String>, message: impl Into<String>) -> RuleFault {
    RuleFault {
        path: path.into(),
        message: message.into(),
    }
}
