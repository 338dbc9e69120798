//! Expires symbol files: the retention sweep deletes those that were neither uploaded nor used for a long time and that no stored stack needs.
//! `file_removal` removes the single file.

use std::time::Duration;

use unjank_database::{Actor, ControlError};
use unjank_foundation::clock::UnixTime;

use super::lookups::{LookupError, Lookups};
use crate::store::{ClickHouse, Failure};

/// The maximum number of files that are looked at in one sweep.
const MOST_FILES: u32 = 1_000;
/// The maximum number of builds of one file.
const MOST_IDS: u32 = 100_000;
/// The number of ids in one query for the stacks that need them.
const IDS: usize = 500;

#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    #[error(transparent)]
    Control(#[from] ControlError),
    #[error(transparent)]
    Lookup(#[from] LookupError),
    #[error("ClickHouse: {0}")]
    ClickHouse(#[from] Failure),
}

/// Deletes the files that were neither uploaded nor used within `keep` before `now` and that no stored stack needs. Returns their number.
pub async fn delete_unused_files(
    lookups: &Lookups,
    clickhouse: &ClickHouse,
    (keep, now): (Duration, UnixTime),
) -> Result<usize, SweepError> {
    let control = &lookups.control;
    let actor = Actor::system("retention");
    let before = now - keep;
    let mut deleted = 0;
    for (file, project) in control.unused_symbol_files(before, MOST_FILES).await? {
        let ids = control.ids_of_symbol_file(&project, file, MOST_IDS).await?;
        let mut is_needed = false;
        for ids in ids.chunks(IDS) {
            let stacks = clickhouse.stacks_that_need(&project, ids, 0, 1);
            is_needed |= !stacks.await?.is_empty();
        }
        if is_needed {
            match control.mark_symbol_file_needed(&project, file, now).await {
                // The file was removed meanwhile.
                Err(ControlError::NotFound) => {}
                other => other?,
            }
            continue;
        }
        let removed = lookups.remove_unused(&project, (file, before), &actor);
        match removed.await {
            Ok(()) => deleted += 1,
            // The file was removed, uploaded or used meanwhile.
            Err(LookupError::Control(ControlError::NotFound)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(deleted)
}
