//! The maximum size of a request with chunks or files, and the answer to a request whose body is too large or broken.

use axum::extract::multipart::MultipartError;
use axum::http::StatusCode;

use crate::http::api::problem::Problem;

/// The maximum size of a request with chunks.
pub(super) const MAX_REQUEST_BYTES: usize = 32 << 20;

pub(super) fn broken(error: &MultipartError) -> Problem {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Problem::too_large(MAX_REQUEST_BYTES),
        _ => Problem::unfit_body(error.body_text()),
    }
}
