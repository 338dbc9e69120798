//! Ids in paths.

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use uuid::Uuid;

use super::problem::Problem;

/// The project and the id in a path.
pub(crate) type IdPath = Result<Path<(String, Uuid)>, PathRejection>;

pub(crate) fn id_of(path: IdPath) -> Result<Uuid, Problem> {
    path.map(|Path((_, id))| id)
        .map_err(|_| Problem::not_found())
}
