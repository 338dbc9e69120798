//! A server with its store, as far as they are known: measures, drains and verifies them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use unjank_protocol::Signal;

use crate::arguments::RunArgs;
use crate::clickhouse::{Access, ClickHouse, engine_login};
use crate::ledger::Ledger;
use crate::outcomes::{self, OutcomeCheck, Repeats};
use crate::server::read_address;
use crate::stages::Stages;
use crate::store::{self, RunStore, Scope, TableSize};
use crate::verify::{self, TableCheck};
use crate::watch::Watch;
use crate::{console, drain};

/// The server and its store, as far as they are known.
pub(crate) struct ServerAndStore {
    clickhouse: Option<ClickHouse>,
    admin_url: Option<String>,
    drain_timeout: Duration,
    data_dir: Option<std::path::PathBuf>,
    server_pid: Option<u32>,
    engine_pid: Option<u32>,
}

/// What to compare with the store, and how.
pub(crate) struct Check {
    pub(crate) scope: Scope,
    /// Whether the store was empty before.
    pub(crate) fresh: bool,
    /// Events of batches that receipts called duplicate.
    pub(crate) repeated: BTreeMap<Signal, u64>,
    pub(crate) repeats: Repeats,
}

impl ServerAndStore {
    pub(crate) fn new(args: &RunArgs) -> Result<Self> {
        let clickhouse = args.store.access().map(ClickHouse::new).transpose()?;
        if args.verify && clickhouse.is_none() {
            bail!(
                "--verify needs access to ClickHouse: pass --data-dir (embedded engine) or --clickhouse-url"
            );
        }
        let data_dir = args.store.data_dir.clone();
        let server = data_dir.as_deref().and_then(|dir| read_address(dir).ok());
        let admin_url = args.store.admin_url.clone().or_else(|| {
            let server = server.as_ref()?;
            Some(format!("http://{}", server.admin_listen))
        });
        Ok(Self {
            clickhouse,
            admin_url,
            drain_timeout: args.store.drain_timeout,
            server_pid: args.server_pid.or(server.and_then(|server| server.pid)),
            engine_pid: args.engine_pid,
            data_dir,
        })
    }

    /// A server that this tool started in `data_dir`.
    pub(crate) fn own(data_dir: &Path, admin_url: &str, drain_timeout: Duration) -> Result<Self> {
        let access = Access::Engine(data_dir.to_owned());
        Ok(Self {
            clickhouse: Some(ClickHouse::new(access)?),
            admin_url: Some(admin_url.to_owned()),
            drain_timeout,
            server_pid: read_address(data_dir)?.pid,
            engine_pid: None,
            data_dir: Some(data_dir.to_owned()),
        })
    }

    pub(crate) fn clickhouse(&self) -> Option<&ClickHouse> {
        self.clickhouse.as_ref()
    }

    /// Starts to measure the costs of the server and its engine.
    pub(crate) fn watch(&self) -> Watch {
        let engine = self.engine_pid.or_else(|| {
            let dir = self.data_dir.as_deref()?;
            engine_login(dir).ok()?.pid
        });
        Watch::begin(self.server_pid, engine)
    }

    /// Reads the server's histograms. Returns empty ones if its metrics are unreachable.
    pub(crate) async fn stages(&self) -> Stages {
        let Some(url) = &self.admin_url else {
            return Stages::default();
        };
        let metrics = drain::metrics(url).await.unwrap_or_default();
        Stages::read(&metrics)
    }

    /// Returns whether the server has not recorded any event yet.
    pub(crate) async fn is_fresh(&self) -> Result<bool> {
        match &self.clickhouse {
            Some(clickhouse) => Ok(outcomes::read(clickhouse).await?.is_empty()),
            None => Ok(false),
        }
    }

    /// Waits until the log is drained, if the store is known. Returns how long that took, in seconds.
    pub(crate) async fn drain(&self) -> Result<Option<f64>> {
        let Some(clickhouse) = &self.clickhouse else {
            return Ok(None);
        };
        let took = drain::wait(self.admin_url.as_deref(), clickhouse, self.drain_timeout).await?;
        Ok(Some(took.as_secs_f64()))
    }

    /// Returns the sizes of the tables. Empty if the store is unknown.
    pub(crate) async fn storage(&self) -> Result<Vec<TableSize>> {
        match &self.clickhouse {
            Some(clickhouse) => store::sizes(clickhouse).await,
            None => Ok(Vec::new()),
        }
    }

    /// Compares the drained store with the ledger.
    pub(crate) async fn verify(&self, ledger: &Ledger, check: Check) -> Result<Verification> {
        let clickhouse = self.clickhouse.as_ref().context("ClickHouse is unknown")?;
        console::say(&format!("comparing {} ...", ledger.describe()));
        let run_store = RunStore {
            clickhouse,
            scope: check.scope,
        };
        let tables = compare_patiently(ledger, &run_store).await?;
        let outcomes = if check.fresh {
            Some(outcomes::compare(ledger, &check.repeated, check.repeats, clickhouse).await?)
        } else {
            None
        };
        let balanced = outcomes.iter().flatten().all(|outcome| outcome.balanced);
        let rollups = store::rollups_that_differ(clickhouse).await?;
        Ok(Verification {
            holds: balanced && rollups.is_empty() && tables.iter().all(TableCheck::holds),
            tables,
            rollups,
            outcomes,
            rejected_though_valid: ledger.rejected_though_valid,
            accepted_though_invalid: ledger.accepted_though_invalid,
        })
    }
}

/// Some rows may still arrive although the log seems drained: compares again while rows are missing and more arrive.
async fn compare_patiently(ledger: &Ledger, store: &RunStore<'_>) -> Result<Vec<TableCheck>> {
    const PAUSE: Duration = Duration::from_secs(5);
    let mut tables = verify::compare(ledger, store).await?;
    while tables.iter().any(|check| check.lost > 0) {
        tokio::time::sleep(PAUSE).await;
        let again = verify::compare(ledger, store).await?;
        let arrived = again != tables;
        tables = again;
        if !arrived {
            break;
        }
    }
    Ok(tables)
}

/// The result of `--verify`.
#[derive(Debug, Serialize)]
pub(crate) struct Verification {
    pub(crate) holds: bool,
    pub(crate) tables: Vec<TableCheck>,
    /// Roll-ups whose event count differs from their raw table, with both counts.
    pub(crate) rollups: Vec<String>,
    /// The server's own books. `None` unless the store was empty before, because the books would include other events.
    pub(crate) outcomes: Option<Vec<OutcomeCheck>>,
    pub(crate) rejected_though_valid: u64,
    pub(crate) accepted_though_invalid: u64,
}
