//! When a data folder was backed up last. The command writes it, and the server shows it as a metric.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use unjank_protocol::Timestamp;

use super::DurableFiles;

const FILE: &str = "last-backup";

/// The last backup of a data folder.
pub struct LastBackup(PathBuf);

impl LastBackup {
    #[must_use]
    pub fn of(data_dir: &Path) -> Self {
        Self(data_dir.join(FILE))
    }

    /// Returns the time up to which the last backup is complete, in seconds since the epoch. Returns 0 if there is none.
    #[must_use]
    pub fn complete_until_s(&self) -> i64 {
        let text = std::fs::read_to_string(&self.0);
        let time = text.ok().and_then(|text| Timestamp::parse(text.trim()));
        time.map_or(0, |time| time.as_micros() / 1_000_000)
    }

    pub fn save(&self, complete_until: Timestamp) -> std::io::Result<()> {
        let text = format!("{complete_until}\n");
        DurableFiles::default().replace(&self.0, text.as_bytes())?;
        // The command may run as another user than the server.
        std::fs::set_permissions(&self.0, std::fs::Permissions::from_mode(0o644))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_read_as_it_was_saved() {
        let folder = tempfile::tempdir().unwrap();
        let last = LastBackup::of(folder.path());
        assert_eq!(last.complete_until_s(), 0);
        for seconds in [1_795_176_000, 1_795_262_400] {
            last.save(Timestamp::from_micros(seconds * 1_000_000 + 7))
                .unwrap();
            assert_eq!(last.complete_until_s(), seconds);
        }
    }
}
