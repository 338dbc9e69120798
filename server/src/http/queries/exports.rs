//! `/api/v1/projects/{project}/export/…`: raw rows as a streamed file. `…/report`: a whole run as a page.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{
    CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use futures_util::stream::try_unfold;
use tokio::time::{Instant, timeout_at};

use super::query::{QueryParameters, QueryString};
use crate::app::App;
use crate::http::api::openapi::{Refused, RunsQuery};
use crate::http::api::problem::Problem;
use crate::http::api::roles::Viewer;
use crate::http::api::turns::turn;
use crate::query::{QueryError, raw_rows, stored_run, tables};
use crate::run_report;

/// How long an export waits for its turn.
const TURN: Duration = Duration::from_secs(10);
/// A longer export is cut off. The caller can export fewer days at a time.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// Exports every column of a signal's rows, sorted by time. Text that a spreadsheet would read as a formula gets a leading apostrophe.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/export/{table}", tag = "export",
    params(QueryParameters),
    responses((status = 200, body = String, content_type = "text/csv"), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn csv(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Path((_, table)): Path<(String, String)>,
    QueryString(ask): QueryString,
) -> Result<Response, Problem> {
    let name = table.strip_suffix(".csv").unwrap_or_default();
    let name = tables()
        .find(|one| *one == name)
        .ok_or_else(Problem::not_found)?;
    let (reading, limit) = raw_rows(ask, &member.project, name, app.clock.now())?;
    let turn = app.exports.take(member.actor.holder(), TURN).await;
    let turn = turn.ok_or_else(Problem::overloaded)?;
    let cursor = app.clickhouse.csv(&reading, limit).await?;
    // The turn lasts until the last row is read, or the export takes too long.
    let end = Instant::now() + LONGEST;
    let rows = try_unfold((cursor, turn), move |(mut cursor, turn)| async move {
        let bytes = timeout_at(end, cursor.next()).await;
        let bytes = bytes.map_err(std::io::Error::other)?;
        let bytes = bytes.map_err(std::io::Error::other)?;
        Ok::<_, std::io::Error>(bytes.map(|bytes| (bytes, (cursor, turn))))
    });
    let disposition = format!("attachment; filename=\"{name}.csv\"");
    let headers = [
        (CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
        (CONTENT_DISPOSITION, disposition),
    ];
    Ok((headers, Body::from_stream(rows)).into_response())
}

/// Returns a run as one HTML page without scripts: a session, an install, a version, or any other set of filtered events.
///
/// Only filters that apply to every signal are possible. At most 300,000 events.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/report", tag = "export",
    operation_id = "report",
    params(QueryParameters),
    responses((status = 200, body = String, content_type = "text/html"), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn report(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    QueryString(ask): QueryString,
) -> Result<Response, Problem> {
    let rules = app.access.rules(&member.project);
    let rules = rules.unwrap_or_else(|| Arc::clone(&app.default_rules));
    let turn = turn(&app, &member.actor).await?;
    let run = stored_run(
        &app.clickhouse,
        &member.project,
        &ask,
        app.clock.now(),
        rules.rules(),
    )
    .await?;
    let headers = [
        (CONTENT_TYPE, "text/html; charset=utf-8"),
        (
            CONTENT_SECURITY_POLICY,
            run_report::content_security_policy(),
        ),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_DISPOSITION, "attachment; filename=\"report.html\""),
    ];
    // It takes a while to render hundreds of thousands of events.
    let html = tokio::task::spawn_blocking(move || {
        let html = run_report::html(&run);
        drop(turn);
        html
    });
    let html = html.await.map_err(|_| Problem::overloaded())?;
    Ok((headers, html).into_response())
}

impl From<QueryError> for Problem {
    fn from(error: QueryError) -> Self {
        match error {
            QueryError::Unfit(error) => error.into(),
            QueryError::Store(failure) => failure.into(),
        }
    }
}
