//! `/api/v1/projects/{project}/query/…`: tables, series and distributions of all stored data.

mod query_string;

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use unjank_protocol::Timestamp;
use utoipa::ToSchema;

pub(crate) use self::query_string::{QueryParameters, QueryString, time};
use crate::app::App;
use crate::http::api::openapi::{Refused, RunsQuery};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Member, Viewer};
use crate::http::api::turns::{slow_turn, turn};
use crate::http::triage::handling::groups_with;
use crate::query::{
    NamedQuery, ResolvedQuery, SIGNIFICANCE, Shape, distribution, series, significance,
};
use crate::store::reads::{
    Aggregation, Base, Better, Grain, Measure, Read, Subject, TableRow, Unit, subject,
};

/// A measure with its unit.
#[derive(Serialize, ToSchema)]
pub(super) struct MeasureBody {
    name: &'static str,
    unit: Unit,
    better: Better,
}

impl From<&&'static Measure> for MeasureBody {
    fn from(measure: &&'static Measure) -> Self {
        Self {
            name: measure.name,
            unit: measure.unit,
            better: measure.better,
        }
    }
}

/// The query as the server understood it.
#[derive(Serialize, ToSchema)]
pub(super) struct About {
    signal: &'static str,
    /// `daily` or `hourly`: a roll-up, in whole days or hours of UTC. `raw`: single events.
    source: &'static str,
    /// RFC 3339. Widened to whole hours or days if the source is a roll-up.
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
    by: Vec<String>,
    /// The measures of `values` and `base`.
    measures: Vec<MeasureBody>,
    /// The number of rows read.
    rows_read: u64,
    bytes_read: u64,
}

impl About {
    fn new(asked: &ResolvedQuery, read: Read) -> Self {
        let reading = &asked.reading;
        let (mut base_from, mut base_to, mut base_app_version) = (None, None, None);
        match &reading.base {
            Some(Base::Period(span)) => {
                (base_from, base_to) = (Some(span.from.into()), Some(span.to.into()));
            }
            Some(Base::Version { name, span }) => {
                base_app_version = Some(name.clone());
                if *span != reading.span {
                    (base_from, base_to) = (Some(span.from.into()), Some(span.to.into()));
                }
            }
            None => {}
        }
        Self {
            signal: reading.subject.name,
            source: match reading.grain {
                Grain::Raw => "raw",
                Grain::Hourly => "hourly",
                Grain::Daily => "daily",
            },
            from: reading.span.from.into(),
            to: reading.span.to.into(),
            base_from,
            base_to,
            base_app_version,
            by: reading.by.iter().map(|one| one.name().to_owned()).collect(),
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
    /// `null` if nothing was measured.
    values: Vec<Option<f64>>,
    /// The values of the base. Missing without a comparison; `null` if the base has no such group.
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

/// JSON has no NaN and no infinity. Both mean that nothing was measured.
fn measured(value: f64) -> Option<f64> {
    value.is_finite().then_some(value)
}

/// Groups with their measures, sorted by `order`.
#[derive(Serialize, ToSchema)]
#[schema(as = QueryTable)]
pub(super) struct Table {
    #[serde(flatten)]
    about: About,
    rows: Vec<Row>,
    /// Whether there are more groups than `limit`.
    more: bool,
}

/// Measures over time, for the largest groups.
#[derive(Serialize, ToSchema)]
#[schema(as = QuerySeries)]
pub(super) struct Series {
    #[serde(flatten)]
    about: About,
    /// Seconds between two times.
    step_s: u32,
    /// The start of each step, in seconds since the epoch.
    times: Vec<i64>,
    series: Vec<Line>,
}

/// One group over time.
#[derive(Serialize, ToSchema)]
#[schema(as = QueryLine)]
struct Line {
    keys: Vec<String>,
    /// For each measure, a value per time. `null` if nothing was measured.
    values: std::collections::BTreeMap<&'static str, Vec<Option<f64>>>,
}

/// The distribution of values, for the largest groups.
#[derive(Serialize, ToSchema)]
#[schema(as = QueryDistribution)]
pub(super) struct Distributions {
    #[serde(flatten)]
    about: About,
    field: String,
    /// The upper bounds of the buckets, from the first bucket with values. The bucket with bound 0 has the values up to 0.
    bounds: Vec<f64>,
    series: Vec<Counts>,
}

/// One group's distribution.
#[derive(Serialize, ToSchema)]
#[schema(as = QueryCounts)]
struct Counts {
    keys: Vec<String>,
    /// For each bound, the number of events that the bucket represents.
    counts: Vec<f64>,
}

/// Returns the groups of a signal with their measures.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/query/{signal}", tag = "query",
    params(QueryParameters),
    responses((status = 200, body = Table), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn table(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Path((_, signal)): Path<(String, String)>,
    QueryString(ask): QueryString,
) -> Result<Json<Table>, Problem> {
    known(&signal)?;
    let ask = complete(&app, &member, ask).await?;
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

/// The p-values of a group.
#[derive(Serialize, ToSchema)]
#[schema(as = QuerySignificanceRow)]
struct Tested {
    keys: Vec<String>,
    /// For each measure, the probability of such a difference by chance, corrected for the number of compared groups. `null` if there
    /// is no test for the measure, or if too few installs were measured.
    p: Vec<Option<f64>>,
}

/// The significance of the changes in a compared table.
#[derive(Serialize, ToSchema)]
#[schema(as = QuerySignificance)]
pub(super) struct SignificanceBody {
    /// A change is significant if its p-value is below this level.
    level: f64,
    /// The measures of `p`.
    measures: Vec<MeasureBody>,
    rows: Vec<Tested>,
}

/// Tests which changes in a compared table are significant, with the test that alert rules use.
///
/// Takes the parameters of the table. The test reads raw rows, with one value per install, and compares devices of the same kind.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/query/{signal}/significance", tag = "query",
    operation_id = "significance",
    params(QueryParameters),
    responses((status = 200, body = SignificanceBody), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn tested(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Path((_, signal)): Path<(String, String)>,
    QueryString(ask): QueryString,
) -> Result<Json<SignificanceBody>, Problem> {
    known(&signal)?;
    let ask = complete(&app, &member, ask).await?;
    let mut asked = ask.table(&member.project, &signal, app.clock.now())?;
    // Drops the measures that only the sorting of a table needs.
    if !ask.measures.is_empty() {
        asked.reading.measures.truncate(ask.measures.len());
    }
    // The numbers of the same page must not wait for tests.
    let _turn = slow_turn(&app, &member.actor).await?;
    let rows = significance(&app.clickhouse, &asked).await?;
    Ok(Json(SignificanceBody {
        level: SIGNIFICANCE,
        measures: asked
            .reading
            .measures
            .iter()
            .map(MeasureBody::from)
            .collect(),
        rows: rows
            .into_iter()
            .map(|row| Tested {
                keys: row.keys,
                p: row.p,
            })
            .collect(),
    }))
}

/// Adds what a query needs besides its parameters: the first appearances of versions that are compared at the same age, and the groups with
/// the wanted status.
pub(crate) async fn complete(
    app: &App,
    member: &Member,
    mut ask: NamedQuery,
) -> Result<NamedQuery, Problem> {
    if ask.same_age {
        let now = app.clock.now();
        ask.first_seen = app.versions.first_seen(&member.project, &ask, now).await?;
    }
    if let Some(status) = ask.group_status {
        ask.groups = Some(groups_with(app, member, status).await?);
    }
    Ok(ask)
}

/// Returns measures of a signal over time, for the largest groups.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/query/{signal}/series", tag = "query",
    operation_id = "series",
    params(QueryParameters),
    responses((status = 200, body = Series), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn over_time(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Path((_, signal)): Path<(String, String)>,
    QueryString(ask): QueryString,
) -> Result<Json<Series>, Problem> {
    known(&signal)?;
    let ask = complete(&app, &member, ask).await?;
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

/// Returns the distribution of a field of a signal, for the largest groups.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/query/{signal}/distribution", tag = "query",
    operation_id = "distribution",
    params(
        QueryParameters,
        ("field" = Option<String>, Query, description = "The field, such as `durations_us`. Default: the first one of the signal."),
    ),
    responses((status = 200, body = Distributions), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn spread(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    Path((_, signal)): Path<(String, String)>,
    QueryString(ask): QueryString,
) -> Result<Json<Distributions>, Problem> {
    let field = histogram(known(&signal)?, ask.field.as_deref())?;
    let ask = complete(&app, &member, ask).await?;
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

pub(super) fn known(signal: &str) -> Result<&'static Subject, Problem> {
    subject(signal).ok_or_else(Problem::not_found)
}

fn histogram(subject: &'static Subject, field: Option<&str>) -> Result<&'static str, Problem> {
    let of = |fold| matches!(fold, Aggregation::Histogram { .. } | Aggregation::Bounds);
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
        Problem::invalid_question(format!(
            "`field` of {} must be one of: {}",
            subject.name,
            all.join(", ")
        ))
    })
}
