//! The contents of symbol files and of chunks that wait to be joined: a folder, or a bucket that several servers share.

use std::path::Path as FilePath;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, WriteMultipart};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::clock::UnixTime;

/// Chunks that were not joined by then are deleted.
const CHUNKS_LIVE: Duration = Duration::from_secs(24 * 3600);
/// The size of the pieces in which files are copied.
const PIECE: usize = 8 << 20;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("the symbol store: {0}")]
    Object(#[from] object_store::Error),
    #[error("the symbol store: {0}")]
    Io(#[from] std::io::Error),
}

/// Names inside of the store are made of ids and hashes only, never of names that a client chose.
pub struct SymbolStore {
    objects: Arc<dyn ObjectStore>,
    root: Path,
}

impl SymbolStore {
    /// Opens a folder, and creates it if necessary.
    pub fn folder(folder: &FilePath) -> Result<Self, StoreError> {
        std::fs::create_dir_all(folder)?;
        let objects = LocalFileSystem::new_with_prefix(folder)?.with_automatic_cleanup(true);
        Ok(Self {
            objects: Arc::new(objects),
            root: Path::default(),
        })
    }

    /// Opens a bucket, such as `s3://symbols/unjank`. Credentials and region come from the environment (`AWS_ACCESS_KEY_ID`, …).
    pub fn bucket(url: &str) -> Result<Self, StoreError> {
        let invalid = |error: String| std::io::Error::new(std::io::ErrorKind::InvalidInput, error);
        let url = reqwest::Url::parse(url).map_err(|error| invalid(error.to_string()))?;
        let (objects, root) = object_store::parse_url_opts(&url, std::env::vars())?;
        Ok(Self {
            objects: Arc::from(objects),
            root,
        })
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
        self.objects.put(&path, bytes.into()).await?;
        Ok(())
    }

    /// Returns the sizes of the chunks of an owner.
    pub async fn chunk_bytes(&self, owner: &str) -> Result<u64, StoreError> {
        let prefix = self.root.clone().join("chunks").join(owner);
        let list = self.objects.list(Some(&prefix));
        let sizes = list.try_fold(0, |sum, object| async move { Ok(sum + object.size) });
        Ok(sizes.await?)
    }

    pub async fn has_chunk(&self, owner: &str, checksum: &str) -> Result<bool, StoreError> {
        match self.objects.head(&self.chunk(owner, checksum)).await {
            Ok(_) => Ok(true),
            Err(object_store::Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    pub async fn get_chunk(&self, owner: &str, checksum: &str) -> Result<Bytes, StoreError> {
        let path = self.chunk(owner, checksum);
        Ok(self.objects.get(&path).await?.bytes().await?)
    }

    pub async fn drop_chunk(&self, owner: &str, checksum: &str) -> Result<(), StoreError> {
        self.delete(&self.chunk(owner, checksum)).await
    }

    /// Deletes chunks that nobody joined within a day.
    pub async fn drop_old_chunks(&self, now: UnixTime) -> Result<(), StoreError> {
        let oldest = (now - CHUNKS_LIVE).as_micros();
        let prefix = self.root.clone().join("chunks");
        let mut list = self.objects.list(Some(&prefix));
        while let Some(object) = list.try_next().await? {
            if object.last_modified.timestamp_micros() < oldest {
                self.delete(&object.location).await?;
            }
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

    /// Copies a file to a path.
    pub async fn fetch_file(
        &self,
        project: &str,
        content: &str,
        to: &FilePath,
    ) -> Result<(), StoreError> {
        let object = self.objects.get(&self.file(project, content)).await?;
        let mut stream = object.into_stream();
        let mut file = tokio::fs::File::create(to).await?;
        while let Some(bytes) = stream.try_next().await? {
            file.write_all(&bytes).await?;
        }
        file.flush().await?;
        Ok(())
    }

    /// Deletes all files of a project.
    pub async fn drop_project(&self, project: &str) -> Result<(), StoreError> {
        let prefix = self.root.clone().join("files").join(project);
        let mut list = self.objects.list(Some(&prefix));
        while let Some(object) = list.try_next().await? {
            self.delete(&object.location).await?;
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
