//! The part of the routing table about devices: what they send, and what they ask for. Web apps may call these routes from their own origin.

pub(super) mod device;
mod grpc;
mod grpc_answers;
mod ingest;
mod ofrep;
mod otlp;
mod otlp_answers;
mod remote_config;
mod web_apps;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::{HeaderName, HeaderValue};
use axum::routing::{get, post};
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa::OpenApi;

pub(super) use self::grpc::not_over_http2;

use self::otlp::Transport;
use self::web_apps::for_web_apps;
use crate::app::App;
use crate::otlp::Kind;
use crate::web_origins::WebOrigins;

/// Names the forms of a batch that the server reads, in answers of `/v1/ingest`.
const ACCEPT_POST: HeaderName = HeaderName::from_static("accept-post");
const FORMS: HeaderValue =
    HeaderValue::from_static("application/json, application/vnd.unjank.batch.v2");
/// These routes in the OpenAPI document.
#[derive(OpenApi)]
#[openapi(
    components(schemas(ofrep::Failure)),
    paths(ingest::ingest, remote_config::get, ofrep::all, ofrep::one)
)]
pub(super) struct Documented;

pub(super) fn routes(origins: &WebOrigins) -> Router<Arc<App>> {
    let others = for_web_apps(own().merge(opentelemetry()), origins);
    // Outside of the layer for web apps, which answers `OPTIONS`.
    let forms = SetResponseHeaderLayer::if_not_present(ACCEPT_POST, FORMS);
    others.merge(for_web_apps(batches(), origins).route_layer(forms))
}

/// The services of OTLP over gRPC.
pub(super) fn grpc() -> Router<Arc<App>> {
    grpc::services()
}

fn batches() -> Router<Arc<App>> {
    Router::new()
        .route("/v1/ingest", post(ingest::ingest))
        .layer(DefaultBodyLimit::disable())
}

/// The other routes of the SDK's own protocol: remote config and feature flags.
fn own() -> Router<Arc<App>> {
    // `body` reads the body, within its own limits of compressed size, decompressed size, time and memory.
    let flags = DefaultBodyLimit::disable();
    Router::new()
        .route("/v1/config", get(remote_config::get))
        .route("/ofrep/v1/evaluate/flags", post(ofrep::all).layer(flags))
        .route(
            "/ofrep/v1/evaluate/flags/{*key}",
            post(ofrep::one).layer(flags),
        )
}

/// Routes for OpenTelemetry exporters. OpenTelemetry documents the protocol.
fn opentelemetry() -> Router<Arc<App>> {
    let export = |kind| otlp::export(kind, Transport::Http);
    Router::new()
        .route("/v1/traces", export(Kind::Traces))
        .route("/v1/logs", export(Kind::Logs))
        .route("/v1/metrics", export(Kind::Metrics))
        // The handlers bound the bodies, as they do for batches.
        .layer(DefaultBodyLimit::disable())
}
