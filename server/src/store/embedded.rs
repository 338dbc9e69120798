//! Runs the embedded engine if no ClickHouse URL is set, and restarts it when it dies or hangs.
//!
//! ClickHouse runs in a separate process, so its crash does not affect the server. It ends when the server ends, even if the server is killed.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use unjank_engine::{Engine, EngineOptions, HostProgram, Ports, Role, Search, Source, User};
use uuid::Uuid;

use super::clickhouse::{ClickHouse, Login, Target};
use super::durable_file::DurableFiles;
use super::engine_watch;
use super::log::IngestLog;
use super::migrations::migrate_used;

/// The names of the engine's users.
const WRITER: &str = "writer";
const READER: &str = "reader";
const ADMIN: &str = "admin";

#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// The program that runs ClickHouse: `unjank` itself.
    pub program: PathBuf,
    /// The folder of `engine.json`.
    pub data_dir: PathBuf,
    /// The folder of ClickHouse's data.
    pub engine_dir: PathBuf,
    /// The program `clickhouse`, if set. Otherwise the library is used.
    pub binary: Option<PathBuf>,
    /// The library, if it need not be downloaded.
    pub library: Option<PathBuf>,
    pub cache_dir: Option<PathBuf>,
    pub listen: SocketAddr,
    pub tcp_listen: Option<SocketAddr>,
    pub database: String,
    pub passwords: EnginePasswords,
    pub sources: Vec<Source>,
    pub max_memory_bytes: u64,
    pub nice: i32,
}

/// Passwords that the operator chose.
#[derive(Clone, Default)]
pub struct EnginePasswords {
    /// If not set, the engine has no administrator.
    pub admin: Option<String>,
    /// If not set, the password is random and changes with each start.
    pub writer: Option<String>,
    pub reader: Option<String>,
}

/// Omits the passwords.
impl std::fmt::Debug for EnginePasswords {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("***")
    }
}

/// `engine.json`: how to reach the running engine. Only its owner can read it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EngineFile {
    pub url: String,
    /// The address of ClickHouse's native protocol, if enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<SocketAddr>,
    /// The user that writes the tables.
    pub user: String,
    pub password: String,
    /// The user that only reads them.
    pub reader_user: String,
    pub reader_password: String,
    /// The process id of ClickHouse.
    pub pid: u32,
}

impl EngineFile {
    fn path(data_dir: &Path) -> PathBuf {
        data_dir.join("engine.json")
    }

    pub fn read(data_dir: &Path) -> std::io::Result<Self> {
        let bytes = std::fs::read(Self::path(data_dir))?;
        serde_json::from_slice(&bytes).map_err(std::io::Error::other)
    }

    fn write(&self, data_dir: &Path) -> std::io::Result<()> {
        let bytes = serde_json::to_vec(self).map_err(std::io::Error::other)?;
        DurableFiles::default().replace(&Self::path(data_dir), &bytes)
    }

    fn remove(data_dir: &Path) {
        if let Err(error) = std::fs::remove_file(Self::path(data_dir)) {
            tracing::debug!(%error, "cannot delete engine.json");
        }
    }

    /// Returns `database` of this engine as a target.
    pub fn target(&self, database: &str) -> Target {
        let login = |user: &str, password: &str| Login {
            user: user.to_owned(),
            password: password.to_owned(),
        };
        Target {
            url: self.url.clone(),
            writer: login(&self.user, &self.password),
            reader: login(&self.reader_user, &self.reader_password),
            database: database.to_owned(),
            compress: false,
        }
    }
}

/// A running engine and its logins.
pub struct StartedEngine {
    pub engine: Engine,
    pub file: EngineFile,
}

impl EngineSettings {
    /// Locates ClickHouse. Downloads the library if necessary.
    pub fn clickhouse(&self) -> anyhow::Result<unjank_engine::ClickHouse> {
        let cache_dir = match &self.cache_dir {
            Some(folder) => folder.clone(),
            None => default_cache_dir()?,
        };
        let search_path = std::env::var_os("PATH");
        let search = Search {
            binary: self.binary.as_deref(),
            library: self.library.as_deref(),
            cache_dir: &cache_dir,
            path: search_path.as_deref(),
        };
        unjank_engine::locate(search, &|message| tracing::info!("{message}"))
    }

    /// Reserves the engine's addresses.
    pub fn ports(&self) -> anyhow::Result<Ports> {
        for address in [Some(self.listen), self.tcp_listen].into_iter().flatten() {
            if !address.ip().is_loopback() {
                tracing::warn!(%address, "other machines can connect to ClickHouse, and passwords are sent unencrypted");
            }
        }
        Ports::reserve(self.listen, self.tcp_listen)
    }

    /// Starts an engine and returns when it responds.
    pub async fn start(&self, ports: &Ports) -> anyhow::Result<StartedEngine> {
        let settings = self.clone();
        let clickhouse = tokio::task::spawn_blocking(move || settings.clickhouse()).await??;
        let chosen = &self.passwords;
        let or_random = |password: &Option<String>| {
            password
                .clone()
                .unwrap_or_else(|| Uuid::new_v4().simple().to_string())
        };
        let user = |name: &str, password: String, role| User {
            name: name.to_owned(),
            password,
            role,
        };
        let writer = user(WRITER, or_random(&chosen.writer), Role::Writer);
        let reader = user(READER, or_random(&chosen.reader), Role::Reader);
        let admin = chosen
            .admin
            .clone()
            .map(|password| user(ADMIN, password, Role::Admin));
        let mut users = vec![writer.clone(), reader.clone()];
        users.extend(admin);
        let options = EngineOptions {
            data_dir: self.engine_dir.clone(),
            clickhouse,
            host: HostProgram {
                program: self.program.clone(),
                arguments: vec![OsString::from("clickhouse")],
            },
            database: self.database.clone(),
            users,
            sources: self.sources.clone(),
            max_memory_bytes: self.max_memory_bytes,
            nice: self.nice,
            shutdown_patience: SHUTDOWN_PATIENCE,
            lock_patience: LOCK_PATIENCE,
        };
        let engine = Engine::start(&options, ports).await?;
        let file = EngineFile {
            url: engine.url(),
            tcp: engine.tcp_address(),
            user: writer.name,
            password: writer.password,
            reader_user: reader.name,
            reader_password: reader.password,
            pid: engine.pid().unwrap_or_default(),
        };
        Ok(StartedEngine { engine, file })
    }
}

impl StartedEngine {
    /// Writes the engine's address and logins to `engine.json`.
    pub fn announce(&self, data_dir: &Path) -> std::io::Result<()> {
        self.file.write(data_dir)
    }

    /// Stops the engine gracefully.
    pub async fn stop(self, data_dir: &Path) -> anyhow::Result<()> {
        EngineFile::remove(data_dir);
        self.engine.stop().await
    }
}

/// Returns `~/.cache/unjank/engine`, or its equivalent in the XDG cache folder.
fn default_cache_dir() -> anyhow::Result<PathBuf> {
    let from_home = || std::env::home_dir().map(|home| home.join(".cache"));
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(from_home);
    let base = base.ok_or_else(|| {
        anyhow::anyhow!(
            "cannot find a home folder for the cache of the engine's library: set --cache-dir"
        )
    })?;
    Ok(base.join("unjank").join("engine"))
}

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// After an engine has run this long, the next restart does not wait longer than the first one.
const HEALTHY: Duration = Duration::from_secs(60);
/// How long running queries may continue when the engine stops.
const SHUTDOWN_PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait for the lock of the data folder. If a server was killed, its engine ends after its own shutdown patience.
const LOCK_PATIENCE: Duration = Duration::from_secs(20);

/// Rows of the engine's logs of queries and parts are kept for this long. The logs are bounded in size as well.
const LOGGED_DAYS: u32 = 7;
const FORGET_INTERVAL: Duration = Duration::from_secs(3_600);

/// Periodically deletes expired rows from the engine's logs.
async fn forget_queries(clickhouse: &ClickHouse) {
    loop {
        sleep(FORGET_INTERVAL).await;
        for table in ["query_log", "part_log"] {
            if let Err(failure) = clickhouse.forget_log(table, LOGGED_DAYS).await {
                tracing::debug!(%failure, table, "cannot delete expired rows from the engine's log");
            }
        }
    }
}

/// Supervises one engine.
pub struct EmbeddedEngine {
    settings: EngineSettings,
    clickhouse: ClickHouse,
    log: IngestLog,
    restarts: prometheus::IntCounter,
}

impl EmbeddedEngine {
    pub fn new(
        settings: EngineSettings,
        clickhouse: ClickHouse,
        log: IngestLog,
        restarts: prometheus::IntCounter,
    ) -> Self {
        Self {
            settings,
            clickhouse,
            log,
            restarts,
        }
    }

    /// Keeps an engine running until `shutdown`, then stops it gracefully.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut pause = FIRST_PAUSE;
        // The ports stay reserved between two runs, so that no other process can listen there.
        let mut ports = None;
        while !shutdown.is_cancelled() {
            let started = Instant::now();
            match self.live(&mut ports, &shutdown).await {
                Ok(()) => break,
                Err(error) => {
                    let error = format!("{error:#}");
                    tracing::error!(
                        error,
                        restart_in_ms = pause.as_millis(),
                        "the embedded engine is down; events are kept in the ingest log"
                    );
                    self.clickhouse.set_why_down(error);
                }
            }
            if started.elapsed() >= HEALTHY {
                pause = FIRST_PAUSE;
            }
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = sleep(pause) => {}
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
            self.restarts.inc();
        }
    }

    /// Runs the engine once. Returns `Ok` only at shutdown.
    async fn live(
        &self,
        ports: &mut Option<Ports>,
        shutdown: &CancellationToken,
    ) -> anyhow::Result<()> {
        let settings = &self.settings;
        let ports = match ports {
            Some(ports) => &*ports,
            None => ports.insert(settings.ports()?),
        };
        let mut started = tokio::select! {
            started = settings.start(ports) => started?,
            () = shutdown.cancelled() => return Ok(()),
        };
        let target = started.file.target(self.clickhouse.database());
        let fresh = ClickHouse::away(self.clickhouse.database());
        fresh.point_at(Some(&target));
        let stored = self.log.drained_and_durable().0;
        tokio::select! {
            migrated = migrate_used(&fresh, stored) => migrated?,
            ended = started.engine.ended() => anyhow::bail!(ended),
            () = shutdown.cancelled() => return started.stop(&settings.data_dir).await,
        }
        started.announce(&settings.data_dir)?;
        self.clickhouse.point_at(Some(&target));
        tracing::info!(
            url = target.url,
            pid = started.file.pid,
            "the embedded engine is ready"
        );
        let ended = tokio::select! {
            ended = started.engine.ended() => Some(ended),
            () = shutdown.cancelled() => None,
            () = forget_queries(&fresh) => None,
            reason = engine_watch::hangs(&fresh) => Some(reason),
        };
        // The engine waits for connections that are open.
        for client in [&self.clickhouse, &fresh] {
            client.point_at(None);
        }
        match ended {
            // The port stays reserved until the next run, so `engine.json` never points to a foreign process.
            Some(ended) => anyhow::bail!(ended),
            None => started.stop(&settings.data_dir).await,
        }
    }
}
