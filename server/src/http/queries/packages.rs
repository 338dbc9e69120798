//! `/api/v1/projects/{project}/spans/packages`: the own time of spans by package.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;

use super::query::{QueryParameters, QueryString, complete};
use crate::app::App;
use crate::http::api::openapi::{Refused, RunsQuery};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Member, Viewer};
use crate::http::api::turns::turn;
use crate::query::{NamedQuery, Packages, packages};

/// Returns the time of spans by package, without the time of their children on the same thread.
///
/// Spans of all kinds count, with the weight of their sample rate. The numbers are computed from the spans of whole sessions: of a random share of
/// the sessions, if there are more than 50,000 spans. With a base, the answer has the numbers of the base, too. A base of another version
/// requires `app_version`.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/spans/packages", tag = "traces",
    operation_id = "packages",
    params(QueryParameters),
    responses((status = 200, body = Packages), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn time_by_package(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    QueryString(ask): QueryString,
) -> Result<Json<Packages>, Problem> {
    let (head, base) = complete(&app, &member, ask).await?.sides(app.clock.now())?;
    let head = summed(&app, &member, head).await?;
    let Some(base) = base else {
        return Ok(Json(head.first()));
    };
    let base = summed(&app, &member, base).await?;
    Ok(Json(head.compared_with(base).first()))
}

async fn summed(app: &App, member: &Member, mut ask: NamedQuery) -> Result<Packages, Problem> {
    ask.measures = vec!["count".to_owned()];
    let reading = ask.single(&member.project, "spans", app.clock.now())?;
    let _turn = turn(app, &member.actor).await?;
    let spans = app.clickhouse.nested_spans(&reading).await?;
    let work = tokio::task::spawn_blocking(move || packages(&spans));
    work.await.map_err(|_| Problem::overloaded())
}
