//! Finds the server's ClickHouse: by its URL, or as the embedded engine of a running server.

use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::config::Shared;
use crate::serve::{absolute, cannot_read, external};
use crate::store::{ClickHouse, EngineFile, Failure};

/// A server that has just started may not hold its data folder yet.
const GRACE: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);

/// How to reach the engine.
const FILE: &str = "engine.json";

/// How long commands without `--wait` wait for a starting engine.
pub(super) const DEFAULT_WAIT: Duration = Duration::from_secs(30);

/// Finds the store. Waits up to `patience` for a starting engine.
pub(super) async fn store_in_use(
    shared: &Shared,
    patience: Duration,
) -> anyhow::Result<ClickHouse> {
    let store = ClickHouse::away(&shared.clickhouse_database);
    if let Some(url) = &shared.clickhouse_url {
        store.point_at(Some(&external(shared, url)?));
        return Ok(store);
    }
    let data_dir = &shared.data_dir;
    check_permission(data_dir)?;
    let begun = Instant::now();
    let mut announced = false;
    loop {
        let starting = is_running(data_dir);
        // Another program may now listen on the port of a killed engine.
        let reason = if starting == Some(false) {
            "no process holds the data folder".to_owned()
        } else {
            match connect(&store, data_dir).await {
                Ok(()) => return Ok(store),
                Err(reason) => reason,
            }
        };
        let starting = starting == Some(true);
        if !starting && !data_dir.exists() {
            anyhow::bail!(
                "no embedded engine is running: the data folder {} does not exist. Name it with --data-dir or --config, start `unjank serve`, or set --clickhouse-url",
                absolute(data_dir).display()
            );
        }
        if !starting && begun.elapsed() >= GRACE.min(patience) {
            anyhow::bail!(
                "no embedded engine is running in {} ({reason}): start `unjank serve`, name another folder with --data-dir or --config, or set \
                 --clickhouse-url",
                absolute(data_dir).display()
            );
        }
        if begun.elapsed() >= patience {
            anyhow::bail!(
                "the engine in {} did not respond within {} s ({reason}): check the server's log, which also says if the engine hangs and is restarted",
                absolute(data_dir).display(),
                patience.as_secs()
            );
        }
        if starting && !announced {
            announced = true;
            // The file is written when the engine has started, and may be one of an earlier start.
            let state = match reason.starts_with(FILE) {
                true => "is starting",
                false => "does not answer yet",
            };
            writeln!(
                std::io::stderr(),
                "the engine {state}: waiting up to {} s",
                patience.as_secs()
            )?;
        }
        sleep(PAUSE).await;
    }
}

/// Fails if this user may not read how to reach the engine. Without this check, a running engine would seem not to run.
fn check_permission(data_dir: &Path) -> anyhow::Result<()> {
    let path = data_dir.join(FILE);
    match std::fs::File::open(&path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            Err(cannot_read(&path, &error))
        }
        _ => Ok(()),
    }
}

/// Points the store at the engine in `engine.json`, and checks that it responds.
async fn connect(store: &ClickHouse, data_dir: &Path) -> Result<(), String> {
    let file = EngineFile::read(data_dir).map_err(|error| format!("{FILE}: {error}"))?;
    store.point_at(Some(&file.target(store.database())));
    match store.ping().await {
        Ok(()) => Ok(()),
        // The engine responds with an error, so waiting does not help.
        Err(Failure::Content(_) | Failure::TooMuch(_)) => Ok(()),
        Err(Failure::Later(reason)) => Err(reason),
    }
}

/// Whether a process holds the data folder: a server its log, or an engine its data. This reads the system's list of locks, because
/// trying a lock could take it from a server that is just starting. `None` if the system has no such list.
fn is_running(data_dir: &Path) -> Option<bool> {
    let locks = std::fs::read_to_string("/proc/locks").ok()?;
    let held = ["log/lock", "engine/unjank-engine.lock"]
        .iter()
        .filter_map(|name| std::fs::metadata(data_dir.join(name)).ok())
        .any(|file| locks.contains(&format!(":{} ", file.ino())));
    Some(held)
}
