//! What a demo is made of, and the file that says a data folder holds one.

use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::calendar::DAY_US;

/// Everything follows from this.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    pub seed: u64,
    pub installs: u64,
    pub days: u32,
    /// The end of the month: microseconds since the epoch.
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

/// `demo.json` in the data folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DemoFile {
    pub plan: Plan,
    /// Everything is stored; without it, seeding was cut short.
    pub complete: bool,
}

const NAME: &str = "demo.json";

impl DemoFile {
    /// Nothing when the folder holds no demo.
    ///
    /// # Errors
    /// When the file is there and does not read.
    pub fn read(data_dir: &Path) -> io::Result<Option<Self>> {
        match std::fs::read(data_dir.join(NAME)) {
            Ok(bytes) => Ok(Some(serde_json::from_slice(&bytes)?)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// # Errors
    /// When the folder cannot be written to.
    pub fn write(&self, data_dir: &Path) -> io::Result<()> {
        std::fs::write(data_dir.join(NAME), serde_json::to_vec_pretty(self)?)
    }
}
