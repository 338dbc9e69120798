//! Copies, moves and hashes files.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::task::yield_now;
use walkdir::WalkDir;

use crate::store::free_bytes;

const PIECE: usize = 1 << 20;

/// A file of a set, with its path below the folder of the set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct CopiedFile {
    pub(super) path: PathBuf,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

/// Creates a folder that only its owner can read, and its parents.
pub(super) fn make_folder(folder: &Path) -> anyhow::Result<()> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.with_context(|| format!("cannot create {}", folder.display()))
}

/// Locks a folder until the result is dropped. Returns `None` if another command has locked it. The lock needs no file that a command of
/// another user could leave.
pub(super) fn lock_folder(folder: &Path) -> anyhow::Result<Option<File>> {
    let failed = || format!("cannot lock {}", folder.display());
    let lock = File::open(folder).with_context(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok(Some(lock)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error).with_context(failed),
    }
}

/// Whether a folder is missing or empty.
pub(super) fn is_empty(folder: &Path) -> anyhow::Result<bool> {
    match fs::read_dir(folder) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", folder.display())),
    }
}

/// Deletes a folder, if it exists.
pub(super) fn remove_folder(folder: &Path) -> anyhow::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("cannot delete {}", folder.display()))
        }
        _ => Ok(()),
    }
}

/// Copies a file to `path` in a folder.
pub(super) async fn copy(from: &Path, folder: &Path, path: &Path) -> anyhow::Result<CopiedFile> {
    let to = folder.join(path);
    make_folder(to.parent().unwrap_or(folder))?;
    let failed = || format!("cannot copy {} to {}", from.display(), to.display());
    let target = File::create(&to).with_context(failed)?;
    let (bytes, sha256) = hash(from, target).await.with_context(failed)?;
    Ok(CopiedFile {
        path: path.to_owned(),
        bytes,
        sha256,
    })
}

/// Describes a file that is already in the folder.
pub(super) async fn describe(folder: &Path, path: &Path) -> anyhow::Result<CopiedFile> {
    let file = folder.join(path);
    let hashed = hash(&file, io::sink()).await;
    let (bytes, sha256) = hashed.with_context(|| format!("cannot read {}", file.display()))?;
    Ok(CopiedFile {
        path: path.to_owned(),
        bytes,
        sha256,
    })
}

/// Writes a file to `target`. Returns its size and its SHA-256. Yields after each piece, so that the command can be interrupted.
async fn hash(from: &Path, mut target: impl Write) -> io::Result<(u64, String)> {
    let mut source = File::open(from)?;
    let mut hash = Sha256::new();
    let mut piece = vec![0; PIECE];
    let mut bytes = 0;
    loop {
        let read = source.read(&mut piece)?;
        let Some(part) = piece.get(..read).filter(|part| !part.is_empty()) else {
            return Ok((bytes, hex(&hash.finalize())));
        };
        hash.update(part);
        target.write_all(part)?;
        bytes += read as u64;
        yield_now().await;
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Copies a file back, and checks that it is unchanged.
pub(super) async fn copy_back(file: &CopiedFile, from: &Path, to: &Path) -> anyhow::Result<()> {
    let copied = copy(&from.join(&file.path), to, &file.path).await?;
    anyhow::ensure!(
        copied == *file,
        "{} has changed since the backup was made. If this happens again, restore another backup",
        from.join(&file.path).display()
    );
    Ok(())
}

/// Returns all files below a folder, relative to the folder. Empty if the folder does not exist.
pub(super) fn files_below(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in WalkDir::new(folder).sort_by_file_name() {
        let entry = match entry {
            // The server may delete files at any time.
            Err(error) if is_missing(&error) => continue,
            entry => entry.with_context(|| format!("cannot read {}", folder.display()))?,
        };
        if entry.file_type().is_file() {
            files.push(entry.path().strip_prefix(folder)?.to_owned());
        }
    }
    Ok(files)
}

fn is_missing(error: &walkdir::Error) -> bool {
    let error = error.io_error();
    error.is_some_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Returns the size of all files below a folder.
pub(super) fn size(folder: &Path) -> anyhow::Result<u64> {
    let sizes = files_below(folder)?.into_iter().map(|path| {
        let found = fs::metadata(folder.join(path));
        // The server may delete files at any time.
        found.map_or(0, |found| found.len())
    });
    Ok(sizes.sum())
}

/// Returns the sizes of all files below a folder that does not change.
pub(super) fn sizes_below(folder: &Path) -> anyhow::Result<BTreeMap<PathBuf, u64>> {
    let mut sizes = BTreeMap::new();
    for path in files_below(folder)? {
        let file = folder.join(&path);
        let found = fs::metadata(&file);
        let found = found.with_context(|| format!("cannot read {}", file.display()))?;
        sizes.insert(path, found.len());
    }
    Ok(sizes)
}

/// Fails unless the disk of a folder has this much free space.
pub(super) fn check_room(folder: &Path, bytes: u64) -> anyhow::Result<()> {
    let free = free_bytes(folder).unwrap_or(u64::MAX);
    anyhow::ensure!(
        free >= bytes,
        "the disk of {} has {} MiB free, and {} MiB are needed there: free some space",
        folder.display(),
        free >> 20,
        bytes >> 20
    );
    Ok(())
}

/// Whether two folders are on one file system.
pub(super) fn share_disk(one: &Path, other: &Path) -> bool {
    let device = |folder: &Path| fs::metadata(folder).map(|found| found.dev());
    matches!((device(one), device(other)), (Ok(one), Ok(other)) if one == other)
}

/// Moves a folder. To another file system, it moves file by file.
pub(super) async fn move_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    make_folder(to.parent().unwrap_or(to))?;
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
        moved => {
            return moved
                .with_context(|| format!("cannot move {} to {}", from.display(), to.display()));
        }
    }
    for path in files_below(from)? {
        copy(&from.join(&path), to, &path).await?;
        // Frees the space at once.
        fs::remove_file(from.join(&path))?;
    }
    Ok(fs::remove_dir_all(from)?)
}

/// Links the files of a folder into another one. On another file system, it copies them.
pub(super) async fn link_folder(from: &Path, to: &Path) -> anyhow::Result<()> {
    for path in files_below(from)? {
        let target = to.join(&path);
        make_folder(target.parent().unwrap_or(to))?;
        if fs::hard_link(from.join(&path), &target).is_err() {
            copy(&from.join(&path), to, &path).await?;
        }
    }
    Ok(())
}

/// Syncs the file system of a folder.
pub(super) fn sync_all(folder: &Path) -> anyhow::Result<()> {
    let synced = || -> io::Result<()> { Ok(rustix::fs::syncfs(File::open(folder)?)?) };
    synced().with_context(|| format!("cannot sync {}", folder.display()))
}
