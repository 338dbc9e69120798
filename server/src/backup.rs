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
//!
//! The server may run meanwhile. The log is held, then the tables are copied, then the log: so each acknowledged event is in one of the two,
//! or in both. The ledger is not part of a set. Without a ledger, the writer checks every record of the log against the stored rows, as
//! `docs/decisions/0002-exactly-once.md` describes.

mod files;
mod make;
mod postgres;
mod restore;
mod set;

pub use self::make::{BackupPlan, make};
pub use self::restore::{RestoreInto, RestorePlan, is_unfinished, restore};
pub use self::set::{BackupSet, ClickHouseAt};

use std::time::Duration;

use tokio::time::sleep;
use uuid::Uuid;

use crate::store::ClickHouse;

/// Reports progress: bytes that are done and bytes in all.
pub type OnProgress<'a> = &'a (dyn Fn(&str, u64, u64) + Sync);

const PAUSE: Duration = Duration::from_millis(300);

/// Waits until ClickHouse has finished its copies.
async fn finish(store: &ClickHouse, copies: &[Uuid], report: impl Fn(u64)) -> anyhow::Result<u64> {
    loop {
        let mut bytes = 0;
        let mut is_done = true;
        for copy in copies {
            let state = store.backup_state(*copy).await?;
            bytes += state.bytes;
            is_done &= state.is_done;
        }
        report(bytes);
        if is_done {
            return Ok(bytes);
        }
        sleep(PAUSE).await;
    }
}
