//! `unjank symbols check`: whether the server has the symbol files of a build, or of a version that is in use.

use std::collections::BTreeSet;
use std::io::{Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;

use super::exit_code;
use super::files::find;
use super::remote_files::RemoteBuild;
use super::table::write_table;
use crate::cli::api_client::{Server, ServerArgs};

/// The maximum number of builds to check per file. Large web apps have a few hundred scripts.
const MOST_BUILDS: usize = 1_000;

/// Check that the server has the symbol files of a build, or of a version of the app
///
/// With files: looks for their builds on the server, including builds of stripped files. With --app-version: checks the stacks that devices with
/// this version sent in the last 30 days.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Exit codes:
  0  complete; also if no device has sent a stack of the version yet
  1  a symbol file is missing or wrong, or, with --require-lines, has no lines; or stacks have just arrived and are not read yet
  2  invalid arguments, or no answer from the server

States:
  complete    functions and lines
  no_lines    functions, but no lines
  missing     no symbol file
  no_id       no build id: link with `-Wl,--build-id=sha1`, and do not remove the section `.note.gnu.build-id`
  mismatched  a symbol file that has none of the frames: it belongs to another build

Examples:
  unjank symbols check --project shop target/release/shop
  unjank symbols check --project shop --app-version 4.12.0")]
pub(super) struct CheckArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// Files and folders of the build
    #[arg(
        value_name = "PATH",
        required_unless_present = "app_version",
        conflicts_with = "app_version"
    )]
    paths: Vec<PathBuf>,

    /// Check the stacks of this version
    #[arg(long, value_name = "VERSION")]
    app_version: Option<String>,

    /// Fail if a symbol file has no source lines
    #[arg(long)]
    require_lines: bool,
}

#[derive(Deserialize)]
struct Checked {
    stacks: u64,
    unread_stacks: u64,
    builds: Vec<CheckedBuild>,
}

#[derive(Deserialize)]
struct CheckedBuild {
    id: String,
    modules: Vec<String>,
    events: f64,
    state: String,
}

pub(super) async fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let server = Server::new(&args.server)?;
    match &args.app_version {
        Some(version) => check_version(&server, version, args.require_lines).await,
        None => check_files(&server, args).await,
    }
}

async fn check_files(server: &Server, args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let local = find(&args.paths).await?;
    let mut out = stdout().lock();
    let mut rows = Vec::new();
    let (mut missing, mut without_lines) = (0_u32, 0_u32);
    let mut is_complete = true;
    let mut advice = BTreeSet::new();
    for useless in local.useless.iter().filter(|useless| useless.is_fault) {
        is_complete = false;
        writeln!(out, "{}: {}", useless.path.display(), useless.reason)?;
    }
    for file in &local.files {
        for found in file.found.iter().take(MOST_BUILDS) {
            let path = file.path.display().to_string();
            let Some(id) = found.ids.first().filter(|_| !found.is_id_computed) else {
                is_complete &= !file.is_named;
                rows.push(["no_id".to_owned(), String::new(), path]);
                continue;
            };
            let files = server.files_of(id).await?;
            let builds = || files.iter().flat_map(|file| &file.builds);
            let has = |what: fn(&RemoteBuild) -> bool| builds().any(what);
            let state = if has(|build| build.has_lines) {
                "complete"
            } else if has(|build| build.has_functions) {
                without_lines += 1;
                "no_lines"
            } else {
                missing += 1;
                // A program that is not built to be uploaded has no file that could be.
                advice.extend(&found.warnings);
                "missing"
            };
            rows.push([state.to_owned(), id.clone(), path]);
        }
    }
    is_complete &= missing == 0 && !(args.require_lines && without_lines > 0);
    if rows.is_empty() {
        writeln!(out, "nothing to check: none of these files has a build id")?;
        return Ok(exit_code(false));
    }
    write_table(&mut out, ["STATE", "BUILD", "FILE"], &rows)?;
    if missing > 0 {
        writeln!(
            out,
            "{missing} without symbols on the server. Upload the files of the same build from before `strip`: unjank symbols upload --project {} PATH…",
            server.project
        )?;
        for warning in advice {
            writeln!(out, "  {warning}")?;
        }
    }
    if without_lines > 0 {
        writeln!(out, "{without_lines} with names, but without lines")?;
    }
    Ok(exit_code(is_complete))
}

async fn check_version(
    server: &Server,
    version: &str,
    require_lines: bool,
) -> anyhow::Result<ExitCode> {
    let mut url = server.symbols(&["check"])?;
    url.query_pairs_mut().append_pair("app_version", version);
    let checked: Checked = server.get(url).await?;
    let mut out = stdout().lock();
    if checked.stacks == 0 {
        writeln!(
            out,
            "no device has sent a stack of version {version} in the last 30 days, so there is nothing to check. \
             `unjank symbols check PATH…` checks the files of a build"
        )?;
        return Ok(exit_code(true));
    }
    let row = |build: &CheckedBuild| {
        [
            build.state.clone(),
            build.id.clone(),
            format!("{:.0}", build.events),
            build.modules.join(" "),
        ]
    };
    let rows: Vec<_> = checked.builds.iter().map(row).collect();
    write_table(&mut out, ["STATE", "BUILD", "EVENTS", "MODULES"], &rows)?;
    let count = |state: &str| {
        let builds = checked.builds.iter();
        builds.filter(|build| build.state == state).count()
    };
    let (missing, mismatched) = (count("missing"), count("mismatched"));
    let without_lines = count("no_lines");
    let project = &server.project;
    if missing > 0 {
        writeln!(
            out,
            "{missing} without a symbol file. Upload the files of the build: unjank symbols upload --project {project} PATH…"
        )?;
    }
    if mismatched > 0 {
        writeln!(
            out,
            "{mismatched} with a file that belongs to another build. Find it with `unjank symbols list --project {project}`, remove it, \
             and upload the file that this build wrote"
        )?;
    }
    if without_lines > 0 {
        writeln!(
            out,
            "{without_lines} with names, but without lines: `unjank symbols upload --dry-run PATH…` explains how to get them"
        )?;
    }
    if checked.unread_stacks > 0 {
        writeln!(
            out,
            "{} stacks have just arrived and are not read yet: run this again in a minute",
            checked.unread_stacks
        )?;
    }
    let is_complete = missing + mismatched == 0
        && checked.unread_stacks == 0
        && !(require_lines && without_lines > 0);
    if is_complete && without_lines == 0 {
        let stacks = checked.stacks;
        writeln!(out, "complete: {stacks} stacks of version {version}")?;
    }
    Ok(exit_code(is_complete))
}
