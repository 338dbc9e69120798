//! A set in a bucket: uploads it from a folder, and downloads it to one. The objects have the names of the files, below a prefix.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Formatter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path as Name;
use object_store::{Error, MultipartUpload, ObjectStore, ObjectStoreExt, RetryConfig};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use super::set::DESCRIPTION;
use super::{BackupSet, OnProgress, files};
use crate::bucket;

/// The files of a set, with their sizes.
pub(super) type Sizes = BTreeMap<PathBuf, u64>;

/// How many files are sent or fetched at a time. Each needs the memory of a piece.
const CONCURRENT: usize = 8;
/// The size of the pieces in which large files are sent and fetched.
const PIECE: u64 = 8 << 20;
/// The number of pieces of the largest files. S3 accepts 10,000.
const MAX_PIECES: u64 = 9_000;
/// How often and for how long a request is repeated.
const RETRIES: usize = 8;
const RETRY_FOR: Duration = Duration::from_secs(120);

/// A prefix of a bucket, for one set.
#[derive(Clone)]
pub struct BackupBucket {
    objects: Arc<dyn ObjectStore>,
    name: String,
    /// The prefix.
    root: Name,
    url: String,
}

impl Debug for BackupBucket {
    /// Shows no credentials.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

impl BackupBucket {
    /// Opens `s3://bucket/prefix`. `options` are named like the variables of the environment: `AWS_ACCESS_KEY_ID`, …
    pub fn open(url: &str, options: &[(String, String)]) -> anyhow::Result<Self> {
        let retry = RetryConfig {
            max_retries: RETRIES,
            retry_timeout: RETRY_FOR,
            ..RetryConfig::default()
        };
        let opened = bucket::open(url, options, retry);
        let opened = opened.context("the place of the backup")?;
        anyhow::ensure!(
            opened.root != Name::default(),
            "the place of the backup must have a prefix in the bucket, such as s3://{}/2026-11-28",
            opened.name
        );
        Ok(Self {
            url: format!("s3://{}/{}", opened.name, opened.root),
            objects: opened.objects,
            name: opened.name,
            root: opened.root,
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Fails if there are objects below the prefix.
    pub(super) async fn check_empty(&self) -> anyhow::Result<()> {
        let mut objects = self.objects.list(Some(&self.root));
        let first = objects.try_next().await.map_err(|error| self.why(error))?;
        anyhow::ensure!(
            first.is_none(),
            "{} is not empty: choose a prefix that is not used yet",
            self.url
        );
        Ok(())
    }

    /// Uploads a set, its description last. `stop` ends the upload early.
    pub(super) async fn upload(
        &self,
        folder: &Path,
        stop: &CancellationToken,
        report: OnProgress<'_>,
    ) -> anyhow::Result<()> {
        let mut sizes = files::sizes_below(folder)?;
        let description = sizes.remove(Path::new(DESCRIPTION));
        let all: u64 = sizes.values().sum();
        let sent = AtomicU64::new(0);
        let count = |bytes| {
            let before = sent.fetch_add(bytes, Ordering::Relaxed);
            report("upload", before + bytes, all);
        };
        let uploads = sizes
            .iter()
            .map(|(path, bytes)| self.send(folder, (path.as_path(), *bytes), stop, &count));
        run(uploads, stop).await?;
        let stored = self.list().await?;
        for (path, bytes) in &sizes {
            anyhow::ensure!(
                stored.get(path) == Some(bytes),
                "{} lacks {}, or the file has another size there: repeat the backup",
                self.url,
                path.display()
            );
        }
        let description = (Path::new(DESCRIPTION), description.unwrap_or_default());
        self.send(folder, description, stop, &|_: u64| {}).await
    }

    async fn send(
        &self,
        folder: &Path,
        (path, bytes): (&Path, u64),
        stop: &CancellationToken,
        count: &impl Fn(u64),
    ) -> anyhow::Result<()> {
        check_running(stop)?;
        let failed = || format!("cannot upload {} to {}", path.display(), self.url);
        let name = self.object(path)?;
        let mut file = File::open(folder.join(path)).await.with_context(failed)?;
        if bytes <= PIECE {
            let content = next_piece(&mut file, PIECE).await.with_context(failed)?;
            let sent = self.objects.put(&name, content.into()).await;
            sent.map_err(|error| self.why(error)).with_context(failed)?;
            count(bytes);
            return Ok(());
        }
        let upload = self.objects.put_multipart(&name).await;
        let mut upload = upload
            .map_err(|error| self.why(error))
            .with_context(failed)?;
        let piece = PIECE.max(bytes.div_ceil(MAX_PIECES));
        let sent = self.send_pieces(&mut file, piece, &mut *upload, stop, count);
        let sent = sent.await.with_context(failed);
        if sent.is_err() {
            // Otherwise, the bucket keeps the pieces.
            let _aborted = upload.abort().await.is_ok();
        }
        sent
    }

    async fn send_pieces(
        &self,
        file: &mut File,
        piece: u64,
        upload: &mut dyn MultipartUpload,
        stop: &CancellationToken,
        count: &impl Fn(u64),
    ) -> anyhow::Result<()> {
        loop {
            check_running(stop)?;
            let content = next_piece(file, piece).await?;
            let bytes = content.len() as u64;
            if bytes == 0 {
                break;
            }
            let sent = upload.put_part(content.into()).await;
            sent.map_err(|error| self.why(error))?;
            count(bytes);
        }
        let completed = upload.complete().await;
        completed.map(|_| ()).map_err(|error| self.why(error))
    }

    /// Reads the description of the set, and checks that the bucket has its files.
    pub(super) async fn read(&self) -> anyhow::Result<(BackupSet, Sizes)> {
        let name = self.object(Path::new(DESCRIPTION))?;
        let description = match self.objects.get(&name).await {
            Err(error @ Error::NotFound { .. }) if !is_missing_bucket(&error) => {
                return Err(BackupSet::incomplete(&self.url));
            }
            found => found.map_err(|error| self.why(error))?,
        };
        let description = description.bytes().await;
        let description = description.map_err(|error| self.why(error))?;
        let set = BackupSet::parse(&self.url, &description)?;
        let sizes = self.list().await?;
        set.check_files(&self.url, |path| sizes.get(path).copied())?;
        Ok((set, sizes))
    }

    /// Downloads files to a folder.
    pub(super) async fn download(
        &self,
        sizes: &Sizes,
        folder: &Path,
        report: OnProgress<'_>,
    ) -> anyhow::Result<()> {
        let all: u64 = sizes.values().sum();
        let fetched = AtomicU64::new(0);
        let count = |bytes| {
            let before = fetched.fetch_add(bytes, Ordering::Relaxed);
            report("download", before + bytes, all);
        };
        let stop = CancellationToken::new();
        let downloads = sizes
            .iter()
            .map(|(path, bytes)| self.fetch((path.as_path(), *bytes), folder, &stop, &count));
        run(downloads, &stop).await
    }

    /// Fetches a file in pieces, so that no request takes long.
    async fn fetch(
        &self,
        (path, bytes): (&Path, u64),
        folder: &Path,
        stop: &CancellationToken,
        count: &impl Fn(u64),
    ) -> anyhow::Result<()> {
        let failed = || format!("cannot download {} from {}", path.display(), self.url);
        let name = self.object(path)?;
        let to = folder.join(path);
        files::make_folder(to.parent().unwrap_or(folder))?;
        let mut file = File::create(&to).await.with_context(failed)?;
        let mut begin = 0;
        while begin < bytes {
            check_running(stop)?;
            let end = bytes.min(begin + PIECE);
            let piece = self.objects.get_range(&name, begin..end).await;
            let piece = piece
                .map_err(|error| self.why(error))
                .with_context(failed)?;
            anyhow::ensure!(
                piece.len() as u64 == end - begin,
                "{}: the file has changed meanwhile",
                failed()
            );
            file.write_all(&piece).await.with_context(failed)?;
            count(end - begin);
            begin = end;
        }
        file.flush().await.with_context(failed)
    }

    /// Returns all files below the prefix.
    async fn list(&self) -> anyhow::Result<Sizes> {
        let mut sizes = Sizes::new();
        let mut objects = self.objects.list(Some(&self.root));
        while let Some(object) = objects.try_next().await.map_err(|error| self.why(error))? {
            let parts = object.location.prefix_match(&self.root);
            let parts = parts.into_iter().flatten();
            let path: PathBuf = parts.map(|part| part.as_ref().to_owned()).collect();
            // Some programs store an empty object for a folder.
            if !path.as_os_str().is_empty() {
                sizes.insert(path, object.size);
            }
        }
        Ok(sizes)
    }

    /// Deletes files of an incomplete set.
    pub(super) async fn delete(&self, paths: &[PathBuf]) -> anyhow::Result<()> {
        let description = self.object(Path::new(DESCRIPTION))?;
        // First, so that the rest is never taken for a backup.
        match self.objects.delete(&description).await {
            Ok(()) | Err(Error::NotFound { .. }) => {}
            Err(error) => return Err(self.why(error)),
        }
        let names = paths.iter().map(|path| self.object(path));
        let names: Vec<Name> = names.collect::<anyhow::Result<_>>()?;
        let names = stream::iter(names.into_iter().map(Ok)).boxed();
        let mut deleted = self.objects.delete_stream(names);
        loop {
            match deleted.try_next().await {
                Ok(None) => return Ok(()),
                Ok(Some(_)) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(self.why(error)),
            }
        }
    }

    /// Deletes the files that a killed backup has uploaded to `url`, unless its set is complete.
    pub(super) async fn delete_left(&self, url: &str, paths: &[PathBuf]) -> anyhow::Result<()> {
        let root = url.strip_prefix(&format!("s3://{}/", self.name));
        let root = root.context("it is in another bucket")?;
        let left = Self {
            root: Name::parse(root)?,
            url: url.to_owned(),
            ..self.clone()
        };
        let description = left.object(Path::new(DESCRIPTION))?;
        match self.objects.head(&description).await {
            Ok(_) => Ok(()),
            Err(Error::NotFound { .. }) => left.delete(paths).await,
            Err(error) => Err(self.why(error)),
        }
    }

    /// Returns the name of the object with a file.
    fn object(&self, path: &Path) -> anyhow::Result<Name> {
        let invalid = || format!("{} cannot be the name of an object", path.display());
        let path = path.to_str().with_context(invalid)?;
        Name::parse(format!("{}/{path}", self.root)).with_context(invalid)
    }

    /// Says why a request failed, and what to do.
    fn why(&self, error: Error) -> anyhow::Error {
        let missing = is_missing_bucket(&error);
        let error = anyhow::Error::from(error);
        let text = format!("{error:#}");
        let is_denied = ["status code: 401", "status code: 403"];
        let bucket = &self.name;
        let what = if missing {
            format!("there is no bucket `{bucket}`: check its name, AWS_ENDPOINT and AWS_REGION")
        } else if is_denied.iter().any(|status| text.contains(status)) {
            format!(
                "the bucket `{bucket}` rejects the credentials: check AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and the rights of the key"
            )
        } else if text.contains("169.254.") {
            "there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".to_owned()
        } else if text.contains("HTTP error") {
            format!(
                "the bucket `{bucket}` does not answer: check the network and AWS_ENDPOINT, and AWS_ALLOW_HTTP if the endpoint has no TLS"
            )
        } else {
            format!("the bucket `{bucket}` cannot be used")
        };
        anyhow::anyhow!("{what} ({})", error.root_cause())
    }
}

fn is_missing_bucket(error: &Error) -> bool {
    error.to_string().contains("NoSuchBucket")
}

fn check_running(stop: &CancellationToken) -> anyhow::Result<()> {
    anyhow::ensure!(!stop.is_cancelled(), "stopped");
    Ok(())
}

/// Reads the next bytes of a file, at most a piece.
async fn next_piece(file: &mut File, piece: u64) -> std::io::Result<Vec<u8>> {
    let mut content = Vec::new();
    file.take(piece).read_to_end(&mut content).await?;
    Ok(content)
}

/// Runs transfers, some at a time. The first failure stops the others. Waits for them, and returns that failure.
async fn run(
    transfers: impl Iterator<Item = impl Future<Output = anyhow::Result<()>>>,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let mut transfers = stream::iter(transfers).buffer_unordered(CONCURRENT);
    let mut all = Ok(());
    while let Some(transfer) = transfers.next().await {
        if transfer.is_err() {
            stop.cancel();
        }
        all = all.and(transfer);
    }
    all
}
