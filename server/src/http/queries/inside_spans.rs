//! `/api/v1/projects/{project}/spans/inside`: the calls inside the spans with one name.

use std::collections::HashSet;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::query::{QueryParameters, QueryString, complete};
use crate::app::App;
use crate::http::api::openapi::{Refused, RunsQuery};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Member, Viewer};
use crate::http::api::turns::turn;
use crate::query::{ChosenSpans, Looked, NamedQuery, SpanBounds, inside};
use crate::store::reads::StoredSpan;

/// Maximum number of spans with one name to examine.
const LOOKED_INTO: u64 = 1_000;
/// Maximum number of spans to read, including the spans around and inside them.
const MOST_INSIDE: u64 = 100_000;

/// The calls inside the spans with one name.
#[derive(Serialize, ToSchema)]
#[schema(as = InsideSpans)]
pub(super) struct InsideBody {
    /// The number of spans that were examined: the latest ones, at most 1,000. Fewer, if their traces have more than 100,000 spans.
    spans: u64,
    /// The number of these spans with recorded calls inside.
    traced: u64,
    /// Their total time, in microseconds.
    total_us: u64,
    /// The same for the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    base_spans: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_traced: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_total_us: Option<u64>,
    /// The name itself first, then sorted by own time on the main thread, then by own time. In a comparison, rows of the base alone come last.
    rows: Vec<crate::query::InsideRow>,
}

/// Returns the calls inside the latest spans with a name.
///
/// A call is inside a span if it links to the span, directly or through other calls. Spans without a link count by time: they are inside if they
/// began and ended on the main thread of the same session while the span was open. If a call has a lower sample rate than the span, its numbers
/// are estimated from the recorded calls, and its time does not count as time of the span itself. `per_traced` has the numbers of the spans with
/// recorded calls inside, without estimates.
///
/// `name` is the name of the spans; the other filters select among them. With a base, the answer has the calls inside the spans of the base, too. A
/// base of another version requires `app_version`.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/spans/inside", tag = "traces",
    operation_id = "inside",
    params(QueryParameters),
    responses((status = 200, body = InsideBody), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn inside_span(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    QueryString(ask): QueryString,
) -> Result<Json<InsideBody>, Problem> {
    let named = ask.filters.iter().find(|(name, _)| name == "name");
    let name = named.map(|(_, value)| value.clone());
    let name = name.ok_or_else(|| {
        Problem::invalid_question("set `name` to the name of the spans to look into")
    })?;
    let (head, base) = complete(&app, &member, ask).await?.sides(app.clock.now())?;
    // One turn covers both sides, because the spans of both stay in memory until the end.
    let turn = turn(&app, &member.actor).await?;
    let head = looked_into(&app, &member, &name, head).await?;
    let base = match base {
        Some(base) => Some(looked_into(&app, &member, &name, base).await?),
        None => None,
    };
    let work = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        inside(&head, base.as_ref())
    });
    let (head, base) = work.await.map_err(|_| Problem::overloaded())?;
    Ok(Json(InsideBody {
        spans: head.spans,
        traced: head.traced,
        total_us: head.total_us,
        base_spans: base.as_ref().map(|base| base.spans),
        base_traced: base.as_ref().map(|base| base.traced),
        base_total_us: base.as_ref().map(|base| base.total_us),
        rows: head.rows,
    }))
}

/// Returns the latest spans that match the filters, for a caller that has a turn, with the spans around and inside them.
async fn looked_into(
    app: &App,
    member: &Member,
    name: &str,
    ask: NamedQuery,
) -> Result<Looked, Problem> {
    let found = chosen(app, member, ask).await?;
    let mut spans = found.spans;
    let roots: HashSet<_> = found
        .chosen
        .iter()
        .map(|root| (root.trace_id, root.span_id))
        .collect();
    let is_root = |span: &StoredSpan| roots.contains(&(span.trace_id, span.span_id));
    // The query may contain the key of an obfuscated function. The spans have its readable name.
    let named = spans.iter().find(|span| is_root(span));
    let name = named.map_or_else(|| name.to_owned(), |span| span.name.clone());
    // Skip other spans with the name in the same traces, which the filters exclude: they have another version, page or time.
    spans.retain(|span| span.name != name || is_root(span));
    Ok(Looked { name, spans })
}

/// Returns the latest spans that match the filters, at most 1,000 with at most 100,000 spans in their traces. The caller must have a turn.
pub(super) async fn chosen(
    app: &App,
    member: &Member,
    ask: NamedQuery,
) -> Result<ChosenSpans, Problem> {
    let bounds = SpanBounds {
        chosen: ask.limit.unwrap_or(LOOKED_INTO).min(LOOKED_INTO),
        read: MOST_INSIDE,
    };
    let now = app.clock.now();
    Ok(ChosenSpans::read(&app.clickhouse, &member.project, ask, now, bounds).await?)
}
