//! Joins the chunks of uploads to symbol files, in the background and one file after the other.

mod known_files;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::{Instant, interval, timeout_at};
use tokio_util::sync::CancellationToken;
use unjank_database::{Actor, Control, SymbolFile};
use unjank_foundation::clock::Clock;
use unjank_foundation::shares::Share;
use uuid::Uuid;

use self::known_files::KnownFiles;
use super::MAX_FILE_BYTES;
use super::assemble_error::AssembleError;
use super::assembly_queue::{Full, Waiting};
use super::assembly_request::{AssemblyRequest, Key};
use super::joining::{JoinError, Joiner};
use super::lookups::{LookupError, Lookups};
use super::sent_chunks::SentChunks;
use super::store::{StoreError, SymbolStore};
use crate::metrics::SymbolMetrics;

/// The maximum number of failures that are remembered, for clients that ask again.
const MAX_FAILURES: usize = 1_000;
/// How long requests for the same file get a failure as their answer. After this time, the file is tried again.
const REFUSAL_LASTS: Duration = Duration::from_secs(60);
const FAILURE_LASTS: Duration = Duration::from_secs(2);
/// How often old chunks are deleted, and files that wait for a server are taken over.
const SWEEP_EVERY: Duration = Duration::from_secs(3600);
/// How long a request waits for its files before it answers that the work goes on.
const PATIENCE: Duration = Duration::from_secs(5);
/// The maximum size and number of the chunks of one token that wait to be joined.
const MAX_CHUNK_BYTES: u64 = 2 * MAX_FILE_BYTES;
const MAX_CHUNKS: u64 = 10_000;

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

#[derive(Default)]
struct Board {
    waiting: Waiting,
    /// The files that wait or are being joined.
    working: HashMap<Key, Arc<Notify>>,
    failed: HashMap<Key, Failure>,
}

struct Failure {
    reason: String,
    until: Instant,
}

/// A file whose state is known, or that is being joined.
enum Begun {
    Settled(AssemblyState),
    Working(AssemblyRequest),
}

impl Begun {
    fn working(&self) -> Option<&AssemblyRequest> {
        match self {
            Self::Settled(_) => None,
            Self::Working(request) => Some(request),
        }
    }
}

pub struct Assemblies {
    joiner: Joiner,
    clock: Clock,
    metrics: SymbolMetrics,
    board: Mutex<Board>,
    added: Notify,
}

impl Assemblies {
    /// `max_project_bytes` limits the size of all files of a project. Uploads fail while less than `min_free_bytes` of the disk are free.
    #[must_use]
    pub fn new(
        lookups: Arc<Lookups>,
        clock: Clock,
        (max_project_bytes, min_free_bytes): (u64, u64),
        metrics: SymbolMetrics,
    ) -> Self {
        let joiner = Joiner {
            lookups,
            clock: clock.clone(),
            max_project_bytes,
            min_free_bytes,
        };
        Self {
            joiner,
            clock,
            metrics,
            board: Mutex::default(),
            added: Notify::new(),
        }
    }

    fn control(&self) -> &Control {
        &self.joiner.lookups.control
    }

    /// The lookup files of all projects.
    #[must_use]
    pub fn lookups(&self) -> Arc<Lookups> {
        Arc::clone(&self.joiner.lookups)
    }

    /// The contents of files and chunks.
    #[must_use]
    pub fn store(&self) -> &SymbolStore {
        &self.joiner.lookups.store
    }

    /// The maximum size of all files of a project.
    #[must_use]
    pub fn max_project_bytes(&self) -> u64 {
        self.joiner.max_project_bytes
    }

    /// Removes a file, and its content if no other file has the same.
    pub async fn remove(
        &self,
        project: &str,
        file: Uuid,
        actor: &Actor,
    ) -> Result<(), AssembleError> {
        Ok(self.joiner.lookups.remove(project, file, actor).await?)
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that the owner may send more chunks.
    pub async fn check_room(&self, owner: &str) -> Result<(), AssembleError> {
        self.joiner.check_disk()?;
        let chunks = self.store().chunks_of(owner).await?;
        let (number, bytes) = (chunks.len() as u64, chunks.values().sum::<u64>());
        if number >= MAX_CHUNKS || bytes > MAX_CHUNK_BYTES {
            return Err(AssembleError::TooManyChunks(number, bytes >> 20));
        }
        Ok(())
    }

    /// Keeps a chunk until it is joined.
    pub async fn keep_chunk(
        &self,
        owner: &str,
        checksum: &str,
        chunk: Bytes,
    ) -> Result<(), AssembleError> {
        self.joiner.check_disk()?;
        Ok(self.store().put_chunk(owner, checksum, chunk).await?)
    }

    /// Makes a file without a name for an upload that is cut into chunks.
    pub fn work_file(&self) -> std::io::Result<std::fs::File> {
        tempfile::tempfile_in(self.joiner.lookups.folder())
    }

    /// Joins files, or says which chunks are missing. Returns a state for each request. Asking again is free. The search for files and
    /// chunks needs a turn, which ends before the wait for the files.
    pub async fn assemble(
        &self,
        requests: Vec<AssemblyRequest>,
        turn: Share,
    ) -> Result<Vec<AssemblyState>, AssembleError> {
        let all: Vec<&AssemblyRequest> = requests.iter().collect();
        let files = self.known_files(&all).await?;
        let mut begun = Vec::with_capacity(requests.len());
        let mut sent = SentChunks::default();
        for request in requests {
            begun.push(self.begin(request, &files, &mut sent).await?);
        }
        drop(turn);
        let deadline = Instant::now() + PATIENCE;
        let working: Vec<&AssemblyRequest> = begun.iter().filter_map(Begun::working).collect();
        for request in &working {
            self.await_file(&request.key(), deadline).await;
        }
        // Joining adds files and deletes chunks.
        let files = self.known_files(&working).await?;
        sent = SentChunks::default();
        let mut states = Vec::with_capacity(begun.len());
        for one in begun {
            states.push(match one {
                Begun::Settled(state) => state,
                Begun::Working(request) => self.settle(&request, &files, &mut sent).await?,
            });
        }
        Ok(states)
    }

    async fn begin(
        &self,
        request: AssemblyRequest,
        files: &KnownFiles,
        sent: &mut SentChunks,
    ) -> Result<Begun, AssembleError> {
        let key = request.key();
        if files.has_working(&key) {
            return Ok(Begun::Working(request));
        }
        if let Some(file) = self.known(&request, files).await? {
            return Ok(Begun::Settled(AssemblyState::Done(Box::new(file))));
        }
        if self.board().working.contains_key(&key) {
            return Ok(Begun::Working(request));
        }
        if let Some(reason) = self.failure(&key) {
            return Ok(Begun::Settled(AssemblyState::Failed(reason)));
        }
        let chunks = &request.chunks;
        if chunks.is_empty() {
            let why = "the file is empty: the request names no chunks".to_owned();
            return Ok(Begun::Settled(AssemblyState::Failed(why)));
        }
        let missing = sent.missing(self.store(), request.owner(), chunks).await?;
        if !missing.is_empty() {
            return Ok(Begun::Settled(AssemblyState::Missing(missing)));
        }
        self.add(request.clone())?;
        Ok(Begun::Working(request))
    }

    /// Adds a file to the queue, unless it is there already.
    fn add(&self, request: AssemblyRequest) -> Result<(), Full> {
        let mut board = self.board();
        let key = request.key();
        if board.working.contains_key(&key) {
            return Ok(());
        }
        board.waiting.add(request)?;
        board.working.insert(key, Arc::default());
        self.added.notify_one();
        Ok(())
    }

    fn failure(&self, key: &Key) -> Option<String> {
        let mut board = self.board();
        let failure = board.failed.get(key)?;
        if failure.until < Instant::now() {
            board.failed.remove(key);
            return None;
        }
        Some(failure.reason.clone())
    }

    /// Waits until a file is joined, or has failed.
    async fn await_file(&self, key: &Key, deadline: Instant) {
        let Some(done) = self.board().working.get(key).cloned() else {
            return;
        };
        let notified = done.notified();
        let is_working = self.board().working.contains_key(key);
        if is_working {
            let _is_late = timeout_at(deadline, notified).await.is_err();
        }
    }

    /// Returns the state of a file after the wait for it.
    async fn settle(
        &self,
        request: &AssemblyRequest,
        files: &KnownFiles,
        sent: &mut SentChunks,
    ) -> Result<AssemblyState, AssembleError> {
        let key = request.key();
        if files.has_working(&key) {
            let is_working = self.board().working.contains_key(&key);
            if is_working {
                // The uploader may not ask again, and the server may end before the file is joined.
                let text = serde_json::to_vec(request).map_err(std::io::Error::from);
                let text = text.map_err(StoreError::from)?;
                self.store().put_waiting(&key, text).await?;
            }
            return Ok(AssemblyState::Working);
        }
        if let Some(file) = self.known(request, files).await? {
            return Ok(AssemblyState::Done(Box::new(file)));
        }
        if let Some(reason) = self.failure(&key) {
            return Ok(AssemblyState::Failed(reason));
        }
        let chunks = &request.chunks;
        let missing = sent.missing(self.store(), request.owner(), chunks).await?;
        Ok(match missing.is_empty() {
            true => AssemblyState::Working,
            false => AssemblyState::Missing(missing),
        })
    }

    /// Works until shutdown. Files that wait then are joined when their uploaders ask again, or by the next server.
    pub async fn run(self: Arc<Self>, shutdown: CancellationToken) {
        if let Err(error) = self.store().check().await {
            tracing::error!(%error, "the symbol store cannot be used: uploads of symbol files fail, and stacks that need them stay as they are");
        }
        let work = async {
            loop {
                let added = self.added.notified();
                let next = self.board().waiting.next();
                match next {
                    Some(request) => self.join(&request).await,
                    None => added.await,
                }
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = work => {}
            () = self.sweep() => {}
        }
    }

    /// Periodically deletes old chunks and contents without a file, and takes over files that another server left unfinished.
    async fn sweep(&self) {
        let mut every = interval(SWEEP_EVERY);
        loop {
            every.tick().await;
            if let Err(error) = self.store().drop_old(self.clock.now()).await {
                tracing::warn!(%error, "cannot delete old chunks of symbol files yet");
            }
            self.drop_orphaned_contents().await;
            // Projects are erased by one server.
            let kept = self.drop_lookups_of_erased_projects().await;
            if let Err(error) = kept {
                tracing::warn!(%error, "cannot delete lookup files of erased projects yet");
            }
            match self.store().all_waiting().await {
                Ok(requests) => self.take_over(&requests),
                Err(error) => {
                    tracing::warn!(%error, "cannot look for symbol files that wait yet");
                }
            }
        }
    }

    async fn drop_orphaned_contents(&self) {
        match self.joiner.lookups.drop_orphaned_contents().await {
            Ok(0) => {}
            Ok(files) => tracing::info!(files, "deleted contents of removed symbol files"),
            Err(error) => {
                tracing::warn!(%error, "cannot delete contents of removed symbol files yet");
            }
        }
    }

    async fn drop_lookups_of_erased_projects(&self) -> Result<(), LookupError> {
        let projects = self.control().projects().await?;
        let projects: BTreeSet<&str> = projects.iter().map(|one| one.id.as_str()).collect();
        let lookups = &self.joiner.lookups;
        Ok(lookups.keep_only(|project| projects.contains(project))?)
    }

    /// Adds the files that a server left behind when it ended.
    fn take_over(&self, requests: &[Bytes]) {
        for request in requests {
            let added = match serde_json::from_slice(request) {
                Ok(request) => self.add(request).map_err(AssembleError::from),
                Err(error) => Err(StoreError::from(std::io::Error::from(error)).into()),
            };
            if let Err(error) = added {
                tracing::warn!(%error, "cannot take over a symbol file that waits");
            }
        }
    }

    async fn join(&self, request: &AssemblyRequest) {
        let result = self.joiner.join(request).await;
        if !matches!(result, Err(JoinError::Failed(_)))
            && let Err(error) = self.clean_up(request).await
        {
            tracing::warn!(%error, "cannot delete the chunks of a symbol file: they are deleted after a day");
        }
        let key = request.key();
        let mut board = self.board();
        let waiting = board.working.remove(&key);
        self.metrics.count_file(result.is_ok());
        if let Some((reason, lasts)) = failure(result.as_ref().err()) {
            tracing::warn!(
                project = request.project,
                name = request.name,
                reason,
                "cannot add a symbol file"
            );
            if board.failed.len() >= MAX_FAILURES {
                board.failed.clear();
            }
            let until = Instant::now() + lasts;
            board.failed.insert(key, Failure { reason, until });
        }
        if let Some(waiting) = waiting {
            waiting.notify_waiters();
        }
    }

    /// Deletes what an upload of a file left.
    pub async fn clean_up(&self, request: &AssemblyRequest) -> Result<(), StoreError> {
        let chunks = request.chunks.clone();
        self.drop_chunks(request.owner(), chunks).await?;
        self.store().drop_waiting(&request.key()).await
    }

    /// Deletes chunks, except those that files of the owner wait for.
    pub async fn drop_chunks(
        &self,
        owner: &str,
        mut chunks: Vec<String>,
    ) -> Result<(), StoreError> {
        for waiting in self.board().waiting.of(owner) {
            chunks.retain(|chunk| !waiting.chunks.contains(chunk));
        }
        for chunk in &chunks {
            self.store().drop_chunk(owner, chunk).await?;
        }
        Ok(())
    }
}

/// The error that uploaders see, and until when.
fn failure(error: Option<&JoinError>) -> Option<(String, Duration)> {
    match error? {
        JoinError::Refused(reason) => Some((reason.clone(), REFUSAL_LASTS)),
        JoinError::Failed(error) => {
            tracing::error!(%error, "cannot store a symbol file");
            let reason = "the server cannot store the file now; its log has the reason. Upload the file again later";
            Some((reason.to_owned(), FAILURE_LASTS))
        }
        // The uploader is asked for them again.
        JoinError::NoChunks => None,
    }
}
