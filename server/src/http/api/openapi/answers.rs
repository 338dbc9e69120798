//! Parameters and answers that several operations share.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::{RefOr, Response};
use utoipa::{IntoParams, IntoResponses};

/// The header for a compressed body.
pub(crate) struct ContentEncoding;

impl IntoParams for ContentEncoding {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        parameter(json!({
            "name": "Content-Encoding", "in": "header", "required": false,
            "description": "The compression of the body.",
            "schema": {"type": "string", "enum": ["identity", "gzip", "zstd", "deflate"]}
        }))
    }
}

/// The header for answers that the client already has.
pub(crate) struct IfNoneMatch;

impl IntoParams for IfNoneMatch {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        parameter(json!({
            "name": "If-None-Match", "in": "header", "required": false,
            "description": "The `ETag`s of answers that the client already has, separated by commas.",
            "schema": {"type": "string"}
        }))
    }
}

fn parameter(parameter: Value) -> Vec<Parameter> {
    serde_json::from_value(parameter).into_iter().collect()
}

/// The client's copy is up to date.
pub(crate) struct NotModified;

impl IntoResponses for NotModified {
    fn responses() -> Responses {
        responses([(
            "304",
            json!({
                "description": "The client's copy is up to date.",
                "headers": {"ETag": {"schema": {"type": "string"}}}
            }),
        )])
    }
}

/// The cookies of a login.
pub(crate) struct SessionCookies;

impl IntoResponses for SessionCookies {
    fn responses() -> Responses {
        responses([(
            "200",
            json!({
                "description": "Logged in: the session is in the cookies.",
                "headers": {"Set-Cookie": {
                    "description": "`__Host-unjank` for each request, and `__Secure-unjank-refresh` to renew it.",
                    "schema": {"type": "string"}
                }},
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/LoggedIn"}}}
            }),
        )])
    }
}

/// The browser is sent to another page.
pub(crate) struct Redirect;

impl IntoResponses for Redirect {
    fn responses() -> Responses {
        responses([(
            "303",
            json!({
                "description": "Redirects the browser to the identity provider, or to the requested page. If the login failed, `login_error` in \
                    the address of that page has the reason.",
                "headers": {"Location": {"required": true, "schema": {"type": "string"}}}
            }),
        )])
    }
}

/// Why there are no flags, in the format of the protocol.
pub(crate) struct Failures;

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
                    "`PARSE_ERROR`, `INVALID_CONTEXT`, or `TARGETING_KEY_MISSING` if the flags depend on the install.",
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
