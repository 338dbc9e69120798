//! `POST /api/0/projects/…/files/dsyms/`: the older upload, in which `sentry-cli` 2 and other tools send mappings and debug files: one
//! request with a ZIP archive or a file.
//!
//! The server cuts the files into chunks and assembles them like the chunks of other uploads.

use std::io::{BufReader, Read, Seek};
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Multipart, Path, State};
use axum::http::StatusCode;
use bytes::Bytes;
use serde_json::Value;
use sha1::{Digest, Sha1};
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use zip::ZipArchive;

use super::pace::Pace;
use super::request_size::MAX_REQUEST_BYTES;
use super::uploads::{dif, id_in, shown};
use crate::app::App;
use crate::http::api::problem::Problem;
use crate::http::api::roles::Uploader;
use crate::symbols::{AssemblyRequest, AssemblyState, CHUNK_BYTES, StoreError};

/// The maximum number of files in an archive.
const MAX_FILES: usize = 64;
/// The maximum number of entries in the list of an archive, with folders and what looks like an entry by accident.
const MAX_ENTRIES: usize = 1_000;
/// The signature of an entry in the list of an archive.
const ENTRY: &[u8] = b"PK\x01\x02";
/// The maximum size of all files of an archive after decompression.
const MAX_INFLATED_BYTES: u64 = 1 << 30;
/// The time limit for a request, however fast its sender is.
const PATIENCE: Duration = Duration::from_secs(300);
/// How often a request waits for the server to process its files, for some seconds each.
const ROUNDS: usize = 20;

/// A part of an archive, in order.
enum Piece {
    Chunk {
        checksum: String,
        content: Bytes,
    },
    /// All chunks of this file have been sent.
    File(File),
}

struct File {
    name: String,
    checksum: String,
    chunks: Vec<String>,
}

/// Adds the files of an archive, or one file.
pub(crate) async fn add(
    State(app): State<Arc<App>>,
    uploader: Uploader,
    Path((_, project)): Path<(String, String)>,
    parts: Multipart,
) -> Result<(StatusCode, Json<Vec<Value>>), Problem> {
    let project = uploader.may_upload_to(&app, &project).await?;
    let turn = uploader.turn(&app).await?;
    let owner = uploader.owner();
    app.symbols.check_room(&owner).await?;
    let mut chunks = Vec::new();
    let received = async {
        let (name, sent) = receive(&app, parts).await?;
        keep(&app, &owner, (name, sent), &mut chunks).await
    };
    let received = tokio::time::timeout(PATIENCE, received).await;
    drop(turn);
    let files = match received.unwrap_or_else(|_| Err(Problem::stalled())) {
        Ok(files) => files,
        Err(problem) => {
            // The reason of the refusal matters more than chunks that stay for a day.
            if let Err(error) = app.symbols.drop_chunks(&owner, chunks).await {
                tracing::warn!(%error, "cannot delete the chunks of a refused archive");
            }
            return Err(problem);
        }
    };
    let requests = files.into_iter().map(|file| AssemblyRequest {
        project: project.clone(),
        actor: uploader.actor.clone(),
        id: id_in(&file.name).map(|id| id.as_str().to_owned()),
        name: shown(&file.name),
        checksum: file.checksum,
        chunks: file.chunks,
    });
    let difs = assemble(&app, &uploader, requests.collect()).await?;
    Ok((StatusCode::CREATED, Json(difs)))
}

/// Writes the field `file` to a file without a name, which the system deletes when it is closed.
async fn receive(app: &App, mut parts: Multipart) -> Result<(String, std::fs::File), Problem> {
    let mut pace = Pace::default();
    while let Some(mut part) = pace.wait_for(parts.next_field()).await? {
        if part.name() != Some("file") {
            // Otherwise `next_field` would read it, and its bytes would not count as progress.
            while let Some(bytes) = pace.wait_for(part.chunk()).await? {
                pace.advance(bytes.len());
            }
            continue;
        }
        let name = part.file_name().unwrap_or_default().to_owned();
        let file = app.symbols.work_file().map_err(StoreError::from)?;
        let mut file = tokio::fs::File::from_std(file);
        while let Some(bytes) = pace.wait_for(part.chunk()).await? {
            pace.advance(bytes.len());
            file.write_all(&bytes).await.map_err(StoreError::from)?;
        }
        file.flush().await.map_err(StoreError::from)?;
        return Ok((name, file.into_std().await));
    }
    Err(Problem::unfit_body(format!(
        "send a ZIP archive, a mapping or a debug file of at most {MAX_REQUEST_BYTES} bytes in the field `file`"
    )))
}

/// Stores the uploaded files as chunks, and adds their names to `chunks`.
async fn keep(
    app: &App,
    owner: &str,
    (name, sent): (String, std::fs::File),
    chunks: &mut Vec<String>,
) -> Result<Vec<File>, Problem> {
    let (pieces, mut received) = mpsc::channel(1);
    let unpacking = tokio::task::spawn_blocking(move || unpack(&name, sent, &pieces));
    let mut files = Vec::new();
    while let Some(piece) = received.recv().await {
        match piece {
            Piece::Chunk { checksum, content } => {
                app.symbols.keep_chunk(owner, &checksum, content).await?;
                chunks.push(checksum);
            }
            Piece::File(file) => files.push(file),
        }
    }
    let unpacked = unpacking.await.map_err(|_| Problem::overloaded())?;
    unpacked.map_err(Problem::unfit_body)?;
    if files.is_empty() {
        return Err(Problem::unfit_body("the archive contains no files"));
    }
    Ok(files)
}

/// Sends the pieces of a file or of an archive. Stops when the receiver is gone.
fn unpack(name: &str, mut sent: std::fs::File, pieces: &mpsc::Sender<Piece>) -> Result<(), String> {
    let damaged = |error: &dyn std::fmt::Display| format!("the archive is damaged: {error}");
    let mut magic = Vec::new();
    let rewound = sent
        .rewind()
        .and_then(|()| sent.by_ref().take(4).read_to_end(&mut magic))
        .and_then(|_| sent.rewind());
    rewound.map_err(|error| error.to_string())?;
    if magic != b"PK\x03\x04" {
        return cut(name, &mut sent, pieces).map(|_| ());
    }
    check_directory(&mut sent).map_err(|error| error.to_string())?;
    let mut archive = ZipArchive::new(BufReader::new(sent)).map_err(|error| damaged(&error))?;
    let (mut files, mut left) = (0, MAX_INFLATED_BYTES);
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(|error| damaged(&error))?;
        if entry.is_dir() {
            continue;
        }
        files += 1;
        if files > MAX_FILES {
            return Err(format!(
                "the archive contains more than {MAX_FILES} files: use sentry-cli 3"
            ));
        }
        let name = entry.name().to_owned();
        // One byte above the limit is enough to detect the excess.
        let read = cut(&name, &mut entry.take(left + 1), pieces)?;
        left = left.checked_sub(read).ok_or_else(|| {
            format!("the archive contains more than {MAX_INFLATED_BYTES} bytes: use sentry-cli 3")
        })?;
    }
    Ok(())
}

/// Refuses an archive with a long list of entries, because reading an archive reads the whole list into memory.
fn check_directory(sent: &mut std::fs::File) -> std::io::Result<()> {
    let (mut entries, mut part) = (0, Vec::new());
    loop {
        // A signature may lie across the end of a part.
        part.drain(..part.len().saturating_sub(ENTRY.len() - 1));
        if sent.by_ref().take(1 << 20).read_to_end(&mut part)? == 0 {
            break;
        }
        entries += memchr::memmem::find_iter(&part, ENTRY).count();
        if entries > MAX_ENTRIES {
            return Err(std::io::Error::other(format!(
                "the archive contains more than {MAX_FILES} files: use sentry-cli 3"
            )));
        }
    }
    sent.rewind()
}

/// Sends the chunks of a file, then the file. Returns its size.
fn cut(name: &str, from: &mut impl Read, pieces: &mpsc::Sender<Piece>) -> Result<u64, String> {
    let (mut whole, mut chunks, mut bytes) = (Sha1::new(), Vec::new(), 0);
    loop {
        let mut content = Vec::new();
        let read = from
            .by_ref()
            .take(CHUNK_BYTES as u64)
            .read_to_end(&mut content);
        let read = read.map_err(|error| format!("the archive is damaged: {error}"))?;
        if read == 0 {
            break;
        }
        whole.update(&content);
        bytes += read as u64;
        let checksum = format!("{:x}", Sha1::digest(&content));
        chunks.push(checksum.clone());
        let content = content.into();
        let chunk = Piece::Chunk { checksum, content };
        pieces
            .blocking_send(chunk)
            .map_err(|_| "the upload was cancelled".to_owned())?;
    }
    let file = Piece::File(File {
        name: name.to_owned(),
        checksum: format!("{:x}", whole.finalize()),
        chunks,
    });
    pieces
        .blocking_send(file)
        .map_err(|_| "the upload was cancelled".to_owned())?;
    Ok(bytes)
}

/// Waits until all files are stored, because the tool does not poll.
async fn assemble(
    app: &App,
    uploader: &Uploader,
    mut requests: Vec<AssemblyRequest>,
) -> Result<Vec<Value>, Problem> {
    let mut difs = Vec::new();
    for _ in 0..ROUNDS {
        let mut working = Vec::new();
        let turn = uploader.turn(app).await?;
        let states = app.symbols.assemble(requests.clone(), turn).await?;
        for (request, state) in requests.into_iter().zip(states) {
            match state {
                AssemblyState::Done(file) => {
                    // If the server knew the file before, the chunks are not needed.
                    app.symbols.clean_up(&request).await?;
                    difs.push(dif(&file));
                }
                AssemblyState::Failed(reason) => {
                    let name = request.name;
                    return Err(Problem::unfit_body(format!("{name}: {reason}")));
                }
                AssemblyState::Working => working.push(request),
                AssemblyState::Missing(_) => return Err(Problem::overloaded()),
            }
        }
        requests = working;
        if requests.is_empty() {
            break;
        }
    }
    Ok(difs)
}
