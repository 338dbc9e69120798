//! The part of the routing table about symbol files: uploads by the tools of others, and what people see of them.

mod archives;
mod files;
mod pace;
mod request_size;
mod uploads;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::map_response;
use axum::routing::{delete, get, post};
use utoipa::OpenApi;

use crate::app::App;

/// These routes in the OpenAPI document. The tools that upload files have documents of their own.
#[derive(OpenApi)]
#[openapi(paths(files::files, files::remove, files::missing, files::check))]
pub(super) struct Documented;

/// Uploads of symbol files by build tools.
pub(super) fn uploads() -> Router<Arc<App>> {
    // Besides the chunks, a request contains the headers of its parts.
    let chunks = DefaultBodyLimit::max(request_size::MAX_REQUEST_BYTES + (64 << 10));
    let assemble = DefaultBodyLimit::max(uploads::MAX_ASSEMBLE_BYTES);
    Router::new()
        .route(
            "/organizations/{organization}/chunk-upload/",
            get(uploads::options).merge(post(uploads::chunks).layer(chunks)),
        )
        .route(
            "/projects/{organization}/{project}/files/difs/assemble/",
            post(uploads::assemble_files),
        )
        .route(
            "/projects/{organization}/{project}/files/dsyms/",
            post(archives::add).layer(chunks),
        )
        .route(
            "/organizations/{organization}/artifactbundle/assemble/",
            post(uploads::assemble_bundle),
        )
        .fallback(uploads::unsupported)
        .layer(assemble)
        .layer(map_response(uploads::write_problems_for_the_tool))
}

/// The symbol files of a project, and the builds without them.
pub(super) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/projects/{project}/symbols/files", get(files::files))
        .route(
            "/projects/{project}/symbols/files/{file}",
            delete(files::remove),
        )
        .route("/projects/{project}/symbols/missing", get(files::missing))
        .route("/projects/{project}/symbols/check", get(files::check))
}
