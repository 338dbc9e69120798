//! `/api/v1/projects/{project}/query/…`: tables, series and distributions of everything that is stored.

mod ask;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use unjank_protocol::Timestamp;
use utoipa::ToSchema;

pub(super) use self::ask::{Asking, QueryParameters};
use super::member::Viewer;
use super::openapi::{Questioned, Refused};
use super::problem::Problem;
use crate::app::App;
use crate::query::{Asked, Shape, distribution, series};
use crate::shares::Share;
use crate::store::control::Actor;
use crate::store::reads::{Base, Fold, Grain, Measure, Read, Subject, TableRow, subject};

/// Questions wait for their turn as long as somebody would.
const PATIENCE: Duration = Duration::from_secs(15);

/// A measure, and how its numbers are meant.
#[derive(Serialize, ToSchema)]
pub(super) struct MeasureBody {
    name: &'static str,
    /// `count`, `us`, `ms`, `bytes`, `share` (0 to 1), `per_second`, `per_minute`, or `value`: that of the metric.
    unit: &'static str,
    /// `lower`, `higher` or `none`.
    better: &'static str,
}

impl From<&&'static Measure> for MeasureBody {
    fn from(measure: &&'static Measure) -> Self {
        Self {
            name: measure.name,
            unit: measure.unit.as_str(),
            better: measure.better.as_str(),
        }
    }
}

/// What was asked, as it was understood.
#[derive(Serialize, ToSchema)]
pub(super) struct About {
    signal: &'static str,
    /// `daily` or `hourly`: a roll-up, in whole days or hours of UTC; `raw`: each event.
    source: &'static str,
    /// RFC 3339; widened to whole hours or days when a roll-up answers.
    #[schema(value_type = String, format = DateTime)]
    from: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    to: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    base_from: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    base_to: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base_app_version: Option<String>,
    /// The dimensions of `keys`.
    by: Vec<&'static str>,
    /// The measures of `values` and `base`.
    measures: Vec<MeasureBody>,
    /// Rows that were read to answer.
    rows_read: u64,
    bytes_read: u64,
}

impl About {
    fn new(asked: &Asked, read: Read) -> Self {
        let reading = &asked.reading;
        let (mut base_from, mut base_to, mut base_app_version) = (None, None, None);
        match &reading.base {
            Some(Base::Period(span)) => {
                (base_from, base_to) = (
                    Some(Timestamp::from_micros(span.from)),
                    Some(Timestamp::from_micros(span.to)),
                );
            }
            Some(Base::Version(version)) => base_app_version = Some(version.clone()),
            None => {}
        }
        Self {
            signal: reading.subject.name,
            source: match reading.grain {
                Grain::Raw => "raw",
                Grain::Hourly => "hourly",
                Grain::Daily => "daily",
            },
            from: Timestamp::from_micros(reading.span.from),
            to: Timestamp::from_micros(reading.span.to),
            base_from,
            base_to,
            base_app_version,
            by: reading.by.iter().map(|one| one.name).collect(),
            measures: reading.measures.iter().map(MeasureBody::from).collect(),
            rows_read: read.rows,
            bytes_read: read.bytes,
        }
    }
}

/// A group of a table.
#[derive(Serialize, ToSchema)]
pub(super) struct Row {
    /// The values of `by`.
    keys: Vec<String>,
    /// `null` where nothing was measured.
    values: Vec<Option<f64>>,
    /// The same of what is compared with; absent when nothing is, `null` where it has no such group.
    #[serde(skip_serializing_if = "Option::is_none")]
    base: Option<Option<Vec<Option<f64>>>>,
}

impl Row {
    fn new(row: TableRow, compared: bool) -> Self {
        Self {
            keys: row.keys,
            values: row.now.into_iter().map(measured).collect(),
            base: compared.then(|| {
                (!row.base.is_empty()).then(|| row.base.into_iter().map(measured).collect())
            }),
        }
    }
}

/// NaN and infinity are not numbers that JSON has: nothing was measured.
fn measured(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Groups with their measures, the first by `order`.
#[derive(Serialize, ToSchema)]
#[schema(as = QueryTable)]
pub(super) struct Table {
    #[serde(flatten)]
    about: About,
    rows: Vec<Row>,
    /// There are more groups than `limit`.
    more: bool,
}

/// Measures over time, for the largest groups.
#[derive(Serialize, ToSchema)]
#[schema(as = QuerySeries)]
pub(super) struct Series {
    #[serde(flatten)]
    about: About,
    /// Seconds from one time to the next.
    step_s: u32,
    /// Where each step begins, in seconds since the epoch.
    times: Vec<i64>,
    series: Vec<Line>,
}

/// One group over time.
#[derive(Serialize, ToSchema)]
#[schema(as = QueryLine)]
struct Line {
    keys: Vec<String>,
    /// By measure, a value for each time; `null` where nothing was measured.
    values: std::collections::BTreeMap<&'static str, Vec<Option<f64>>>,
}

/// How values are distributed, for the largest groups.
#[derive(Serialize, ToSchema)]
#[schema(as = QueryDistribution)]
pub(super) struct Distributions {
    #[serde(flatten)]
    about: About,
    field: String,
    /// The upper bounds of the buckets, from the smallest that holds something; zero holds what is not above it.
    bounds: Vec<f64>,
    series: Vec<Counts>,
}

/// One group's distribution.
#[derive(Serialize, ToSchema)]
#[schema(as = QueryCounts)]
struct Counts {
    keys: Vec<String>,
    /// A weight for each bound: how many events it stands for.
    counts: Vec<f64>,
}

/// Groups of a signal with their measures.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/query/{signal}", tag = "query",
    params(QueryParameters),
    responses((status = 200, body = Table), Refused<(Viewer, Questioned)>),
)]
pub(super) async fn table(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Path((_, signal)): Path<(String, String)>,
    Asking(ask): Asking,
) -> Result<Json<Table>, Problem> {
    known(&signal)?;
    let asked = ask.table(&member.project, &signal, app.clock.now())?;
    let _turn = turn(&app, &member.actor).await?;
    let (mut rows, read) = app
        .clickhouse
        .read_table(&asked.reading, asked.sort, asked.limit + 1)
        .await?;
    let most = usize::try_from(asked.limit).unwrap_or(usize::MAX);
    let more = rows.len() > most;
    rows.truncate(most);
    let compared = asked.reading.base.is_some();
    Ok(Json(Table {
        about: About::new(&asked, read),
        rows: rows
            .into_iter()
            .map(|row| Row::new(row, compared))
            .collect(),
        more,
    }))
}

/// Measures of a signal over time, for its largest groups.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/query/{signal}/series", tag = "query",
    operation_id = "series",
    params(QueryParameters),
    responses((status = 200, body = Series), Refused<(Viewer, Questioned)>),
)]
pub(super) async fn over_time(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Path((_, signal)): Path<(String, String)>,
    Asking(ask): Asking,
) -> Result<Json<Series>, Problem> {
    known(&signal)?;
    let mut asked = ask.series(&member.project, &signal, app.clock.now())?;
    let _turn = turn(&app, &member.actor).await?;
    let (steps, read) = series(&app.clickhouse, &mut asked).await?;
    let names: Vec<_> = asked.reading.measures.iter().map(|one| one.name).collect();
    let lines = steps.lines.into_iter().map(|line| Line {
        keys: line.keys,
        values: names
            .iter()
            .copied()
            .zip(
                line.values
                    .into_iter()
                    .map(|values| values.into_iter().map(measured).collect()),
            )
            .collect(),
    });
    Ok(Json(Series {
        about: About::new(&asked, read),
        step_s: asked.step_s,
        times: steps.times,
        series: lines.collect(),
    }))
}

/// How one field of a signal is distributed, for its largest groups.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/query/{signal}/distribution", tag = "query",
    operation_id = "distribution",
    params(
        QueryParameters,
        ("field" = Option<String>, Query, description = "The field, such as `durations_us`; that of the signal when it has one only."),
    ),
    responses((status = 200, body = Distributions), Refused<(Viewer, Questioned)>),
)]
pub(super) async fn spread(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Path((_, signal)): Path<(String, String)>,
    Asking(ask): Asking,
) -> Result<Json<Distributions>, Problem> {
    let field = histogram(known(&signal)?, ask.field.as_deref())?;
    let asked = ask.series(&member.project, &signal, app.clock.now())?;
    let _turn = turn(&app, &member.actor).await?;
    let (shapes, read) = distribution(&app.clickhouse, &asked, field).await?;
    let Shape { bounds, groups } = shapes;
    Ok(Json(Distributions {
        about: About::new(&asked, read),
        field: field.to_owned(),
        bounds,
        series: groups
            .into_iter()
            .map(|(keys, counts)| Counts { keys, counts })
            .collect(),
    }))
}

fn known(signal: &str) -> Result<&'static Subject, Problem> {
    subject(signal).ok_or_else(Problem::not_found)
}

fn histogram(subject: &'static Subject, field: Option<&str>) -> Result<&'static str, Problem> {
    let of = |fold| matches!(fold, Fold::Histogram | Fold::Bounds);
    let all: Vec<_> = subject
        .aggregates
        .iter()
        .filter(|one| of(one.fold))
        .map(|one| one.name)
        .collect();
    let found = match field {
        Some(field) => all.iter().find(|name| **name == field),
        None => all.first(),
    };
    found.copied().ok_or_else(|| {
        Problem::unfit_question(format!(
            "`field` of {} is one of: {}",
            subject.name,
            all.join(", ")
        ))
    })
}

/// Waits until few enough questions are asked, by the actor and in all.
pub(super) async fn turn(app: &App, actor: &Actor) -> Result<Share, Problem> {
    let turn = app.questions.take(actor.holder(), PATIENCE).await;
    turn.ok_or_else(Problem::overloaded)
}
