//! `GET /openapi.json`: the public routes as an OpenAPI 3.1 document, made from the annotations of the handlers.
//!
//! An annotation contains what only its handler knows. `finish` adds what can be derived: path parameters, operation ids, and the answers that come
//! with a method. A test compares the lists of the folders with the routing table.

mod finish;
mod numbers;

use std::sync::LazyLock;

use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use bytes::Bytes;
use serde_json::Value;
use unjank_remote_config::{Fault, base_schema};
use utoipa::OpenApi;

use super::{
    alerts, classification, devices, people, project_settings, queries, remote_config, serving,
    symbols, triage,
};

/// The document without the routes of the folders.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "unjank",
        description = "Devices send batches and fetch their configuration. People and their tools manage projects and query data. Every error is \
            `application/problem+json` with a stable `code`. Numeric times are in microseconds since the epoch."
    ),
    components(schemas(Fault)),
    paths(get)
)]
struct Api;

/// Returns the document, with its keys in a fixed order.
#[must_use]
pub fn document() -> Value {
    let mut api = Api::openapi();
    for part in [
        alerts::Documented::openapi(),
        classification::Documented::openapi(),
        remote_config::Documented::openapi(),
        devices::Documented::openapi(),
        people::Documented::openapi(),
        queries::Documented::openapi(),
        serving::Documented::openapi(),
        project_settings::Documented::openapi(),
        symbols::Documented::openapi(),
        triage::Documented::openapi(),
    ] {
        api.merge(part);
    }
    let mut document = serde_json::to_value(api).unwrap_or_default();
    // Set here, because the types of the generator cannot express it.
    let configuration = &mut document["components"]["schemas"]["Configuration"];
    configuration["properties"]["base"] = base_schema();
    numbers::complete(&mut document["components"]["schemas"]);
    finish::finished(document)
}

/// Returns this document.
#[utoipa::path(
    get, path = "/openapi.json", tag = "operators",
    responses((status = 200, body = Value)),
)]
pub(super) async fn get() -> impl IntoResponse {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(document().to_string()));
    ([(CONTENT_TYPE, "application/json")], TEXT.clone())
}
