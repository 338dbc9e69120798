//! Joins the chunks of uploads to symbol files, in the background and one after the other.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sha1::Digest;
use tokio::io::AsyncWriteExt;
use tokio::sync::{Mutex as AsyncMutex, Notify, mpsc};
use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use unjank_symbols::{Found, SymbolId};
use uuid::Uuid;

use super::MAX_FILE_BYTES;
use super::lookups::Lookups;
use super::parser::ParserError;
use super::store::{StoreError, SymbolStore};
use crate::clock::Clock;
use crate::metrics::SymbolMetrics;
use crate::store::control::{Actor, Control, ControlError, NewSymbolFile, SymbolFile};

/// The maximum number of files that wait to be joined.
const MAX_WAITING: usize = 64;
/// The maximum number of failures that are remembered, for clients that ask again.
const MAX_FAILURES: usize = 1_000;
/// How often old chunks are deleted.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);
/// How long a request waits for its file before it answers that the work goes on.
const PATIENCE: Duration = Duration::from_secs(5);

/// A file to join from chunks.
#[derive(Clone, Debug)]
pub struct AssemblyRequest {
    pub project: String,
    /// Whose chunks these are.
    pub owner: String,
    pub actor: Actor,
    /// The SHA-1 of the whole file, in lower-case hexadecimal.
    pub checksum: String,
    pub name: String,
    /// The SHA-1 of each chunk, in order.
    pub chunks: Vec<String>,
    /// An id that the uploader names besides those in the file.
    pub id: Option<SymbolId>,
}

#[derive(Clone, Debug)]
pub enum AssemblyState {
    Done(Box<SymbolFile>),
    /// These chunks must be uploaded first.
    Missing(Vec<String>),
    /// Ask again later.
    Working,
    /// Why the file is refused.
    Failed(String),
}

#[derive(Debug, thiserror::Error)]
enum AssemblyError {
    #[error("{0}")]
    Refused(String),
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl From<ParserError> for AssemblyError {
    fn from(error: ParserError) -> Self {
        match error {
            ParserError::Refused(reason) => Self::Refused(reason),
            ParserError::Io(error) => Self::Io(error),
        }
    }
}

/// The project and checksum of a file.
type Key = (String, String);

#[derive(Default)]
struct Board {
    working: HashMap<Key, Arc<Notify>>,
    failed: HashMap<Key, String>,
}

pub struct Assemblies {
    lookups: Arc<Lookups>,
    clock: Clock,
    /// The maximum size of all files of a project.
    max_project_bytes: u64,
    metrics: SymbolMetrics,
    board: Mutex<Board>,
    /// Held while a file and its row are added or removed, so that the removal of a file does not delete the content of a new one.
    changing: AsyncMutex<()>,
    queue: mpsc::Sender<AssemblyRequest>,
    requests: Mutex<Option<mpsc::Receiver<AssemblyRequest>>>,
}

impl Assemblies {
    #[must_use]
    pub fn new(
        lookups: Arc<Lookups>,
        clock: Clock,
        max_project_bytes: u64,
        metrics: SymbolMetrics,
    ) -> Self {
        let (queue, requests) = mpsc::channel(MAX_WAITING);
        Self {
            lookups,
            clock,
            max_project_bytes,
            metrics,
            board: Mutex::default(),
            changing: AsyncMutex::default(),
            queue,
            requests: Mutex::new(Some(requests)),
        }
    }

    fn control(&self) -> &Control {
        &self.lookups.control
    }

    /// The lookup files of all projects.
    #[must_use]
    pub fn lookups(&self) -> Arc<Lookups> {
        Arc::clone(&self.lookups)
    }

    /// The contents of files and chunks.
    #[must_use]
    pub fn store(&self) -> &SymbolStore {
        &self.lookups.store
    }

    /// The maximum size of all files of a project.
    #[must_use]
    pub fn max_project_bytes(&self) -> u64 {
        self.max_project_bytes
    }

    /// Removes a file, and its content if no other file has the same.
    pub async fn remove(
        &self,
        project: &str,
        file: Uuid,
        actor: &Actor,
    ) -> Result<(), AssembleError> {
        let _changing = self.changing.lock().await;
        let now = self.clock.now();
        let removed = self.control().remove_symbol_file(project, file, actor, now);
        if let Some(content) = removed.await? {
            self.store().drop_file(project, &content).await?;
        }
        Ok(())
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Joins a file, or tells what is missing. Asking again is free. `None`: too many files wait.
    pub async fn assemble(
        &self,
        request: AssemblyRequest,
    ) -> Result<Option<AssemblyState>, AssembleError> {
        let key = (request.project.clone(), request.checksum.clone());
        if let Some(file) = self.known(&key).await? {
            return Ok(Some(AssemblyState::Done(Box::new(file))));
        }
        let mut done = self.board().working.get(&key).cloned();
        if done.is_none() {
            let missing = self.missing(&request).await?;
            if !missing.is_empty() {
                return Ok(Some(AssemblyState::Missing(missing)));
            }
            let notify = Arc::new(Notify::new());
            let mut board = self.board();
            board.failed.remove(&key);
            if self.queue.try_send(request).is_err() {
                return Ok(None);
            }
            board.working.insert(key.clone(), Arc::clone(&notify));
            done = Some(notify);
        }
        if let Some(done) = done {
            let notified = done.notified();
            let is_working = self.board().working.contains_key(&key);
            if is_working && tokio::time::timeout(PATIENCE, notified).await.is_err() {
                return Ok(Some(AssemblyState::Working));
            }
        }
        if let Some(file) = self.known(&key).await? {
            return Ok(Some(AssemblyState::Done(Box::new(file))));
        }
        let reason = self.board().failed.get(&key).cloned();
        Ok(Some(
            reason.map_or(AssemblyState::Working, AssemblyState::Failed),
        ))
    }

    async fn known(&self, (project, checksum): &Key) -> Result<Option<SymbolFile>, ControlError> {
        match self.control().symbol_file(project, checksum).await {
            Ok(file) => Ok(Some(file)),
            Err(ControlError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn missing(&self, request: &AssemblyRequest) -> Result<Vec<String>, StoreError> {
        let mut missing = Vec::new();
        for chunk in &request.chunks {
            if !self.store().has_chunk(&request.owner, chunk).await? {
                missing.push(chunk.clone());
            }
        }
        Ok(missing)
    }

    /// Works until shutdown. Files that wait then are joined when their uploaders ask again.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        let requests = self
            .requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let Some(mut requests) = requests else {
            return;
        };
        let work = async {
            while let Some(request) = requests.recv().await {
                let key = (request.project.clone(), request.checksum.clone());
                let result = self.join(&request).await;
                self.finish(key, &request.name, result);
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = work => {}
            () = self.sweep() => {}
        }
    }

    /// Deletes old chunks again and again.
    async fn sweep(&self) {
        let mut every = interval(SWEEP_EVERY);
        loop {
            every.tick().await;
            if let Err(error) = self.store().drop_old_chunks(self.clock.now()).await {
                tracing::warn!(%error, "cannot delete old chunks of symbol files yet");
            }
        }
    }

    fn finish(&self, key: Key, name: &str, result: Result<(), AssemblyError>) {
        let mut board = self.board();
        let waiting = board.working.remove(&key);
        self.metrics.count_file(result.is_ok());
        if let Err(error) = result {
            tracing::warn!(project = key.0, name, %error, "cannot add a symbol file");
            if board.failed.len() >= MAX_FAILURES {
                board.failed.clear();
            }
            board.failed.insert(key, error.to_string());
        }
        if let Some(waiting) = waiting {
            waiting.notify_waiters();
        }
    }

    async fn join(&self, request: &AssemblyRequest) -> Result<(), AssemblyError> {
        let folder = self.lookups.work_folder()?;
        let path = folder.path().join("file");
        let (content, bytes) = self.write(request, &path).await?;
        let used = self.control().symbol_bytes(&request.project).await?;
        if used.saturating_add(bytes) > self.max_project_bytes {
            return Err(AssemblyError::Refused(format!(
                "the symbol files of project `{}` would take more than {} MiB. Remove files with `unjank symbols remove`, or raise --symbols-max-bytes",
                request.project,
                self.max_project_bytes >> 20
            )));
        }
        let mut found = self.lookups.parser.inspect(&path).await?;
        name_by(&mut found, request.id.as_ref());
        // A file that cannot be converted is refused now, when its uploader can do something about it.
        if let Some(first) = found.iter().find(|found| found.contents.functions) {
            let out = folder.path().join("lookup");
            let converted = self.lookups.parser.convert(&path, first.index, &out);
            converted.await?;
        }
        let store = self.store();
        let _changing = self.changing.lock().await;
        store.put_file(&request.project, &content, &path).await?;
        let new = NewSymbolFile {
            checksum: request.checksum.clone(),
            content,
            name: request.name.clone(),
            bytes,
            found,
        };
        let now = self.clock.now();
        self.control()
            .add_symbol_file(&request.project, new, &request.actor, now)
            .await?;
        for chunk in &request.chunks {
            store.drop_chunk(&request.owner, chunk).await?;
        }
        Ok(())
    }

    /// Writes the chunks to a file. Returns the SHA-256 and the size.
    async fn write(
        &self,
        request: &AssemblyRequest,
        path: &Path,
    ) -> Result<(String, u64), AssemblyError> {
        let mut file = tokio::fs::File::create(path).await?;
        let (mut checksum, mut content) = (sha1::Sha1::new(), sha2::Sha256::new());
        let mut bytes = 0_u64;
        for chunk in &request.chunks {
            let chunk = self.store().get_chunk(&request.owner, chunk).await?;
            bytes += chunk.len() as u64;
            if bytes > MAX_FILE_BYTES {
                return Err(AssemblyError::Refused(format!(
                    "the file is larger than {} MiB",
                    MAX_FILE_BYTES >> 20
                )));
            }
            checksum.update(&chunk);
            content.update(&chunk);
            file.write_all(&chunk).await?;
        }
        file.flush().await?;
        if format!("{:x}", checksum.finalize()) != request.checksum {
            return Err(AssemblyError::Refused(
                "the chunks do not make up the file: its SHA-1 differs. Upload it again".to_owned(),
            ));
        }
        Ok((format!("{:x}", content.finalize()), bytes))
    }
}

/// Why an assembly cannot be looked at.
#[derive(Debug, thiserror::Error)]
pub enum AssembleError {
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Puts an id that the uploader names in front. Only files with one build can have one, or it would be unclear which build it names.
fn name_by(found: &mut [Found], id: Option<&SymbolId>) {
    if let ([only], Some(id)) = (found, id) {
        only.ids.retain(|known| known != id.as_str());
        only.ids.insert(0, id.as_str().to_owned());
    }
}
