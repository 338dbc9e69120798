//! `unjank-loadtest run`: sends a load to a running server.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use unjank_protocol::Signal;

use crate::cli::{LoadArgs, RunArgs};
use crate::clickhouse::ClickHouse;
use crate::fingerprint::Times;
use crate::ledger::Ledger;
use crate::load::{Outcome, Stops};
use crate::outcomes::{self, Repeats};
use crate::plan::Rate;
use crate::processes::Machine;
use crate::replay::{self, Recording};
use crate::report::{Measured, Report, Verification};
use crate::stages::Stages;
use crate::store::{self, RunStore, Scope};
use crate::verify::{self, TableCheck};
use crate::watch::Watch;
use crate::workload::{Way, Workload, new_tag};
use crate::{clock, console, drain};

pub(crate) async fn run(args: &RunArgs) -> Result<Report> {
    let place = Place::new(args)?;
    let way = Way::new(&args.url, &args.key, &args.retry);
    if let Some(folder) = &args.replay {
        let recording = Recording {
            folder,
            encoding: args.load.encoding,
            connections: args.load.connections,
            verify: args.verify,
            way,
        };
        return replay::run(&recording, &place).await;
    }
    let workload = Workload {
        load: args.load.clone(),
        tag: new_tag(),
        duration: Some(args.duration),
        batches: args.batches,
        verify: args.verify,
        times: if args.prepare {
            Times::Ignored
        } else {
            Times::OfRightClocks
        },
    };
    ensure!(
        !args.prepare || args.load.rate != Rate::Max || args.batches.is_some(),
        "--prepare with --rate max needs --batches, the number of batches to build"
    );
    let stops = Stops::default();
    let mut report = new_report("run", settings(&args.load));
    let fresh = place.is_fresh().await?;
    let prepared = if args.prepare {
        console::say("building the load ...");
        Some(workload.prepare().await?)
    } else {
        None
    };
    let (watch, stages) = (place.watch(), place.stages().await);
    let outcome = match prepared {
        Some(parcels) => workload.send(parcels, &way, &stops).await?,
        None => workload.stream(&way, &stops).await?,
    };
    let drain = place.drain().await?;
    report.add(Measured {
        name: "Load",
        outcome: &outcome,
        offered: workload.offered(),
        drain_s: drain,
        watch: &watch,
        stages: place.stages().await.since(&stages),
    });
    place.add_storage(&mut report).await?;
    if args.verify {
        let scope = Scope::Run(workload.tag, workload.times);
        let repeats = repeats(&outcome);
        let repeated = outcome.ledger.repeated();
        let check = Check {
            scope,
            fresh,
            repeated,
            repeats,
        };
        report.verification = Some(place.verify(&outcome.ledger, check).await?);
    }
    Ok(report)
}

/// Returns whether the devices know how often the server received each batch.
pub(crate) fn repeats(outcome: &Outcome) -> Repeats {
    let answered = |status: &String| status.starts_with(|first: char| first.is_ascii_digit());
    if outcome.tally.statuses.keys().all(answered) {
        Repeats::Counted
    } else {
        Repeats::AtLeast
    }
}

pub(crate) fn new_report(kind: &'static str, settings: BTreeMap<&'static str, String>) -> Report {
    Report {
        kind,
        tool_version: env!("CARGO_PKG_VERSION"),
        server_version: None,
        started_at: clock::now().to_string(),
        machine: Machine::here(),
        settings,
        phases: Vec::new(),
        polls: None,
        lone: None,
        storage: Vec::new(),
        span_columns: Vec::new(),
        verification: None,
        chaos: None,
        warnings: Vec::new(),
    }
}

pub(crate) fn settings(load: &LoadArgs) -> BTreeMap<&'static str, String> {
    BTreeMap::from([
        ("devices", load.devices.to_string()),
        ("seed", load.seed.to_string()),
        ("events per batch", load.events_per_batch.to_string()),
        ("mix", format!("{:?}", load.mix).to_lowercase()),
        ("encoding", format!("{:?}", load.encoding).to_lowercase()),
        ("arrivals", format!("{:?}", load.arrivals).to_lowercase()),
        ("connections", load.connections.to_string()),
    ])
}

/// The server and its store, as far as they are known.
pub(crate) struct Place {
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

impl Place {
    fn new(args: &RunArgs) -> Result<Self> {
        let clickhouse = args.store.access().map(ClickHouse::new).transpose()?;
        if args.verify && clickhouse.is_none() {
            bail!(
                "--verify needs access to ClickHouse: pass --data-dir (embedded engine) or --clickhouse-url"
            );
        }
        let data_dir = args.store.data_dir.clone();
        let server = data_dir
            .as_deref()
            .and_then(|dir| crate::server::read_address(dir).ok());
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
    pub(crate) fn own(
        data_dir: &std::path::Path,
        admin_url: &str,
        drain_timeout: Duration,
    ) -> Result<Self> {
        let access = crate::clickhouse::Access::Engine(data_dir.to_owned());
        Ok(Self {
            clickhouse: Some(ClickHouse::new(access)?),
            admin_url: Some(admin_url.to_owned()),
            drain_timeout,
            server_pid: crate::server::read_address(data_dir)?.pid,
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
            crate::clickhouse::engine_login(dir).ok()?.pid
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

    pub(crate) async fn add_storage(&self, report: &mut Report) -> Result<()> {
        if let Some(clickhouse) = &self.clickhouse {
            report.storage = store::sizes(clickhouse).await?;
        }
        Ok(())
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
            accepted_though_spoilt: ledger.accepted_though_spoilt,
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
