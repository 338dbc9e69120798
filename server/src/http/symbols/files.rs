//! `/api/v1/projects/{project}/symbols/…`: the symbol files of a project, and the builds whose files are missing or wrong. Uploads are in
//! `uploads`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use unjank_database::{Build, ControlError, SymbolFile, SymbolFileFilter};
use unjank_foundation::clock::{DAY, UnixTime};
use unjank_stacks::needs_symbols;
use unjank_symbols::SymbolId;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::app::App;
use crate::http::api::openapi::{Invalid, Missing, Overloaded, QueryString, Refused, RunsQuery};
use crate::http::api::problem::Problem;
use crate::http::api::roles::{Editor, SymbolReader, Viewer};
use crate::http::api::turns::turn;
use crate::http::queries::query::time;
use crate::query::NamedQuery;
use crate::store::reads::{NeededBuild, Span, SymbolQuestion, SymbolState};

/// The default size of a page.
const PAGE: u32 = 100;
const LARGEST_PAGE: u32 = 200;
/// The maximum number of missing builds in an answer.
const MOST_MISSING: u32 = 200;
/// The maximum number of builds of a version in an answer.
const MOST_BUILDS: u32 = 1_000;
/// The maximum number of builds without lines to examine.
const MOST_WITHOUT_LINES: u32 = 10_000;
/// The maximum number of stacks to look for unread ones.
const MOST_UNREAD: u32 = 500;
/// How far back the check of a version looks.
const CHECKED: Duration = Duration::from_secs(30 * DAY.as_secs());

/// A symbol file.
#[derive(Serialize, ToSchema)]
#[schema(as = SymbolFile)]
pub(super) struct FileBody {
    id: Uuid,
    name: String,
    bytes: u64,
    sha1: String,
    uploaded_at: UnixTime,
    /// `user:…` or `token:…`.
    uploaded_by: String,
    /// When the file last made a stack readable, to within a day. `null`: never.
    last_used_at: Option<UnixTime>,
    /// The number of older files with the same id and the same kind of content. The newest file is used.
    replaces: u64,
    /// The first 50 builds that the file belongs to.
    builds: Vec<BuildBody>,
    /// The number of all builds that the file belongs to.
    builds_total: u64,
}

/// A build that a symbol file belongs to.
#[derive(Serialize, ToSchema)]
#[schema(as = SymbolBuild)]
pub(super) struct BuildBody {
    /// The build id in hexadecimal, without dashes.
    id: String,
    /// `r8`, `elf`, `mach_o`, `pdb`, `pe`, `breakpad`, `wasm` or `source_map`.
    format: String,
    /// The processor. Empty if the format has none.
    arch: String,
    /// The name in the file, such as the URL of a script. Empty if there is none.
    name: String,
    has_functions: bool,
    has_lines: bool,
}

impl From<Build> for BuildBody {
    fn from(build: Build) -> Self {
        Self {
            id: build.symbol_id,
            format: build.format,
            arch: build.arch,
            name: build.name,
            has_functions: build.has_functions,
            has_lines: build.has_lines,
        }
    }
}

impl From<SymbolFile> for FileBody {
    fn from(file: SymbolFile) -> Self {
        Self {
            id: file.id,
            name: file.name,
            bytes: file.bytes,
            sha1: file.checksum,
            uploaded_at: file.uploaded_at,
            uploaded_by: file.uploaded_by,
            last_used_at: file.last_used_at,
            replaces: file.replaces,
            builds: file.builds.into_iter().map(BuildBody::from).collect(),
            builds_total: file.builds_total,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = SymbolFileList)]
pub(super) struct FileList {
    files: Vec<FileBody>,
    /// The `before` of the next page. `null` on the last page.
    next: Option<Uuid>,
    /// The size of all symbol files of the project.
    bytes: u64,
    /// The maximum size of all symbol files of the project.
    max_bytes: u64,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct FilesWanted {
    /// Only files before this one: the `next` of the previous page.
    before: Option<Uuid>,
    /// 1 to 200. Default: 100.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<u32>,
    /// Only files with symbols of this build: 7 to 128 hexadecimal digits, with or without dashes. `builds` has only this build.
    #[param(min_length = 7, max_length = 256, pattern = r"^[0-9a-fA-F-]+$")]
    symbol_id: Option<String>,
}

/// Lists the symbol files of the project, latest first. A token for symbol files may call this.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/symbols/files", tag = "symbols",
    params(FilesWanted),
    responses((status = 200, body = FileList), Refused<(SymbolReader, QueryString, Invalid)>),
)]
pub(super) async fn files(
    State(app): State<Arc<App>>,
    SymbolReader(member): SymbolReader,
    wanted: Result<Query<FilesWanted>, QueryRejection>,
) -> Result<Json<FileList>, Problem> {
    let Query(wanted) = wanted.map_err(|error| Problem::bad_query(error.body_text()))?;
    let limit = wanted.limit.unwrap_or(PAGE);
    if !(1..=LARGEST_PAGE).contains(&limit) {
        let detail = format!("`limit` must be 1 to {LARGEST_PAGE}");
        return Err(Problem::bad_query(detail));
    }
    let symbol_id = match &wanted.symbol_id {
        Some(text) => Some(SymbolId::parse(text).ok_or_else(|| {
            ControlError::Invalid("`symbol_id` must be 7 to 128 hexadecimal digits".to_owned())
        })?),
        None => None,
    };
    let filter = SymbolFileFilter {
        symbol_id: symbol_id.as_ref(),
        before: wanted.before,
    };
    let project = &member.project;
    let files = app.control.symbol_files(project, filter, limit).await?;
    let is_full = u32::try_from(files.len()) == Ok(limit);
    Ok(Json(FileList {
        next: files.last().filter(|_| is_full).map(|file| file.id),
        files: files.into_iter().map(FileBody::from).collect(),
        bytes: app.control.symbol_bytes(project).await?,
        max_bytes: app.symbols.max_project_bytes(),
    }))
}

/// Removes a symbol file.
///
/// Stacks that the file made readable stay readable. If the project has another file of the same build, stored stacks are repaired with that
/// file.
#[utoipa::path(
    delete, path = "/api/v1/projects/{project}/symbols/files/{file}", tag = "symbols",
    responses((status = 204), Refused<(Editor, Missing, Overloaded)>),
)]
pub(super) async fn remove(
    State(app): State<Arc<App>>,
    Editor(member): Editor,
    path: Result<Path<(String, Uuid)>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let Path((_, id)) = path.map_err(|_| Problem::not_found())?;
    let removed = app.symbols.remove(&member.project, id, &member.actor);
    removed.await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A build whose symbols are needed by stacks, but missing.
#[derive(Serialize, ToSchema)]
pub(super) struct MissingBuild {
    /// The build id in hexadecimal, without dashes.
    id: String,
    /// The names of the images, as devices report them. Empty for obfuscated apps.
    modules: Vec<String>,
    state: SymbolState,
    /// The number of distinct stacks that need the symbols.
    stacks: u64,
    /// The number of janks with these stacks, weighted by their sample rates.
    events: f64,
    /// The five versions with most of these janks.
    versions: Vec<VersionCount>,
    /// When the first of these janks in the period occurred.
    first_seen: UnixTime,
    last_seen: UnixTime,
}

/// The number of janks of a version.
#[derive(Serialize, ToSchema)]
pub(super) struct VersionCount {
    app_version: String,
    events: f64,
}

impl From<NeededBuild> for MissingBuild {
    fn from(build: NeededBuild) -> Self {
        let count = |(app_version, events)| VersionCount {
            app_version,
            events,
        };
        Self {
            id: build.id,
            modules: build.modules,
            state: build.state,
            stacks: build.waiting_stacks,
            events: build.waiting_events,
            versions: build.waiting_versions.into_iter().map(count).collect(),
            first_seen: build.first_seen,
            last_seen: build.last_seen,
        }
    }
}

/// The repair of stored stacks after an upload.
#[derive(Serialize, ToSchema)]
pub(super) struct SymbolRepair {
    /// Whether stored stacks are still being repaired with new files.
    pending: bool,
    /// The number of stacks that this server has processed in the current or last repair.
    stacks: u64,
    /// The number of stacks that need the new files. A stack that needs several of them may count twice.
    total: u64,
}

#[derive(Serialize, ToSchema)]
#[schema(as = MissingSymbols)]
pub(super) struct MissingList {
    /// At most 200, builds with most events first.
    missing: Vec<MissingBuild>,
    repair: SymbolRepair,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct PeriodWanted {
    /// The start. Default: seven days before the end.
    #[param(format = DateTime)]
    from: Option<String>,
    /// The end, exclusive. Default: now.
    #[param(format = DateTime)]
    to: Option<String>,
}

fn span(from: Option<&str>, to: Option<&str>, now: UnixTime) -> Result<Span, Problem> {
    let ask = NamedQuery {
        from: from.map(|text| time("from", text)).transpose()?,
        to: to.map(|text| time("to", text)).transpose()?,
        ..NamedQuery::default()
    };
    Ok(ask.span(now)?)
}

/// Lists the builds whose symbol files are missing, wrong or without lines, by the stacks that need them.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/symbols/missing", tag = "symbols",
    params(PeriodWanted),
    responses((status = 200, body = MissingList), Refused<(Viewer, RunsQuery)>),
)]
pub(super) async fn missing(
    State(app): State<Arc<App>>,
    Viewer(member): Viewer,
    wanted: Result<Query<PeriodWanted>, QueryRejection>,
) -> Result<Json<MissingList>, Problem> {
    let Query(wanted) = wanted.map_err(|error| Problem::bad_query(error.body_text()))?;
    let project = &member.project;
    let span = span(
        wanted.from.as_deref(),
        wanted.to.as_deref(),
        app.clock.now(),
    )?;
    let without_lines = app
        .control
        .symbol_ids_without_lines(project, MOST_WITHOUT_LINES)
        .await?;
    let revisions = app.access.symbol_revisions(project);
    let _turn = turn(&app, &member.actor).await?;
    let question = SymbolQuestion {
        project,
        span,
        app_version: None,
        without_lines: &without_lines,
        only_incomplete: true,
        most: MOST_MISSING,
    };
    let builds = needed_symbols(&app, question).await?;
    let repair = app.reclassification.repair(&member.project);
    Ok(Json(MissingList {
        missing: builds.into_iter().map(MissingBuild::from).collect(),
        repair: SymbolRepair {
            pending: revisions.repaired < revisions.files,
            stacks: repair.done,
            total: repair.total,
        },
    }))
}

/// Returns the builds that stacks need. The stacks of a file that was removed still say that it does not belong to its build.
async fn needed_symbols(
    app: &App,
    question: SymbolQuestion<'_>,
) -> Result<Vec<NeededBuild>, Problem> {
    let mut needed = app.clickhouse.needed_symbols(question).await?;
    for build in &mut needed {
        if build.state == SymbolState::Mismatched {
            let file = app.control.usable_symbols(question.project, &build.id);
            if file.await?.is_none() {
                build.state = SymbolState::Missing;
            }
        }
    }
    Ok(needed)
}

/// A build whose symbols the stacks of a version need.
#[derive(Serialize, ToSchema)]
pub(super) struct CheckedBuild {
    /// The build id in hexadecimal, without dashes.
    id: String,
    /// The names of the images, as devices report them. Empty for obfuscated apps.
    modules: Vec<String>,
    /// The number of janks whose stacks need the symbols, weighted by their sample rates.
    events: f64,
    state: SymbolState,
}

/// Whether the stacks of a version are readable.
#[derive(Serialize, ToSchema)]
#[schema(as = SymbolCheck)]
pub(super) struct Check {
    app_version: String,
    /// The number of distinct stacks of the version.
    stacks: u64,
    /// The number of distinct stacks of the version that have arrived and that the server has not read yet. It stops counting at 500.
    unread_stacks: u64,
    /// At most 1,000, incomplete ones first.
    builds: Vec<CheckedBuild>,
    /// Whether no symbol file is missing or wrong, and all stacks were read. Files without lines count as complete.
    complete: bool,
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct VersionWanted {
    #[param(min_length = 1)]
    app_version: String,
    /// The start. Default: 30 days before the end.
    #[param(format = DateTime)]
    from: Option<String>,
    /// The end, exclusive. Default: now.
    #[param(format = DateTime)]
    to: Option<String>,
}

/// Checks whether the symbol files of a version are complete, based on the stacks that devices have sent. A token for symbol files may call
/// this.
#[utoipa::path(
    get, path = "/api/v1/projects/{project}/symbols/check", tag = "symbols",
    params(VersionWanted),
    responses((status = 200, body = Check), Refused<(SymbolReader, RunsQuery)>),
)]
pub(super) async fn check(
    State(app): State<Arc<App>>,
    SymbolReader(member): SymbolReader,
    wanted: Result<Query<VersionWanted>, QueryRejection>,
) -> Result<Json<Check>, Problem> {
    let Query(wanted) = wanted.map_err(|error| Problem::bad_query(error.body_text()))?;
    if wanted.app_version.is_empty() {
        return Err(Problem::bad_query("`app_version` must not be empty"));
    }
    let mut span = span(
        wanted.from.as_deref(),
        wanted.to.as_deref(),
        app.clock.now(),
    )?;
    if wanted.from.is_none() {
        span.from = span.to - CHECKED;
    }
    let project = &member.project;
    let app_version = wanted.app_version;
    let without_lines = app
        .control
        .symbol_ids_without_lines(project, MOST_WITHOUT_LINES)
        .await?;
    let _turn = turn(&app, &member.actor).await?;
    let question = SymbolQuestion {
        project,
        span,
        app_version: Some(&app_version),
        without_lines: &without_lines,
        only_incomplete: false,
        most: MOST_BUILDS,
    };
    let needed = needed_symbols(&app, question).await?;
    let stacks = app
        .clickhouse
        .count_stacks_of_version(project, span, &app_version);
    let stacks = stacks.await?;
    let unread_stacks = unread_stacks(&app, project, span, &app_version).await?;
    let is_readable = |build: &NeededBuild| build.state >= SymbolState::NoLines;
    let complete = unread_stacks == 0 && needed.iter().all(is_readable);
    let mut builds = Vec::new();
    for build in needed {
        // The libraries of the system have no file and need none.
        if build.state == SymbolState::Complete
            && app
                .control
                .usable_symbols(project, &build.id)
                .await?
                .is_none()
        {
            continue;
        }
        builds.push(CheckedBuild {
            id: build.id,
            modules: build.modules,
            events: build.events,
            state: build.state,
        });
    }
    Ok(Json(Check {
        app_version,
        stacks,
        unread_stacks,
        builds,
        complete,
    }))
}

/// Returns the number of stacks that need symbols and that the reclassifier has not looked at yet.
async fn unread_stacks(
    app: &App,
    project: &str,
    span: Span,
    app_version: &str,
) -> Result<u64, Problem> {
    let store = &app.clickhouse;
    let hashes = store
        .unsymbolicated_stacks(project, span, app_version, MOST_UNREAD)
        .await?;
    let rules = app.access.rules(project);
    let rules = rules.unwrap_or_else(|| Arc::clone(&app.default_rules));
    let stacks = store.reported_stacks(project, rules.id(), &hashes).await?;
    let unread = stacks.iter().filter(|stack| needs_symbols(&stack.frames));
    Ok(unread.count() as u64)
}
