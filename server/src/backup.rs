//! Backups: everything that an installation needs to continue elsewhere, as one consistent set of files.
//!
//! A set has these files:
//!
//! | path | content |
//! |---|---|
//! | `backup.json` | the description, written last: without it, the set is incomplete |
//! | `clickhouse/rollups`, `…/events`, `…/rest` | ClickHouse's own backups of the tables, see `store/backup.rs` |
//! | `log/` | the ingest log, with all records that `clickhouse/` may lack |
//! | `control.sqlite` or `control.dump` | the control database |
//! | `secret`, `dead-letter/`, `symbols/` | as in the data folder |
//! | `uploading-…` | only in a bucket: the claim of a backup that is being uploaded. It is no part of the set |
//!
//! The server keeps running. The backup holds the log, copies the tables, and then copies the log. So each acknowledged event is in the
//! tables, in the log, or in both. The ledger is not part of a set. Without a ledger, the writer checks every record of the log against the stored rows, as
//! `docs/decisions/0002-exactly-once.md` describes.
//!
//! A set in a bucket is made in a folder first and then uploaded, and downloaded before it is restored. So there is one way to make a set,
//! and one to restore it.

mod bucket;
mod claim;
mod files;
mod make;
mod place;
mod postgres;
mod restore;
mod set;
mod upload;

pub use self::bucket::BackupBucket;
pub use self::make::{BackupPlan, ControlAt, make};
pub use self::place::Place;
pub use self::restore::{RestoreInto, RestorePlan, is_unfinished, restore};
pub use self::set::{BackupSet, ClickHouseAt};

use std::time::Duration;

use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::store::{BackupState, ClickHouse, Failure};

/// Reports progress: what is copied, the bytes copied so far, and the total bytes.
pub type OnProgress<'a> = &'a (dyn Fn(&str, u64, u64) + Sync);

const PAUSE: Duration = Duration::from_millis(300);
/// If queries for the progress fail for this long, the backup fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until ClickHouse has finished its copies. Returns their size. `report` receives the bytes copied so far; its error ends the wait.
async fn finish(
    store: &ClickHouse,
    copies: &[Uuid],
    report: impl Fn(u64) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let mut answered = Instant::now();
    loop {
        match progress(store, copies).await {
            Ok(state) => {
                answered = Instant::now();
                report(state.bytes)?;
                if state.is_done {
                    return Ok(state.bytes);
                }
            }
            // ClickHouse may be busy.
            Err(Failure::Later(_) | Failure::TooMuch(_)) if answered.elapsed() < PATIENCE => {}
            Err(failure) => return Err(failure.into()),
        }
        sleep(PAUSE).await;
    }
}

async fn progress(store: &ClickHouse, copies: &[Uuid]) -> Result<BackupState, Failure> {
    let mut all = BackupState {
        bytes: 0,
        is_done: true,
    };
    for copy in copies {
        let state = store.backup_state(*copy).await?;
        all.bytes += state.bytes;
        all.is_done &= state.is_done;
    }
    Ok(all)
}
