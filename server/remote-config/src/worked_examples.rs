//! Configurations as teams write them, and the answers that devices get.

use serde_json::{Value, json};
use unjank_foundation::clock::UnixTime;

use super::{Compiled, Configuration, Device, Resolved};

const INSTALL: &str = "5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11";

fn compiled(configuration: &Value) -> Compiled {
    let text = serde_json::to_vec(configuration).unwrap();
    Compiled::new(&Configuration::from_json(&text).unwrap(), 42).unwrap()
}

fn phone() -> Device<'static> {
    Device {
        app_id: Some("com.example.shop"),
        app_version: Some("4.12.0"),
        build: Some(41_200),
        os_name: Some("android"),
        os_version: Some("15"),
        device_model: Some("Pixel 8"),
        device_class: Some("high"),
        network: Some("wifi"),
        locale: Some("de-AT"),
        sdk_version: Some("0.1.0"),
        user_id: Some("u-1"),
        install_id: Some(INSTALL),
    }
}

fn ids(resolved: &Resolved) -> Vec<&str> {
    resolved.matched.iter().map(|id| &**id).collect()
}

/// Whether a condition holds for a device.
fn holds(when: &Value, device: &Device<'_>) -> bool {
    let one = json!({"id": "one", "when": when, "patch": {"toggles": {"it": true}}});
    let resolved = compiled(&json!({"overrides": [one]})).resolve(device, UnixTime::default());
    resolved.document.toggles.contains_key("it")
}

#[test]
fn all_matching_overrides_are_applied_and_the_last_one_wins() {
    let compiled = compiled(&json!({
        "base": {"sampling": {"janks": 0.5}, "toggles": {"grid": false, "beta": {"a": 1}}},
        "overrides": [
            {"id": "slow", "when": {"device_class": ["low"]}, "patch": {"enabled": false}},
            {"id": "android", "when": {"os_name": ["android"]}, "patch": {"sampling": {"janks": 0.25, "metrics": 0.5}, "toggles": {"grid": true}}},
            {"id": "off", "enabled": false, "when": {"all": []}, "patch": {"enabled": false}},
            {"id": "new", "when": {"app_version": ">=4.12, <5"}, "patch": {"sampling": {"janks": 1}, "monitors": {"cpu": null}, "toggles": {"beta": {"b": 2}}}}
        ]
    }));
    let resolved = compiled.resolve(&phone(), UnixTime::default());
    assert_eq!(ids(&resolved), ["android", "new"]);
    let document = &resolved.document;
    assert_eq!(
        (document.sampling.janks, document.sampling.metrics),
        (1.0, 0.5)
    );
    assert_eq!(
        document.monitors.keys().collect::<Vec<_>>(),
        ["fps", "memory"]
    );
    assert_eq!(
        json!(document.toggles),
        json!({"grid": true, "beta": {"a": 1, "b": 2}})
    );
    assert!(document.enabled);
    assert_eq!((document.schema, document.revision), (1, 42));
    let body: Value = serde_json::from_slice(&resolved.body).unwrap();
    assert_eq!(body, serde_json::to_value(document).unwrap());
    assert_eq!(compiled.revision(), 42);
}

#[test]
fn every_leaf_condition_holds_for_its_devices_and_never_for_unknown_attributes() {
    let unknown = Device::default();
    let empty = Device {
        app_id: Some(""),
        app_version: Some(""),
        build: None,
        os_name: Some(""),
        os_version: Some("unknown"),
        device_model: Some(""),
        device_class: Some(""),
        network: Some(""),
        locale: Some(""),
        sdk_version: Some(""),
        user_id: Some(""),
        install_id: Some(""),
    };
    for (yes, no) in [
        (
            json!({"app_id": ["a", "com.example.shop"]}),
            json!({"app_id": ["com.example.SHOP"]}),
        ),
        (
            json!({"app_version": ">=4.12, <5"}),
            json!({"app_version": "<4.12"}),
        ),
        (
            json!({"build": {"min": 41_200}}),
            json!({"build": {"max": 41_199}}),
        ),
        (json!({"os_name": ["Android"]}), json!({"os_name": ["ios"]})),
        (json!({"os_version": ">=14"}), json!({"os_version": "=14"})),
        (
            json!({"device_model": ["SM-*", "pixel ?"]}),
            json!({"device_model": ["Pixel"]}),
        ),
        (
            json!({"device_class": ["HIGH"]}),
            json!({"device_class": ["low", "mid"]}),
        ),
        (
            json!({"network": ["wifi"]}),
            json!({"network": ["cellular_4g"]}),
        ),
        (
            json!({"locale": ["fr", "de"]}),
            json!({"locale": ["de-DE"]}),
        ),
        (
            json!({"sdk_version": "^0.1"}),
            json!({"sdk_version": ">0.1"}),
        ),
        (json!({"user_id": ["u-1"]}), json!({"user_id": ["U-1"]})),
        (
            json!({"install_id": [INSTALL]}),
            json!({"install_id": ["other"]}),
        ),
        (
            json!({"percentage": {"percent": 100}}),
            json!({"percentage": {"percent": 0}}),
        ),
        (
            json!({"percentage": {"percent": 29.923, "salt": "new-checkout"}}),
            json!({"percentage": {"percent": 29.922, "salt": "new-checkout"}}),
        ),
    ] {
        assert!(holds(&yes, &phone()), "{yes}");
        assert!(!holds(&no, &phone()), "{no}");
        for device in [unknown, empty] {
            assert!(!holds(&yes, &device), "{yes}");
            assert!(holds(&json!({"not": yes}), &device), "{yes}");
        }
        assert!(holds(&json!({"any": [no, yes]}), &phone()));
        assert!(!holds(&json!({"all": [no, yes]}), &phone()));
    }
    assert!(holds(&json!({"all": []}), &unknown));
}

#[test]
fn an_override_expires_at_its_time() {
    let compiled = compiled(&json!({"overrides": [
        {"id": "later", "when": {"all": []}, "patch": {"toggles": {"a": 1}}, "expires_at": "1970-01-01T00:00:20Z"},
        {"id": "sooner", "when": {"os_name": ["android"]}, "patch": {"toggles": {"b": 1}}, "expires_at": "1970-01-01T02:00:10+02:00"},
    ]}));
    let at = |seconds: i64, device: &Device<'_>| {
        let resolved = compiled.resolve(device, UnixTime::from_secs(seconds));
        (resolved.matched.len(), resolved.changes_at)
    };
    assert_eq!(at(0, &phone()), (2, Some(UnixTime::from_secs(10))));
    assert_eq!(
        at(0, &Device::default()),
        (1, Some(UnixTime::from_secs(20)))
    );
    assert_eq!(at(9, &phone()), (2, Some(UnixTime::from_secs(10))));
    assert_eq!(at(10, &phone()), (1, Some(UnixTime::from_secs(20))));
    assert_eq!(at(20, &phone()), (0, None));
}

#[test]
fn etags_are_equal_for_equal_answers_only() {
    let configuration = |patch: Value| {
        json!({"overrides": [
            {"id": "a", "when": {"os_name": ["android"]}, "patch": patch},
            {"id": "b", "when": {"os_name": ["ios"]}, "patch": {"toggles": {"x": 1}}}
        ]})
    };
    let etag = |patch: Value, os: &str, revision: u64| {
        let configuration = Configuration::from_value(configuration(patch)).unwrap();
        let compiled = Compiled::new(&configuration, revision).unwrap();
        let device = Device {
            os_name: Some(os),
            ..Device::default()
        };
        compiled
            .resolve(&device, UnixTime::default())
            .etag
            .to_string()
    };
    let same = json!({"toggles": {"x": 1}});
    assert_eq!(
        etag(same.clone(), "android", 1),
        etag(same.clone(), "ios", 1)
    );
    assert_ne!(
        etag(same.clone(), "android", 1),
        etag(same.clone(), "windows", 1)
    );
    assert_ne!(etag(same.clone(), "android", 1), etag(same, "android", 2));
    let default = etag(
        json!({"enabled": true, "sampling": {"janks": 1}}),
        "android",
        1,
    );
    assert_eq!(default, etag(json!({}), "windows", 1));
    assert_eq!(default.len(), 34);
    assert!(default.starts_with('"') && default.ends_with('"'));
}

#[test]
fn answers_are_cached_and_the_cache_is_bounded() {
    let share = |index: usize| json!({"id": format!("s{index}"), "when": {"percentage": {"percent": 50}}, "patch": {"toggles": {format!("t{index}"): true}}});
    let overrides: Vec<_> = (0..13).map(share).collect();
    let compiled = compiled(&json!({"overrides": overrides}));
    let resolve = |id: usize| {
        let id = id.to_string();
        let device = Device {
            install_id: Some(&id),
            ..Device::default()
        };
        compiled.resolve(&device, UnixTime::default())
    };
    assert!(std::sync::Arc::ptr_eq(&resolve(1), &resolve(1)));
    let first = resolve(1).body.to_vec();
    for id in 0..5_000 {
        resolve(id);
        assert!(compiled.answers().len() <= 2_048);
    }
    assert!(compiled.answers().len() > 1);
    assert_eq!(resolve(1).body.to_vec(), first);
}

#[test]
fn a_configuration_survives_a_round_trip() {
    let written = json!({
        "base": {"enabled": true},
        "overrides": [{
            "id": "one", "note": "why", "enabled": false, "patch": {"enabled": false}, "expires_at": "2026-11-20T12:00:00Z",
            "when": {"all": [
                {"any": [{"app_id": ["a"]}, {"app_version": "*"}, {"build": {"min": 1}}, {"build": {"max": 2}}]},
                {"not": {"os_name": ["ios"]}}, {"os_version": "=1"}, {"device_model": ["*"]}, {"device_class": ["low"]},
                {"network": ["wifi"]}, {"locale": ["de"]}, {"sdk_version": ">=1"}, {"user_id": ["u"]}, {"install_id": ["i"]},
                {"percentage": {"percent": 12.345, "salt": "s"}}, {"percentage": {"percent": 1.0}}
            ]}
        }]
    });
    let configuration = Configuration::from_value(written.clone()).unwrap();
    assert_eq!(serde_json::to_value(&configuration).unwrap(), written);
    assert!(Compiled::new(&configuration, 1).is_ok());
    let empty = Configuration::from_json(b"{}").unwrap();
    assert_eq!(empty, Configuration::default());
}
