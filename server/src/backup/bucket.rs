//! A set in a bucket: uploads it from a folder, and downloads it to one. The objects have the names of the files, below a prefix.

mod request_errors;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt::{self, Debug, Formatter};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path as Name;
use object_store::{Error, MultipartUpload, ObjectStore, ObjectStoreExt, PutResult, RetryConfig};
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::claim::{self, Claim};
use super::set::{DESCRIPTION, Sizes};
use super::{BackupSet, OnProgress, files};
use crate::bucket;

/// How many files are sent or fetched at a time. Each needs the memory of a piece.
const CONCURRENT: usize = 8;
/// The size of the pieces in which large files are sent and fetched.
const PIECE: u64 = 8 << 20;
/// The number of pieces of the largest files. S3 accepts 10,000.
const MAX_PIECES: u64 = 9_000;
/// The maximum time of one request, unless `AWS_TIMEOUT` names another. In this time, a network with 1 Mbit/s can send a piece of each file.
const ANSWER_WITHIN: &str = "10 minutes";
/// How often and for how long a request is repeated: also once after the maximum time. S3 accepts a signature for 15 minutes.
const RETRIES: usize = 8;
const RETRY_FOR: Duration = Duration::from_secs(12 * 60);
/// The maximum time until the bucket answers first, with all retries. An endpoint that is silent would hold up a command for as long as a slow upload.
const FIRST_ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// After this many objects, a prefix counts as used: a claim is not searched for among more.
const LISTED: usize = 1_000;

/// A prefix of a bucket, for one set.
#[derive(Clone)]
pub struct BackupBucket {
    objects: Arc<dyn ObjectStore>,
    name: String,
    /// The service that has the bucket. `None`: Amazon's.
    endpoint: Option<String>,
    /// The prefix.
    root: Name,
    url: String,
    /// Requests to store an object that the bucket has neither fulfilled nor refused. It may store such an object at any time.
    unanswered: Arc<AtomicUsize>,
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
        let opened = bucket::open(url, options, retry, ANSWER_WITHIN);
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
            endpoint: opened.endpoint,
            root: opened.root,
            unanswered: Arc::default(),
        })
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Fails unless the bucket is there and answers soon. It lists objects, because the answer to a HEAD request does not say whether the bucket or
    /// only the object is missing.
    pub(super) async fn check_answers(&self) -> anyhow::Result<()> {
        let mut objects = self.objects.list(Some(&self.root));
        match timeout(FIRST_ANSWER_WITHIN, objects.try_next()).await {
            Ok(answer) => answer.map(|_| ()).map_err(|error| self.why(error)),
            Err(_) => anyhow::bail!(
                "the bucket `{}` does not answer in time: check the network and AWS_ENDPOINT",
                self.name
            ),
        }
    }

    /// Fails if there are objects below the prefix.
    pub(super) async fn check_empty(&self) -> anyhow::Result<()> {
        self.check_empty_except(None).await
    }

    /// Returns a claim to the prefix.
    pub(super) fn new_claim(&self) -> Claim {
        Claim::to(&self.url, self.endpoint.as_deref())
    }

    /// Stores a claim. [`Self::check_claim`] says whether the prefix belongs to it.
    pub(super) async fn claim(&self, claim: &Claim) -> anyhow::Result<()> {
        let name = self.object(&claim.path())?;
        let content = claim::CONTENT.as_bytes().to_vec();
        self.store_object(self.objects.put(&name, content.into()))
            .await
    }

    /// Runs a request that stores an object.
    async fn store_object(
        &self,
        request: impl Future<Output = object_store::Result<PutResult>>,
    ) -> anyhow::Result<()> {
        self.unanswered.fetch_add(1, Ordering::Relaxed);
        let answer = request.await;
        let is_refused = matches!(
            answer,
            Err(Error::PermissionDenied { .. }
                | Error::Unauthenticated { .. }
                | Error::NotFound { .. })
        );
        if answer.is_ok() || is_refused {
            self.unanswered.fetch_sub(1, Ordering::Relaxed);
        }
        answer.map(|_| ()).map_err(|error| self.why(error))
    }

    /// Whether the bucket has answered all requests to store an object.
    pub(super) fn is_settled(&self) -> bool {
        self.unanswered.load(Ordering::Relaxed) == 0
    }

    /// Fails if anything but a stored claim is below the prefix. If two backups claim it at the same time, at least one of them fails.
    pub(super) async fn check_claim(&self, claim: &Claim) -> anyhow::Result<()> {
        self.check_empty_except(Some(&claim.path())).await
    }

    async fn check_empty_except(&self, own: Option<&Path>) -> anyhow::Result<()> {
        let url = &self.url;
        let mut others = 0;
        let mut objects = self.objects.list(Some(&self.root));
        while let Some(object) = objects.try_next().await.map_err(|error| self.why(error))? {
            let path = self.path_of(&object.location);
            // Some programs store an empty object for a folder.
            let is_prefix = object.size == 0 && path.as_os_str().is_empty();
            if is_prefix || Some(path.as_path()) == own {
                continue;
            }
            anyhow::ensure!(
                !claim::is_claim(&path),
                "another backup is being uploaded to {url}, or was killed before its end: choose another prefix, or delete this one if no \
                 backup to it runs"
            );
            others += 1;
            if others == LISTED {
                break;
            }
        }
        anyhow::ensure!(
            others == 0,
            "{url} is not empty: choose a prefix that is not used yet"
        );
        Ok(())
    }

    /// Uploads a set to the claimed prefix, its description last. `stop` ends the upload early.
    pub(super) async fn upload(
        &self,
        folder: &Path,
        claim: &Claim,
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
        let stored = self.list_all().await?;
        anyhow::ensure!(
            stored.contains_key(&claim.path()),
            "something has deleted objects in {}: repeat the backup with another prefix",
            self.url
        );
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
            let sent = self
                .store_object(self.objects.put(&name, content.into()))
                .await;
            sent.with_context(failed)?;
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
        self.store_object(upload.complete()).await
    }

    /// Reads the description of the set, and checks that the bucket has its files. `with_tables`: also those below `clickhouse/`.
    pub(super) async fn read(&self, with_tables: bool) -> anyhow::Result<(BackupSet, Sizes)> {
        self.check_answers().await?;
        let name = self.object(Path::new(DESCRIPTION))?;
        let description = match self.objects.get(&name).await {
            Err(Error::NotFound { .. }) => return Err(BackupSet::incomplete(&self.url)),
            found => found.map_err(|error| self.why(error))?,
        };
        let description = description.bytes().await;
        let description = description.map_err(|error| self.why(error))?;
        let set = BackupSet::parse(&self.url, &description)?;
        let mut sizes = self.list_all().await?;
        set.retain_files(&mut sizes, with_tables);
        set.check_files(&self.url, |path| sizes.get(path).copied())?;
        if with_tables {
            set.check_tables(&self.url, &sizes)?;
        }
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
                "{}: the file has changed meanwhile. Repeat the command once no program writes there",
                failed()
            );
            file.write_all(&piece).await.with_context(failed)?;
            count(end - begin);
            begin = end;
        }
        file.flush().await.with_context(failed)
    }

    /// Returns everything below the prefix, also claims.
    async fn list_all(&self) -> anyhow::Result<Sizes> {
        let mut sizes = Sizes::new();
        let mut objects = self.objects.list(Some(&self.root));
        while let Some(object) = objects.try_next().await.map_err(|error| self.why(error))? {
            sizes.insert(self.path_of(&object.location), object.size);
        }
        // Some programs store an empty object for a folder.
        let root = PathBuf::new();
        let folders = sizes.keys().flat_map(|path| path.ancestors().skip(1));
        let folders: BTreeSet<PathBuf> = folders.map(Path::to_owned).chain([root]).collect();
        sizes.retain(|path, bytes| *bytes > 0 || !folders.contains(path));
        Ok(sizes)
    }

    /// Ends an upload: deletes its files unless the set is complete, and then the claim. Without the claim, the prefix belongs to another
    /// backup, and nothing is deleted. While the bucket may still store files, the claim stays, so that no other backup gets them. Returns whether
    /// the files are a complete set.
    pub(super) async fn end(&self, claim: &Claim) -> anyhow::Result<bool> {
        let own = claim.path();
        if !self.has(&own).await? {
            return Ok(false);
        }
        let is_complete = self.is_complete(claim).await?;
        if !is_complete {
            self.delete(&claim.files).await?;
        }
        if is_complete || self.is_settled() {
            self.delete(&[own]).await?;
        }
        Ok(is_complete)
    }

    /// Whether all files of an upload are there. The description alone may have come late, after the others were deleted.
    async fn is_complete(&self, claim: &Claim) -> anyhow::Result<bool> {
        if claim.files.is_empty() || !self.has(Path::new(DESCRIPTION)).await? {
            return Ok(false);
        }
        let stored = self.list_all().await?;
        Ok(claim.files.iter().all(|path| stored.contains_key(path)))
    }

    /// Does the same for the upload of a killed backup, to any prefix of this bucket.
    pub(super) async fn end_left(&self, claim: &Claim) -> anyhow::Result<()> {
        let root = claim.url.strip_prefix(&format!("s3://{}/", self.name));
        let root = root.context("it is in another bucket")?;
        anyhow::ensure!(
            claim.endpoint == self.endpoint,
            "it is in a bucket of another AWS_ENDPOINT"
        );
        let left = Self {
            root: Name::parse(root)?,
            url: claim.url.clone(),
            ..self.clone()
        };
        if left.end(claim).await? {
            tracing::warn!(place = left.url, "this backup is complete and stays there");
        }
        Ok(())
    }

    async fn has(&self, path: &Path) -> anyhow::Result<bool> {
        match self.objects.head(&self.object(path)?).await {
            Ok(_) => Ok(true),
            Err(Error::NotFound { .. }) => Ok(false),
            Err(error) => Err(self.why(error)),
        }
    }

    async fn delete(&self, paths: &[PathBuf]) -> anyhow::Result<()> {
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

    /// Returns the name of the object with a file.
    fn object(&self, path: &Path) -> anyhow::Result<Name> {
        let invalid = || format!("{} cannot be the name of an object", path.display());
        let path = path.to_str().with_context(invalid)?;
        Name::parse(format!("{}/{path}", self.root)).with_context(invalid)
    }

    /// Returns the file of an object.
    fn path_of(&self, name: &Name) -> PathBuf {
        let parts = name.prefix_match(&self.root);
        let parts = parts.into_iter().flatten();
        parts.map(|part| part.as_ref().to_owned()).collect()
    }
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
