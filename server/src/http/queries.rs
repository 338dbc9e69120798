//! Queries for screens, exports and scripts.

mod app_sessions;
mod app_starts;
mod attributes;
mod books;
mod exports;
mod frames;
mod inside_spans;
mod janks;
mod packages;
pub(super) mod query;
mod span_flames;
mod traces;
mod versions;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use utoipa::OpenApi;

use crate::app::App;

/// These routes in the OpenAPI document.
#[derive(OpenApi)]
#[openapi(paths(
    books::get,
    query::table,
    query::over_time,
    query::spread,
    query::tested,
    attributes::list,
    janks::stacks,
    janks::flame_graph,
    janks::folded_stacks,
    janks::speedscope_file,
    janks::events,
    janks::current_group,
    traces::search,
    traces::trace,
    traces::chrome,
    inside_spans::inside_span,
    span_flames::flame_graph,
    span_flames::folded_spans,
    span_flames::speedscope_file,
    packages::time_by_package,
    app_starts::list,
    app_sessions::list,
    app_sessions::one,
    versions::list,
    exports::csv,
    exports::report,
))]
pub(super) struct Documented;

pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/projects/{project}/query/{signal}", get(query::table))
        .route(
            "/projects/{project}/query/{signal}/series",
            get(query::over_time),
        )
        .route(
            "/projects/{project}/query/{signal}/distribution",
            get(query::spread),
        )
        .route(
            "/projects/{project}/query/{signal}/significance",
            get(query::tested),
        )
        .route(
            "/projects/{project}/query/{signal}/attributes",
            get(attributes::list),
        )
        .route("/projects/{project}/janks/stacks", get(janks::stacks))
        .route("/projects/{project}/janks/flame", get(janks::flame_graph))
        .route(
            "/projects/{project}/janks/folded",
            get(janks::folded_stacks),
        )
        .route(
            "/projects/{project}/janks/speedscope",
            get(janks::speedscope_file),
        )
        .route("/projects/{project}/janks/events", get(janks::events))
        .route("/projects/{project}/traces", get(traces::search))
        .route("/projects/{project}/traces/{trace}", get(traces::trace))
        .route(
            "/projects/{project}/traces/{trace}/chrome",
            get(traces::chrome),
        )
        .route("/projects/{project}/app-starts", get(app_starts::list))
        .route("/projects/{project}/sessions", get(app_sessions::list))
        .route(
            "/projects/{project}/sessions/{session}",
            get(app_sessions::one),
        )
        .route("/projects/{project}/versions", get(versions::list))
        .route("/projects/{project}/export/{table}", get(exports::csv))
        .route("/projects/{project}/report", get(exports::report))
        .route("/projects/{project}/books", get(books::get))
        .route(
            "/projects/{project}/spans/inside",
            get(inside_spans::inside_span),
        )
        .route(
            "/projects/{project}/spans/flame",
            get(span_flames::flame_graph),
        )
        .route(
            "/projects/{project}/spans/folded",
            get(span_flames::folded_spans),
        )
        .route(
            "/projects/{project}/spans/speedscope",
            get(span_flames::speedscope_file),
        )
        .route(
            "/projects/{project}/spans/packages",
            get(packages::time_by_package),
        )
        .route(
            "/projects/{project}/janks/groups/{group}",
            get(janks::current_group),
        )
}
