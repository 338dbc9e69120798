//! Parameters and answers that several operations share.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::{RefOr, Response};
use utoipa::{IntoParams, IntoResponses};

/// The body may be compressed.
pub(in crate::http) struct ContentEncoding;

impl IntoParams for ContentEncoding {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        parameter(json!({
            "name": "Content-Encoding", "in": "header", "required": false,
            "description": "How the body is compressed.",
            "schema": {"type": "string", "enum": ["identity", "gzip", "zstd"]}
        }))
    }
}

/// The client has an answer already.
pub(in crate::http) struct IfNoneMatch;

impl IntoParams for IfNoneMatch {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        parameter(json!({
            "name": "If-None-Match", "in": "header", "required": false,
            "description": "`ETag`s of answers that the client has already, separated by commas.",
            "schema": {"type": "string"}
        }))
    }
}

fn parameter(parameter: Value) -> Vec<Parameter> {
    serde_json::from_value(parameter).into_iter().collect()
}

/// What the client has is still right.
pub(in crate::http) struct NotModified;

impl IntoResponses for NotModified {
    fn responses() -> Responses {
        responses([(
            "304",
            json!({
                "description": "What the client has is still right.",
                "headers": {"ETag": {"schema": {"type": "string"}}}
            }),
        )])
    }
}

/// Somebody is logged in now.
pub(in crate::http) struct SessionCookies;

impl IntoResponses for SessionCookies {
    fn responses() -> Responses {
        responses([(
            "200",
            json!({
                "description": "Logged in: the session is in the cookies.",
                "headers": {"Set-Cookie": {
                    "description": "`__Host-unjank`, for each request, and `__Secure-unjank-refresh`, for the next.",
                    "schema": {"type": "string"}
                }},
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/LoggedIn"}}}
            }),
        )])
    }
}

/// A browser goes on to another page.
pub(in crate::http) struct Redirect;

impl IntoResponses for Redirect {
    fn responses() -> Responses {
        responses([(
            "303",
            json!({
                "description": "The browser goes on: to the identity provider, or to the page that was wanted. When the login failed, `login_error` \
                    in the address of that page says why.",
                "headers": {"Location": {"required": true, "schema": {"type": "string"}}}
            }),
        )])
    }
}

/// Why there are no flags, in the words of the protocol.
pub(in crate::http) struct Failures;

impl IntoResponses for Failures {
    fn responses() -> Responses {
        let failure = |description| {
            json!({
                "description": description,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/FlagFailure"}}}
            })
        };
        responses([
            (
                "400",
                failure(
                    "`PARSE_ERROR`, `INVALID_CONTEXT`, or `TARGETING_KEY_MISSING` where the install decides.",
                ),
            ),
            ("413", failure("`GENERAL`: the body is too large.")),
        ])
    }
}

type Responses = BTreeMap<String, RefOr<Response>>;

fn responses<const N: usize>(responses: [(&str, Value); N]) -> Responses {
    responses
        .into_iter()
        .filter_map(|(status, response)| {
            let response = serde_json::from_value(response).ok()?;
            Some((status.to_owned(), RefOr::T(response)))
        })
        .collect()
}
