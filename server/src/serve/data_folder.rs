//! The data folder: the files without which a server starts from nothing, and what to say if one of them is missing or damaged.

use std::fs::Metadata;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;

use anyhow::Context;
use rustix::process::geteuid;
use unjank_database::Control;
use unjank_foundation::task::Tasks;
use unjank_spool::OpenError;

use super::data_paths::{absolute, exists};
use super::{ServerFile, ServerProcess, dead_letters};
use crate::access::InstanceSecret;
use crate::config::Shared;
use crate::store::{DeadLetters, free_bytes};

/// The ledger exists once a server has stored rows.
const LEDGER: &str = "drain.json";
const CONTROL: &str = "control.sqlite";
const SECRET: &str = "secret";
/// A disk with less free space is named as full. SQLite reports a full disk as an I/O error.
const FULL_BYTES: u64 = 1 << 20;

/// Opens the control database of the settings. Makes it if it is missing: only servers may call this.
pub(super) async fn control_database(shared: &Shared, tasks: &Tasks) -> anyhow::Result<Control> {
    if let Some(url) = &shared.database_url {
        return Control::open(url.reveal(), tasks)
            .await
            .context("cannot open the control database");
    }
    make_data_dir(shared)?;
    let path = shared.data_dir.join(CONTROL);
    let opened = Control::open(&control_url(shared), tasks).await;
    opened.with_context(|| {
        let full = free_bytes(&shared.data_dir).and_then(full_disk);
        let full = full.unwrap_or_default();
        format!("cannot open the control database {}{full}", path.display())
    })
}

/// Opens the control database for a command. Fails if it is missing, because no server would use a new one.
pub(crate) async fn existing_control_database(
    shared: &Shared,
    tasks: &Tasks,
) -> anyhow::Result<Control> {
    if let Some(file) = control_url(shared).strip_prefix("sqlite:") {
        let file = Path::new(file.strip_prefix("//").unwrap_or(file));
        anyhow::ensure!(
            exists(file)?,
            "there is no control database {}: name the settings of the server with --config, or its data folder with --data-dir. Only \
             `unjank serve` makes a new one",
            absolute(file).display()
        );
    }
    control_database(shared, tasks).await
}

/// Opens the dead letters for a command. Fails unless a server has used the data folder, because no server would use a new one.
pub(crate) fn existing_dead_letters(shared: &Shared) -> anyhow::Result<DeadLetters> {
    let folder = &shared.data_dir;
    anyhow::ensure!(
        exists(&folder.join("log"))? || exists(&folder.join("dead-letter"))?,
        "{} is not the data folder of a server, because it has neither `log` nor `dead-letter`: name the settings of the server with \
         --config, or its data folder with --data-dir",
        absolute(folder).display()
    );
    dead_letters(shared, u64::MAX)
}

/// Returns the URL of the control database of the settings.
pub(crate) fn control_url(shared: &Shared) -> String {
    match &shared.database_url {
        Some(url) => url.reveal().to_owned(),
        None => format!("sqlite:{}", shared.data_dir.join(CONTROL).display()),
    }
}

/// Says that a disk is full, if it has hardly any free space.
fn full_disk(free: u64) -> Option<String> {
    (free < FULL_BYTES)
        .then(|| format!(", because its disk is full ({free} bytes are free): make room"))
}

/// Returns the secret of the installation: the setting, or a file in the data folder.
pub(super) fn instance_secret(shared: &Shared) -> anyhow::Result<InstanceSecret> {
    match &shared.secret {
        Some(secret) => Ok(InstanceSecret::from_text(secret.reveal())?),
        None => {
            make_data_dir(shared)?;
            Ok(InstanceSecret::from_file(&shared.data_dir.join(SECRET))?)
        }
    }
}

fn make_data_dir(shared: &Shared) -> anyhow::Result<()> {
    let folder = &shared.data_dir;
    std::fs::DirBuilder::new()
        .mode(0o700)
        .recursive(true)
        .create(folder)
        .with_context(|| format!("cannot create the data folder {}", folder.display()))
}

/// Names the server that uses the data folder, if that is why the log cannot be opened.
pub(super) fn in_use(error: anyhow::Error, data_dir: &Path) -> anyhow::Error {
    if !matches!(error.downcast_ref(), Some(OpenError::InUse { .. })) {
        return error;
    }
    let Ok(server) = ServerFile::read(data_dir) else {
        return error;
    };
    let place = match server.process() {
        ServerProcess::MayRun => "",
        ServerProcess::Elsewhere => " in another PID namespace, such as a container",
        ServerProcess::Ended => return error,
    };
    anyhow::anyhow!(
        "the data folder {} is in use by the server of process {}{place}: stop it, or choose another folder with --data-dir",
        data_dir.display(),
        server.pid
    )
}

/// Logs which files of a used data folder are missing, before the server makes new ones, and whether others can read the folder.
pub(super) fn report_losses(shared: &Shared) {
    let folder = &shared.data_dir;
    let has = |name: &str| folder.join(name).exists();
    let has_own_control = shared.database_url.is_none();
    if has_own_control && has(LEDGER) && !has(CONTROL) {
        tracing::error!(
            file = %folder.join(CONTROL).display(),
            "the control database is missing, although this data folder was in use: the server starts without its users, keys, projects and \
             rules. Is the right disk mounted? Stop the server and restore a backup"
        );
    }
    // Only a server makes the ledger. Commands of older versions could make the control database before the first start.
    if shared.secret.is_none() && has(LEDGER) && !has(SECRET) {
        tracing::warn!(
            file = %folder.join(SECRET).display(),
            "the secret of the installation is missing: the server makes a new one. Everybody has to log in again, and stored secrets cannot \
             be read. Stop the server and restore the file from a backup"
        );
    }
    if is_open_to_others(folder) {
        tracing::warn!(
            folder = %folder.display(),
            "other users of this machine can look into the data folder: run chmod 700 on it"
        );
    }
}

/// A folder of another owner is left out: only the owner can change its permissions, and the server needs them.
fn is_open_to_others(folder: &Path) -> bool {
    let is_own = |found: &Metadata| found.uid() == geteuid().as_raw();
    let found = folder.metadata();
    found.is_ok_and(|found| is_own(&found) && found.mode() & 0o077 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_disk_with_hardly_any_free_space_is_named_as_full() {
        let full = full_disk(0).unwrap();
        assert!(full.contains("(0 bytes are free)"), "{full}");
        assert_eq!(full_disk(FULL_BYTES), None);
    }
}
