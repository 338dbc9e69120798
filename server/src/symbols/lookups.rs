//! Lookup files: made from symbol files when they are first needed, kept on disk, and mapped into memory.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio::sync::Mutex as AsyncMutex;
use unjank_database::{Control, ControlError, UsableBuild};
use unjank_foundation::clock::Clock;
use unjank_symbols::{Format, Found, LOOKUP_VERSION, LookupFile, LookupKind, SymbolId};
use uuid::Uuid;

use super::parser::{Parser, ParserError};
use super::store::{StoreError, SymbolStore};

/// The maximum number of builds that are kept in memory, present or absent. A present one is an open file and its map.
const MAX_OPEN: usize = 256;
/// The maximum size of the files that are kept open. Their pages count as memory of the process while they are mapped. The latest file
/// stays open whatever its size.
const MAX_OPEN_BYTES: usize = 96 << 20;
/// How often a use is recorded in the control database.
const TOUCH_EVERY: Duration = Duration::from_secs(86_400);

/// A file that could not be read is read again after this time.
const RETRY_REFUSED: Duration = Duration::from_secs(3_600);
/// The same if the system ended the parser.
const RETRY_ENDED: Duration = Duration::from_secs(60);
/// A caller waits so long for a lookup file to be made, and then comes back later.
const PATIENCE: Duration = Duration::from_secs(2);
/// The maximum number of files that are known to be unreadable.
const MAX_REFUSED: usize = 10_000;

#[derive(Debug, thiserror::Error)]
pub enum LookupError {
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Parser(ParserError),
    #[error("cannot read or write a lookup file: {0}")]
    Io(#[from] std::io::Error),
    #[error("a symbol file is still being converted")]
    Converting,
    #[error("symbolication panicked: {0}")]
    Panicked(String),
    #[error("the content of the symbol file {file} is lost: {why}")]
    Lost { file: Uuid, why: String },
}

/// What is known of a build as of a revision of the project's files.
struct Entry {
    revision: u64,
    file: Option<Arc<LookupFile>>,
    used: Instant,
}

/// What a lookup file is made from.
#[derive(Clone, Copy)]
struct LookupContent<'c> {
    /// The SHA-256 of the symbol file.
    own: &'c str,
    /// The SHA-256 of the file with the part of its debug information that `dwz` moved away.
    shared: Option<&'c str>,
    place: u32,
}

pub struct Lookups {
    pub(super) control: Control,
    pub(super) store: Arc<SymbolStore>,
    pub(super) parser: Arc<Parser>,
    pub(super) clock: Clock,
    folder: PathBuf,
    max_bytes: u64,
    open: Mutex<HashMap<(String, SymbolId), Entry>>,
    /// Held while a file and its row are added or removed, so that the removal of a file does not delete the content of a new one. Between
    /// servers, the control database prevents that.
    pub(super) changing: AsyncMutex<()>,
    /// By project. One lookup file of a project is made at a time, so that two callers do not make the same.
    making: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
    /// The lookup files that are being made.
    converting: Mutex<HashSet<PathBuf>>,
    /// The lookup files that could not be made, and when to try again.
    refused: Mutex<HashMap<PathBuf, Instant>>,
}

impl Lookups {
    /// Keeps lookup files in `folder`, at most `max_bytes`. Files of other versions are deleted.
    pub fn open(
        folder: &Path,
        max_bytes: u64,
        store: Arc<SymbolStore>,
        parser: Arc<Parser>,
        (control, clock): (Control, Clock),
    ) -> std::io::Result<Self> {
        let current = folder.join(format!("v{LOOKUP_VERSION}"));
        std::fs::create_dir_all(&current)?;
        // Other versions, and work that a killed server left behind.
        let work = std::fs::read_dir(&current)?;
        for entry in std::fs::read_dir(folder)?.chain(work) {
            let path = entry?.path();
            if path != current && path.is_dir() {
                std::fs::remove_dir_all(path)?;
            }
        }
        Ok(Self {
            control,
            store,
            parser,
            clock,
            folder: current,
            max_bytes,
            open: Mutex::default(),
            changing: AsyncMutex::default(),
            making: Mutex::default(),
            converting: Mutex::default(),
            refused: Mutex::default(),
        })
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Makes a folder for work on a file, on the disk of the lookup files.
    pub(super) fn work_folder(&self) -> std::io::Result<TempDir> {
        tempfile::tempdir_in(&self.folder)
    }

    /// Returns the lookup file of a build, if the project has symbols of it. `revision` is that of the project's files.
    pub async fn find(
        self: &Arc<Self>,
        project: &str,
        id: &SymbolId,
        revision: u64,
    ) -> Result<Option<Arc<LookupFile>>, LookupError> {
        let key = (project.to_owned(), id.clone());
        if let Some(entry) = self.lock().get_mut(&key).filter(|e| e.revision == revision) {
            entry.used = Instant::now();
            return Ok(entry.file.clone());
        }
        let mut file = None;
        while let Some(build) = self.control.usable_symbols(project, id.as_str()).await? {
            match self.of_build(project, &build).await {
                // The next best file may be there.
                Err(LookupError::Lost { file, why }) => {
                    self.lose(project, file, &why).await?;
                }
                // It may be readable later, so that is not remembered here.
                Ok(None) => return Ok(None),
                other => {
                    file = other?;
                    break;
                }
            }
        }
        let entry = Entry {
            revision,
            file: file.clone(),
            used: Instant::now(),
        };
        let mut open = self.lock();
        open.insert(key, entry);
        let bytes = |entry: &Entry| entry.file.as_ref().map_or(0, |file| file.size());
        let mut total: usize = open.values().map(bytes).sum();
        while open.len() > 1 && (open.len() > MAX_OPEN || total > MAX_OPEN_BYTES) {
            let oldest = open.iter().min_by_key(|(_, entry)| entry.used);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else {
                break;
            };
            total -= open.remove(&oldest).as_ref().map_or(0, bytes);
        }
        Ok(file)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<(String, SymbolId), Entry>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns `None` if the file cannot be converted. The upload has checked it, so that is rare.
    async fn of_build(
        self: &Arc<Self>,
        project: &str,
        build: &UsableBuild,
    ) -> Result<Option<Arc<LookupFile>>, LookupError> {
        let now = self.clock.now();
        let day = now.floor(TOUCH_EVERY);
        self.control
            .touch_symbol_file(project, build.file, day)
            .await?;
        let format = Format::ALL.into_iter().find(|f| f.as_str() == build.format);
        let Some(format) = format else {
            return Ok(None);
        };
        let kind = LookupKind::from(format);
        let shared = build.shared.as_ref();
        if let Some(shared) = shared {
            self.control
                .touch_symbol_file(project, shared.file, day)
                .await?;
        }
        let content = LookupContent {
            own: &build.content,
            shared: shared.map(|shared| shared.content.as_str()),
            place: build.place,
        };
        let path = self.path(project, content, kind);
        if let Ok(file) = open_lookup(&path, kind).await {
            return Ok(Some(file));
        }
        if !self.is_refused(&path) {
            match self.making(project, build, (path, kind)).await {
                Ok(file) => return Ok(Some(file)),
                Err(LookupError::Parser(
                    ParserError::Refused(reason) | ParserError::Ended(reason),
                )) => {
                    let content = &build.content;
                    tracing::warn!(project, content, has_shared = build.shared.is_some(), %reason, "cannot use a symbol file");
                }
                Err(error) => return Err(error),
            }
        }
        // Without the file that it shares with others, fewer functions have names.
        if build.shared.is_none() {
            return Ok(None);
        }
        let alone = UsableBuild {
            shared: None,
            ..build.clone()
        };
        Box::pin(self.of_build(project, &alone)).await
    }

    fn is_refused(&self, path: &Path) -> bool {
        let refused = self.refused.lock();
        let refused = refused.unwrap_or_else(PoisonError::into_inner);
        refused
            .get(path)
            .is_some_and(|until| Instant::now() < *until)
    }

    /// Makes a lookup file in a task of its own, which goes on when the caller has waited for long enough.
    async fn making(
        self: &Arc<Self>,
        project: &str,
        build: &UsableBuild,
        (path, kind): (PathBuf, LookupKind),
    ) -> Result<Arc<LookupFile>, LookupError> {
        if !self.converting().insert(path.clone()) {
            return Err(LookupError::Converting);
        }
        let this = Arc::clone(self);
        let (owner, of) = (project.to_owned(), build.clone());
        #[expect(clippy::disallowed_methods, reason = "joined, unless it takes long")]
        let made = tokio::spawn(async move {
            let _end = EndOfConversion(&this, &path);
            this.made(&owner, &of, (&path, kind)).await
        });
        match tokio::time::timeout(PATIENCE, made).await {
            Ok(made) => made.map_err(|error| LookupError::Panicked(error.to_string()))?,
            Err(_) => Err(LookupError::Converting),
        }
    }

    fn converting(&self) -> std::sync::MutexGuard<'_, HashSet<PathBuf>> {
        self.converting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn turn(&self, project: &str) -> Arc<AsyncMutex<()>> {
        let making = self.making.lock();
        let mut making = making.unwrap_or_else(PoisonError::into_inner);
        Arc::clone(making.entry(project.to_owned()).or_default())
    }

    /// Opens a lookup file, which is made first if it is not there.
    async fn made(
        &self,
        project: &str,
        build: &UsableBuild,
        (path, kind): (&Path, LookupKind),
    ) -> Result<Arc<LookupFile>, LookupError> {
        let turn = self.turn(project);
        let _making = turn.lock().await;
        // Another caller may have made it meanwhile.
        if let Ok(file) = open_lookup(path, kind).await {
            return Ok(file);
        }
        let temporary = self.work_folder()?;
        let original = temporary.path().join("original");
        let own = (build.file, build.content.as_str());
        self.fetch(project, own, &original).await?;
        let shared = match &build.shared {
            Some(file) => {
                let path = temporary.path().join("shared");
                self.fetch(project, (file.file, &file.content), &path)
                    .await?;
                Some(path)
            }
            None => None,
        };
        let made = self.make((&original, shared.as_deref()), build.place, path);
        let made = made.await;
        let retry = match &made {
            Err(LookupError::Parser(ParserError::Refused(_))) => Some(RETRY_REFUSED),
            Err(LookupError::Parser(ParserError::Ended(_))) => Some(RETRY_ENDED),
            _ => None,
        };
        if let Some(retry) = retry {
            let refused = self.refused.lock();
            let mut refused = refused.unwrap_or_else(PoisonError::into_inner);
            if refused.len() >= MAX_REFUSED {
                refused.clear();
            }
            refused.insert(path.to_owned(), Instant::now() + retry);
        }
        made?;
        Ok(open_lookup(path, kind).await?)
    }

    async fn fetch(
        &self,
        project: &str,
        (file, content): (Uuid, &str),
        to: &Path,
    ) -> Result<(), LookupError> {
        match self.store.fetch_file(project, content, to).await {
            Err(StoreError::Lost(why)) => Err(LookupError::Lost { file, why }),
            other => Ok(other?),
        }
    }

    /// Deletes the lookup files of all projects but these.
    pub fn keep_only(&self, is_kept: impl Fn(&str) -> bool) -> std::io::Result<()> {
        self.lock().retain(|(project, _), _| is_kept(project));
        let making = self.making.lock();
        let mut making = making.unwrap_or_else(PoisonError::into_inner);
        making.retain(|project, _| is_kept(project));
        drop(making);
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(std::ffi::OsStr::to_str);
            // `<project>-<content>-<place>.<kind>`; ids of projects may have dashes too.
            let project = name.and_then(|name| name.rsplitn(3, '-').nth(2));
            if project.is_some_and(|project| !is_kept(project)) {
                std::fs::remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Keeps a lookup file that was made from a content while its upload was checked.
    pub(super) async fn keep(
        &self,
        project: &str,
        content: &str,
        (found, lookup): (&Found, &Path),
    ) -> std::io::Result<()> {
        let kind = LookupKind::from(found.format);
        let content = LookupContent {
            own: content,
            shared: None,
            place: found.index,
        };
        let path = self.path(project, content, kind);
        tokio::fs::rename(lookup, &path).await?;
        self.shrink(&path)
    }

    fn path(&self, project: &str, content: LookupContent<'_>, kind: LookupKind) -> PathBuf {
        let extension = match kind {
            LookupKind::Java => "java",
            LookupKind::Native => "native",
            LookupKind::JavaScript => "js",
        };
        let LookupContent { own, shared, place } = content;
        let joined = shared.map_or(String::new(), |shared| format!("+{shared}"));
        let name = format!("{project}-{own}{joined}-{place}.{extension}");
        self.folder.join(name)
    }

    /// Makes a lookup file under another name, and renames it when it is whole.
    async fn make(
        &self,
        files: (&Path, Option<&Path>),
        place: u32,
        path: &Path,
    ) -> Result<(), LookupError> {
        let temporary = self.work_folder()?;
        let whole = temporary.path().join("lookup");
        let converted = self.parser.convert(files, place, &whole).await;
        converted.map_err(LookupError::Parser)?;
        tokio::fs::rename(&whole, path).await?;
        self.shrink(path)?;
        Ok(())
    }

    /// Deletes the oldest lookup files while all of them are larger than allowed. Maps of deleted files stay valid.
    fn shrink(&self, keep: &Path) -> std::io::Result<()> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_file() {
                files.push((metadata.modified()?, metadata.len(), entry.path()));
            }
        }
        files.sort();
        let mut total: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, bytes, path) in files {
            if total <= self.max_bytes {
                break;
            }
            if path != keep {
                std::fs::remove_file(&path)?;
                total -= bytes;
            }
        }
        Ok(())
    }
}

/// Forgets that a lookup file is being made.
struct EndOfConversion<'l>(&'l Lookups, &'l Path);

impl Drop for EndOfConversion<'_> {
    fn drop(&mut self) {
        self.0.converting().remove(self.1);
    }
}

/// Opens a lookup file. That reads the whole file, because it is checked.
async fn open_lookup(path: &Path, kind: LookupKind) -> std::io::Result<Arc<LookupFile>> {
    let path = path.to_owned();
    let opened = tokio::task::spawn_blocking(move || LookupFile::open(&path, kind));
    Ok(Arc::new(opened.await.map_err(std::io::Error::other)??))
}
