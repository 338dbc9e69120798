//! `server.json` in the data folder: where the running server listens, and which process it is.

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use serde::{Deserialize, Serialize};

use super::data_paths::{absolute, cannot_read};
use crate::store::DurableFiles;

const NAME: &str = "server.json";

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ServerFile {
    pub listen: SocketAddr,
    pub admin_listen: SocketAddr,
    pub pid: u32,
    /// The PID namespace in which `pid` is a number. `None` on systems without namespaces, and in files of older versions.
    #[serde(default)]
    pid_namespace: Option<String>,
}

/// What another process can know about the process of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerProcess {
    MayRun,
    /// The file of a server that was killed stays.
    Ended,
    /// The process has a number of another PID namespace, such as that of another container. It may run or not.
    Elsewhere,
}

impl ServerFile {
    pub(super) fn of_this_process((listen, admin_listen): (SocketAddr, SocketAddr)) -> Self {
        Self {
            listen,
            admin_listen,
            pid: std::process::id(),
            pid_namespace: own_namespace(),
        }
    }

    pub fn read(data_dir: &Path) -> anyhow::Result<Self> {
        let path = data_dir.join(NAME);
        let bytes = std::fs::read(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => anyhow::anyhow!(
                "cannot read {} ({error}): no server runs on this data folder, so set the server's address",
                absolute(&path).display()
            ),
            _ => cannot_read(&path, &error),
        })?;
        Ok(serde_json::from_slice(&bytes)?)
    }

    pub(super) fn write(&self, data_dir: &Path) -> anyhow::Result<()> {
        let bytes = serde_json::to_vec(self)?;
        Ok(DurableFiles::default().replace(&data_dir.join(NAME), &bytes)?)
    }

    pub(super) fn remove(data_dir: &Path) {
        if let Err(error) = std::fs::remove_file(data_dir.join(NAME)) {
            tracing::debug!(%error, "cannot delete {NAME}");
        }
    }

    #[must_use]
    pub fn process(&self) -> ServerProcess {
        if self.pid_namespace.is_some() && self.pid_namespace != own_namespace() {
            return ServerProcess::Elsewhere;
        }
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        match pid.map(test_kill_process) {
            Some(Err(Errno::SRCH)) => ServerProcess::Ended,
            _ => ServerProcess::MayRun,
        }
    }
}

/// Returns the PID namespace of this process, such as `pid:[4026531836]`.
fn own_namespace() -> Option<String> {
    let link = std::fs::read_link("/proc/self/ns/pid").ok()?;
    Some(link.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn another_file_takes_the_place_of_the_old_one() {
        let folder = tempfile::tempdir().unwrap();
        let write = |port: u16| {
            let address = SocketAddr::from(([127, 0, 0, 1], port));
            let file = ServerFile::of_this_process((address, address));
            file.write(folder.path()).unwrap();
            File::open(folder.path().join(NAME)).unwrap()
        };
        let number = |file: &File| file.metadata().unwrap().ino();
        let old = write(1);
        // A server was killed while it wrote.
        std::fs::write(folder.path().join("server.new"), "{").unwrap();
        assert_ne!(number(&old), number(&write(2)));
        let read = ServerFile::read(folder.path()).unwrap();
        assert_eq!(read.listen.port(), 2);
    }
}
