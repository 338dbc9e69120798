//! The HTTP API: the routing table, with one folder for each audience. The only module that knows status codes.

mod alerts;
mod api;
mod api_document;
mod classification;
mod devices;
mod people;
mod project_settings;
mod queries;
mod remote_config;
mod serving;
mod symbols;
mod triage;

use std::sync::Arc;

use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::CACHE_CONTROL;
use axum::response::IntoResponse;
use axum::routing::get;
use tower_http::csrf::CsrfLayer;
use tower_http::set_header::SetResponseHeaderLayer;

pub use self::api_document::document;
pub use self::serving::{ListenerSettings, Routes, serve_connections};

use self::api::problem::Problem;
use self::serving::{layers, web};
use crate::app::App;

/// Whether the web interface is part of this program.
pub(crate) fn has_web_interface() -> bool {
    web::is_built()
}

/// Routes for devices and people.
pub fn public(app: Arc<App>) -> Router {
    let routes = Router::new()
        .merge(devices::routes(&app.web_origins))
        .nest("/api/0", symbols::uploads())
        .nest("/api/v1", management())
        .merge(serving::health())
        .route("/openapi.json", get(api_document::get))
        // Every other path belongs to the web interface or is unknown.
        .fallback(web::serve);
    layers::around(routes).with_state(app)
}

/// What clients may call over HTTP/2: all routes for devices, because some proxies speak it to every route. Answers are small, so a client that does
/// not read them holds little.
pub fn http2(app: Arc<App>) -> Router {
    let routes = Router::new()
        .merge(devices::routes(&app.web_origins))
        .merge(devices::grpc())
        .merge(serving::health())
        .fallback(devices::not_over_http2);
    layers::around(routes).with_state(app)
}

/// Routes for operators.
pub fn admin(app: Arc<App>) -> Router {
    layers::around(serving::operators()).with_state(app)
}

/// Routes for people and their tools. The parameters of a handler define who may call it.
fn management() -> Router<Arc<App>> {
    Router::new()
        .merge(people::routes())
        .merge(project_settings::routes())
        .merge(remote_config::routes())
        .merge(classification::routes())
        .merge(alerts::routes())
        .merge(triage::routes())
        .merge(queries::routes())
        .merge(symbols::routes())
        .fallback(|| async { Problem::not_found() })
        // Some answers contain secrets that are shown once. All others are for one person.
        .layer(SetResponseHeaderLayer::if_not_present(
            CACHE_CONTROL,
            HeaderValue::from_static("no-store"),
        ))
        // Browsers also attach cookies to requests of other sites. Such requests are rejected because of their origin.
        .layer(CsrfLayer::new().with_rejection_response(|_| Problem::cross_site().into_response()))
}
