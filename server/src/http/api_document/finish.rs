//! Completes annotations: path parameters by their names, operation ids, and the answers that come with a method or a status.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::http::api::openapi::response;
use crate::http::api::problem_codes::CODES;
use crate::store::reads::SUBJECTS;

const METHODS: [&str; 5] = ["get", "put", "post", "delete", "patch"];

/// Returns the complete document.
pub(super) fn finished(mut api: Value) -> Value {
    api["components"]["schemas"]["Problem"] = problem();
    close_conditions(&mut api["components"]["schemas"]["Condition"]);
    api["components"]["securitySchemes"] = security_schemes();
    let paths = api["paths"].as_object_mut();
    for (path, item) in paths.into_iter().flatten() {
        for method in METHODS {
            if let Some(operation) = item.get_mut(method) {
                finish(path, method, operation);
            }
        }
    }
    api
}

/// Documents that a condition has exactly one key.
fn close_conditions(condition: &mut Value) {
    let kinds = condition["oneOf"].as_array_mut();
    for kind in kinds.into_iter().flatten() {
        kind["additionalProperties"] = json!(false);
    }
}

fn finish(path: &str, method: &str, operation: &mut Value) {
    let tag = operation["tags"][0].as_str().unwrap_or_default();
    let name = operation["operationId"].as_str().unwrap_or_default();
    operation["operationId"] = json!(format!("{tag}_{name}"));
    add_path_parameters(path, operation);
    if operation.get("requestBody").is_some() {
        operation["requestBody"]["required"] = json!(true);
    }
    // Browsers report the origin of a request. Requests that change nothing are not checked.
    if path.starts_with("/api/v1/") && method != "get" {
        add_code(operation, "403", "cross_site");
    }
    operation["security"] = security(operation);
    let answers = operation["responses"].as_object_mut();
    for (status, answer) in answers.into_iter().flatten() {
        finish_answer(status, answer);
    }
}

/// Returns the credentials that an operation accepts, derived from its error codes.
fn security(operation: &Value) -> Value {
    let refused: BTreeSet<&str> = codes(operation, "401").collect();
    if refused.contains("key_missing") {
        json!([{"ingest_key": []}, {"ingest_key_header": []}, {"device_token": []}])
    } else if refused.contains("token_unknown") {
        json!([{"api_token": []}, {"session": []}])
    } else if refused.contains("token_missing") {
        json!([{"session": []}])
    } else if refused.contains("session_ended") {
        json!([{"refresh": []}])
    } else {
        json!([])
    }
}

/// Returns the codes of problems with a status.
fn codes<'a>(operation: &'a Value, status: &str) -> impl Iterator<Item = &'a str> {
    let codes = operation["responses"][status]
        .pointer("/content/application~1problem+json/schema/allOf/1/properties/code/enum")
        .and_then(Value::as_array);
    codes.into_iter().flatten().filter_map(Value::as_str)
}

fn finish_answer(status: &str, answer: &mut Value) {
    if answer["description"].as_str().is_none_or(str::is_empty) {
        answer["description"] = json!(match status {
            "201" => "Created.",
            "204" => "Done.",
            _ => "The answer.",
        });
    }
    if status == "429" || status == "503" {
        let unavailable = answer["content"].get("application/problem+json").is_some();
        let header = json!({
            "description": "Seconds to wait before a retry.",
            "required": true,
            "schema": {"type": "integer", "minimum": 1}
        });
        if unavailable {
            answer["headers"]["Retry-After"] = header;
        }
    }
}

fn add_code(operation: &mut Value, status: &str, code: &str) {
    let mut codes: BTreeSet<&str> = codes(operation, status).collect();
    codes.insert(code);
    operation["responses"][status] = response(&codes);
}

/// Adds the path parameters that the annotation does not have.
fn add_path_parameters(path: &str, operation: &mut Value) {
    let names = path
        .split('/')
        .filter_map(|segment| segment.strip_prefix('{')?.strip_suffix('}'));
    for name in names {
        let known = operation["parameters"].as_array();
        if known.is_some_and(|known| {
            known
                .iter()
                .any(|one| one["name"] == name && one["in"] == "path")
        }) {
            continue;
        }
        let mut parameter = path_parameter(name);
        parameter["name"] = json!(name);
        parameter["in"] = json!("path");
        parameter["required"] = json!(true);
        match operation["parameters"].as_array_mut() {
            Some(parameters) => parameters.push(parameter),
            None => operation["parameters"] = json!([parameter]),
        }
    }
}

/// A parameter has the same meaning in every path. Most are ids.
fn path_parameter(name: &str) -> Value {
    match name {
        "project" => json!({
            "description": "The project's id.",
            "schema": {"type": "string", "pattern": "^[a-z0-9][a-z0-9-]{0,62}$"}
        }),
        "revision" => json!({
            "description": "The number of a revision, from 1.",
            "schema": {"type": "integer", "format": "int64", "minimum": 1}
        }),
        "signal" => json!({
            "description": "The signal to query.",
            "schema": {"type": "string", "enum": SUBJECTS.iter().map(|one| one.name).collect::<Vec<_>>()}
        }),
        "table" => json!({
            "description": "The rows of a signal, with `.csv`.",
            "schema": {"type": "string", "enum": crate::query::tables().map(|name| format!("{name}.csv")).collect::<Vec<_>>()}
        }),
        "group" => json!({
            "description": "The id of a group of janks: a 64-bit number as text, from 1.",
            "schema": {"type": "string", "pattern": "^[1-9][0-9]{0,19}$"}
        }),
        "trace" => json!({
            "description": "The id of a trace.",
            "schema": {"type": "string", "pattern": "^[0-9a-f]{32}$"}
        }),
        _ => json!({"schema": {"type": "string", "format": "uuid"}}),
    }
}

fn problem() -> Value {
    let codes: Vec<_> = CODES.iter().map(|(code, _)| *code).collect();
    let mut properties = Map::new();
    for (name, description, schema) in [
        (
            "type",
            "A URI that names the kind of problem; `about:blank` if the status is specific enough.",
            json!({"type": "string"}),
        ),
        (
            "title",
            "A short title, the same for every problem of a kind.",
            json!({"type": "string"}),
        ),
        (
            "status",
            "The HTTP status.",
            json!({"type": "integer", "minimum": 400, "maximum": 599}),
        ),
        (
            "detail",
            "What happened and what to do, for a person.",
            json!({"type": "string"}),
        ),
        (
            "code",
            "What happened, for a machine. Names are stable.",
            json!({"type": "string", "enum": codes}),
        ),
        (
            "current_revision",
            "With `conflict`: the revision that was saved in the meantime.",
            json!({"type": "integer", "format": "int64"}),
        ),
        (
            "faults",
            "With `configuration_invalid` and `rules_invalid`: the faults, each with its place.",
            json!({"type": "array", "items": {"anyOf": [
                {"$ref": "#/components/schemas/Fault"},
                {"$ref": "#/components/schemas/RulesFault"}
            ]}}),
        ),
        (
            "retry_after_s",
            "With `too_many_logins`: the seconds to wait before a retry.",
            json!({"type": "integer", "minimum": 0}),
        ),
    ] {
        let mut property = schema;
        property["description"] = json!(description);
        properties.insert(name.to_owned(), property);
    }
    json!({
        "description": "Every error (RFC 9457).",
        "type": "object",
        "required": ["type", "title", "status", "detail", "code"],
        "properties": properties,
    })
}

fn security_schemes() -> Value {
    json!({
        "api_token": {"type": "http", "scheme": "bearer", "description": "An API token of a script or tool: `unjank token create`."},
        "session": {"type": "apiKey", "in": "cookie", "name": "__Host-unjank", "description": "The session of a person who is logged in."},
        "refresh": {"type": "apiKey", "in": "cookie", "name": "__Secure-unjank-refresh", "description": "Gets the next session token. Works once."},
        "ingest_key": {"type": "http", "scheme": "bearer", "description": "The ingest key of an app."},
        "ingest_key_header": {"type": "apiKey", "in": "header", "name": "X-API-Key", "description": "The ingest key, if `Authorization` cannot be set. Ignored if `Authorization` is sent."},
        "device_token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "A token of one install, signed with a key registered under `device-keys`."}
    })
}
