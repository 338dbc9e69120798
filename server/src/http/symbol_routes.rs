//! The part of the routing table about symbol files: uploads by the tools of others, and what people see of them.

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::map_response;
use axum::routing::{delete, get, post};

use super::{symbol_archives, symbol_files, symbol_uploads};
use crate::app::App;

/// Uploads of symbol files by build tools.
pub(super) fn uploads() -> Router<Arc<App>> {
    // Besides the chunks, a request contains the headers of its parts.
    let chunks = DefaultBodyLimit::max(symbol_uploads::MAX_REQUEST_BYTES + (64 << 10));
    let assemble = DefaultBodyLimit::max(symbol_uploads::MAX_ASSEMBLE_BYTES);
    Router::new()
        .route(
            "/organizations/{organization}/chunk-upload/",
            get(symbol_uploads::options).merge(post(symbol_uploads::chunks).layer(chunks)),
        )
        .route(
            "/projects/{organization}/{project}/files/difs/assemble/",
            post(symbol_uploads::assemble_files),
        )
        .route(
            "/projects/{organization}/{project}/files/dsyms/",
            post(symbol_archives::add).layer(chunks),
        )
        .route(
            "/organizations/{organization}/artifactbundle/assemble/",
            post(symbol_uploads::assemble_bundle),
        )
        .fallback(symbol_uploads::unsupported)
        .layer(assemble)
        .layer(map_response(symbol_uploads::write_problems_for_the_tool))
}

/// The symbol files of a project, and the builds without them.
pub(super) fn symbols() -> Router<Arc<App>> {
    Router::new()
        .route(
            "/projects/{project}/symbols/files",
            get(symbol_files::files),
        )
        .route(
            "/projects/{project}/symbols/files/{file}",
            delete(symbol_files::remove),
        )
        .route(
            "/projects/{project}/symbols/missing",
            get(symbol_files::missing),
        )
        .route(
            "/projects/{project}/symbols/check",
            get(symbol_files::check),
        )
}
