//! `unjank symbols list` and `unjank symbols remove`.

use std::io::{IsTerminal, Write, stdin, stdout};
use std::process::ExitCode;

use anyhow::bail;
use clap::Args;
use serde_json::json;
use uuid::Uuid;

use super::remote_files::RemoteFile;
use super::table::{size, write_table};
use crate::cli::api_client::{Server, ServerArgs};

/// The maximum number of files that are listed.
const MOST_FILES: usize = 100_000;

/// List the symbol files of a project, latest first
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  unjank symbols list --project shop
  unjank symbols list --project shop --json | jq -r '.files[] | select(.last_used_at == null) | .id'")]
pub(super) struct ListArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// Print JSON: `files`, as in the API, `bytes` and `max_bytes`
    #[arg(long)]
    json: bool,
}

/// Remove symbol files
///
/// Stacks that a file has made readable stay readable. If the project has an older file of the same build, stored stacks are repaired with that
/// file.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  unjank symbols remove --project shop 019ab5e2-7c1f-7d30-9c2e-0b5a6b9e6a53
  unjank symbols remove --project shop --yes 019ab5e2-7c1f-7d30-9c2e-0b5a6b9e6a53")]
pub(super) struct RemoveArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// The ids of the files, as `list` shows them
    #[arg(required = true, value_name = "ID")]
    ids: Vec<Uuid>,

    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub(super) async fn run(args: &ListArgs) -> anyhow::Result<ExitCode> {
    let server = Server::new(&args.server)?;
    if args.json {
        return as_json(&server).await;
    }
    let mut files = Vec::new();
    let mut before = None;
    let (bytes, max_bytes) = loop {
        let page = server.files(before).await?;
        files.extend(page.files);
        before = page.next;
        if before.is_none() || files.len() >= MOST_FILES {
            break (page.bytes, page.max_bytes);
        }
    };
    let rows: Vec<_> = files.iter().map(row).collect();
    let mut out = stdout().lock();
    let head = [
        "FILE", "NAME", "FORMAT", "SIZE", "LINES", "UPLOADED", "USED", "BUILD",
    ];
    write_table(&mut out, head, &rows)?;
    writeln!(
        out,
        "{} files, {} of {}",
        files.len(),
        size(bytes),
        size(max_bytes)
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the files as the server describes them, so that no field is lost.
async fn as_json(server: &Server) -> anyhow::Result<ExitCode> {
    let mut all = json!({"files": []});
    let mut before: Option<String> = None;
    loop {
        let mut url = server.symbols(&["files"])?;
        if let Some(before) = &before {
            url.query_pairs_mut().append_pair("before", before);
        }
        let mut page: serde_json::Value = server.get(url).await?;
        let files = page["files"].as_array_mut().map(std::mem::take);
        if let Some(known) = all["files"].as_array_mut() {
            known.extend(files.unwrap_or_default());
        }
        all["bytes"] = page["bytes"].take();
        all["max_bytes"] = page["max_bytes"].take();
        before = page["next"].as_str().map(ToOwned::to_owned);
        if before.is_none() {
            break;
        }
    }
    writeln!(stdout().lock(), "{}", serde_json::to_string_pretty(&all)?)?;
    Ok(ExitCode::SUCCESS)
}

fn row(file: &RemoteFile) -> [String; 8] {
    let first = file.builds.first();
    let format = first.map_or(String::new(), |build| {
        format!("{} {}", build.format, build.arch).trim().to_owned()
    });
    let lines = match first {
        Some(build) if build.has_lines => "yes",
        Some(build) if build.has_functions => "no",
        _ => "no names",
    };
    let more = match file.builds_total {
        0 | 1 => String::new(),
        builds => format!(" +{}", builds - 1),
    };
    let day = |at: String| at.get(..16).unwrap_or(&at).replace('T', " ");
    [
        file.id.to_string(),
        file.name.clone(),
        format,
        size(file.bytes),
        lines.to_owned(),
        day(file.uploaded_at.to_string()),
        file.last_used_at.map_or_else(
            || "never".to_owned(),
            |at| at.to_string().chars().take(10).collect(),
        ),
        first.map_or(String::new(), |build| format!("{}{more}", build.id)),
    ]
}

pub(super) async fn remove(args: &RemoveArgs) -> anyhow::Result<ExitCode> {
    let server = Server::new(&args.server)?;
    if !args.yes && !confirm(&args.ids, &server.project)? {
        bail!("nothing was removed");
    }
    for id in &args.ids {
        let url = server.symbols(&["files", &id.to_string()])?;
        server.send(|client| client.delete(url.clone())).await?;
        writeln!(stdout().lock(), "removed   {id}")?;
    }
    Ok(ExitCode::SUCCESS)
}

fn confirm(ids: &[Uuid], project: &str) -> anyhow::Result<bool> {
    if !stdin().is_terminal() {
        bail!("there is no terminal for a confirmation: pass --yes");
    }
    let mut out = stdout().lock();
    write!(
        out,
        "Remove {} symbol files of project {project}? [y/N] ",
        ids.len()
    )?;
    out.flush()?;
    let mut answer = String::new();
    stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
