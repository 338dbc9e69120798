//! Small files. After a crash at any moment, a file holds either all its old bytes or all its new ones.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::task::{JoinError, spawn_blocking};
use unjank_spool::{FileSystem, Mode, RealFileSystem};

/// The file system of the data folder.
#[derive(Clone, Debug)]
pub(crate) struct DurableFiles(pub(super) Arc<dyn FileSystem>);

impl Default for DurableFiles {
    fn default() -> Self {
        Self(Arc::new(RealFileSystem))
    }
}

impl DurableFiles {
    /// Runs blocking file work without blocking other tasks.
    pub(super) async fn unblocked<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, JoinError> {
        if self.0.may_block() {
            spawn_blocking(work).await
        } else {
            Ok(work())
        }
    }

    pub(super) fn random(&self) -> u64 {
        self.0.random()
    }

    pub(super) fn random_bytes(&self) -> [u8; 16] {
        let halves = [self.random(), self.random()];
        (u128::from(halves[0]) << 64 | u128::from(halves[1])).to_le_bytes()
    }

    pub(super) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let most = usize::try_from(self.0.len(path)?).unwrap_or(usize::MAX);
        let mut bytes = Vec::new();
        let file = self.0.open(path, Mode::Read)?;
        file.read_at(0, most, &mut bytes)?;
        Ok(bytes)
    }

    /// Writes a file so that after a crash it holds either the old bytes or the new ones.
    pub(crate) fn replace(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut fresh = PathBuf::from(path);
        fresh.set_extension("new");
        // A file that a crash left behind may have any mode.
        match self.0.remove(&fresh) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        self.write_new(&fresh, bytes)?;
        self.0.rename(&fresh, path)?;
        self.sync_folder_of(path)
    }

    fn write_new(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut file = self.0.open(path, Mode::CreatePrivate)?;
        let mut written = 0;
        while written < bytes.len() {
            match file.write_at(written as u64, &[IoSlice::new(&bytes[written..])]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(more) => written += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        file.sync()
    }

    /// Deletes a file durably. Returns whether it existed.
    pub(super) fn remove(&self, path: &Path) -> io::Result<bool> {
        match self.0.remove(path) {
            Ok(()) => self.sync_folder_of(path).map(|()| true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn sync_folder_of(&self, path: &Path) -> io::Result<()> {
        path.parent()
            .map_or(Ok(()), |folder| self.0.sync_dir(folder))
    }
}
