//! `/api/v1/projects/{project}/janks/…`: the stacks and the single events behind the numbers of the jank screens.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use unjank_foundation::source_links::{AppBuild, SourceLinks};
use unjank_protocol::Timestamp;
use utoipa::ToSchema;
use uuid::Uuid;

use super::frames::{FrameBody, LackedSymbols, frames};
use super::query::{QueryParameters, QueryString, complete};
use crate::app::App;
use crate::http::api::openapi::{Missing, Refused, RunsQuery};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Member, Viewer};
use crate::http::api::turns::turn;
use crate::http::triage::jank_group::{GroupPath, group_of};
use crate::query::{
    FlameNode, JankStacks, LatestBuild, NamedQuery, QueryError, flame, folded, latest_builds,
    speedscope,
};
use crate::store::reads::{JankEvent, StackDetail};

/// A distinct stack.
#[derive(Serialize, ToSchema)]
pub(super) struct StackBody {
    stack_hash: String,
    /// The number of janks with this stack, weighted by their sample rates.
    count: Option<f64>,
    installs: Option<f64>,
    /// The time lost in these janks, in milliseconds.
    sum_ms: Option<f64>,
    /// Innermost first. Links to source lines lead to the latest version in which the stack occurred.
    frames: Vec<FrameBody>,
    #[serde(flatten)]
    symbols: LackedSymbols,
}

#[derive(Serialize, ToSchema)]
#[schema(as = JankStacks)]
pub(crate) struct Stacks {
    stacks: Vec<StackBody>,
}

/// A flame graph. Frames with the same path from the outermost frame share a node.
#[derive(Serialize, ToSchema)]
#[schema(as = FlameGraph)]
pub(super) struct Flame {
    /// The unit of the weights.
    pub(super) unit: &'static str,
    /// The number of distinct stacks in the tree.
    pub(super) stacks: u64,
    pub(super) root: FlameNode,
}

/// A jank as a device reported it.
#[derive(Serialize, ToSchema)]
#[schema(as = JankEvent)]
pub(super) struct EventBody {
    #[schema(value_type = String, format = DateTime)]
    start: Timestamp,
    kind: String,
    duration_ms: u32,
    page: String,
    app_version: String,
    os_name: String,
    os_version: String,
    device_model: String,
    device_class: String,
    network: String,
    install_id: Uuid,
    session_id: Uuid,
    uptime_ms: u64,
    foreground: bool,
    /// `finished`, or `killed`: the process ended during the stall, which lasted longer than `duration_ms`.
    ended: String,
    thread: String,
    /// The rule that detected the jank: this many messages that each took at least this many milliseconds.
    threshold_ms: u32,
    strategy_count: u32,
    /// Innermost first.
    stack: Vec<FrameBody>,
    /// Why there is no stack; empty if there is one, or if the device does not report the reason.
    stack_missing: String,
    #[serde(flatten)]
    symbols: LackedSymbols,
    /// More stacks of the same stall.
    samples: Vec<SampleBody>,
    /// The last lines of the log before the jank.
    run_log: Vec<LogLine>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = StoredJankSample)]
struct SampleBody {
    /// Since the start of the stall.
    offset_ms: u32,
    stack: Vec<FrameBody>,
    #[serde(flatten)]
    symbols: LackedSymbols,
}

#[derive(Serialize, ToSchema)]
#[schema(as = JankLogLine)]
struct LogLine {
    #[schema(value_type = String, format = DateTime)]
    time: Timestamp,
    message: String,
}

#[derive(Serialize, ToSchema)]
#[schema(as = JankEvents)]
pub(crate) struct Events {
    events: Vec<EventBody>,
}

async fn weighed(app: &App, member: &Member, ask: NamedQuery) -> Result<JankStacks, Problem> {
    let ask = complete(app, member, ask).await?;
    let _turn = turn(app, &member.actor).await?;
    Ok(JankStacks::read(&app.clickhouse, &member.project, ask, app.clock.now()).await?)
}

/// Lists the distinct stacks of janks, sorted by lost time.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/janks/stacks", tag = "janks",
    params(QueryParameters),
    responses((status = 200, body = Stacks), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn stacks(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    QueryString(ask): QueryString,
) -> Result<Json<Stacks>, Problem> {
    let links = app.access.source_links(&member.project);
    let weighed = weighed(&app, &member, ask.clone()).await?;
    let occurred = weighed.stacks.iter().filter(|one| one.sum_ms.is_some());
    let hashes: Vec<u64> = occurred.clone().map(|one| one.hash).collect();
    let builds = builds(&app, &member, &links, (&ask, &hashes)).await?;
    let stacks = occurred.map(|stack| {
        let detail = weighed.details.get(&stack.hash);
        let build = builds.get(&stack.hash);
        let app = AppBuild {
            version: build.map_or("", |build| &build.version),
            number: build.map_or(0, |build| build.number),
        };
        StackBody {
            stack_hash: stack.hash.to_string(),
            sum_ms: stack.sum_ms,
            count: stack.count,
            installs: stack.installs,
            frames: frames(detail, &links, app),
            symbols: LackedSymbols::of(detail),
        }
    });
    Ok(Json(Stacks {
        stacks: stacks.collect(),
    }))
}

/// Returns the latest build of each stack, if links to source lines depend on it.
async fn builds(
    app: &App,
    member: &Member,
    links: &SourceLinks,
    (ask, hashes): (&NamedQuery, &[u64]),
) -> Result<HashMap<u64, LatestBuild>, Problem> {
    let (needs_version, needs_number) = links.needs();
    if hashes.is_empty() || !(needs_version || needs_number) {
        return Ok(HashMap::new());
    }
    let ask = ask.of_builds(hashes, needs_number);
    let asked = ask.table(&member.project, "janks", app.clock.now())?;
    let _turn = turn(app, &member.actor).await?;
    let versions = app.versions.of(&member.project, app.clock.now()).await?;
    Ok(latest_builds(&app.clickhouse, &asked, &versions).await?)
}

/// The current group of the stacks of a group.
#[derive(Serialize, ToSchema)]
#[schema(as = CurrentJankGroup)]
pub(super) struct CurrentGroup {
    /// A 64-bit number as text.
    group_id: String,
    /// Whether symbols or rules have moved all stacks of the requested group. `group_id` is the group with most of them.
    moved: bool,
}

/// Returns the current group of the stacks of a group. Use it for old links: symbols and rules move stacks to other groups.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/janks/groups/{group}", tag = "janks",
    responses((status = 200, body = CurrentGroup), Refused<(Viewer, Missing, RunsQuery)>),
)]
pub(super) async fn current_group(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    path: GroupPath,
) -> Result<Json<CurrentGroup>, Problem> {
    let group = group_of(path)?;
    let _turn = turn(&app, &member.actor).await?;
    let moves = app.clickhouse.moved_groups(&member.project, &[group]).await;
    let moves = moves.map_err(QueryError::from)?;
    let current = moves.get(&group);
    Ok(Json(CurrentGroup {
        group_id: current.unwrap_or(&group).to_string(),
        moved: current.is_some(),
    }))
}

/// Returns the stacks of janks as one tree, weighted by lost time in milliseconds. With a base, the tree has both sides.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/janks/flame", tag = "janks",
    operation_id = "flame",
    params(QueryParameters),
    responses((status = 200, body = Flame), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn flame_graph(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    QueryString(ask): QueryString,
) -> Result<Json<Flame>, Problem> {
    let weighed = weighed(&app, &member, ask).await?;
    Ok(Json(Flame {
        unit: "ms",
        stacks: weighed.weighed().count() as u64,
        root: flame(weighed.compared()),
    }))
}

/// Returns the stacks of janks as folded lines, a format that flame graph tools read.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/janks/folded", tag = "janks",
    params(QueryParameters),
    responses((status = 200, body = String, content_type = "text/plain"), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn folded_stacks(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    QueryString(ask): QueryString,
) -> Result<Response, Problem> {
    let weighed = weighed(&app, &member, ask).await?;
    Ok(file(
        "text/plain; charset=utf-8",
        "janks.folded",
        folded(weighed.weighed()),
    ))
}

/// Returns the stacks of janks in speedscope's file format.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/janks/speedscope", tag = "janks",
    params(QueryParameters),
    responses((status = 200, body = Object), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn speedscope_file(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    QueryString(ask): QueryString,
) -> Result<Response, Problem> {
    let weighed = weighed(&app, &member, ask).await?;
    let profile = speedscope("janks", weighed.weighed());
    Ok(file(
        "application/json",
        "janks.speedscope.json",
        profile.to_string(),
    ))
}

/// Lists the latest janks as devices reported them.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/janks/events", tag = "janks",
    params(QueryParameters),
    responses((status = 200, body = Events), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn events(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    QueryString(mut ask): QueryString,
) -> Result<Json<Events>, Problem> {
    ask.measures = vec!["count".to_owned()];
    let limit = ask.limit.unwrap_or(20).min(100);
    let ask = complete(&app, &member, ask).await?;
    let reading = ask.single(&member.project, "janks", app.clock.now())?;
    let _turn = turn(&app, &member.actor).await?;
    let (events, _) = app.clickhouse.jank_events(&reading, limit).await?;
    let mut hashes: Vec<u64> = events
        .iter()
        .flat_map(|event| {
            event
                .sample_hashes
                .iter()
                .copied()
                .chain([event.stack_hash])
        })
        .collect();
    hashes.sort_unstable();
    hashes.dedup();
    let stacks = app.clickhouse.stacks_of(&member.project, &hashes).await?;
    let links = app.access.source_links(&member.project);
    Ok(Json(Events {
        events: events
            .into_iter()
            .map(|event| body(event, &stacks, &links))
            .collect(),
    }))
}

fn body(event: JankEvent, stacks: &HashMap<u64, StackDetail>, links: &SourceLinks) -> EventBody {
    let app = AppBuild {
        version: &event.app_version,
        number: event.build,
    };
    let stack = stacks.get(&event.stack_hash);
    let samples = event.sample_offsets.iter().zip(&event.sample_hashes);
    let run_log = event.log_times.iter().zip(event.log_messages);
    EventBody {
        samples: samples
            .map(|(offset_ms, hash)| SampleBody {
                offset_ms: *offset_ms,
                stack: frames(stacks.get(hash), links, app),
                symbols: LackedSymbols::of(stacks.get(hash)),
            })
            .collect(),
        run_log: run_log
            .map(|(time, message)| LogLine {
                time: Timestamp::from_micros(*time),
                message,
            })
            .collect(),
        stack: frames(stack, links, app),
        symbols: LackedSymbols::of(stack),
        start: Timestamp::from_micros(event.start),
        kind: event.kind,
        duration_ms: event.duration_ms,
        page: event.page,
        app_version: event.app_version,
        os_name: event.os_name,
        os_version: event.os_version,
        device_model: event.device_model,
        device_class: event.device_class,
        network: event.network,
        install_id: event.install_id,
        session_id: event.session_id,
        uptime_ms: event.uptime_ms,
        foreground: event.foreground,
        ended: event.ended,
        stack_missing: event.stack_missing,
        thread: event.thread,
        threshold_ms: event.threshold_ms,
        strategy_count: event.strategy_count,
    }
}

/// Returns an answer that a browser saves as a file.
pub(crate) fn file(content_type: &'static str, name: &str, text: String) -> Response {
    let disposition = format!("attachment; filename=\"{name}\"");
    (
        [
            (CONTENT_TYPE, content_type.to_owned()),
            (CONTENT_DISPOSITION, disposition),
        ],
        text,
    )
        .into_response()
}
