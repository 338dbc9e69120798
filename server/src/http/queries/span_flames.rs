//! `/api/v1/projects/{project}/spans/…`: what ran inside spans as a flame graph, and as files for other viewers.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::inside_spans::chosen;
use super::janks::{Flame, file};
use super::query::{QueryParameters, QueryString, complete};
use crate::app::App;
use crate::http::api::openapi::{Refused, RunsQuery};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Member, Viewer};
use crate::http::api::turns::turn;
use crate::query::{ChosenSpans, NamedQuery, SpanStacks, flame, folded, speedscope};

/// What ran inside spans, as a flame graph. The weight of a node is the time of all calls with this path of names, estimated from the recorded
/// ones.
#[derive(Serialize, ToSchema)]
#[schema(as = SpanFlameGraph)]
pub(super) struct SpanFlame {
    #[serde(flatten)]
    flame: Flame,
    /// The number of spans in the tree: the latest ones, at most 1,000. Fewer, if their traces have more than 100,000 spans.
    spans: u64,
    /// The number of spans that these stand for, by their sample rates. A weight divided by this number is a mean per span.
    represented: f64,
    /// The same for the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    base_spans: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_represented: Option<f64>,
}

/// The query of the head and, in a comparison, of the base.
type Sides = (NamedQuery, Option<NamedQuery>);

async fn sides(app: &App, member: &Member, ask: NamedQuery) -> Result<Sides, Problem> {
    Ok(complete(app, member, ask).await?.sides(app.clock.now())?)
}

async fn stacks(
    app: &App,
    member: &Member,
    (head, base): Sides,
) -> Result<(SpanStacks, Option<SpanStacks>), Problem> {
    // One turn covers both sides, because the spans of both stay in memory until the end.
    let turn = turn(app, &member.actor).await?;
    let head = chosen(app, member, head).await?;
    let base = match base {
        Some(base) => Some(chosen(app, member, base).await?),
        None => None,
    };
    let work = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        (head.stacks(), base.as_ref().map(ChosenSpans::stacks))
    });
    work.await.map_err(|_| Problem::overloaded())
}

/// Returns what ran inside the latest spans as one tree, weighted by time in microseconds. With a base, the tree has both sides.
///
/// The filters select the spans. Without a filter by `name` or by `root`, these are the outermost spans of traces. What ran inside a span is
/// determined as for `spans/inside`. A node has the calls with the same path of names; the 2,000 heaviest paths of each side are in the tree. A
/// base of another version requires `app_version`.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/spans/flame", tag = "traces",
    operation_id = "flame",
    params(QueryParameters),
    responses((status = 200, body = SpanFlame), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn flame_graph(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    QueryString(ask): QueryString,
) -> Result<Json<SpanFlame>, Problem> {
    let sides = sides(&app, &member, ask).await?;
    let (head, base) = stacks(&app, &member, sides).await?;
    Ok(Json(SpanFlame {
        flame: Flame {
            unit: "us",
            stacks: head.count() as u64,
            root: flame(head.compared(base.as_ref())),
        },
        spans: head.spans,
        represented: head.represented,
        base_spans: base.as_ref().map(|base| base.spans),
        base_represented: base.as_ref().map(|base| base.represented),
    }))
}

/// Returns what ran inside the latest spans as folded lines, a format that flame graph tools read, weighted by own time in microseconds.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/spans/folded", tag = "traces",
    params(QueryParameters),
    responses((status = 200, body = String, content_type = "text/plain"), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn folded_spans(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    QueryString(ask): QueryString,
) -> Result<Response, Problem> {
    let (head, _) = sides(&app, &member, ask).await?;
    let (head, _) = stacks(&app, &member, (head, None)).await?;
    Ok(file(
        "text/plain; charset=utf-8",
        "spans.folded",
        folded(head.in_micros()),
    ))
}

/// Returns what ran inside the latest spans in speedscope's file format.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/spans/speedscope", tag = "traces",
    params(QueryParameters),
    responses((status = 200, body = Object), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn speedscope_file(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    QueryString(ask): QueryString,
) -> Result<Response, Problem> {
    let (head, _) = sides(&app, &member, ask).await?;
    let (head, _) = stacks(&app, &member, (head, None)).await?;
    let profile = speedscope("spans", head.in_millis());
    Ok(file(
        "application/json",
        "spans.speedscope.json",
        profile.to_string(),
    ))
}
