//! How connections are served: listeners, limits, headers around every answer, the web interface, and what operators ask for.

mod admin;
mod fair_stream;
mod head_limits;
mod http2;
pub(super) mod layers;
mod linger;
mod listener;
pub(super) mod web;

pub use self::listener::{ListenerSettings, Routes, serve_connections};

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use utoipa::OpenApi;

use super::api::problem::Problem;
use crate::app::App;

/// These routes in the OpenAPI document.
#[derive(OpenApi)]
#[openapi(paths(admin::healthz, admin::readyz))]
pub(super) struct Documented;

/// What load balancers ask for.
pub(super) fn health() -> Router<Arc<App>> {
    Router::new()
        .route("/healthz", get(admin::healthz))
        .route("/readyz", get(admin::readyz))
}

/// Routes for operators.
pub(super) fn operators() -> Router<Arc<App>> {
    Router::new()
        .route("/healthz", get(admin::healthz))
        .route("/readyz", get(admin::explained_readyz))
        .route("/metrics", get(admin::metrics))
        .fallback(|| async { Problem::not_found() })
}
