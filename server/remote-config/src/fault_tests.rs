//! Tests that all faults of a configuration are reported at once, each with its path.

use serde_json::{Value, json};
use unjank_foundation::clock::UnixTime;

use super::{Compiled, Configuration, Fault, FaultCode};

pub(super) fn faults(configuration: Value) -> Vec<Fault> {
    match Configuration::from_value(configuration) {
        Ok(configuration) => Compiled::new(&configuration, 1).err().unwrap_or_default(),
        Err(fault) => vec![fault],
    }
}

/// Returns the path, code and message of the only fault.
#[track_caller]
fn fault(configuration: Value) -> (String, FaultCode, String) {
    let mut faults = faults(configuration);
    assert_eq!(faults.len(), 1, "{faults:#?}");
    let Fault {
        path,
        code,
        message,
    } = faults.remove(0);
    (path, code, message)
}

#[track_caller]
fn assert_fault(configuration: Value, path: &str, code: FaultCode, part: &str) {
    let (found_path, found_code, message) = fault(configuration);
    assert_eq!((found_path.as_str(), found_code), (path, code), "{message}");
    assert!(message.contains(part), "{message}");
}

fn with_when(when: &Value) -> Value {
    json!({"overrides": [{"id": "one", "when": when, "patch": {"enabled": false}}]})
}

fn with_patch(patch: &Value) -> Value {
    json!({"overrides": [{"id": "one", "when": {"os_name": ["ios"]}, "patch": patch}]})
}

#[test]
fn unknown_keys_are_reported_with_their_path_and_a_suggestion() {
    use FaultCode::UnknownKey;
    assert_fault(
        json!({"bas": {}}),
        "bas",
        UnknownKey,
        "did you mean `base`?",
    );
    assert_fault(
        json!({"overrides": [{"id": "one", "whne": {"all": []}, "patch": {}}]}),
        "overrides[0].whne",
        UnknownKey,
        "did you mean `when`?",
    );
    assert_fault(
        with_when(&json!({"all": [{"app_versoin": ">=4"}]})),
        "overrides[0].when.all[0].app_versoin",
        UnknownKey,
        "did you mean `app_version`?",
    );
    assert_fault(
        with_when(&json!({"build": {"mim": 4}})),
        "overrides[0].when.build.mim",
        UnknownKey,
        "did you mean `min`?",
    );
    assert_fault(
        json!({"base": {"samplign": {}}}),
        "base.samplign",
        UnknownKey,
        "did you mean `sampling`?",
    );
    assert_fault(
        with_patch(&json!({"sampling": {"spans": {"defualt": 0.1}}})),
        "overrides[0].patch.sampling.spans.defualt",
        UnknownKey,
        "did you mean `default`?",
    );
    assert_fault(
        with_patch(&json!({"anr_ms": 4_000})),
        "overrides[0].patch.anr_ms",
        UnknownKey,
        "did you mean `jank.anr_ms`?",
    );
    assert_fault(
        with_patch(&json!({"revision": 4})),
        "overrides[0].patch.revision",
        UnknownKey,
        "set by the server",
    );
}

#[test]
fn unreadable_configurations_are_reported_with_their_path() {
    use FaultCode::{Missing, Unreadable, WrongType};
    let error = Configuration::from_json(b"{").unwrap_err();
    assert_eq!((error.path.as_str(), error.code), ("", Unreadable));
    let without_condition = json!({"overrides": [{"id": "one", "patch": {}}]});
    assert_fault(
        without_condition,
        "overrides[0]",
        Missing,
        "missing field `when`",
    );
    let text = with_when(&json!({"os_name": "ios"}));
    assert_fault(
        text,
        "overrides[0].when.os_name",
        WrongType,
        "invalid type: string",
    );
    let two = with_when(&json!({"os_name": ["ios"], "app_id": ["a"]}));
    assert_fault(
        two,
        "overrides[0].when",
        Unreadable,
        "map with a single key",
    );
    let time = json!({"overrides": [{"id": "one", "when": {"all": []}, "patch": {}, "expires_at": "soon"}]});
    assert_fault(time, "overrides[0].expires_at", Unreadable, "RFC 3339");
}

/// Asserts that a value of the document is rejected at `path`, in the base and in a patch.
#[track_caller]
fn assert_wrong(document: &Value, path: &str, code: FaultCode, part: &str) {
    assert_fault(
        json!({"base": document}),
        &format!("base{path}"),
        code,
        part,
    );
    assert_fault(
        with_patch(document),
        &format!("overrides[0].patch{path}"),
        code,
        part,
    );
}

#[test]
fn types_and_ranges_of_values_are_checked() {
    use FaultCode::{OutOfRange, WrongType};
    for (document, path, code, part) in [
        (
            json!({"poll_interval_s": 5}),
            ".poll_interval_s",
            OutOfRange,
            "is 5; must be 30 to 86400",
        ),
        (
            json!({"poll_interval_s": -1}),
            ".poll_interval_s",
            OutOfRange,
            "is -1",
        ),
        (
            json!({"poll_interval_s": 60.5}),
            ".poll_interval_s",
            WrongType,
            "must be a whole number",
        ),
        (
            json!({"enabled": "no"}),
            ".enabled",
            WrongType,
            "is text; must be true or false",
        ),
        (
            json!({"sampling": {"janks": 1.5}}),
            ".sampling.janks",
            OutOfRange,
            "is 1.5; must be 0 to 1",
        ),
        (
            json!({"sampling": []}),
            ".sampling",
            WrongType,
            "is a list; must be an object",
        ),
        (
            json!({"jank": {"strategies": [null]}}),
            ".jank.strategies[0]",
            WrongType,
            "is null",
        ),
        (
            json!({"monitors": {"fps": {"interval_ms": 1}}}),
            ".monitors.fps.interval_ms",
            OutOfRange,
            "is 1; must be 100",
        ),
        (
            json!({"upload": {"max_batch_events": 20_000}}),
            ".upload.max_batch_events",
            OutOfRange,
            "1 to 10000",
        ),
        (json!("on"), "", WrongType, "is text; must be an object"),
    ] {
        assert_wrong(&document, path, code, part);
    }
}

#[test]
fn strategies_of_stalls_are_checked_wherever_they_are() {
    use FaultCode::{Inconsistent, Missing, UnknownName};
    for (document, path, code, part) in [
        (
            json!({"jank": {"strategies": [{"threshold_ms": 300, "count": 5}]}}),
            ".jank.strategies[0].period_ms",
            Inconsistent,
            "do not fit",
        ),
        (
            json!({"jank": {"overrides": [{"page": "Cart", "strategies": [{"threshold_ms": 300, "count": 5, "period_ms": 900}]}]}}),
            ".jank.overrides[0].strategies[0].period_ms",
            Inconsistent,
            "do not fit",
        ),
        (
            json!({"jank": {"overrides": [{"phase": "begin", "strategies": []}]}}),
            ".jank.overrides[0].phase",
            UnknownName,
            "must be one of start, later",
        ),
        (
            json!({"jank": {"overrides": [{"page": "Cart"}]}}),
            ".jank.overrides[0]",
            Missing,
            "strategies",
        ),
    ] {
        assert_wrong(&document, path, code, part);
    }
}

#[test]
fn lists_and_texts_are_checked_for_content_and_consistency() {
    use FaultCode::{Duplicate, Empty, InvalidRegex, Missing, TooLarge, UnknownKey};
    let rate = |rate: Value| json!({"sampling": {"spans": {"overrides": [rate]}}});
    let page = || json!({"page": "A", "api": []});
    let source = json!({"source": "api", "hosts": []});
    let deep = (0..20).fold(json!(1), |value, _| json!([value]));
    for (document, path, code, part) in [
        (
            rate(json!({"name": "a"})),
            ".sampling.spans.overrides[0]",
            Missing,
            "`rate`",
        ),
        (
            rate(json!({"name": "", "rate": 1})),
            ".sampling.spans.overrides[0].name",
            Empty,
            "empty",
        ),
        (
            json!({"tracing": {"allow": ["ok", "("]}}),
            ".tracing.allow[1]",
            InvalidRegex,
            "unclosed group",
        ),
        (
            json!({"tracing": {"deny": ["(a{1000}){1000}"]}}),
            ".tracing.deny[0]",
            TooLarge,
            "256 KiB",
        ),
        (
            json!({"monitors": {"fps": {"interval_s": 1}}}),
            ".monitors.fps.interval_s",
            UnknownKey,
            "interval_ms",
        ),
        (
            json!({"pages": [page(), page()]}),
            ".pages[1]",
            Duplicate,
            "`A`",
        ),
        (
            json!({"traffic": {"sources": [source]}}),
            ".traffic.sources[0].hosts",
            Empty,
            "empty",
        ),
        (
            json!({"toggles": {"deep": deep}}),
            ".toggles.deep",
            TooLarge,
            "at most 16",
        ),
        (
            json!({"toggles": {"long": "x".repeat(300_000)}}),
            "",
            TooLarge,
            "bytes long",
        ),
    ] {
        assert_wrong(&document, path, code, part);
    }
}

#[test]
fn conditions_are_checked() {
    use FaultCode::{Empty, InvalidRequirement, NeverMatches, OutOfRange, UnknownName};
    for (when, path, code, part) in [
        (json!({"app_id": []}), ".app_id", Empty, "no device"),
        (json!({"any": []}), ".any", Empty, "no device"),
        (json!({"not": {"all": []}}), "", NeverMatches, "no device"),
        (json!({"locale": [""]}), ".locale[0]", OutOfRange, "bytes"),
        (
            json!({"app_version": "4.12"}),
            ".app_version",
            InvalidRequirement,
            "`=4.12`",
        ),
        (
            json!({"all": [{"not": {"sdk_version": "?"}}]}),
            ".all[0].not.sdk_version",
            InvalidRequirement,
            "`?`",
        ),
        (json!({"build": {}}), ".build", Empty, "`min`"),
        (
            json!({"build": {"min": 5, "max": 4}}),
            ".build",
            NeverMatches,
            "above",
        ),
        (
            json!({"network": ["wify"]}),
            ".network[0]",
            UnknownName,
            "did you mean `wifi`?",
        ),
        (
            json!({"percentage": {"percent": 101}}),
            ".percentage.percent",
            OutOfRange,
            "0 to 100",
        ),
        (
            json!({"percentage": {"percent": 0.0001}}),
            ".percentage.percent",
            OutOfRange,
            "0.001",
        ),
        (
            json!({"percentage": {"percent": 1, "salt": ""}}),
            ".percentage.salt",
            OutOfRange,
            "omit it",
        ),
    ] {
        assert_fault(
            with_when(&when),
            &format!("overrides[0].when{path}"),
            code,
            part,
        );
    }
    let deep = (0..20).fold(json!({"os_name": ["ios"]}), |when, _| json!({"not": when}));
    let (path, code, _) = fault(with_when(&deep));
    assert_eq!(
        (path.matches("not").count(), code),
        (17, FaultCode::TooLarge)
    );
}

#[test]
fn ids_are_unique_slugs() {
    let one =
        |id: &str| json!({"id": id, "when": {"os_name": ["ios"]}, "patch": {"enabled": false}});
    for id in ["", "A", "-a", "a b", "größe", &"x".repeat(65)] {
        assert_fault(
            json!({"overrides": [one(id)]}),
            "overrides[0].id",
            FaultCode::InvalidId,
            "not an id",
        );
    }
    let twice = json!({"overrides": [one("a"), one("b"), one("a")]});
    assert_fault(twice, "overrides[2].id", FaultCode::Duplicate, "`a`");
}

#[test]
fn patches_that_are_valid_alone_are_checked_together() {
    let one = |id: &str| json!({"id": id, "when": {"os_name": [id]}, "patch": {"toggles": {id: "x".repeat(150_000)}}});
    assert_fault(
        json!({"overrides": [one("a"), one("b")]}),
        "overrides",
        FaultCode::TooLarge,
        "with all overrides applied",
    );
}

#[test]
fn disabled_overrides_are_checked_too() {
    let mut configuration = with_patch(&json!({"enabled": 1}));
    configuration["overrides"][0]["enabled"] = json!(false);
    let (path, code, _) = fault(configuration);
    assert_eq!(
        (path.as_str(), code),
        ("overrides[0].patch.enabled", FaultCode::WrongType)
    );
}

#[test]
fn all_faults_are_reported_at_once() {
    let configuration = json!({
        "base": {"enabled": 1, "sampling": {"janks": 2}},
        "overrides": [
            {"id": "A", "when": {"app_id": []}, "patch": {"upload": {"interval_s": 1}}},
            {"id": "b", "when": {"os_version": "x"}, "patch": 3}
        ]
    });
    let paths: Vec<_> = faults(configuration)
        .into_iter()
        .map(|fault| fault.path)
        .collect();
    assert_eq!(
        paths,
        [
            "base.enabled",
            "base.sampling.janks",
            "overrides[0].id",
            "overrides[0].when.app_id",
            "overrides[0].patch.upload.interval_s",
            "overrides[1].when.os_version",
            "overrides[1].patch"
        ]
    );
}

#[test]
fn harmless_mistakes_are_warnings() {
    let configuration = Configuration::from_value(json!({
        "base": {"monitors": {"memroy": {}, "battery": {}}},
        "overrides": [
            {"id": "nothing", "when": {"all": []}, "patch": {}},
            {"id": "over", "when": {"all": []}, "patch": {"enabled": false}, "expires_at": "1970-01-01T00:00:01Z"}
        ]
    }))
    .unwrap();
    let compiled = Compiled::new(&configuration, 1).unwrap();
    let at = |now: UnixTime| -> Vec<_> {
        let warnings = compiled.warnings(now).into_iter();
        warnings
            .map(|warning| (warning.path, warning.code))
            .collect()
    };
    let always = [
        ("overrides[0].patch".to_owned(), FaultCode::NoEffect),
        ("base.monitors.memroy".to_owned(), FaultCode::UnknownName),
    ];
    assert_eq!(at(UnixTime::from_micros(999_999)), always);
    let expired = ("overrides[1].expires_at".to_owned(), FaultCode::Expired);
    assert_eq!(
        at(UnixTime::from_micros(1_000_000)),
        [&always[..], &[expired]].concat()
    );
}
