//! The ClickHouse that the server uses: by its URL, or the embedded engine of a running server.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::config::Shared;
use crate::serve::external;
use crate::store::{ClickHouse, EngineFile, Failure};

/// A server that was started a moment ago may not hold its data folder yet.
const GRACE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);

/// How long commands without a setting of their own wait for an engine that is starting.
pub(super) const USUAL_PATIENCE: Duration = Duration::from_secs(30);

/// Finds the store. Waits up to `patience` for an engine that is starting.
pub(super) async fn store_in_use(
    shared: &Shared,
    patience: Duration,
) -> anyhow::Result<ClickHouse> {
    let store = ClickHouse::away(&shared.clickhouse_database);
    if let Some(url) = &shared.clickhouse_url {
        store.point_at(Some(&external(shared, url)));
        return Ok(store);
    }
    let data_dir = &shared.data_dir;
    let begun = Instant::now();
    let mut announced = false;
    loop {
        let starting = is_running(data_dir);
        // Another program may listen now where a killed engine did.
        let reason = if starting == Some(false) {
            "no process holds the data folder".to_owned()
        } else {
            match answering(&store, data_dir).await {
                Ok(()) => return Ok(store),
                Err(reason) => reason,
            }
        };
        let starting = starting == Some(true);
        if !starting && (begun.elapsed() >= GRACE.min(patience) || !data_dir.exists()) {
            anyhow::bail!(
                "no embedded engine runs under {} ({reason}): start `unjank serve`, or name a store with --clickhouse-url",
                data_dir.display()
            );
        }
        if begun.elapsed() >= patience {
            anyhow::bail!(
                "the engine under {} did not answer within {} s ({reason}): see the server's log, or wait longer with --wait",
                data_dir.display(),
                patience.as_secs()
            );
        }
        if starting && !announced {
            announced = true;
            writeln!(
                std::io::stderr(),
                "the engine is starting: waiting up to {} s for it",
                patience.as_secs()
            )?;
        }
        sleep(PAUSE).await;
    }
}

/// Points the store at the engine that `engine.json` names, if that one answers.
async fn answering(store: &ClickHouse, data_dir: &Path) -> Result<(), String> {
    let file = EngineFile::read(data_dir).map_err(|error| format!("engine.json: {error}"))?;
    store.point_at(Some(&file.target(store.database())));
    match store.ping().await {
        Ok(()) => Ok(()),
        // It answers, and says no: waiting does not help.
        Err(Failure::Content(_) | Failure::TooMuch(_)) => Ok(()),
        Err(Failure::Later(reason)) => Err(reason),
    }
}

/// Whether a process holds the data folder: a server its log, or an engine its data. The system's list of locks says so;
/// trying a lock could take it from a server that starts at this moment. None: the system has no such list.
fn is_running(data_dir: &Path) -> Option<bool> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let held = ["log/lock", "engine/unjank-engine.lock"]
        .iter()
        .filter_map(|name| std::fs::metadata(data_dir.join(name)).ok())
        .any(|file| locks.contains(&format!(":{} ", file.ino())));
    Some(held)
}
