//! The contents of symbol files and of chunks that wait to be joined: a folder, or a bucket that several servers share.

use std::collections::HashMap;
use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, RetryConfig, WriteMultipart};
use sha2::Digest;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use unjank_foundation::clock::UnixTime;

use super::assembly_request::Key;
use crate::bucket::{self, BucketError};

/// Chunks that were not joined by then are deleted.
const CHUNKS_LIVE: Duration = Duration::from_secs(24 * 3600);
/// The size of the pieces in which files are copied.
const PIECE: usize = 8 << 20;
/// The folder of files that wait to be joined.
const WAITING: &str = "waiting";
/// The maximum number of waiting files that a server takes over at a time.
const MAX_RECALLED: usize = 1_000;
/// How often and for how long a request to a bucket is repeated. Build tools wait for the answer, and ask again later.
const RETRIES: usize = 3;
const RETRY_FOR: Duration = Duration::from_secs(20);
/// The maximum time of one request to a bucket, unless `AWS_TIMEOUT` names another.
const ANSWER_WITHIN: &str = "60 seconds";

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot read or write the symbol store: {0}")]
    Object(object_store::Error),
    #[error("the symbol store rejects the server's credentials: {0}")]
    Denied(object_store::Error),
    #[error("cannot use the symbol store: {0}")]
    Folder(String),
    #[error("cannot read or write the symbol store: {0}")]
    Io(#[from] std::io::Error),
    /// The store does not have the content, or has another one under its name.
    #[error("the symbol store has lost the content: {0}")]
    Lost(String),
}

impl From<object_store::Error> for StoreError {
    fn from(error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { path, .. } => {
                Self::Lost(format!("there is no `{path}`"))
            }
            error @ (object_store::Error::PermissionDenied { .. }
            | object_store::Error::Unauthenticated { .. }) => Self::Denied(error),
            error if is_denied(&error) => Self::Denied(error),
            error => Self::Object(error),
        }
    }
}

/// Whether a bucket refused to list its objects. `object_store` gives such an answer no kind of its own, only its text.
fn is_denied(error: &object_store::Error) -> bool {
    let text = error.to_string();
    let status = text.split("status code: ").nth(1);
    status.is_some_and(|status| status.starts_with("401") || status.starts_with("403"))
}

/// Names inside of the store are made of ids and hashes only, never of names that a client chose.
pub struct SymbolStore {
    /// Writes are durable.
    objects: Arc<dyn ObjectStore>,
    /// The same place. In a folder, writes are lost if the power fails; uploaders send such chunks again.
    chunks: Arc<dyn ObjectStore>,
    root: Path,
    /// The folder, if the store is one.
    folder: Option<PathBuf>,
}

impl SymbolStore {
    /// Opens a folder, and creates it if necessary.
    pub fn folder(folder: &FilePath) -> Result<Self, StoreError> {
        std::fs::create_dir_all(folder).map_err(|error| {
            StoreError::Folder(format!("cannot create {}: {error}", folder.display()))
        })?;
        let chunks = LocalFileSystem::new_with_prefix(folder)?.with_automatic_cleanup(true);
        Ok(Self {
            objects: Arc::new(chunks.clone().with_fsync(true)),
            chunks: Arc::new(chunks),
            root: Path::default(),
            folder: Some(folder.to_owned()),
        })
    }

    /// Opens a bucket, such as `s3://symbols/unjank`. `options` are named like the variables of the environment: `AWS_ACCESS_KEY_ID`, …
    pub fn bucket(url: &str, options: &[(String, String)]) -> Result<Self, StoreError> {
        let retry = RetryConfig {
            max_retries: RETRIES,
            retry_timeout: RETRY_FOR,
            ..RetryConfig::default()
        };
        let opened =
            bucket::open(url, options, retry, ANSWER_WITHIN).map_err(|error| match error {
                BucketError::Settings(error) => StoreError::from(error),
                error @ BucketError::Url(_) => {
                    let error = format!("--symbols-url {error}");
                    std::io::Error::new(std::io::ErrorKind::InvalidInput, error).into()
                }
            })?;
        Ok(Self {
            chunks: Arc::clone(&opened.objects),
            objects: opened.objects,
            root: opened.root,
            folder: None,
        })
    }

    /// Checks that the store can be used.
    pub async fn check(&self) -> Result<(), StoreError> {
        let prefix = self.root.clone().join("files");
        self.objects.list_with_delimiter(Some(&prefix)).await?;
        Ok(())
    }

    fn chunk(&self, owner: &str, checksum: &str) -> Path {
        let root = self.root.clone();
        root.join("chunks").join(owner).join(checksum)
    }

    fn file(&self, project: &str, content: &str) -> Path {
        let root = self.root.clone();
        root.join("files").join(project).join(content)
    }

    pub async fn put_chunk(
        &self,
        owner: &str,
        checksum: &str,
        bytes: Bytes,
    ) -> Result<(), StoreError> {
        let path = self.chunk(owner, checksum);
        self.chunks.put(&path, bytes.into()).await?;
        Ok(())
    }

    /// Returns the sizes of the chunks of an owner by their SHA-1. Uploads bound their number.
    pub async fn chunks_of(&self, owner: &str) -> Result<HashMap<String, u64>, StoreError> {
        let prefix = self.root.clone().join("chunks").join(owner);
        let mut list = self.objects.list(Some(&prefix));
        let mut chunks = HashMap::new();
        while let Some(object) = list.try_next().await? {
            if let Some(checksum) = object.location.filename() {
                chunks.insert(checksum.to_owned(), object.size);
            }
        }
        Ok(chunks)
    }

    pub async fn get_chunk(&self, owner: &str, checksum: &str) -> Result<Bytes, StoreError> {
        let path = self.chunk(owner, checksum);
        Ok(self.objects.get(&path).await?.bytes().await?)
    }

    pub async fn drop_chunk(&self, owner: &str, checksum: &str) -> Result<(), StoreError> {
        self.delete(&self.chunk(owner, checksum)).await
    }

    async fn drop_older_than(&self, kind: &str, oldest: i64) -> Result<(), StoreError> {
        let prefix = self.root.clone().join(kind);
        let mut list = self.objects.list(Some(&prefix));
        while let Some(object) = list.try_next().await? {
            if object.last_modified.timestamp_micros() < oldest {
                self.delete(&object.location).await?;
            }
        }
        Ok(())
    }

    /// Deletes what was not joined within a day, and what writes left behind that a crash interrupted.
    pub async fn drop_old(&self, now: UnixTime) -> Result<(), StoreError> {
        let oldest = (now - CHUNKS_LIVE).as_micros();
        for kind in ["chunks", WAITING] {
            self.drop_older_than(kind, oldest).await?;
        }
        if let Some(folder) = self.folder.clone() {
            let drop = move || drop_unfinished(&folder, oldest);
            let dropped = tokio::task::spawn_blocking(drop).await;
            dropped.map_err(std::io::Error::other)??;
        }
        Ok(())
    }

    /// Stores a file under the hash of its content.
    pub async fn put_file(
        &self,
        project: &str,
        content: &str,
        from: &FilePath,
    ) -> Result<(), StoreError> {
        let mut file = tokio::fs::File::open(from).await?;
        let to = self.file(project, content);
        let upload = self.objects.put_multipart(&to).await?;
        let mut upload = WriteMultipart::new_with_chunk_size(upload, PIECE);
        let mut piece = vec![0; PIECE];
        loop {
            match file.read(&mut piece).await? {
                0 => break,
                read => upload.write(piece.get(..read).unwrap_or_default()),
            }
            upload.wait_for_capacity(2).await?;
        }
        upload.finish().await?;
        Ok(())
    }

    /// Whether the store has the content of a file, with this size.
    pub async fn has_file(
        &self,
        project: &str,
        content: &str,
        bytes: u64,
    ) -> Result<bool, StoreError> {
        let path = self.file(project, content);
        Ok(size(Arc::clone(&self.objects), path).await? == Some(bytes))
    }

    /// Returns the contents of a project with the times at which they were stored. None of a bucket: it may also have those of another
    /// installation.
    pub async fn contents_in_folder(
        &self,
        project: &str,
    ) -> Result<Vec<(String, UnixTime)>, StoreError> {
        let mut contents = Vec::new();
        if self.folder.is_none() {
            return Ok(contents);
        }
        let prefix = self.root.clone().join("files").join(project);
        let mut list = self.objects.list(Some(&prefix));
        while let Some(object) = list.try_next().await? {
            if let Some(content) = object.location.filename().filter(|name| is_sha256(name)) {
                let stored_at = UnixTime::from_micros(object.last_modified.timestamp_micros());
                contents.push((content.to_owned(), stored_at));
            }
        }
        Ok(contents)
    }

    /// Copies a file to a path.
    pub async fn fetch_file(
        &self,
        project: &str,
        content: &str,
        to: &FilePath,
    ) -> Result<(), StoreError> {
        let from = self.file(project, content);
        let mut stream = self.objects.get(&from).await?.into_stream();
        let mut file = tokio::fs::File::create(to).await?;
        let mut hash = sha2::Sha256::new();
        while let Some(bytes) = stream.try_next().await? {
            hash.update(&bytes);
            file.write_all(&bytes).await?;
        }
        file.flush().await?;
        if format!("{:x}", hash.finalize()) != content {
            let lost = format!("the content of `{from}` does not have the SHA-256 of its name");
            return Err(StoreError::Lost(lost));
        }
        Ok(())
    }

    /// Remembers a file that waits to be joined, for servers that start later.
    pub async fn put_waiting(&self, key: &Key, request: Vec<u8>) -> Result<(), StoreError> {
        let path = self.waiting(key);
        self.chunks.put(&path, request.into()).await?;
        Ok(())
    }

    pub async fn drop_waiting(&self, key: &Key) -> Result<(), StoreError> {
        self.delete(&self.waiting(key)).await
    }

    /// Returns some of the files that wait to be joined.
    pub async fn all_waiting(&self) -> Result<Vec<Bytes>, StoreError> {
        let prefix = self.root.clone().join(WAITING);
        let list = self.objects.list(Some(&prefix)).take(MAX_RECALLED);
        let objects: Vec<_> = list.try_collect().await?;
        let mut requests = Vec::new();
        for object in objects {
            match self.objects.get(&object.location).await {
                Ok(request) => requests.push(request.bytes().await?),
                // Another server has joined it.
                Err(object_store::Error::NotFound { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(requests)
    }

    fn waiting(&self, (project, owner, checksum): &Key) -> Path {
        let folder = self.root.clone().join(WAITING).join(project.as_str());
        folder.join(owner.as_str()).join(checksum.as_str())
    }

    /// Deletes all files of a project.
    pub async fn drop_project(&self, project: &str) -> Result<(), StoreError> {
        for folder in ["files", WAITING] {
            let prefix = self.root.clone().join(folder).join(project);
            let mut list = self.objects.list(Some(&prefix));
            while let Some(object) = list.try_next().await? {
                self.delete(&object.location).await?;
            }
        }
        Ok(())
    }

    pub async fn drop_file(&self, project: &str, content: &str) -> Result<(), StoreError> {
        self.delete(&self.file(project, content)).await
    }

    async fn delete(&self, path: &Path) -> Result<(), StoreError> {
        match self.objects.delete(path).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

fn is_sha256(name: &str) -> bool {
    name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the size of an object, if there is one.
async fn size(objects: Arc<dyn ObjectStore>, path: Path) -> Result<Option<u64>, StoreError> {
    match objects.head(&path).await {
        Ok(object) => Ok(Some(object.size)),
        Err(object_store::Error::NotFound { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Deletes old files whose writing was interrupted. Their names end in `#` and a number.
fn drop_unfinished(folder: &FilePath, oldest: i64) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            match drop_unfinished(&path, oldest) {
                // The last file of the folder was deleted in the meantime, and the folder with it.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                other => other?,
            }
        } else if entry.file_name().to_string_lossy().contains('#') {
            let modified = chrono::DateTime::<chrono::Utc>::from(entry.metadata()?.modified()?);
            if modified.timestamp_micros() < oldest {
                std::fs::remove_file(&path)?;
            }
        }
    }
    Ok(())
}
