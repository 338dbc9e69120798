//! `/api/v1/projects/{project}/export/…`: raw rows as a file, streamed while they are read.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures_util::stream::try_unfold;

use super::member::Viewer;
use super::openapi::{Questioned, Refused};
use super::problem::Problem;
use super::query::{Asking, QueryParameters, turn};
use crate::app::App;
use crate::store::reads::{Grain, SUBJECTS};

/// More is for ClickHouse's own tools.
const MOST_ROWS: u64 = 10_000_000;

/// The signals whose rows are rows of one table.
pub(super) fn tables() -> impl Iterator<Item = &'static str> {
    let whole = SUBJECTS.iter().filter(|one| !one.raw.contains("JOIN"));
    whole.map(|one| one.name)
}

/// Every column of a signal's rows, by time. Text that a spreadsheet would take for a formula has an apostrophe in front.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/export/{table}", tag = "export",
    params(QueryParameters),
    responses((status = 200, body = String, content_type = "text/csv"), Refused<(Viewer, Questioned)>),
)]
pub(super) async fn csv(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Path((_, table)): Path<(String, String)>,
    Asking(mut ask): Asking,
) -> Result<Response, Problem> {
    let name = table.strip_suffix(".csv").unwrap_or_default();
    let name = tables()
        .find(|one| *one == name)
        .ok_or_else(Problem::not_found)?;
    let limit = ask.limit.take().unwrap_or(MOST_ROWS).min(MOST_ROWS);
    let span = ask.span(app.clock.now())?;
    let mut asked = ask.table(&member.project, name, app.clock.now())?;
    (asked.reading.grain, asked.reading.span) = (Grain::Raw, span);
    let permit = turn(&app).await?;
    let cursor = app.clickhouse.csv(&asked.reading, limit).await?;
    // The permit is held until the last row is read.
    let rows = try_unfold((cursor, permit), |(mut cursor, permit)| async move {
        let bytes = cursor.next().await.map_err(std::io::Error::other)?;
        Ok::<_, std::io::Error>(bytes.map(|bytes| (bytes, (cursor, permit))))
    });
    let disposition = format!("attachment; filename=\"{name}.csv\"");
    let headers = [
        (CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
        (CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, Body::from_stream(rows)).into_response())
}
