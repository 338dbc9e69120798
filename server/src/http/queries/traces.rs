//! `/api/v1/projects/{project}/traces…`: single spans and whole traces.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::Serialize;
use unjank_foundation::trace_links::{LinkedSpan, TraceLinks};
use unjank_protocol::Timestamp;
use utoipa::ToSchema;
use uuid::Uuid;

use super::janks::file;
use super::query::{QueryParameters, QueryString};
use crate::app::App;
use crate::http::api::openapi::{Refused, RunsQuery};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Member, Viewer};
use crate::http::api::turns::turn;
use crate::query::{NamedQuery, TraceJanks, chrome_trace};
use crate::store::reads::{First, Search, SpanPlace, StoredSpan, TraceSize, is_request};

/// Maximum number of spans on a page of a search.
const MOST_FOUND: u64 = 500;
/// Maximum number of spans of a trace: more than a screen shows.
const MOST_SPANS: u64 = 20_000;
/// Maximum number of spans near a duration.
const MOST_NEAR: u64 = 20;
/// The largest answer to a search that has the sizes of the traces. Each is looked up.
const MOST_SIZED: u64 = 50;
/// The number of spans near a duration from which the best traced ones are chosen.
const CANDIDATES: u64 = 100;
/// Durations that differ by less than this share rank equally.
const NEARLY: f64 = 0.1;

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
    /// The app, or the service of OpenTelemetry.
    app_id: String,
    app_version: String,
    os_name: String,
    device_model: String,
    session_id: Uuid,
    install_id: Uuid,
    /// Milliseconds since the launch of the app, when the span began.
    uptime_ms: u64,
    class: String,
    function: String,
    file: String,
    line: u32,
    attributes: BTreeMap<String, String>,
    events: Vec<SpanEvent>,
    /// The span in another system, if the project links traces to one. Only of requests, in answers with one trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_url: Option<String>,
    /// The number of recorded spans in the trace. Only in answers to searches for at most 50 spans.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_spans: Option<u64>,
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
            app_id: span.app_id,
            app_version: span.app_version,
            os_name: span.os_name,
            device_model: span.device_model,
            session_id: span.session_id,
            install_id: span.install_id,
            uptime_ms: span.uptime_ms,
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
            trace_url: None,
            trace_spans: None,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = SpanList)]
pub(crate) struct Spans {
    spans: Vec<SpanBody>,
    /// Whether there are more spans.
    more: bool,
    /// The `cursor` of the next page, if a search has more spans.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// The trace in another system, if the project links traces to one. Only in answers with one trace.
    #[serde(skip_serializing_if = "Option::is_none")]
    elsewhere: Option<Elsewhere>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = TraceElsewhere)]
struct Elsewhere {
    /// The name of the other system.
    name: String,
    /// The address of the trace.
    url: String,
}

/// Lists single spans: the latest, or with `order=-duration_us` the slowest. `root=true`: only spans without a parent.
///
/// With `near_us`, the answer has typical spans instead: spans of about this duration. Spans with more complete traces come first.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/traces", tag = "traces",
    params(
        QueryParameters,
        ("at_least_us" = Option<u64>, Query, description = "Only spans that took at least this many microseconds."),
        ("near_us" = Option<u64>, Query, description = "Only spans of about this duration, in microseconds. At most 20 spans. Excludes `order` and `cursor`."),
        ("cursor" = Option<String>, Query, description = "`next` of the previous page of the same query. A page has at most 500 spans."),
    ),
    responses((status = 200, body = Spans), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn search(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    QueryString(mut ask): QueryString,
) -> Result<Json<Spans>, Problem> {
    if let Some(near) = ask.near_us {
        return Ok(Json(typical(&app, &member, ask, near).await?));
    }
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
    let _turn = turn(&app, &member.actor).await?;
    let mut spans = found(&app, &member, ask, search).await?;
    let more = shortened(&mut spans, limit);
    let sizes = match limit {
        ..=MOST_SIZED => sizes(&app, &member, &spans).await?,
        _ => HashMap::new(),
    };
    let last = spans.last().filter(|_| more);
    Ok(Json(Spans {
        next: last.map(|span| cursor(first, first.place(span))),
        spans: with_sizes(spans, &sizes),
        more,
        elsewhere: None,
    }))
}

/// Returns spans of about a duration. Spans with more complete traces come first.
async fn typical(app: &App, member: &Member, ask: NamedQuery, near: i64) -> Result<Spans, Problem> {
    if ask.order.is_some() || ask.cursor.is_some() {
        return Err(Problem::invalid_question(
            "`near_us` cannot be combined with `order` or `cursor`",
        ));
    }
    let limit = ask.limit.unwrap_or(MOST_NEAR).min(MOST_NEAR);
    let search = Search {
        at_least_us: ask.at_least_us.unwrap_or_default(),
        first: First::Near(near),
        after: None,
        limit: CANDIDATES,
    };
    let _turn = turn(app, &member.actor).await?;
    let mut spans = found(app, member, ask, search).await?;
    let sizes = sizes(app, member, &spans).await?;
    spans.sort_by(|one, other| {
        let (one, other) = (rank(one, near, &sizes), rank(other, near, &sizes));
        one.partial_cmp(&other).unwrap_or(std::cmp::Ordering::Equal)
    });
    shortened(&mut spans, limit);
    Ok(Spans {
        spans: with_sizes(spans, &sizes),
        more: false,
        next: None,
        elsewhere: None,
    })
}

async fn sizes(
    app: &App,
    member: &Member,
    spans: &[StoredSpan],
) -> Result<HashMap<Uuid, TraceSize>, Problem> {
    let traces: Vec<Uuid> = spans.iter().map(|span| span.trace_id).collect();
    let sizes = app.clickhouse.trace_sizes(&member.project, &traces).await?;
    Ok(sizes
        .into_iter()
        .map(|size| (size.trace_id, size))
        .collect())
}

fn with_sizes(spans: Vec<StoredSpan>, sizes: &HashMap<Uuid, TraceSize>) -> Vec<SpanBody> {
    let with_size = |span: StoredSpan| SpanBody {
        trace_spans: sizes.get(&span.trace_id).map(|size| size.spans),
        ..SpanBody::from(span)
    };
    spans.into_iter().map(with_size).collect()
}

/// Returns the sort key of a typical span: about the same duration first, then the more complete trace, then the nearest duration.
fn rank(span: &StoredSpan, near: i64, sizes: &HashMap<Uuid, TraceSize>) -> (bool, f64, f64) {
    let lowest = sizes
        .get(&span.trace_id)
        .map_or(1.0, |size| size.lowest_rate);
    #[expect(clippy::cast_precision_loss, reason = "microseconds of a span")]
    let (distance, near) = ((span.duration_us as f64 - near as f64).abs(), near as f64);
    (distance > NEARLY * near, lowest, distance)
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
            // This order has no pages.
            First::Near(_) => false,
        };
        (known && parts.next().is_none()).then_some(place)
    };
    read().ok_or_else(|| {
        Problem::invalid_question(
            "`cursor` must be the `next` of an earlier answer to this query, with the same `order`",
        )
    })
}

const fn letter(first: First) -> char {
    match first {
        First::Latest => 's',
        First::Slowest => 'd',
        First::Near(_) => 'n',
    }
}

/// Returns the spans of a search. The caller must have a turn.
async fn found(
    app: &App,
    member: &Member,
    mut ask: NamedQuery,
    search: Search,
) -> Result<Vec<StoredSpan>, Problem> {
    ask.measures = vec!["count".to_owned()];
    let reading = ask.single(&member.project, "spans", app.clock.now())?;
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
    let links = app.access.trace_links(&member.project);
    let root = spans.iter().find(|span| span.parent_span_id == 0);
    let elsewhere = elsewhere(&links, root.unwrap_or(&spans[0]));
    let spans = spans.into_iter().map(|span| {
        let url = is_request(&span).then(|| url_of(&links, &span)).flatten();
        SpanBody {
            trace_url: url,
            ..SpanBody::from(span)
        }
    });
    Ok(Json(Spans {
        spans: spans.collect(),
        more,
        next: None,
        elsewhere,
    }))
}

fn url_of(links: &TraceLinks, span: &StoredSpan) -> Option<String> {
    links.url(LinkedSpan {
        trace_id: &span.trace_id.simple().to_string(),
        span_id: &format!("{:016x}", span.span_id),
        start_us: span.start,
        end_us: span.start.saturating_add_unsigned(span.duration_us),
    })
}

fn elsewhere(links: &TraceLinks, root: &StoredSpan) -> Option<Elsewhere> {
    Some(Elsewhere {
        name: links.name()?.to_owned(),
        url: url_of(links, root)?,
    })
}

/// Returns a trace as Chrome trace events, which Perfetto and `chrome://tracing` open, with the janks of its sessions during the trace.
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
    let _turn = turn(&app, &member.actor).await?;
    let now = app.clock.now();
    let janks = TraceJanks::read(&app.clickhouse, &member.project, &spans, now).await?;
    let name = format!("{}.trace.json", spans[0].trace_id.simple());
    Ok(file(
        "application/json",
        &name,
        chrome_trace(&spans, &janks).to_string(),
    ))
}
