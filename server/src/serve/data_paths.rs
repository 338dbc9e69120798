//! Paths of the data folder: whether they exist, and what to say if this user may not read them.

use std::io;
use std::path::{Path, PathBuf};

/// Whether a file or folder exists. Fails if this user may not know.
pub(crate) fn exists(path: &Path) -> anyhow::Result<bool> {
    path.try_exists().map_err(|error| cannot_read(path, &error))
}

/// The error of a command that cannot read a file or folder of the data folder, which only the user of the server can open.
pub(crate) fn cannot_read(path: &Path, error: &io::Error) -> anyhow::Error {
    let advice = match error.kind() {
        io::ErrorKind::PermissionDenied => ": run the command as the user of the server",
        _ => "",
    };
    anyhow::anyhow!("cannot read {} ({error}){advice}", absolute(path).display())
}

/// Returns the path for messages, which may be read in another folder.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
