//! `/api/0/…`: uploads of symbol files, in the protocol of `sentry-cli`, which build tools for all platforms speak.
//!
//! A tool sends a file in chunks, named by their SHA-1, and then asks to assemble them. It polls until the file is stored, so a broken
//! connection costs only the chunk in flight.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::multipart::Field;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Multipart, Path, State};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use flate2::read::GzDecoder;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha1::{Digest, Sha1};
use unjank_database::{Build, ControlError, SymbolFile};
use unjank_foundation::shares::Share;
use unjank_symbols::{Format, SymbolId};

use super::pace::Pace;
use crate::app::App;
use crate::http::api::problem::{Detail, Problem};
use crate::http::api::roles::Uploader;
use crate::symbols::{
    AssemblyRequest, AssemblyState, CHUNK_BYTES, MAX_FILE_BYTES, PROPOSED_CHUNK_BYTES,
};

/// The request size that the server announces to upload tools, without the headers of the parts.
const PROPOSED_REQUEST_BYTES: usize = 1_000_000;
/// The maximum number of chunks in a request.
const MAX_CHUNKS: usize = 64;
/// The maximum growth of incompressible data under gzip.
const GZIP_MORE: usize = 1 << 16;
/// The maximum size of a request to assemble files.
pub(super) const MAX_ASSEMBLE_BYTES: usize = 2 << 20;
/// The maximum number of files that one request may ask to assemble, and of all their chunks.
const MAX_FILES: usize = 1_000;
const MAX_CHUNKS_OF_FILES: usize = 16_384;
/// The time limit for a request with chunks, however fast its sender is.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long a request waits for its turn.
const TURN: Duration = Duration::from_secs(30);

/// Returns the limits and formats for sending chunks.
pub(super) async fn options(_: Uploader, Path(organization): Path<String>) -> Json<Value> {
    Json(json!({
        "url": format!("/api/0/organizations/{organization}/chunk-upload/"),
        "chunkSize": PROPOSED_CHUNK_BYTES,
        "chunksPerRequest": MAX_CHUNKS,
        "maxFileSize": MAX_FILE_BYTES,
        "maxRequestSize": PROPOSED_REQUEST_BYTES,
        "concurrency": 2,
        "hashAlgorithm": "sha1",
        "compression": ["gzip"],
        "accept": ["debug_files", "pdbs", "portablepdbs", "artifact_bundles", "artifact_bundles_v2", "proguard"],
    }))
}

/// Stores chunks until they are assembled.
pub(super) async fn chunks(
    State(app): State<Arc<App>>,
    uploader: Uploader,
    mut parts: Multipart,
) -> Result<(), Problem> {
    let _turn = uploader.turn(&app).await?;
    let owner = uploader.owner();
    let receive = async {
        app.symbols.check_room(&owner).await?;
        let (mut chunks, mut pace) = (0, Pace::default());
        while let Some(part) = pace.wait_for(parts.next_field()).await? {
            chunks += 1;
            if chunks > MAX_CHUNKS {
                return Err(Problem::unfit_body(format!(
                    "a request has at most {MAX_CHUNKS} chunks: send the others in further requests"
                )));
            }
            let (checksum, chunk) = read_chunk(part, &mut pace).await?;
            app.symbols.keep_chunk(&owner, &checksum, chunk).await?;
        }
        Ok(())
    };
    tokio::time::timeout(PATIENCE, receive)
        .await
        .map_err(|_| Problem::stalled())?
}

/// Reads a part: a chunk in a field `file` or, compressed, `file_gzip`, whose file name is the SHA-1.
async fn read_chunk(mut part: Field<'_>, pace: &mut Pace) -> Result<(String, Bytes), Problem> {
    let is_compressed = match part.name() {
        Some("file_gzip") => true,
        Some("file") => false,
        _ => {
            return Err(Problem::unfit_body(
                "send each chunk in a form field named `file` or `file_gzip`",
            ));
        }
    };
    let checksum = part.file_name().and_then(checksum).ok_or_else(|| {
        Problem::unfit_body("the file name of a chunk must be its SHA-1 in hexadecimal")
    })?;
    // Growing step by step would take three times the memory.
    let mut sent = Vec::with_capacity(CHUNK_BYTES + GZIP_MORE);
    while let Some(bytes) = pace.wait_for(part.chunk()).await? {
        pace.advance(bytes.len());
        if sent.len() + bytes.len() > CHUNK_BYTES + GZIP_MORE {
            return Err(Problem::unfit_body(format!(
                "a chunk is larger than {CHUNK_BYTES} bytes: send smaller chunks"
            )));
        }
        sent.extend_from_slice(&bytes);
    }
    let check = move || check_chunk(sent, is_compressed, checksum);
    let checked = tokio::task::spawn_blocking(check).await;
    checked.map_err(|_| Problem::overloaded())?
}

/// Decompresses a chunk, within the maximum size, and compares it with its SHA-1. Takes up to 100 ms of the CPU.
fn check_chunk(
    sent: Vec<u8>,
    is_compressed: bool,
    checksum: String,
) -> Result<(String, Bytes), Problem> {
    let chunk = if is_compressed {
        let mut plain = Vec::with_capacity(CHUNK_BYTES + 1);
        let decoder = GzDecoder::new(&sent[..]);
        let limit = CHUNK_BYTES as u64 + 1;
        decoder
            .take(limit)
            .read_to_end(&mut plain)
            .map_err(|_| Problem::corrupt_encoding("gzip"))?;
        plain
    } else {
        sent
    };
    if chunk.len() > CHUNK_BYTES {
        return Err(Problem::unfit_body(format!(
            "a chunk is larger than {CHUNK_BYTES} bytes after decompression: send smaller chunks"
        )));
    }
    if format!("{:x}", Sha1::digest(&chunk)) != checksum {
        return Err(Problem::unfit_body(
            "the content of a chunk does not have the SHA-1 of its file name",
        ));
    }
    Ok((checksum, chunk.into()))
}

/// A SHA-1 in hexadecimal, in lower case.
fn checksum(text: &str) -> Option<String> {
    let is_sha1 = text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_sha1.then(|| text.to_ascii_lowercase())
}

#[derive(Deserialize)]
pub(crate) struct Wanted {
    #[serde(default)]
    name: String,
    #[serde(default)]
    debug_id: Option<String>,
    chunks: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct WantedBundle {
    checksum: String,
    chunks: Vec<String>,
    #[serde(default)]
    projects: Vec<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Assembled {
    state: &'static str,
    missing_chunks: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dif: Option<Value>,
}

impl From<AssemblyState> for Assembled {
    fn from(state: AssemblyState) -> Self {
        let new = |state| Self {
            state,
            missing_chunks: Vec::new(),
            detail: None,
            dif: None,
        };
        match state {
            AssemblyState::Done(file) => Self {
                dif: Some(dif(&file)),
                ..new("ok")
            },
            AssemblyState::Missing(missing_chunks) => Self {
                missing_chunks,
                ..new("not_found")
            },
            AssemblyState::Working => new("assembling"),
            AssemblyState::Failed(reason) => Self {
                detail: Some(reason),
                ..new("error")
            },
        }
    }
}

/// The description of a file that the tool prints.
pub(super) fn dif(file: &SymbolFile) -> Value {
    let first = file.builds.first();
    let text = |of: fn(&Build) -> &str| first.map(of).unwrap_or_default();
    json!({
        "id": file.id,
        "uuid": first.map(debug_id).unwrap_or_default(),
        "debugId": first.map(debug_id).unwrap_or_default(),
        "cpuName": text(|build| &build.arch),
        "objectName": file.name,
        "symbolType": text(|build| &build.format),
        "size": file.bytes,
        "sha1": file.checksum,
        "replaces": file.replaces,
        "headers": {},
        "data": {},
    })
}

/// The id in the form that tools of Sentry compute. That of ELF is the start of the build id, as a GUID of Windows.
fn debug_id(build: &Build) -> String {
    let id = &build.symbol_id;
    if build.format != Format::Elf.as_str() {
        return dashed(id);
    }
    let start: String = id.chars().chain(std::iter::repeat('0')).take(32).collect();
    let guid = uuid::Uuid::try_parse(&start).map(|guid| uuid::Uuid::from_bytes(guid.to_bytes_le()));
    guid.map_or_else(|_| id.clone(), |guid| guid.hyphenated().to_string())
}

/// Debug ids as tools write them: a UUID, then the rest.
fn dashed(id: &str) -> String {
    let uuid = id
        .get(..32)
        .and_then(|start| uuid::Uuid::try_parse(start).ok());
    match (uuid, id.get(32..)) {
        (Some(uuid), Some("")) => uuid.hyphenated().to_string(),
        (Some(uuid), Some(rest)) if rest.len() <= 8 => format!("{}-{rest}", uuid.hyphenated()),
        _ => id.to_owned(),
    }
}

/// Assembles debug files and mappings: by SHA-1, what to assemble from which chunks.
pub(super) async fn assemble_files(
    State(app): State<Arc<App>>,
    uploader: Uploader,
    Path((_, project)): Path<(String, String)>,
    body: Result<Json<HashMap<String, Wanted>>, JsonRejection>,
) -> Result<Json<HashMap<String, Assembled>>, Problem> {
    let Json(wanted) = body.map_err(|error| Problem::unfit_body(error.body_text()))?;
    let project = uploader.may_upload_to(&app, &project).await?;
    let chunks: usize = wanted.values().map(|wanted| wanted.chunks.len()).sum();
    if wanted.len() > MAX_FILES || chunks > MAX_CHUNKS_OF_FILES {
        return Err(Problem::unfit_body(format!(
            "a request assembles at most {MAX_FILES} files of {MAX_CHUNKS_OF_FILES} chunks: use several requests"
        )));
    }
    let (mut names, mut requests) = (Vec::new(), Vec::new());
    for (sha1, wanted) in wanted {
        let id = wanted.debug_id.as_deref().and_then(SymbolId::parse);
        let id = id.or_else(|| id_in(&wanted.name));
        requests.push(request(
            &uploader,
            &project,
            (&sha1, wanted.name, wanted.chunks, id),
        )?);
        names.push(sha1);
    }
    let turn = uploader.turn(&app).await?;
    let states = app.symbols.assemble(requests, turn).await?;
    let answers = states.into_iter().map(Assembled::from);
    Ok(Json(names.into_iter().zip(answers).collect()))
}

/// Assembles a bundle of scripts and source maps.
pub(super) async fn assemble_bundle(
    State(app): State<Arc<App>>,
    uploader: Uploader,
    body: Result<Json<WantedBundle>, JsonRejection>,
) -> Result<Json<Assembled>, Problem> {
    let Json(wanted) = body.map_err(|error| Problem::unfit_body(error.body_text()))?;
    let [project] = wanted.projects.as_slice() else {
        return Err(Problem::unfit_body(
            "a bundle must be for exactly one project",
        ));
    };
    let project = uploader.may_upload_to(&app, project).await?;
    let name = "source maps".to_owned();
    let file = (wanted.checksum.as_str(), name, wanted.chunks, None);
    let request = request(&uploader, &project, file)?;
    let turn = uploader.turn(&app).await?;
    let states = app.symbols.assemble(vec![request], turn).await?;
    let state = states.into_iter().next().unwrap_or(AssemblyState::Working);
    Ok(Json(state.into()))
}

/// Returns the id in the name of a mapping: `proguard/<id>.txt`.
pub(super) fn id_in(name: &str) -> Option<SymbolId> {
    let name = name.trim_start_matches('/');
    SymbolId::parse(name.strip_prefix("proguard/")?.strip_suffix(".txt")?)
}

/// The name of a file as lists show it. It is never used as a path.
pub(crate) fn shown(name: &str) -> String {
    let letters = name.chars().filter(|letter| !letter.is_control());
    letters.take(200).collect()
}

fn request(
    uploader: &Uploader,
    project: &str,
    (sha1, name, chunks, id): (&str, String, Vec<String>, Option<SymbolId>),
) -> Result<AssemblyRequest, Problem> {
    let invalid = || Problem::unfit_body("checksums and chunks are SHA-1 in hexadecimal");
    let most = MAX_FILE_BYTES / PROPOSED_CHUNK_BYTES as u64;
    if chunks.len() as u64 > most {
        return Err(Problem::too_large(
            usize::try_from(MAX_FILE_BYTES).unwrap_or(usize::MAX),
        ));
    }
    let chunks = chunks.iter().map(|chunk| checksum(chunk)).collect();
    let chunks: Option<Vec<String>> = chunks;
    Ok(AssemblyRequest {
        project: project.to_owned(),
        actor: uploader.actor.clone(),
        checksum: checksum(sha1).ok_or_else(invalid)?,
        name: shown(&name),
        chunks: chunks.ok_or_else(invalid)?,
        id: id.map(|id| id.as_str().to_owned()),
    })
}

/// Writes problems in the form that `sentry-cli` prints: JSON with the member `detail` and no other.
pub(super) async fn write_problems_for_the_tool(mut response: Response) -> Response {
    let Some(Detail(detail)) = response.extensions_mut().remove() else {
        return response;
    };
    let (mut head, _) = response.into_parts();
    head.headers.remove(CONTENT_LENGTH);
    head.headers.remove(CONTENT_TYPE);
    let (status, headers) = (head.status, head.headers);
    (status, headers, Json(json!({"detail": detail}))).into_response()
}

/// Ends a path that belongs to the tool's protocol, but not to the part that is supported.
pub(super) async fn unsupported() -> Problem {
    Problem::not_found()
}

impl Uploader {
    /// Returns the project, if it exists and the token may upload to it.
    pub(super) async fn may_upload_to(&self, app: &App, project: &str) -> Result<String, Problem> {
        let unknown = || Problem::no_project_for_symbols(project);
        if self.project.as_ref().is_some_and(|only| only != project) {
            return Err(unknown());
        }
        let project = match app.control.project(project).await {
            Ok(project) => project.id,
            Err(ControlError::NotFound | ControlError::Invalid(_)) => return Err(unknown()),
            Err(error) => return Err(error.into()),
        };
        if app.control.is_erased(&project).await? {
            return Err(Problem::erased_project(&project));
        }
        Ok(project)
    }

    /// Waits until few enough requests with symbol files are running, both of the token and in total.
    pub(super) async fn turn(&self, app: &App) -> Result<Share, Problem> {
        let turn = app.symbol_uploads.take(self.actor.holder(), TURN).await;
        turn.ok_or_else(Problem::overloaded)
    }

    /// The owner of chunks: the token.
    pub(crate) fn owner(&self) -> String {
        self.actor.name.clone()
    }
}
