//! Requests of web apps, which browsers send from the origin of the app.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, ETAG, IF_NONE_MATCH, ORIGIN,
    RETRY_AFTER, VARY,
};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use tower::{Layer, ServiceExt};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::ACCEPT_POST;
use super::device::API_KEY;
use super::otlp_answers::CONFIG_ETAG;
use crate::app::App;
use crate::http::api::problem::Problem;
use crate::web_origins::WebOrigins;

/// Browsers ask again after this time.
const REMEMBERED: Duration = Duration::from_secs(2 * 60 * 60);
/// The context of a trace, which instrumented browsers add to every request.
const TRACE_CONTEXT: [HeaderName; 2] = [
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];
/// Caches keep the answers for web apps apart from the others.
const BY_ORIGIN: HeaderValue = HeaderValue::from_static("origin");

/// Lets web apps of these origins call routes.
pub(super) fn for_web_apps(routes: Router<Arc<App>>, origins: &WebOrigins) -> Router<Arc<App>> {
    routes
        // Set before the layer, so that the layer also answers the `OPTIONS` of browsers.
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .layer(from_fn_with_state(allowed(origins), answer))
}

/// Returns what web apps of these origins may do. Keys are in headers and never in cookies, so no request has credentials of the browser.
fn allowed(origins: &WebOrigins) -> Arc<CorsLayer> {
    let known = origins
        .iter()
        .filter_map(|origin| HeaderValue::from_str(origin).ok());
    let allowed = if origins.allow_all() {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(known)
    };
    let [parent, state] = TRACE_CONTEXT;
    let layer = CorsLayer::new()
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
        .max_age(REMEMBERED);
    Arc::new(layer)
}

/// Answers a request. Most come from apps that are not in a browser, and these do not pay for the headers that only browsers read.
async fn answer(State(allowed): State<Arc<CorsLayer>>, request: Request, next: Next) -> Response {
    if request.headers().contains_key(ORIGIN) || request.method() == Method::OPTIONS {
        let Ok(response) = allowed.layer(next).oneshot(request).await;
        return response;
    }
    let mut response = next.run(request).await;
    response.headers_mut().append(VARY, BY_ORIGIN);
    response
}
