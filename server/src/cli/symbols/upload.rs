//! `unjank symbols upload`: uploads the symbol files that the server lacks.
//!
//! Uses the protocol of `sentry-cli`: a file is sent in chunks, named by their SHA-1. The server keeps chunks for a day, so an interrupted
//! upload continues where it stopped.

use std::collections::{HashMap, HashSet};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use flate2::Compression;
use flate2::write::GzEncoder;
use futures_util::{StreamExt, TryStreamExt, stream};
use reqwest::multipart::{Form, Part};
use serde::Deserialize;
use serde_json::json;
use sha1::{Digest, Sha1};
use unjank_symbols::SymbolId;

use super::dry_run::DryRun;
use super::exit_code;
use super::files::{LocalFiles, SymbolFile, Useless, find};
use super::progress::Progress;
use super::table::size;
use crate::cli::api_client::{Server, ServerArgs};

/// The organization in paths of the protocol. The server ignores it.
const ORGANIZATION: &str = "unjank";
/// The maximum number of unusable files to list.
const MOST_LISTED: usize = 20;
/// How many times to resend chunks that the server has lost in the meantime.
const MOST_ROUNDS: u32 = 5;
/// How long the server may take to join and check a file.
const MOST_POLLS: u32 = 600;
const FIRST_POLL: Duration = Duration::from_millis(100);
const LONGEST_POLL: Duration = Duration::from_secs(2);

/// Upload the symbol files in these files and folders that the server does not have
///
/// Finds R8 mappings (mapping.txt), ELF files, dSYM folders, PDB, Breakpad and WebAssembly files, and source maps with debug ids. Reports why a
/// file is unusable. If a connection breaks, the command retries the request. A second run sends only the missing files.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Exit codes:
  0  the server has all symbol files
  1  a file was refused, or is damaged, empty or compressed; a named file is of no use; or there was nothing to upload
  2  invalid arguments, or no answer from the server

Examples:
  unjank symbols upload --project shop app/build/outputs/mapping/release/mapping.txt
  unjank symbols upload --project shop app/build/intermediates/merged_native_libs/release
  unjank symbols upload --project shop \"$DWARF_DSYM_FOLDER_PATH\"
  unjank symbols upload --project shop --require-lines target/release/shop
  unjank symbols upload --dry-run target/release/shop")]
pub(super) struct UploadArgs {
    #[command(flatten)]
    server: ServerArgs,

    /// Files and folders. Symbolic links inside folders are not followed
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,

    /// Show what would be uploaded, without a server
    #[arg(long)]
    dry_run: bool,

    /// The id that the app reports for a mapping, if R8 did not write one. Needs exactly one file
    #[arg(long, value_name = "UUID", value_parser = symbol_id)]
    id: Option<SymbolId>,

    /// Refuse files without source lines
    #[arg(long)]
    require_lines: bool,
}

fn symbol_id(text: &str) -> Result<SymbolId, String> {
    SymbolId::parse(text).ok_or_else(|| "an id has 7 to 128 hexadecimal digits".to_owned())
}

/// How the server wants its chunks.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Options {
    chunk_size: u64,
    max_file_size: u64,
    concurrency: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Assembly {
    state: String,
    #[serde(default)]
    missing_chunks: Vec<String>,
    detail: Option<String>,
    dif: Option<Dif>,
}

#[derive(Deserialize)]
struct Dif {
    #[serde(default)]
    replaces: u64,
}

/// The SHA-1 of a file and of its chunks.
struct Plan {
    sha1: String,
    chunks: Vec<String>,
}

enum Outcome {
    Uploaded {
        replaces: u64,
    },
    /// The server had the file.
    Known,
    Refused(String),
}

pub(super) async fn run(args: &UploadArgs) -> anyhow::Result<ExitCode> {
    let local = find(&args.paths).await?;
    let progress = Progress::new();
    let mut is_complete = explain_useless(&local, &progress)?;
    let mut files = Vec::new();
    for file in &local.files {
        match fault(file, args.require_lines) {
            Some(fault) => {
                progress.say(format_args!(
                    "{}  {}: {}",
                    fault.word,
                    file.path.display(),
                    fault.reason
                ))?;
                is_complete &= !fault.is_final && !file.is_named;
            }
            None => files.push(file),
        }
    }
    if args.id.is_some() && files.len() != 1 {
        bail!(
            "--id needs exactly one symbol file, but there are {}",
            files.len()
        );
    }
    if files.is_empty() {
        progress.say("nothing to upload: none of these files has symbols")?;
        is_complete = false;
    } else if args.dry_run {
        let server = DryRun::new()?;
        for file in files {
            if let Some(reason) = server.refusal(file).await? {
                let path = file.path.display();
                progress.say(format_args!("refused   {path}: {reason}"))?;
                is_complete = false;
                continue;
            }
            progress.say(line("would upload", file))?;
            say_what_is_missing(file, args.id.as_ref(), &progress)?;
        }
    } else {
        let upload = Upload::new(args, &progress).await?;
        for file in files {
            is_complete &= upload.file(file).await?;
        }
    }
    Ok(exit_code(is_complete))
}

/// Returns whether the command may succeed in spite of these files. Lists every fault.
fn explain_useless(local: &LocalFiles, progress: &Progress) -> anyhow::Result<bool> {
    let is_fault = |useless: &&Useless| useless.is_fault;
    let faults = local.useless.iter().filter(is_fault);
    for useless in faults.clone() {
        let path = useless.path.display();
        progress.say(format_args!("refused   {path}: {}", useless.reason))?;
    }
    let others: Vec<&Useless> = (local.useless.iter())
        .filter(|useless| !useless.is_fault)
        .collect();
    for useless in others.iter().take(MOST_LISTED) {
        let path = useless.path.display();
        progress.say(format_args!("skipped   {path}: {}", useless.reason))?;
    }
    let rest = others.len().saturating_sub(MOST_LISTED);
    if rest > 0 {
        progress.say(format_args!(
            "skipped   {rest} more files: name one of them to see why"
        ))?;
    }
    Ok(faults.count() == 0)
}

/// Why a file is not uploaded.
struct Fault {
    word: &'static str,
    reason: String,
    /// Whether the command fails also if the file was only found in a folder. For a file that was named, it always fails.
    is_final: bool,
}

fn fault(file: &SymbolFile, require_lines: bool) -> Option<Fault> {
    if let Some(reason) = file.reason_to_skip() {
        return Some(Fault {
            word: "skipped ",
            reason,
            is_final: false,
        });
    }
    (require_lines && !file.has_lines()).then(|| {
        let warnings: Vec<&str> = file.warnings().into_iter().collect();
        Fault {
            word: "refused ",
            reason: format!("no lines in it: {}", warnings.join(". ")),
            is_final: true,
        }
    })
}

fn line(word: &str, file: &SymbolFile) -> String {
    let more = match file.found.len() {
        0 | 1 => String::new(),
        builds => format!(" and {} more builds", builds - 1),
    };
    format!(
        "{word}  {}  {}, {}, id {}{more}",
        file.path.display(),
        file.kind(),
        size(file.bytes),
        file.id(),
    )
}

/// `given` is the id that the user gives the file.
fn say_what_is_missing(
    file: &SymbolFile,
    given: Option<&SymbolId>,
    progress: &Progress,
) -> std::io::Result<()> {
    if given.is_none() && file.is_mapping_without_id() {
        progress.say(format_args!(
            "          warning: the mapping has no `# pg_map_id`, so stacks do not name it by themselves. Let the app send {} as \
             `build_id` of obfuscated frames, or give the mapping the id that the app sends: --id",
            file.id()
        ))?;
    }
    for warning in file.warnings() {
        progress.say(format_args!("          warning: {warning}"))?;
    }
    Ok(())
}

struct Upload<'a> {
    server: Server,
    options: Options,
    id: Option<&'a SymbolId>,
    progress: &'a Progress,
}

impl<'a> Upload<'a> {
    async fn new(args: &'a UploadArgs, progress: &'a Progress) -> anyhow::Result<Self> {
        let server = Server::new(&args.server)?;
        let options: Options = server.get(chunk_upload(&server)?).await?;
        Ok(Self {
            server,
            options,
            id: args.id.as_ref(),
            progress,
        })
    }

    /// Uploads a file and prints the result. Returns whether the server has the file.
    async fn file(&self, file: &SymbolFile) -> anyhow::Result<bool> {
        let progress = self.progress;
        let outcome = if file.bytes > self.options.max_file_size {
            let most = size(self.options.max_file_size);
            Outcome::Refused(format!("the file is larger than {most}"))
        } else {
            let sent = self.send(file).await;
            sent.with_context(|| format!("cannot upload {}", file.path.display()))?
        };
        match outcome {
            Outcome::Uploaded { replaces } => {
                progress.say(line("uploaded", file))?;
                if replaces > 0 {
                    self.warn_of_older(file).await?;
                }
            }
            Outcome::Known => progress.say(line("known   ", file))?,
            Outcome::Refused(reason) => {
                progress.say(format_args!("refused   {}: {reason}", file.path.display()))?;
                return Ok(false);
            }
        }
        say_what_is_missing(file, self.id, progress)?;
        Ok(true)
    }

    /// Names the older files with the same id.
    async fn warn_of_older(&self, file: &SymbolFile) -> anyhow::Result<()> {
        for id in file.found.iter().flat_map(|found| &found.ids) {
            let files = self.server.files_of(id).await?;
            let Some(older) = files.get(1) else {
                continue;
            };
            self.progress.say(format_args!(
                "          warning: another file with this id was uploaded on {}: {} ({}). The newest is used. If it is the wrong one, remove it: \
                 unjank symbols list",
                older.uploaded_at, older.name, older.id
            ))?;
            break;
        }
        Ok(())
    }

    async fn send(&self, file: &SymbolFile) -> anyhow::Result<Outcome> {
        let (path, chunk_size) = (file.path.clone(), self.options.chunk_size);
        let plan = tokio::task::spawn_blocking(move || Plan::of(&path, chunk_size)).await??;
        let (mut rounds, mut polls, mut pause) = (0, 0, FIRST_POLL);
        loop {
            let assembly = self.assemble(file, &plan).await?;
            match assembly.state.as_str() {
                "ok" if rounds == 0 => return Ok(Outcome::Known),
                "ok" => {
                    let replaces = assembly.dif.map_or(0, |dif| dif.replaces);
                    return Ok(Outcome::Uploaded { replaces });
                }
                "error" => {
                    let detail = assembly.detail;
                    return Ok(Outcome::Refused(
                        detail.unwrap_or_else(|| "no reason given".to_owned()),
                    ));
                }
                "not_found" if rounds < MOST_ROUNDS => {
                    rounds += 1;
                    let missing = assembly.missing_chunks.into_iter().collect();
                    self.send_chunks(file, &plan, &missing).await?;
                }
                "not_found" => bail!("the server does not keep the chunks of the file"),
                _ if polls < MOST_POLLS => {
                    // The server had the chunks: it is processing an earlier request.
                    rounds = rounds.max(1);
                    polls += 1;
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(LONGEST_POLL);
                }
                _ => bail!(
                    "the server is still checking the file. Run the command again to see the result"
                ),
            }
        }
    }

    /// Asks the server to join the chunks.
    async fn assemble(&self, file: &SymbolFile, plan: &Plan) -> anyhow::Result<Assembly> {
        let path = ["api", "0", "projects", ORGANIZATION, &self.server.project];
        let url = self
            .server
            .path(&[&path[..], &["files", "difs", "assemble", ""]].concat())?;
        let mut wanted = json!({"name": file.name(), "chunks": plan.chunks});
        if let Some(id) = self.id {
            wanted["debug_id"] = json!(id.as_str());
        }
        let wanted = json!({ plan.sha1.as_str(): wanted });
        let mut answers: HashMap<String, Assembly> = self
            .server
            .json(|client| client.post(url.clone()).json(&wanted))
            .await?;
        answers
            .remove(&plan.sha1)
            .context("the server returned no result for the file")
    }

    async fn send_chunks(
        &self,
        file: &SymbolFile,
        plan: &Plan,
        missing: &HashSet<String>,
    ) -> anyhow::Result<()> {
        let size = self.options.chunk_size;
        let mut places: HashMap<&str, u64> = HashMap::new();
        for (place, chunk) in (0..).zip(&plan.chunks) {
            places.insert(chunk, place);
        }
        let bytes_of = |place: u64| size.min(file.bytes.saturating_sub(place * size));
        let chunks = places
            .into_iter()
            .filter(|(chunk, _)| missing.contains(*chunk));
        let mut chunks: Vec<(u64, &str)> = chunks.map(|(chunk, place)| (place, chunk)).collect();
        chunks.sort_unstable();
        let bytes = chunks.iter().map(|(place, _)| bytes_of(*place)).sum();
        self.progress.expect(&file.name(), bytes);
        let url = chunk_upload(&self.server)?;
        let requests = chunks.into_iter().map(|(place, chunk)| {
            let url = &url;
            async move {
                self.send_chunk(url, &file.path, (place * size, chunk))
                    .await?;
                self.progress.sent(bytes_of(place));
                Ok(())
            }
        });
        stream::iter(requests)
            .buffer_unordered(self.options.concurrency.clamp(1, 8))
            .try_collect()
            .await
    }

    /// Sends the chunk that begins at an offset of a file.
    async fn send_chunk(
        &self,
        url: &reqwest::Url,
        path: &Path,
        (from, chunk): (u64, &str),
    ) -> anyhow::Result<()> {
        let (path, size) = (path.to_owned(), self.options.chunk_size);
        let read = move || compressed_chunk(&path, from, size);
        let (sha1, compressed) = tokio::task::spawn_blocking(read).await??;
        if sha1 != chunk {
            bail!("the file changed during the upload");
        }
        let form = || {
            let part = Part::stream(compressed.clone()).file_name(sha1.clone());
            Form::new().part("file_gzip", part)
        };
        let send = self
            .server
            .send(|client| client.post(url.clone()).multipart(form()));
        send.await?;
        Ok(())
    }
}

fn chunk_upload(server: &Server) -> anyhow::Result<reqwest::Url> {
    server.path(&[
        "api",
        "0",
        "organizations",
        ORGANIZATION,
        "chunk-upload",
        "",
    ])
}

impl Plan {
    fn of(path: &Path, chunk_size: u64) -> anyhow::Result<Self> {
        if !(1 << 10..=64 << 20).contains(&chunk_size) {
            bail!("the server requires chunks of {chunk_size} bytes");
        }
        let mut file = std::fs::File::open(path)?;
        let mut whole = Sha1::new();
        let mut chunks = Vec::new();
        loop {
            let mut chunk = Vec::new();
            (&mut file).take(chunk_size).read_to_end(&mut chunk)?;
            if chunk.is_empty() {
                break;
            }
            whole.update(&chunk);
            chunks.push(format!("{:x}", Sha1::digest(&chunk)));
        }
        Ok(Self {
            sha1: format!("{:x}", whole.finalize()),
            chunks,
        })
    }
}

/// Reads a chunk. Returns its SHA-1, and its bytes compressed.
fn compressed_chunk(path: &Path, from: u64, size: u64) -> anyhow::Result<(String, bytes::Bytes)> {
    let mut file = std::fs::File::open(path)?;
    file.seek(SeekFrom::Start(from))?;
    let mut chunk = Vec::new();
    file.take(size).read_to_end(&mut chunk)?;
    let mut compressed = GzEncoder::new(Vec::new(), Compression::fast());
    compressed.write_all(&chunk)?;
    let sha1 = format!("{:x}", Sha1::digest(&chunk));
    Ok((sha1, compressed.finish()?.into()))
}
