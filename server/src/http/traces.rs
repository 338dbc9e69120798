//! `/api/v1/projects/{project}/traces…`: spans one by one, traces as a whole, and what ran inside a span.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::Serialize;
use unjank_protocol::Timestamp;
use utoipa::ToSchema;
use uuid::Uuid;

use super::janks::file;
use super::member::Viewer;
use super::openapi::{Questioned, Refused};
use super::problem::Problem;
use super::query::{Asking, QueryParameters, turn};
use crate::app::App;
use crate::query::{Ask, chrome_trace, inside};
use crate::store::reads::{First, StoredSpan};

/// More than a screen shows.
const MOST_SPANS: u64 = 20_000;
/// Spans of one name that are looked into.
const LOOKED_INTO: u64 = 200;
const MOST_INSIDE: u64 = 100_000;

/// A span as a device reported it.
#[derive(Serialize, ToSchema)]
#[schema(as = StoredSpan)]
pub(super) struct SpanBody {
    /// 32 hex digits.
    trace_id: String,
    /// 16 hex digits.
    span_id: String,
    parent_span_id: Option<String>,
    name: String,
    kind: String,
    #[schema(value_type = String, format = DateTime)]
    start: Timestamp,
    duration_us: u64,
    thread: String,
    on_main_thread: bool,
    status: String,
    page: String,
    app_version: String,
    os_name: String,
    device_model: String,
    session_id: Uuid,
    class: String,
    function: String,
    file: String,
    line: u32,
    attributes: std::collections::BTreeMap<String, String>,
    events: Vec<SpanEvent>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = StoredSpanEvent)]
struct SpanEvent {
    #[schema(value_type = String, format = DateTime)]
    time: Timestamp,
    name: String,
}

impl From<StoredSpan> for SpanBody {
    fn from(span: StoredSpan) -> Self {
        let events = span.event_times.into_iter().zip(span.event_names);
        Self {
            trace_id: span.trace_id.simple().to_string(),
            span_id: format!("{:016x}", span.span_id),
            parent_span_id: (span.parent_span_id != 0)
                .then(|| format!("{:016x}", span.parent_span_id)),
            name: span.name,
            kind: span.kind,
            start: Timestamp::from_micros(span.start),
            duration_us: span.duration_us,
            thread: span.thread,
            on_main_thread: span.on_main_thread,
            status: span.status,
            page: span.page,
            app_version: span.app_version,
            os_name: span.os_name,
            device_model: span.device_model,
            session_id: span.session_id,
            class: span.code_class,
            function: span.code_function,
            file: span.code_file,
            line: span.code_line,
            attributes: span.attributes.into_iter().collect(),
            events: events
                .map(|(time, name)| SpanEvent {
                    time: Timestamp::from_micros(time),
                    name,
                })
                .collect(),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = SpanList)]
pub(super) struct Spans {
    spans: Vec<SpanBody>,
    /// There are more.
    more: bool,
}

/// What ran inside spans of one name.
#[derive(Serialize, ToSchema)]
#[schema(as = InsideSpans)]
pub(super) struct InsideBody {
    /// Spans of the name that were looked into: the latest.
    spans: u64,
    /// Their time together, in microseconds.
    total_us: u64,
    /// The name itself first, then by time on the main thread of their own, then by time of their own. Each with `name`, `package`,
    /// `calls`, `total_us`, `self_us`, and `main_thread_us` of `self_us`.
    #[schema(value_type = Vec<Object>)]
    rows: Vec<crate::query::InsideRow>,
}

/// Single spans: the latest, or with `order=-duration_us` the slowest.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/traces", tag = "traces",
    params(
        QueryParameters,
        ("at_least_us" = Option<u64>, Query, description = "Only spans that took at least so many microseconds."),
    ),
    responses((status = 200, body = Spans), Refused<(Viewer, Questioned)>),
)]
pub(super) async fn search(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Asking(mut ask): Asking,
) -> Result<Json<Spans>, Problem> {
    let first = match ask.order.take().as_deref() {
        None | Some("-start") => First::Latest,
        Some("-duration_us") => First::Slowest,
        Some(_) => {
            return Err(Problem::unfit_question(
                "`order` is `-start` or `-duration_us`",
            ));
        }
    };
    let limit = ask.limit.unwrap_or(50).min(500);
    let mut spans = found(&app, &member.project, ask, first, limit + 1).await?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let more = spans.len() > most;
    spans.truncate(most);
    Ok(Json(Spans {
        spans: spans.into_iter().map(SpanBody::from).collect(),
        more,
    }))
}

async fn found(
    app: &App,
    project: &str,
    mut ask: Ask,
    first: First,
    limit: u64,
) -> Result<Vec<StoredSpan>, Problem> {
    ask.measures = vec!["count".to_owned()];
    let reading = ask.single(project, "spans", app.clock.now())?;
    let at_least = ask.at_least_us.unwrap_or_default();
    let _turn = turn(app).await?;
    let (spans, _) = app
        .clickhouse
        .spans(&reading, at_least, first, limit)
        .await?;
    Ok(spans)
}

async fn of_trace(app: &App, project: &str, trace: &str) -> Result<Vec<StoredSpan>, Problem> {
    let id = Uuid::try_parse(trace).map_err(|_| Problem::not_found())?;
    let _turn = turn(app).await?;
    let (spans, _) = app
        .clickhouse
        .spans_of_traces(project, &[id], MOST_SPANS + 1)
        .await?;
    if spans.is_empty() {
        return Err(Problem::not_found());
    }
    Ok(spans)
}

/// Every span of a trace, the earliest first.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/traces/{trace}", tag = "traces",
    operation_id = "trace",
    responses((status = 200, body = Spans), Refused<(Viewer, Questioned)>),
)]
pub(super) async fn trace(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Path((_, trace)): Path<(String, String)>,
) -> Result<Json<Spans>, Problem> {
    let mut spans = of_trace(&app, &member.project, &trace).await?;
    let most = usize::try_from(MOST_SPANS).unwrap_or(usize::MAX);
    let more = spans.len() > most;
    spans.truncate(most);
    Ok(Json(Spans {
        spans: spans.into_iter().map(SpanBody::from).collect(),
        more,
    }))
}

/// A trace as Chrome's trace events, which Perfetto and `chrome://tracing` open.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/traces/{trace}/chrome", tag = "traces",
    responses((status = 200, body = Object), Refused<(Viewer, Questioned)>),
)]
pub(super) async fn chrome(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Path((_, trace)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let spans = of_trace(&app, &member.project, &trace).await?;
    let name = format!("{}.trace.json", spans[0].trace_id.simple());
    Ok(file(
        "application/json",
        &name,
        chrome_trace(&spans).to_string(),
    ))
}

/// What ran inside the latest spans of a name: `name` is that of the span, the other filters choose among them.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/spans/inside", tag = "traces",
    operation_id = "inside",
    params(QueryParameters),
    responses((status = 200, body = InsideBody), Refused<(Viewer, Questioned)>),
)]
pub(super) async fn inside_span(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Asking(ask): Asking,
) -> Result<Json<InsideBody>, Problem> {
    let named = ask.filters.iter().find(|(name, _)| name == "name");
    let name = named.map(|(_, value)| value.clone());
    let name =
        name.ok_or_else(|| Problem::unfit_question("`name` says into which span to look"))?;
    let limit = ask.limit.unwrap_or(LOOKED_INTO).min(LOOKED_INTO);
    let roots = found(&app, &member.project, ask, First::Latest, limit).await?;
    let mut traces: Vec<Uuid> = roots.iter().map(|span| span.trace_id).collect();
    traces.sort_unstable();
    traces.dedup();
    let _turn = turn(&app).await?;
    let (mut spans, _) = app
        .clickhouse
        .spans_of_traces(&member.project, &traces, MOST_INSIDE)
        .await?;
    // Other spans of the name in the same traces were not asked for: they are other versions, pages or times.
    spans.retain(|span| {
        span.name != name
            || roots
                .iter()
                .any(|root| root.trace_id == span.trace_id && root.span_id == span.span_id)
    });
    let found = inside(&name, &spans);
    Ok(Json(InsideBody {
        spans: found.spans,
        total_us: found.total_us,
        rows: found.rows,
    }))
}
