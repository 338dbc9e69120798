//! The override of an incident: a patch that only raises rates, and its position among the other overrides. Pure.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use unjank_protocol::Glob;
use unjank_protocol::config::{Document, SpanRate};

use crate::alerts::rule::action::SamplingRates;

/// The rates to raise.
#[derive(Clone, Debug)]
pub(crate) struct TargetRates {
    pub(crate) rates: SamplingRates,
    /// The names of the spans to raise. Empty: all spans.
    pub(crate) names: Vec<String>,
    pub(crate) tracing: bool,
}

/// A patch, and its rates by signal.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Patch {
    pub(crate) value: Map<String, Value>,
    pub(crate) rates: BTreeMap<String, f64>,
}

impl TargetRates {
    /// Returns the patch for a base. `part`, 0 to 1, is the fraction of each raise to apply. Empty if the base already has these rates.
    pub(crate) fn over(&self, base: &Document, part: f64) -> Patch {
        let mut patch = Patch::default();
        let mut sampling = Map::new();
        let now = &base.sampling;
        for (name, wanted) in self.rates.by_name() {
            let from = match name {
                "frame_windows" => now.frame_windows,
                "janks" => now.janks,
                "page_loads" => now.page_loads,
                "metrics" => now.metrics,
                "recompositions" => now.recompositions,
                // Spans have rates by name.
                _ => continue,
            };
            if let Some(rate) = wanted.and_then(|wanted| raised(from, wanted, part)) {
                sampling.insert(name.to_owned(), number(rate));
                patch.rates.insert(name.to_owned(), rate);
            }
        }
        if let Some(wanted) = self.rates.spans
            && let Some((spans, rate)) = self.spans(base, wanted, part)
        {
            sampling.insert("spans".to_owned(), spans);
            patch.rates.insert("spans".to_owned(), rate);
        }
        if !sampling.is_empty() {
            patch.value.insert("sampling".to_owned(), sampling.into());
        }
        if let Some(tracing) = self.traced(base) {
            patch.value.insert("tracing".to_owned(), tracing);
        }
        patch
    }

    /// Removes a signal from the wish, so that it keeps its rate.
    pub(crate) fn leave_out(&mut self, signal: &str) {
        let rates = &mut self.rates;
        match signal {
            "spans" => rates.spans = None,
            "frame_windows" => rates.frame_windows = None,
            "janks" => rates.janks = None,
            "page_loads" => rates.page_loads = None,
            "metrics" => rates.metrics = None,
            _ => rates.recompositions = None,
        }
    }

    fn spans(&self, base: &Document, wanted: f64, part: f64) -> Option<(Value, f64)> {
        let spans = &base.sampling.spans;
        let entry = |one: &SpanRate| json!({"name": one.name, "rate": number(one.rate)});
        let mut highest: Option<f64> = None;
        let mut up = |from: f64| {
            let rate = raised(from, wanted, part)?;
            highest = Some(highest.map_or(rate, |known| known.max(rate)));
            Some(rate)
        };
        let value = if self.names.is_empty() {
            let default = up(spans.default).unwrap_or(spans.default);
            let overrides = spans.overrides.iter().map(|one| SpanRate {
                name: one.name.clone(),
                rate: up(one.rate).unwrap_or(one.rate),
            });
            let overrides: Vec<_> = overrides.map(|one| entry(&one)).collect();
            if overrides.is_empty() {
                json!({"default": number(default)})
            } else {
                json!({"default": number(default), "overrides": overrides})
            }
        } else {
            let named = self.names.iter().filter_map(|name| {
                let rate = up(share(base, name))?;
                Some(json!({"name": name, "rate": number(rate)}))
            });
            // The first match applies, so the raised names come first.
            let named: Vec<_> = named.collect();
            let all: Vec<_> = named
                .into_iter()
                .chain(spans.overrides.iter().map(entry))
                .collect();
            json!({"overrides": all})
        };
        highest.map(|rate| (value, rate))
    }

    /// Returns the patch that traces the named spans in addition to those traced already.
    fn traced(&self, base: &Document) -> Option<Value> {
        let tracing = &base.tracing;
        let all = tracing.allow.is_empty() && tracing.tags.is_empty();
        if !self.tracing || self.names.is_empty() || tracing.enabled && all {
            return None;
        }
        let named = self.names.iter().map(|name| regex::escape(name));
        if tracing.enabled {
            let mut allow = tracing.allow.clone();
            allow.extend(named.filter(|name| !tracing.allow.contains(name)));
            (allow.len() > tracing.allow.len()).then(|| json!({"allow": allow}))
        } else {
            let allow: Vec<_> = named.collect();
            Some(json!({"enabled": true, "allow": allow, "tags": []}))
        }
    }
}

fn share(base: &Document, name: &str) -> f64 {
    let spans = &base.sampling.spans;
    let mut overrides = spans.overrides.iter();
    let named = overrides.find(|one| Glob::new(&one.name).matches(name));
    named.map_or(spans.default, |one| one.rate)
}

/// Returns the raised rate in steps of 0.0001, or `None` if it is not higher.
fn raised(from: f64, wanted: f64, part: f64) -> Option<f64> {
    let rate = ((from + (wanted - from) * part) * 10_000.0 + 1e-6).floor() / 10_000.0;
    (rate > from).then_some(rate)
}

/// Serializes a rate as browsers do, without `.0`, so that reading and saving a configuration does not change it.
fn number(rate: f64) -> Value {
    match rate {
        1.0 => json!(1),
        0.0 => json!(0),
        rate => json!(rate),
    }
}

/// Inserts an override before the first override that exceeds its patch, or at its old position if that is earlier.
pub(crate) fn with(configuration: &Value, one: Value) -> Value {
    let id = one["id"].as_str().unwrap_or_default().to_owned();
    let (mut configuration, place) = without(configuration, &id);
    if let Some(map) = configuration.as_object_mut() {
        let list = map.entry("overrides").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            let more = list
                .iter()
                .position(|other| gives_more(other, &one["patch"]));
            let place = place.into_iter().chain(more).min().unwrap_or(list.len());
            list.insert(place, one);
        }
    }
    configuration
}

/// Removes an override, and returns the configuration and the old position.
pub(crate) fn without(configuration: &Value, id: &str) -> (Value, Option<usize>) {
    let mut configuration = configuration.clone();
    let list = configuration
        .get_mut("overrides")
        .and_then(Value::as_array_mut);
    let place = list.and_then(|list| {
        let place = list.iter().position(|one| one["id"] == id)?;
        list.remove(place);
        Some(place)
    });
    (configuration, place)
}

/// Whether an override exceeds a patch anywhere, or has a value that cannot be compared. It must then keep its precedence.
fn gives_more(other: &Value, patch: &Value) -> bool {
    let theirs = &other["patch"];
    // A default for all spans can exceed the rate of a name.
    let default = theirs
        .pointer("/sampling/spans/default")
        .and_then(Value::as_f64);
    let named = patch
        .pointer("/sampling/spans/overrides/0/rate")
        .and_then(Value::as_f64);
    let hides = default
        .zip(named)
        .is_some_and(|(default, named)| default > named);
    other["enabled"] != false && (hides || exceeds(theirs, patch))
}

fn exceeds(theirs: &Value, ours: &Value) -> bool {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => ours
            .iter()
            .any(|(key, value)| theirs.get(key).is_some_and(|other| exceeds(other, value))),
        (Value::Number(theirs), Value::Number(ours)) => theirs.as_f64() > ours.as_f64(),
        (Value::Bool(_), Value::Bool(_)) => false,
        (theirs, ours) => theirs != ours,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(value: Value) -> Document {
        serde_json::from_value(value).unwrap()
    }

    fn target(rates: Value, names: &[&str], tracing: bool) -> TargetRates {
        TargetRates {
            rates: serde_json::from_value(rates).unwrap(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
            tracing,
        }
    }

    fn over(target: &TargetRates, base: Value, part: f64) -> Value {
        target.over(&document(base), part).value.into()
    }

    #[test]
    fn rates_are_only_raised_and_by_the_given_fraction() {
        let target = target(json!({"janks": 1.0, "metrics": 0.3}), &[], false);
        let base = json!({"sampling": {"janks": 0.2, "metrics": 0.5}});
        assert_eq!(
            over(&target, base.clone(), 1.0),
            json!({"sampling": {"janks": 1}})
        );
        assert_eq!(
            over(&target, base.clone(), 0.5),
            json!({"sampling": {"janks": 0.6}})
        );
        assert_eq!(over(&target, base, 0.00001), json!({}));
    }

    #[test]
    fn spans_are_raised_by_name_and_the_others_keep_their_rates() {
        let base = json!({"sampling": {"spans": {"default": 0.5, "overrides": [{"name": "check*", "rate": 0.1}]}}});
        let named = target(json!({"spans": 1.0}), &["checkout"], false);
        let expected = json!({"sampling": {"spans": {"overrides": [{"name": "checkout", "rate": 1}, {"name": "check*", "rate": 0.1}]}}});
        assert_eq!(over(&named, base.clone(), 1.0), expected);
        let all = target(json!({"spans": 0.3}), &[], false);
        let expected = json!({"sampling": {"spans": {"default": 0.5, "overrides": [{"name": "check*", "rate": 0.3}]}}});
        assert_eq!(over(&all, base, 1.0), expected);
    }

    #[test]
    fn tracing_is_turned_on_for_the_named_spans_only() {
        let target = target(json!({}), &["shop.pay"], true);
        assert_eq!(over(&target, json!({}), 1.0), json!({}));
        let off = json!({"tracing": {"enabled": false}});
        let expected = json!({"tracing": {"enabled": true, "allow": ["shop\\.pay"], "tags": []}});
        assert_eq!(over(&target, off, 1.0), expected);
        let some = json!({"tracing": {"allow": ["a"]}});
        let expected = json!({"tracing": {"allow": ["a", "shop\\.pay"]}});
        assert_eq!(over(&target, some, 1.0), expected);
    }

    #[test]
    fn an_override_that_gives_more_keeps_its_precedence() {
        let own = |rate: f64| json!({"id": "incident-1", "patch": {"sampling": {"janks": rate}}});
        let other = |id: &str, patch: Value| json!({"id": id, "patch": patch});
        let lower = other("lower", json!({"sampling": {"janks": 0.1}}));
        let higher = other("higher", json!({"sampling": {"janks": 0.9}}));
        let ids = |configuration: &Value| -> Vec<String> {
            let list = configuration["overrides"].as_array().unwrap().iter();
            list.map(|one| one["id"].as_str().unwrap().to_owned())
                .collect()
        };
        let configuration = json!({"overrides": [lower, higher]});
        let placed = with(&configuration, own(0.5));
        assert_eq!(ids(&placed), ["lower", "incident-1", "higher"]);
        assert_eq!(
            ids(&with(&configuration, own(1.0))),
            ["lower", "higher", "incident-1"]
        );
        // It keeps its position, so that later overrides keep their precedence.
        assert_eq!(with(&placed, own(0.5)), placed);
        assert_eq!(without(&placed, "incident-1"), (configuration, Some(1)));
        assert_eq!(ids(&with(&json!({}), own(0.5))), ["incident-1"]);
        let null = json!({"overrides": [other("null", json!({"sampling": null}))]});
        assert_eq!(ids(&with(&null, own(1.0))), ["incident-1", "null"]);
    }
}
