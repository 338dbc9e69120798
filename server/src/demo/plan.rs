//! The parameters of a demo, and the file that marks a data folder as a demo.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::calendar::DAY_US;
use crate::store::DurableFiles;

/// The parameters from which all data of a demo is generated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub seed: u64,
    pub installs: u64,
    pub days: u32,
    /// End of the month, in microseconds since the epoch.
    pub until: i64,
}

impl Plan {
    pub(super) fn begin(&self) -> i64 {
        self.until - i64::from(self.days) * DAY_US
    }

    pub(super) fn end_of(&self, day: u32) -> i64 {
        self.begin() + i64::from(day + 1) * DAY_US
    }
}

/// Contents of `demo.json` in the data folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DemoFile {
    pub plan: Plan,
    /// Whether everything is stored. `false` means that seeding was interrupted.
    pub complete: bool,
}

const NAME: &str = "demo.json";

impl DemoFile {
    /// Reads the file. Returns `None` if the folder does not contain a demo.
    ///
    /// # Errors
    /// Returns an error if the file exists but cannot be read or parsed.
    pub fn read(data_dir: &Path) -> io::Result<Option<Self>> {
        match std::fs::read(data_dir.join(NAME)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn write(&self, data_dir: &Path) -> io::Result<()> {
        let bytes = serde_json::to_vec_pretty(self)?;
        DurableFiles::default().replace(&data_dir.join(NAME), &bytes)
    }
}
