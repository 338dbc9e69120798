//! The part of the routing table about devices: what they send, and what they ask for. Web apps may call these routes from their own origin.

pub(super) mod device;
mod grpc;
mod grpc_answers;
mod ingest;
mod ofrep;
mod otlp;
mod otlp_answers;
mod remote_config;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, RETRY_AFTER,
};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::routing::{get, post};
use tower_http::cors::{AllowOrigin, CorsLayer};
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa::OpenApi;

use self::device::API_KEY;
use self::otlp::Transport;
use self::otlp_answers::CONFIG_ETAG;
use super::api::problem::Problem;
use crate::app::App;
use crate::otlp::Kind;
use crate::web_origins::WebOrigins;

/// Browsers ask again after this time.
const REMEMBERED: Duration = Duration::from_secs(2 * 60 * 60);
/// The context of a trace, which instrumented browsers add to every request.
const TRACE_CONTEXT: [HeaderName; 2] = [
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];
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

fn for_web_apps(routes: Router<Arc<App>>, origins: &WebOrigins) -> Router<Arc<App>> {
    routes
        // Set before the layer, so that the layer also answers the `OPTIONS` of browsers.
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .layer(cross_origin(origins))
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
    Router::new()
        .route("/v1/config", get(remote_config::get))
        .route("/ofrep/v1/evaluate/flags", post(ofrep::all))
        .route("/ofrep/v1/evaluate/flags/{*key}", post(ofrep::one))
        // `body` reads the body, within its own limits of compressed size, decompressed size, time and memory.
        .layer(DefaultBodyLimit::disable())
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

/// Allows requests of web apps. Keys are in headers and never in cookies, so no request has credentials of the browser.
fn cross_origin(origins: &WebOrigins) -> CorsLayer {
    let known = origins
        .iter()
        .filter_map(|origin| HeaderValue::from_str(origin).ok());
    let allowed = if origins.allow_all() {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(known)
    };
    let [parent, state] = TRACE_CONTEXT;
    CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([
            ACCEPT,
            AUTHORIZATION,
            CONTENT_ENCODING,
            CONTENT_TYPE,
            IF_NONE_MATCH,
            API_KEY,
            parent,
            state,
        ])
        .expose_headers([ETAG, RETRY_AFTER, CONFIG_ETAG, ACCEPT_POST])
        .max_age(REMEMBERED)
}
