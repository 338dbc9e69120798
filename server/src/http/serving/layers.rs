//! The layers around every route.

use std::sync::Arc;

use axum::Router;
use axum::http::header::{AUTHORIZATION, CONNECTION, COOKIE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use tower::ServiceBuilder;
use tower_http::ServiceBuilderExt;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::request_id::MakeRequestUuid;
use tower_http::set_header::SetResponseHeaderLayer;
use tower_http::trace::{DefaultMakeSpan, TraceLayer};
use tracing::Level;

use super::linger;
use crate::app::App;
use crate::http::api::problem::{self, Problem};
use crate::http::devices::device;

/// Adds every layer, outermost first.
pub(crate) fn around(routes: Router<Arc<App>>) -> Router<Arc<App>> {
    let stack = ServiceBuilder::new()
        // A request gets its id before anything is logged about it.
        .set_x_request_id(MakeRequestUuid)
        // Keys never reach a log.
        .sensitive_headers([AUTHORIZATION, COOKIE, device::API_KEY])
        .layer(
            TraceLayer::new_for_http()
                // Metrics count rejected requests. A log line for each would bury the cause.
                .on_failure(())
                .make_span_with(DefaultMakeSpan::new().level(Level::DEBUG)),
        )
        .propagate_x_request_id()
        // Browsers must not guess another content type.
        .layer(SetResponseHeaderLayer::if_not_present(
            X_CONTENT_TYPE_OPTIONS,
            HeaderValue::from_static("nosniff"),
        ))
        // A bug in one request causes a 500 and does not close the connection.
        .layer(CatchPanicLayer::custom(|_| problem::internal()))
        .map_response(close_after_unread_body)
        .map_request(linger::drain_unread_body);
    routes
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        // One layer: each costs an allocation for every request.
        .layer(stack)
}

/// Closes the connection if the body was not read to its end. The header keeps clients from sending another request on it.
fn close_after_unread_body(mut response: Response) -> Response {
    let unread = [StatusCode::PAYLOAD_TOO_LARGE, StatusCode::REQUEST_TIMEOUT];
    if unread.contains(&response.status()) {
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}
