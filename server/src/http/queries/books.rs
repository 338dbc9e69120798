//! `/api/v1/projects/{project}/books`: whether acknowledged events are stored, and whether the roll-ups contain them.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use unjank_foundation::clock::UnixTime;
use utoipa::ToSchema;

use crate::app::App;
use crate::http::api::openapi::Refused;
use crate::http::api::problem::Problem;
use crate::http::api::roles::Viewer;
use crate::metrics::Delays;
use crate::store::{Book, Difference};

/// Maximum number of differences in the answer.
const MOST: usize = 100;

/// The books of a project at the last comparison by this server.
#[derive(Serialize, ToSchema)]
#[schema(as = Books)]
pub(super) struct BooksBody {
    /// When the books were compared. Missing until the first comparison after a start of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    checked_at: Option<UnixTime>,
    /// The comparison covered the hours before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    checked_to: Option<UnixTime>,
    /// Missing and surplus events of all differences.
    difference_events: u64,
    /// How soon rows can be queried, for batches that this server stored in the last five minutes. Missing if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    freshness: Option<FreshnessBody>,
    /// The latest 100 differences.
    differences: Vec<DifferenceBody>,
}

/// Microseconds from the arrival of a batch until its rows can be queried.
#[derive(Serialize, ToSchema)]
#[schema(as = BooksFreshness)]
pub(super) struct FreshnessBody {
    p50_us: u64,
    p99_us: u64,
}

impl From<Delays> for FreshnessBody {
    fn from(delays: Delays) -> Self {
        let micros = |delay: Duration| u64::try_from(delay.as_micros()).unwrap_or(u64::MAX);
        Self {
            p50_us: micros(delays.p50),
            p99_us: micros(delays.p99),
        }
    }
}

/// An hour or a day in which two sides of the books differ.
#[derive(Serialize, ToSchema)]
#[schema(as = BooksDifference)]
pub(super) struct DifferenceBody {
    signal: String,
    books: Book,
    /// The start of the hour (for `days`: of the day).
    at: UnixTime,
    expected: i64,
    found: i64,
}

impl From<&Difference> for DifferenceBody {
    fn from(one: &Difference) -> Self {
        Self {
            signal: one.page.signal.to_owned(),
            books: one.page.book,
            at: UnixTime::from_secs(one.at),
            expected: one.expected,
            found: one.found,
        }
    }
}

/// Reports whether all acknowledged events are stored, whether the roll-ups match the stored events, and how soon rows can be queried.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/books", tag = "query",
    responses((status = 200, body = BooksBody), Refused<(Viewer,)>),
)]
pub(super) async fn get(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
) -> Result<Json<BooksBody>, Problem> {
    let audit = app.audit.latest();
    let freshness = app.metrics.writer.freshness.recent(app.clock.now());
    let mut differences = audit.differences;
    differences.retain(|one| one.project == member.project);
    differences.sort_by_key(|one| std::cmp::Reverse(one.at));
    Ok(Json(BooksBody {
        checked_at: audit.checked_at.map(UnixTime::from_secs),
        checked_to: audit.checked_to.map(UnixTime::from_secs),
        difference_events: differences.iter().map(Difference::events).sum(),
        freshness: freshness.map(Into::into),
        differences: differences.iter().take(MOST).map(Into::into).collect(),
    }))
}
