//! A disk of the server's own: an ext4 image on a loop device.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use rustix::fs::statvfs;

use crate::faults::site::run;
use crate::faults::verdict::cannot_check;

/// A mounted image. Unmounted when dropped.
pub(super) struct Image {
    file: PathBuf,
    mount_point: PathBuf,
}

/// The file system commits on its own only every five minutes, so data that was not synced is lost in a power cut.
const OPTIONS: &str = "loop,commit=300";

impl Image {
    /// Creates an empty disk in `folder`.
    pub(super) async fn new(folder: &Path, bytes: u64) -> Result<Self> {
        let image = Self {
            file: folder.join("disk.img"),
            mount_point: folder.join("disk"),
        };
        image
            .make(bytes)
            .await
            .map_err(|error| cannot_check(format!("cannot mount a disk image: {error:#}")))?;
        Ok(image)
    }

    async fn make(&self, bytes: u64) -> Result<()> {
        ensure!(
            rustix::process::geteuid().is_root(),
            "mounting a disk needs root"
        );
        std::fs::create_dir_all(&self.mount_point)?;
        let file = std::fs::File::create(&self.file).context("creating a disk image")?;
        file.set_len(bytes)?;
        let now = "lazy_itable_init=0,lazy_journal_init=0";
        let path = self.file.display().to_string();
        run("mkfs.ext4", &["-q", "-F", "-m", "0", "-E", now, &path]).await?;
        self.mount().await
    }

    async fn mount(&self) -> Result<()> {
        let (file, mount_point) = (
            self.file.display().to_string(),
            self.mount_point.display().to_string(),
        );
        run("mount", &["-o", OPTIONS, &file, &mount_point]).await
    }

    pub(super) fn mount_point(&self) -> &Path {
        &self.mount_point
    }

    pub(super) fn free_bytes(&self) -> Result<u64> {
        let disk = statvfs(&self.mount_point).context("reading the free space")?;
        Ok(disk.f_bavail * disk.f_frsize)
    }

    /// Writes all cached data to the disk.
    pub(super) async fn sync(&self) -> Result<()> {
        run("sync", &["-f", &self.mount_point.display().to_string()]).await
    }

    /// Continues with the data that is on the disk at this moment; data that was only in memory is lost. No process may use the
    /// disk.
    pub(super) async fn lose_power(&mut self) -> Result<()> {
        let copy = self.file.with_extension("copy");
        let (from, to) = (self.file.display().to_string(), copy.display().to_string());
        let mut tries = 0..5;
        // Copy again if the system wrote during the copy, as the copy would not be a consistent snapshot.
        let mut writes = None;
        while writes != Some(self.writes()?) {
            ensure!(tries.next().is_some(), "the disk does not become idle");
            writes = Some(self.writes()?);
            run("cp", &["--sparse=always", &from, &to]).await?;
        }
        run("umount", &[&self.mount_point.display().to_string()]).await?;
        std::fs::rename(&copy, &self.file).context("replacing the disk image")?;
        self.mount().await
    }

    /// Returns the number of writes to the loop device.
    fn writes(&self) -> Result<u64> {
        let mounts = std::fs::read_to_string("/proc/self/mounts").context("reading the mounts")?;
        let mount_point = self.mount_point.display().to_string();
        let device = mounts
            .lines()
            .find_map(|line| {
                let (device, rest) = line.split_once(' ')?;
                rest.starts_with(&format!("{mount_point} "))
                    .then_some(device)
            })
            .and_then(|device| device.strip_prefix("/dev/"))
            .context("the disk is not mounted")?;
        let stat = std::fs::read_to_string(format!("/sys/block/{device}/stat"))
            .context("reading the disk's write count")?;
        let writes = stat.split_whitespace().nth(4).map(str::parse);
        writes
            .context("the disk has no write count")?
            .context("the disk's write count is not a number")
    }
}

impl Drop for Image {
    fn drop(&mut self) {
        // Unmount lazily, as a process that was just killed may still hold a file open.
        Command::new("umount")
            .arg("-l")
            .arg(&self.mount_point)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .ok();
    }
}
