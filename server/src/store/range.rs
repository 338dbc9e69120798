//! How far the log is drained, kept in `drain.json` beside it and made durable before anything is sent.
//!
//! A range of the log is cut once and written down before its first INSERT. After a crash the same range goes out with the
//! same rows and the same deduplication tokens, so what ClickHouse already has is not stored again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::fold::{self, Fold};

/// The state of the drain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Drain {
    /// Names this log in deduplication tokens: two servers may share one ClickHouse.
    pub(super) log_id: Uuid,
    /// Every record up to this one is in ClickHouse (or in the dead-letter folder). 0: none.
    pub(super) done: u64,
    /// What is on its way.
    pub(super) range: Option<Range>,
    /// Rows that are in ClickHouse and not in the roll-ups yet.
    #[serde(default)]
    pub(super) fold: Option<Fold>,
    /// The number of the last fold.
    #[serde(default)]
    pub(super) last_fold: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Range {
    pub(super) first: u64,
    pub(super) last: u64,
    /// Records whose batch was stored before: only counted.
    pub(super) duplicates: Vec<u64>,
    /// Tables, with their columns, whose block was refused for its content: their rows go record by record.
    pub(super) one_by_one: Vec<String>,
    /// The fold that its rows are rolled up with; none: within their INSERT.
    #[serde(default)]
    pub(super) fold: Option<u64>,
}

impl Drain {
    /// Reads the state; a fresh log gets a fresh name.
    pub(super) fn load(path: &Path) -> io::Result<Self> {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                io::Error::new(
                    io::ErrorKind::InvalidData,
                    format!("{} does not read: {error}", path.display()),
                )
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let drain = Self {
                    log_id: Uuid::new_v4(),
                    done: 0,
                    range: None,
                    fold: None,
                    last_fold: 0,
                };
                drain.save(path)?;
                Ok(drain)
            }
            Err(error) => Err(error),
        }
    }

    /// The fold that a range of so many rows is rolled up with, if it is worth it: what is open, or a new one.
    pub(super) fn join_fold(&mut self, rows: usize, received_at: i64) -> Option<u64> {
        let fold = match self.fold {
            Some(fold) if fold.closed => return None,
            _ if !fold::worth_folding(rows) => return None,
            Some(fold) => fold,
            None => Fold::next(self.log_id, self.last_fold, received_at),
        };
        let rows = fold.rows + rows as u64;
        self.fold = Some(Fold { rows, ..fold });
        self.last_fold = fold.number;
        Some(fold.number)
    }

    pub(super) fn save(&self, path: &Path) -> io::Result<()> {
        replace_durably(path, &serde_json::to_vec(self).map_err(io::Error::other)?)
    }
}

/// Writes a file so that after a crash it holds either the old bytes or the new ones.
pub(super) fn replace_durably(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut fresh = PathBuf::from(path);
    fresh.set_extension("new");
    // A file that a crash left behind may have any mode.
    match fs::remove_file(&fresh) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = private_file().open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&fresh, path)?;
    sync_folder(path)
}

/// A new file that only its owner can open.
fn private_file() -> fs::OpenOptions {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Makes the creation, renaming or deletion of `path` itself durable.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_ranges_share_a_fold_until_it_is_closed() {
        let folder = tempfile::tempdir().unwrap();
        let mut drain = Drain::load(&folder.path().join("drain.json")).unwrap();
        assert_eq!(drain.join_fold(10, 1_000), None, "small ones have none");
        let first = drain.join_fold(100_000, 1_000).unwrap();
        assert_eq!(drain.join_fold(200_000, 2_000), Some(first));
        assert_eq!(drain.fold.unwrap().rows, 300_000);
        drain.fold.as_mut().unwrap().closed = true;
        assert_eq!(
            drain.join_fold(100_000, 3_000),
            None,
            "it waits to be rolled up"
        );
        drain.fold = None;
        assert!(drain.join_fold(100_000, 3_000).unwrap() > first);
    }

    #[test]
    fn the_state_survives_and_a_damaged_one_is_an_error_not_a_fresh_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("drain.json");
        let mut drain = Drain::load(&path).unwrap();
        drain.done = 7;
        drain.range = Some(Range {
            first: 8,
            last: 9,
            duplicates: vec![9],
            one_by_one: vec!["spans".to_owned()],
            fold: Some(3),
        });
        drain.save(&path).unwrap();
        assert_eq!(Drain::load(&path).unwrap(), drain);
        fs::write(&path, b"{").unwrap();
        assert_eq!(
            Drain::load(&path).unwrap_err().kind(),
            io::ErrorKind::InvalidData
        );
    }
}
