//! Properties that hold for every configuration and every device.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Map, Value, json};
use unjank_foundation::clock::UnixTime;
use unjank_protocol::config::Document;

use super::merge_patch::merge;
use super::{BUCKETS, Compiled, Configuration, Device, bucket};

/// JSON with few distinct keys, so that patches overlap.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (0..3).prop_map(Value::from),
        "[ab]".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let key = proptest::sample::select(vec!["a", "b", "c"]).prop_map(str::to_owned);
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::vec((key, inner), 0..4)
                .prop_map(|pairs| Value::Object(Map::from_iter(pairs))),
        ]
    })
}

fn merged(target: &Value, patch: &Value) -> Value {
    let mut target = target.clone();
    merge(&mut target, patch);
    target
}

fn ids(count: u32) -> impl Iterator<Item = String> {
    (0..count)
        .map(|index| uuid::Uuid::from_u128(u128::from(index) * 0x9e37_79b9_7f4a_7c15).to_string())
}

/// Returns the installs that an override with a percentage selects.
fn chosen(id: &str, percent: f64, installs: &[String]) -> BTreeSet<String> {
    let configuration = json!({"overrides": [
        {"id": id, "when": {"percentage": {"percent": percent}}, "patch": {"toggles": {"in": true}}}
    ]});
    let compiled = Compiled::new(&Configuration::from_value(configuration).unwrap(), 1).unwrap();
    let is_in = |install: &&String| {
        let device = Device {
            install_id: Some(install),
            ..Device::default()
        };
        !compiled
            .resolve(&device, UnixTime::default())
            .matched
            .is_empty()
    };
    installs.iter().filter(is_in).cloned().collect()
}

proptest! {
    #[test]
    fn applying_a_patch_is_idempotent(target in value(), patch in value()) {
        let once = merged(&target, &patch);
        prop_assert_eq!(merged(&once, &patch), once);
    }

    #[test]
    fn an_empty_patch_changes_no_object(target in value()) {
        prop_assume!(target.is_object());
        prop_assert_eq!(merged(&target, &json!({})), target);
    }

    #[test]
    fn a_patch_that_is_not_an_object_replaces_the_target(target in value(), patch in value()) {
        prop_assume!(!patch.is_object());
        prop_assert_eq!(merged(&target, &patch), patch);
    }

    #[test]
    fn a_patch_sets_its_keys_and_changes_nothing_else(target in value(), patch in value()) {
        let (Some(before), Some(changes)) = (target.as_object(), patch.as_object()) else { return Ok(()) };
        let after = merged(&target, &patch);
        for (key, value) in changes {
            match value {
                Value::Null => prop_assert!(after.get(key).is_none()),
                Value::Object(_) => {
                    let inner = before.get(key).cloned().unwrap_or(Value::Null);
                    prop_assert_eq!(&after[key], &merged(&inner, value));
                }
                value => prop_assert_eq!(&after[key], value),
            }
        }
        for (key, value) in before.iter().filter(|(key, _)| !changes.contains_key(*key)) {
            prop_assert_eq!(&after[key], value);
        }
    }

    #[test]
    fn raising_a_percentage_keeps_everyone_who_was_in(low in 0..=BUCKETS, high in 0..=BUCKETS, salt in "[a-z]{1,8}") {
        let (low, high) = (low.min(high), low.max(high));
        let installs: Vec<_> = ids(40).collect();
        let before = chosen(&salt, f64::from(low) / 1_000.0, &installs);
        let after = chosen(&salt, f64::from(high) / 1_000.0, &installs);
        prop_assert!(before.is_subset(&after));
    }

    #[test]
    fn no_configuration_causes_a_panic(base in value(), patch in value(), when in value()) {
        let text = json!({"base": base, "overrides": [{"id": "a", "when": {"any": [when, {"all": []}]}, "patch": patch}]});
        if let Ok(configuration) = Configuration::from_value(text) {
            let _checked = Compiled::new(&configuration, 1);
        }
    }

    #[test]
    fn any_text_is_a_configuration_or_a_fault(text in any::<Vec<u8>>()) {
        let _read = Configuration::from_json(&text);
    }

    #[test]
    fn every_set_of_valid_patches_results_in_a_valid_document(chosen in proptest::collection::vec(any::<bool>(), 8)) {
        let patches = [
            json!({"sampling": null}), json!({"sampling": {"spans": {"overrides": [{"name": "a", "rate": 1}]}}}),
            json!({"monitors": {"fps": null, "own": {}}}), json!({"monitors": {"fps": {"interval_ms": null}}}),
            json!({"jank": {"strategies": []}}), json!({"upload": {"interval_s": 5}, "toggles": {"a": {"b": 1}}}),
            json!({"toggles": {"a": 5}}), json!({"toggles": {"a": {"c": null}}, "tracing": null}),
        ];
        let overrides: Vec<_> = patches.iter().zip(chosen).enumerate().filter(|(_, (_, chosen))| *chosen).map(|(index, (patch, _))| {
            json!({"id": format!("o{index}"), "when": {"os_name": ["ios"]}, "patch": patch})
        }).collect();
        let configuration = Configuration::from_value(json!({"overrides": overrides})).unwrap();
        let compiled = Compiled::new(&configuration, 3).unwrap();
        let device = Device { os_name: Some("ios"), ..Device::default() };
        let resolved = compiled.resolve(&device, UnixTime::default());
        let mut expected = serde_json::to_value(Document::default()).unwrap();
        for one in &configuration.overrides {
            merge(&mut expected, &one.patch);
        }
        expected["revision"] = json!(3);
        let expected: Document = serde_json::from_value(expected).unwrap();
        prop_assert_eq!(&resolved.document, &expected);
    }
}

#[test]
fn raising_ten_percent_to_twenty_keeps_the_first_installs() {
    let installs: Vec<_> = ids(20_000).collect();
    let ten = chosen("ramp", 10.0, &installs);
    let twenty = chosen("ramp", 20.0, &installs);
    assert!(ten.is_subset(&twenty));
    assert!((1_800..=2_200).contains(&ten.len()), "{}", ten.len());
    assert!((3_750..=4_250).contains(&twenty.len()), "{}", twenty.len());
    assert_eq!(chosen("ramp", 0.0, &installs).len(), 0);
    assert_eq!(chosen("ramp", 100.0, &installs).len(), 20_000);
}

#[test]
fn two_overrides_select_independently() {
    let (mut first, mut second, mut both) = (0_u32, 0_u32, 0_u32);
    let below = BUCKETS / 5;
    for id in ids(100_000) {
        let (one, other) = (bucket("one", &id) < below, bucket("other", &id) < below);
        first += u32::from(one);
        second += u32::from(other);
        both += u32::from(one && other);
    }
    // Four standard deviations of a binomial distribution: 506 around 20,000 and 248 around 4,000.
    assert!((19_494..=20_506).contains(&first), "{first}");
    assert!((19_494..=20_506).contains(&second), "{second}");
    assert!((3_752..=4_248).contains(&both), "{both}");
}
