//! One server from start to end: opens its storage, starts the background tasks, and shuts everything down in order.

mod background;
mod clickhouse_target;
mod data_folder;
mod data_paths;
mod drain;
mod intake;
mod notifier;
mod open_files;
mod server_file;
mod symbols;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub(crate) use self::clickhouse_target::{any_host, embedded, external};
pub(crate) use self::data_folder::{control_url, existing_control_database, existing_dead_letters};
pub(crate) use self::data_paths::{absolute, cannot_read, exists};
pub(crate) use self::drain::{DrainedLog, drain_log};
pub use self::server_file::{ServerFile, ServerProcess};

use unjank_database::Control;
use unjank_foundation::clock::Clock;
use unjank_foundation::shares::Shares;
use unjank_foundation::task::Tasks;
use unjank_stacks::RuleSet;

use self::background::{
    auditor, evaluator, flush_counts, recall_batches, reclassifier, sweeper, watch_log,
    write_counts,
};
use self::clickhouse_target::connect;
use self::data_folder::{control_database, instance_secret};
use crate::access::logins::Logins;
use crate::access::{self, Access, InstanceSecret, Refresher, Snapshot, SnapshotInputs, Throttle};
use crate::app::App;
use crate::auditor::AuditBoard;
use crate::config::{Serve, Shared, engine_passwords};
use crate::erasure::Eraser;
use crate::history::{DryRuns, ProgressBoard};
use crate::http::{self, ListenerSettings, Routes, serve_connections};
use crate::metrics::Metrics;
use crate::openid_connect::OpenIdConnect;
use crate::readiness::Readiness;
use crate::store::{
    ClickHouse, DeadLetters, EmbeddedEngine, EngineSettings, IngestLog, LastBackup, LogSettings,
};

/// Sockets that are already bound, so that tests and supervisors can choose them.
pub struct Listeners {
    pub public: TcpListener,
    pub admin: TcpListener,
}

/// Maximum number of queries of people at a time. Each uses all free cores.
const QUESTIONS: usize = 6;
/// Maximum number of configuration previews at a time.
const PREVIEWS: usize = 3;
/// Maximum number of connections of operators and their monitoring.
const ADMIN_CONNECTIONS: usize = 64;
/// Memory for the bodies of people and their tools.
const MANAGEMENT_KIB: usize = 72 << 10;
/// Maximum number of exports of raw rows at a time.
const EXPORTS: usize = 4;

/// Timeout of each step of the shutdown that needs a disk or a database.
const CLOSING: Duration = Duration::from_secs(10);

/// The environment of a server, besides its settings.
pub struct Surroundings {
    pub listeners: Listeners,
    pub clock: Clock,
    pub shutdown: CancellationToken,
}

/// Whether to serve requests after the preparation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    Serve,
    End,
}

/// Runs a server until its shutdown, or until a required task fails. Acknowledged batches are never lost, however the server
/// ends. Runs `prepare` after everything else has started, but before the listeners accept requests.
pub async fn serve_after<P, F>(
    shared: &Shared,
    settings: &Serve,
    surroundings: Surroundings,
    prepare: P,
) -> anyhow::Result<()>
where
    P: FnOnce(Arc<App>) -> F,
    F: Future<Output = anyhow::Result<Then>>,
{
    let Surroundings {
        listeners,
        clock,
        shutdown,
    } = surroundings;
    let is_local = listeners.public.local_addr()?.ip().is_loopback();
    shared.cluster.refuse()?;
    let short = settings.ingest_keys().check_length(is_local);
    short.map_err(|error| anyhow::anyhow!(error))?;
    let back = Tasks::default();
    let (front, middle, forwarding) = (back.sibling(), back.sibling(), back.sibling());
    data_folder::report_losses(shared);
    let app = Arc::new(open(shared, settings, clock, &back).await?);
    let writer = writer::open(shared, settings, &app)?;
    tracing::info!(
        waiting = app.log.pending_records(),
        "the ingest log is open"
    );
    let give_up = CancellationToken::new();
    start_store(shared, settings, &app, &back)?;
    back.spawn("ingest log", watch_log(app.log.clone(), back.shutdown()));
    let clickhouse = app.clickhouse.clone();
    let run = writer::run(writer, clickhouse, middle.shutdown(), give_up.clone());
    middle.spawn("writer", run);
    front.spawn(
        "outcome counts",
        write_counts(Arc::clone(&app), front.shutdown()),
    );
    // The writer also finds duplicates that are not remembered.
    front.spawn_optional("recall", recall_batches(Arc::clone(&app), front.shutdown()));
    // If it fails, old rows are kept for too long.
    front.spawn_optional("retention", sweeper(&app, settings).run(front.shutdown()));
    // If it fails, uploads of symbol files wait.
    front.spawn_optional("symbol files", symbols::join_chunks(&app, &front));
    let reclassifier = reclassifier(&app, settings);
    // If it fails, stacks keep their classes.
    front.spawn_optional("reclassifier", reclassifier.run(front.shutdown()));
    // If it fails, rows are still stored.
    front.spawn_optional("auditor", auditor(&app, settings).run(front.shutdown()));
    let eraser = eraser(&app, shared, settings)?;
    // If it fails, erasures wait, and their receipts show that.
    front.spawn_optional("erasure", eraser.run(front.shutdown()));
    front.spawn("alerts", evaluator(&app, settings).run(front.shutdown()));
    notifier::start(&app.notifier, &front);
    notifier::start_forwarding(&app, &forwarding, settings.shutdown_timeout());
    let serving = async {
        if prepare(Arc::clone(&app)).await? == Then::Serve {
            start_listeners(&app, settings, listeners, &front, &shared.data_dir)?;
            std::future::pending::<()>().await;
        }
        Ok(())
    };
    let served: anyhow::Result<()> = tokio::select! {
        served = serving => served,
        () = shutdown.cancelled() => Ok(()),
        () = app.failure.happened() => Ok(()),
    };
    // The order: stop requests, then drain the log into ClickHouse, then stop ClickHouse.
    let patience = settings.shutdown_timeout().max(Duration::from_secs(1));
    front.end(patience).await;
    ServerFile::remove(&shared.data_dir);
    in_time("the counts of outcomes", flush_counts(&app)).await;
    // What waits for other collectors is sent meanwhile, which takes a few seconds at most.
    let (is_drained, _) = tokio::join!(
        middle.end(settings.shutdown_timeout()),
        forwarding.end(CLOSING)
    );
    if !is_drained {
        tracing::warn!("the ingest log is not completely drained: the next start drains the rest");
        give_up.cancel();
        middle.end(Duration::from_secs(5)).await;
    }
    back.end(Duration::from_secs(30)).await;
    // The log may now have room for counts that did not fit before.
    in_time("the counts of outcomes", flush_counts(&app)).await;
    in_time("the ingest log", app.log.close()).await;
    in_time("the control database", app.control.close()).await;
    tracing::info!("the server has ended");
    served?;
    match app.failure.what() {
        Some(what) => anyhow::bail!("{what}; the next start stores all acknowledged batches"),
        None => Ok(()),
    }
}

/// Waits for a step of the shutdown, but not without end: a disk may hang.
async fn in_time(what: &str, step: impl Future<Output = ()>) {
    if tokio::time::timeout(CLOSING, step).await.is_err() {
        tracing::error!(
            what,
            "the disk or the database does not answer: the server shuts down without waiting for it"
        );
    }
}

/// Opens the storage on this machine and creates the state that handlers share.
async fn open(
    shared: &Shared,
    settings: &Serve,
    clock: Clock,
    back: &Tasks,
) -> anyhow::Result<App> {
    let connections = open_files::connections(settings.max_connections);
    let connections = usize::try_from(connections).unwrap_or(usize::MAX);
    let secret = Arc::new(instance_secret(shared)?);
    let logins = Logins::new(Arc::clone(&secret));
    let public_url = settings.notifications.public_url.as_deref();
    let provider = settings.oidc.provider(public_url)?;
    let provider = provider.map(|provider| OpenIdConnect::new(provider, Arc::clone(&secret)));
    let default_rules = Arc::new(default_rules(settings)?);
    let inputs = SnapshotSource {
        secret: Arc::clone(&secret),
        default_rules: Arc::clone(&default_rules),
        clock: clock.clone(),
    };
    let (control, access) = open_control(shared, settings, inputs, back).await?;
    let metrics = Metrics::new();
    let log_settings = LogSettings {
        dir: shared.data_dir.join("log"),
        max_bytes: settings.log_max_bytes,
        max_record_bytes: record_limit(settings),
        min_free_bytes: settings.min_free_bytes,
    };
    let log = IngestLog::open(log_settings, metrics.log.clone())
        .map_err(|error| data_folder::in_use(error, &shared.data_dir))?;
    let parts = intake::Parts {
        access: Arc::clone(&access),
        default_rules: Arc::clone(&default_rules),
        log: log.clone(),
        metrics: &metrics,
        clock: clock.clone(),
        connections,
    };
    let intake = intake::open(settings, parts)?;
    let clickhouse = ClickHouse::away(&shared.clickhouse_database);
    let versions = crate::query::KnownVersions::new(clickhouse.clone());
    let inputs = notifier::NotifierInputs {
        control: control.clone(),
        secret: Arc::clone(&secret),
        clickhouse: clickhouse.clone(),
        clock: clock.clone(),
        access: Arc::clone(&access),
        forward: Arc::clone(&intake.forward),
        metrics: metrics.notifications.clone(),
    };
    let notifier = notifier::open(settings, inputs)?;
    Ok(App {
        symbols: symbols::open(shared, settings, &control, (&clock, &metrics.symbols))?,
        symbol_uploads: Shares::new(symbols::UPLOADS, symbols::UPLOADS.div_ceil(2)),
        notifier: Arc::new(notifier),
        channel_tests: Throttle::default(),
        failure: back.failure(),
        readiness: Readiness::default(),
        access,
        control,
        logins,
        openid_connect: provider.transpose()?,
        trusted_proxies: settings.web.trusted_proxies(),
        web_origins: settings.web.web_origins(),
        secret,
        default_rules,
        dry_runs: DryRuns::default(),
        reclassification: Arc::new(ProgressBoard::new(metrics.reclassification.clone())),
        audit: Arc::new(AuditBoard::default()),
        intake: Arc::new(intake),
        log,
        last_backup: LastBackup::of(&shared.data_dir),
        releases: crate::query::Releases::new(clickhouse.clone(), versions.clone()),
        versions,
        clickhouse,
        retention: settings.keep.retention(),
        metrics,
        connections,
        management_bodies: Shares::new(MANAGEMENT_KIB, MANAGEMENT_KIB.div_ceil(2)),
        body_timeout: settings.body_timeout(),
        previews: Shares::new(PREVIEWS, 1),
        questions: Shares::new(QUESTIONS, QUESTIONS.div_ceil(2)),
        exports: Shares::new(EXPORTS, 1),
        clock,
    })
}

/// The largest record. Rows take less memory than their JSON, except for a batch of small events for tables with many columns.
fn record_limit(settings: &Serve) -> u32 {
    u32::try_from(settings.max_decompressed_bytes.saturating_mul(2))
        .unwrap_or(u32::MAX)
        .max(16 << 20)
}

/// The inputs for the snapshot of the control database.
struct SnapshotSource {
    secret: Arc<InstanceSecret>,
    default_rules: Arc<RuleSet>,
    clock: Clock,
}

/// Opens the control database, creates the project and keys of the settings, and keeps the snapshot up to date.
async fn open_control(
    shared: &Shared,
    settings: &Serve,
    inputs: SnapshotSource,
    back: &Tasks,
) -> anyhow::Result<(Control, Arc<Access>)> {
    let SnapshotSource {
        secret,
        default_rules,
        clock,
    } = inputs;
    let control = control_database(shared, back).await?;
    let now = clock.now();
    access::seed(&control, &settings.project, &settings.ingest_keys(), now).await?;
    let largest_batch = u32::try_from(settings.max_batch_events).unwrap_or(u32::MAX);
    let moment = SnapshotInputs {
        now,
        before: &Snapshot::default(),
        largest_batch,
        default_rules: &default_rules,
    };
    let snapshot = access::load(&control, &secret, &moment).await?;
    let access = Arc::new(Access::new(snapshot));
    let refresher = Refresher {
        control: control.clone(),
        access: Arc::clone(&access),
        secret,
        clock,
        largest_batch,
        default_rules,
    };
    back.spawn("control", refresher.run(back.shutdown()));
    Ok((control, access))
}

fn dead_letters(shared: &Shared, max_bytes: u64) -> anyhow::Result<DeadLetters> {
    let folder = shared.data_dir.join("dead-letter");
    Ok(DeadLetters::open(folder, max_bytes)?)
}

fn eraser(app: &Arc<App>, shared: &Shared, settings: &Serve) -> anyhow::Result<Eraser> {
    let dead_letters = dead_letters(shared, settings.dead_letter_max_bytes)?;
    Ok(Eraser::new(Arc::clone(app), dead_letters))
}

fn default_rules(settings: &Serve) -> anyhow::Result<RuleSet> {
    let Some(path) = &settings.rules else {
        return Ok(RuleSet::built_in());
    };
    let text = std::fs::read_to_string(path)
        .map_err(|error| anyhow::anyhow!("cannot read the rules {}: {error}", path.display()))?;
    let rules = RuleSet::parse(0, text)
        .map_err(|error| anyhow::anyhow!("the rules {} are invalid: {error}", path.display()))?;
    for warning in rules.rules().warnings() {
        tracing::warn!(rules = %path.display(), "{warning}");
    }
    Ok(rules)
}

fn start_store(shared: &Shared, settings: &Serve, app: &App, tasks: &Tasks) -> anyhow::Result<()> {
    let clickhouse = app.clickhouse.clone();
    if let Some(url) = &shared.clickhouse_url {
        let target = external(shared, url)?;
        let connected = connect(clickhouse, target, app.log.clone(), tasks.shutdown());
        tasks.spawn_finite("clickhouse", connected);
        return Ok(());
    }
    let engine = EngineSettings {
        listen: settings.engine_listen,
        tcp_listen: settings.engine.engine_tcp_listen,
        passwords: engine_passwords(),
        sources: settings.engine.sources(),
        max_memory_bytes: settings.engine_max_memory_bytes,
        nice: settings.engine_nice,
        ..embedded(shared)?
    };
    let restarts = app.metrics.engine_restarts.clone();
    let engine = EmbeddedEngine::new(engine, clickhouse, app.log.clone(), restarts);
    tasks.spawn("engine", engine.run(tasks.shutdown()));
    Ok(())
}

fn start_listeners(
    app: &Arc<App>,
    settings: &Serve,
    listeners: Listeners,
    tasks: &Tasks,
    data_dir: &Path,
) -> anyhow::Result<()> {
    let addresses = (
        listeners.public.local_addr()?,
        listeners.admin.local_addr()?,
    );
    // Written before the first answer: who finds the server ready also finds this file.
    let file = ServerFile::of_this_process(addresses);
    file.write(data_dir)?;
    let public = serve_connections(
        listeners.public,
        Routes {
            http1: http::public(Arc::clone(app)),
            http2: Some(http::http2(Arc::clone(app))),
        },
        ListenerSettings {
            max_connections: app.connections,
            from_one_address: app.connections.div_ceil(4),
            proxies: settings.web.trusted_proxies(),
            patience: settings.shutdown_timeout(),
        },
        tasks.shutdown(),
    );
    let admin = serve_connections(
        listeners.admin,
        Routes {
            http1: http::admin(Arc::clone(app)),
            http2: None,
        },
        ListenerSettings {
            max_connections: ADMIN_CONNECTIONS,
            from_one_address: ADMIN_CONNECTIONS,
            proxies: settings.web.trusted_proxies(),
            patience: settings.shutdown_timeout(),
        },
        tasks.shutdown(),
    );
    tasks.spawn("public listener", public);
    tasks.spawn("admin listener", admin);
    tracing::info!(listen = %file.listen, admin_listen = %file.admin_listen, "ready for batches");
    Ok(())
}
