//! The problems that an operation can answer. A handler declares their sources as `Refused<(Admin, JsonBody, …)>`: its
//! access rule, its inputs and its actions.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use utoipa::IntoResponses;
use utoipa::openapi::{RefOr, Response};

use crate::http::api::problem_codes::CODES;

/// A source of problems.
pub(crate) trait Refuses {
    const CODES: &'static [&'static str];
}

/// Several sources of problems.
pub(super) trait RefusesAll {
    fn codes() -> Vec<&'static str>;
}

macro_rules! refuses {
    ($($(#[$doc:meta])* $what:ident: $($code:literal)+;)+) => {
        $(
            $(#[$doc])*
            pub(crate) struct $what;

            impl Refuses for $what {
                const CODES: &'static [&'static str] = &[$($code),+];
            }
        )+
    };
}

refuses! {
    /// A body read as JSON.
    JsonBody: "invalid_body" "content_type" "body_too_large" "body_stalled" "body_truncated" "overloaded";
    /// A body that may be compressed.
    UploadedBody: "content_type" "content_encoding" "body_stalled" "overloaded";
    /// Parameters after the `?`.
    QueryString: "invalid_query";
    /// An object that the path or the body names and that must exist.
    Missing: "not_found";
    /// An object that must not exist yet.
    Exists: "exists";
    /// Saving a change of the latest revision.
    Conflict: "conflict";
    /// Values that are validated.
    Invalid: "invalid";
    /// A configuration.
    Faulty: "configuration_invalid";
    /// Classification rules.
    FaultyRules: "rules_invalid";
    /// An alert rule.
    FaultyAlertRule: "alert_rule_invalid";
    /// Rules tried on stored data, for a limited number of days and one at a time.
    RuleDryRun: "days_out_of_range" "dry_run_busy" "store_unavailable" "question_too_big";
    /// A rule evaluated on stored data, for a limited number of days.
    RunsAlertPreview: "days_out_of_range" "overloaded" "store_unavailable" "question_too_big" "question_unfit";
    /// A query of stored data.
    Stored: "store_unavailable" "question_too_big";
    /// A query of stored data with parameters of the caller.
    RunsQuery: "store_unavailable" "question_too_big" "question_unfit" "overloaded" "invalid_query" "not_found";
    /// Granted access, which must not exceed the caller's own role and lifetime.
    GrantsAccess: "token_outlives_its_maker" "role";
    /// A key for device tokens.
    Unfit: "device_key_unfit" "overloaded";
    /// A test message to a channel.
    Tested: "too_many_tests";
    /// A channel that must be able to receive messages.
    Unsendable: "channel_unfit" "overloaded";
    /// A check of a password, which is slow and throttled.
    LogIn: "too_many_logins" "overloaded" "control_unavailable";
    /// A password.
    WrongLogin: "login_refused";
    /// An invitation and a new password.
    WrongInvitation: "invitation_unknown" "password_unfit";
    /// A set-up code and the first admin.
    WrongSetUp: "setup_code_wrong" "already_set_up" "password_unfit";
    /// A read of the control database.
    ControlDatabase: "control_unavailable";
    /// A new password.
    WrongPassword: "password_unfit";
    /// A session that may have ended.
    Ended: "session_ended";
    /// Work that waits for its turn.
    Overloaded: "overloaded";
    /// An app and an install that the credential must allow.
    OwnApp: "key_not_for_app" "token_not_for_install";
    /// A batch.
    BatchBody: "batch_in_flight" "body_too_large" "body_truncated" "corrupt_encoding" "decompressed_too_large" "disk_full"
        "invalid_columns" "invalid_envelope" "invalid_json" "invalid_resource" "key_not_for_app" "log_full" "not_durable" "quota_bytes"
        "quota_disk" "quota_events" "record_too_large" "token_not_for_install" "too_many_events";
}

macro_rules! refuses_all {
    ($($one:ident)+) => {
        impl<$($one: Refuses),+> RefusesAll for ($($one,)+) {
            fn codes() -> Vec<&'static str> {
                [$($one::CODES),+].concat()
            }
        }
    };
}

refuses_all!(A);
refuses_all!(A B);
refuses_all!(A B C);
refuses_all!(A B C D);
refuses_all!(A B C D E);
refuses_all!(A B C D E F);

/// The problems of an operation, for its annotation.
pub(crate) struct Refused<All>(std::marker::PhantomData<All>);

impl<All: RefusesAll> IntoResponses for Refused<All> {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        let responses = by_status(&All::codes()).into_iter();
        responses
            .filter_map(|(status, codes)| {
                let response = serde_json::from_value(response(&codes)).ok()?;
                Some((status.to_string(), RefOr::T(response)))
            })
            .collect()
    }
}

fn by_status(codes: &[&'static str]) -> BTreeMap<u16, BTreeSet<&'static str>> {
    let mut statuses: BTreeMap<u16, BTreeSet<&'static str>> = BTreeMap::new();
    for (code, of) in CODES.iter().filter(|(code, _)| codes.contains(code)) {
        for status in *of {
            statuses.entry(*status).or_default().insert(code);
        }
    }
    statuses
}

/// Returns the answer of a status with one of these codes.
pub(crate) fn response(codes: &BTreeSet<&str>) -> Value {
    let names: Vec<_> = codes.iter().map(|code| format!("`{code}`")).collect();
    json!({
        "description": names.join(", "),
        "content": {"application/problem+json": {"schema": {
            "allOf": [
                {"$ref": "#/components/schemas/Problem"},
                {"type": "object", "properties": {"code": {"type": "string", "enum": codes}}}
            ]
        }}}
    })
}
