//! `/api/v1/projects/{project}/traces…`: single spans, whole traces, and the calls inside a span.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::Serialize;
use unjank_protocol::Timestamp;
use utoipa::ToSchema;
use uuid::Uuid;

use super::janks::file;
use super::openapi::{Refused, RunsQuery};
use super::problem::Problem;
use super::query::{QueryParameters, QueryString, turn};
use super::roles::{Member, Viewer};
use crate::app::App;
use crate::query::{Inside, NamedQuery, beside, chrome_trace, inside};
use crate::store::reads::{First, Search, SpanPlace, StoredSpan};

/// Maximum number of spans on a page of a search.
const MOST_FOUND: u64 = 500;
/// Maximum number of spans of a trace: more than a screen shows.
const MOST_SPANS: u64 = 20_000;
/// Maximum number of spans with one name that are looked into.
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
    /// Whether there are more spans.
    more: bool,
    /// The `cursor` of the next page, if a search has more spans.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

/// The calls inside the spans with one name.
#[derive(Serialize, ToSchema)]
#[schema(as = InsideSpans)]
pub(super) struct InsideBody {
    /// The number of spans that were looked into: the latest ones.
    spans: u64,
    /// Their total time, in microseconds.
    total_us: u64,
    /// The same for the base.
    #[serde(skip_serializing_if = "Option::is_none")]
    base_spans: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_total_us: Option<u64>,
    /// The name itself first, then sorted by own time on the main thread, then by own time. In a comparison, rows of the base alone come last.
    rows: Vec<crate::query::InsideRow>,
}

/// Lists single spans: the latest, or with `order=-duration_us` the slowest. `root=true`: only spans without a parent.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/traces", tag = "traces",
    params(
        QueryParameters,
        ("at_least_us" = Option<u64>, Query, description = "Only spans that took at least this many microseconds."),
        ("cursor" = Option<String>, Query, description = "`next` of the previous page of the same query. A page has at most 500 spans."),
    ),
    responses((status = 200, body = Spans), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn search(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    QueryString(mut ask): QueryString,
) -> Result<Json<Spans>, Problem> {
    let first = match ask.order.take().as_deref() {
        None | Some("-start") => First::Latest,
        Some("-duration_us") => First::Slowest,
        Some(_) => {
            return Err(Problem::invalid_question(
                "`order` must be `-start` or `-duration_us`",
            ));
        }
    };
    let limit = ask.limit.unwrap_or(50).min(MOST_FOUND);
    let search = Search {
        at_least_us: ask.at_least_us.unwrap_or_default(),
        first,
        after: ask
            .cursor
            .take()
            .map(|cursor| place(first, &cursor))
            .transpose()?,
        limit: limit + 1,
    };
    let mut spans = found(&app, &member, ask, search).await?;
    let more = shortened(&mut spans, limit);
    let last = spans.last().filter(|_| more);
    Ok(Json(Spans {
        next: last.map(|span| cursor(first, first.place(span))),
        spans: spans.into_iter().map(SpanBody::from).collect(),
        more,
    }))
}

/// Truncates a list. Returns whether it was longer.
fn shortened(spans: &mut Vec<StoredSpan>, most: u64) -> bool {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let more = spans.len() > most;
    spans.truncate(most);
    more
}

/// Encodes a place in a list, with a letter for the sort order.
fn cursor(first: First, place: SpanPlace) -> String {
    let SpanPlace {
        key,
        span_id,
        trace_id,
    } = place;
    format!(
        "{}{key}.{span_id:016x}.{}",
        letter(first),
        trace_id.simple()
    )
}

fn place(first: First, cursor: &str) -> Result<SpanPlace, Problem> {
    let read = || {
        let mut parts = cursor.strip_prefix(letter(first))?.split('.');
        let key: i64 = parts.next()?.parse().ok()?;
        let place = SpanPlace {
            key,
            span_id: u64::from_str_radix(parts.next()?, 16).ok()?,
            trace_id: Uuid::try_parse(parts.next()?).ok()?,
        };
        // ClickHouse has no times beyond these.
        let known = match first {
            First::Latest => (0..4_102_444_800_000_000).contains(&key),
            First::Slowest => key >= 0,
        };
        (known && parts.next().is_none()).then_some(place)
    };
    read().ok_or_else(|| {
        Problem::invalid_question(
            "`cursor` must be `next` of an answer to the same query, in the same order",
        )
    })
}

const fn letter(first: First) -> char {
    match first {
        First::Latest => 's',
        First::Slowest => 'd',
    }
}

async fn found(
    app: &App,
    member: &Member,
    mut ask: NamedQuery,
    search: Search,
) -> Result<Vec<StoredSpan>, Problem> {
    ask.measures = vec!["count".to_owned()];
    let reading = ask.single(&member.project, "spans", app.clock.now())?;
    let _turn = turn(app, &member.actor).await?;
    let (spans, _) = app.clickhouse.spans(&reading, search).await?;
    Ok(spans)
}

async fn of_trace(app: &App, member: &Member, trace: &str) -> Result<Vec<StoredSpan>, Problem> {
    let id = Uuid::try_parse(trace).map_err(|_| Problem::not_found())?;
    let _turn = turn(app, &member.actor).await?;
    let (spans, _) = app
        .clickhouse
        .spans_of_traces(&member.project, &[id], MOST_SPANS + 1)
        .await?;
    if spans.is_empty() {
        return Err(Problem::not_found());
    }
    Ok(spans)
}

/// Returns all spans of a trace, earliest first.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/traces/{trace}", tag = "traces",
    operation_id = "trace",
    responses((status = 200, body = Spans), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn trace(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Path((_, trace)): Path<(String, String)>,
) -> Result<Json<Spans>, Problem> {
    let mut spans = of_trace(&app, &member, &trace).await?;
    let more = shortened(&mut spans, MOST_SPANS);
    Ok(Json(Spans {
        spans: spans.into_iter().map(SpanBody::from).collect(),
        more,
        next: None,
    }))
}

/// Returns a trace as Chrome trace events, which Perfetto and `chrome://tracing` open.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/traces/{trace}/chrome", tag = "traces",
    responses((status = 200, body = Object), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn chrome(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Path((_, trace)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let spans = of_trace(&app, &member, &trace).await?;
    let name = format!("{}.trace.json", spans[0].trace_id.simple());
    Ok(file(
        "application/json",
        &name,
        chrome_trace(&spans).to_string(),
    ))
}

/// Returns the calls inside the latest spans with a name.
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
    let (head, base) = ask.sides()?;
    let head = looked_into(&app, &member, &name, head).await?;
    let Some(base) = base else {
        return Ok(Json(InsideBody {
            spans: head.spans,
            total_us: head.total_us,
            base_spans: None,
            base_total_us: None,
            rows: head.rows,
        }));
    };
    let base = looked_into(&app, &member, &name, base).await?;
    Ok(Json(InsideBody {
        spans: head.spans,
        total_us: head.total_us,
        base_spans: Some(base.spans),
        base_total_us: Some(base.total_us),
        rows: beside(head, base).rows,
    }))
}

/// Returns the calls inside the latest spans that match the filters.
async fn looked_into(
    app: &App,
    member: &Member,
    name: &str,
    ask: NamedQuery,
) -> Result<Inside, Problem> {
    let search = Search {
        at_least_us: ask.at_least_us.unwrap_or_default(),
        first: First::Latest,
        after: None,
        limit: ask.limit.unwrap_or(LOOKED_INTO).min(LOOKED_INTO),
    };
    let roots = found(app, member, ask, search).await?;
    let mut traces: Vec<Uuid> = roots.iter().map(|span| span.trace_id).collect();
    traces.sort_unstable();
    traces.dedup();
    let _turn = turn(app, &member.actor).await?;
    let (mut spans, _) = app
        .clickhouse
        .spans_of_traces(&member.project, &traces, MOST_INSIDE)
        .await?;
    // Skip other spans with the name in the same traces, which the filters exclude: they have another version, page or time.
    spans.retain(|span| {
        span.name != name
            || roots
                .iter()
                .any(|root| root.trace_id == span.trace_id && root.span_id == span.span_id)
    });
    Ok(inside(name, &spans))
}
