//! The embedded engine: started when no ClickHouse URL is given, watched, and started again when it dies.
//!
//! It runs in a process of its own (`unjank engine`), so that its crash is not ours. It ends when its standard input does:
//! a server that is killed takes it along.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::clickhouse::{ClickHouse, Target};
use super::migrations::migrate;
use super::range::replace_durably;

#[derive(Clone, Debug)]
pub struct EngineSettings {
    /// The program to start: `unjank` itself.
    pub program: PathBuf,
    /// The engine's data goes to `engine` in it, its address and password to `engine.json`.
    pub data_dir: PathBuf,
    /// The library, when it is not to be fetched.
    pub library: Option<PathBuf>,
    pub cache_dir: Option<PathBuf>,
    pub max_memory_bytes: u64,
    /// The engine's log filter.
    pub log: String,
}

/// `engine.json`: how to reach the running engine. Readable by its owner only.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EngineFile {
    pub url: String,
    pub user: String,
    pub password: String,
    pub pid: u32,
}

impl EngineFile {
    pub fn read(path: &Path) -> std::io::Result<Self> {
        serde_json::from_slice(&std::fs::read(path)?).map_err(std::io::Error::other)
    }

    fn write(&self, path: &Path) -> std::io::Result<()> {
        replace_durably(
            path,
            &serde_json::to_vec(self).map_err(std::io::Error::other)?,
        )?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        }
        Ok(())
    }
}

/// What the engine prints when it is ready.
#[derive(Debug, Serialize, Deserialize)]
pub struct EngineReady {
    pub url: String,
}

/// The engine's library: where it is said to be, in the cache, or fetched into it.
pub fn library(explicit: Option<&Path>, cache_dir: Option<&Path>) -> anyhow::Result<PathBuf> {
    let cache_dir = match cache_dir {
        Some(folder) => folder.to_owned(),
        None => default_cache_dir()?,
    };
    Ok(unjank_engine::library::locate_or_fetch(
        explicit,
        &cache_dir,
        &|message| tracing::info!("{message}"),
    )?)
}

/// `~/.cache/unjank/engine`, by the XDG rules.
fn default_cache_dir() -> anyhow::Result<PathBuf> {
    let from_home = || std::env::home_dir().map(|home| home.join(".cache"));
    let base = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .filter(|path| path.is_absolute())
        .or_else(from_home);
    let base = base.ok_or_else(|| {
        anyhow::anyhow!("there is no home folder to cache the engine's library in: set --cache-dir")
    })?;
    Ok(base.join("unjank").join("engine"))
}

/// The name of the environment variable that hands the engine its password: arguments are visible to everyone.
pub const PASSWORD_VARIABLE: &str = "UNJANK_ENGINE_PASSWORD";

const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// An engine that lived this long did not fail at start.
const HEALTHY: Duration = Duration::from_secs(60);
const START_PATIENCE: Duration = Duration::from_secs(120);
const STOP_PATIENCE: Duration = Duration::from_secs(20);

/// Supervises one engine.
pub struct EmbeddedEngine {
    settings: EngineSettings,
    clickhouse: ClickHouse,
    restarts: prometheus::IntCounter,
}

impl EmbeddedEngine {
    pub fn new(
        settings: EngineSettings,
        clickhouse: ClickHouse,
        restarts: prometheus::IntCounter,
    ) -> Self {
        Self {
            settings,
            clickhouse,
            restarts,
        }
    }

    /// Keeps an engine running until `shutdown`, then ends it cleanly.
    pub async fn run(self, shutdown: CancellationToken) {
        let mut pause = FIRST_PAUSE;
        while !shutdown.is_cancelled() {
            let started = Instant::now();
            match self.live(&shutdown).await {
                Ok(()) => break,
                Err(error) => {
                    tracing::error!(%error, restart_in_ms = pause.as_millis(), "the embedded engine is down; events are kept in the ingest log");
                }
            }
            self.clickhouse.point_at(None);
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

    /// One life of the engine. `Ok` only at shutdown.
    async fn live(&self, shutdown: &CancellationToken) -> anyhow::Result<()> {
        let password = Uuid::new_v4().simple().to_string();
        let (explicit, cache_dir) = (
            self.settings.library.clone(),
            self.settings.cache_dir.clone(),
        );
        let library =
            tokio::task::spawn_blocking(move || library(explicit.as_deref(), cache_dir.as_deref()))
                .await??;
        let mut child = self.spawn(&password, &library)?;
        // Taken out, since waiting for a child closes its standard input, which would end it.
        let lifeline = child.stdin.take();
        let (url, _stdout) = tokio::select! {
            ready = ready_line(&mut child) => ready?,
            () = shutdown.cancelled() => return stop(child, lifeline).await,
        };
        let target = Target {
            url: url.clone(),
            user: "default".to_owned(),
            password: password.clone(),
            database: self.clickhouse.database().to_owned(),
            compress: false,
        };
        let fresh = ClickHouse::away(self.clickhouse.database());
        fresh.point_at(Some(&target));
        migrate(&fresh).await?;
        let pid = child.id().unwrap_or_default();
        EngineFile {
            url,
            user: target.user.clone(),
            password,
            pid,
        }
        .write(&self.settings.data_dir.join("engine.json"))?;
        self.clickhouse.point_at(Some(&target));
        tracing::info!(url = target.url, pid, "the embedded engine is ready");
        tokio::select! {
            status = child.wait() => anyhow::bail!("it ended: {}", status?),
            () = shutdown.cancelled() => {}
        }
        self.clickhouse.point_at(None);
        stop(child, lifeline).await
    }

    fn spawn(&self, password: &str, library: &Path) -> anyhow::Result<Child> {
        let settings = &self.settings;
        let child = Command::new(&settings.program)
            .arg("engine")
            .arg("--data-dir")
            .arg(&settings.data_dir)
            .arg("--library")
            .arg(library)
            .args(["--listen", "127.0.0.1:0", "--until-stdin-ends"])
            .args(["--nice", "10"])
            .arg("--max-memory-bytes")
            .arg(settings.max_memory_bytes.to_string())
            .args(["--log", &settings.log])
            .env(PASSWORD_VARIABLE, password)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| {
                anyhow::anyhow!("{} does not start: {error}", settings.program.display())
            })?;
        Ok(child)
    }
}

type Stdout = tokio::io::Lines<BufReader<tokio::process::ChildStdout>>;

async fn ready_line(child: &mut Child) -> anyhow::Result<(String, Stdout)> {
    let stdout = child
        .stdout
        .take()
        .ok_or_else(|| anyhow::anyhow!("it has no standard output"))?;
    let mut lines = BufReader::new(stdout).lines();
    let line = timeout(START_PATIENCE, lines.next_line())
        .await
        .map_err(|_| anyhow::anyhow!("it did not get ready within {START_PATIENCE:?}"))??;
    let Some(line) = line else {
        anyhow::bail!("it ended before it was ready: {}", child.wait().await?);
    };
    let ready: EngineReady = serde_json::from_str(&line)?;
    Ok((ready.url, lines))
}

async fn stop(mut child: Child, lifeline: Option<ChildStdin>) -> anyhow::Result<()> {
    drop(lifeline);
    if timeout(STOP_PATIENCE, child.wait()).await.is_err() {
        tracing::warn!(
            "the embedded engine did not end by itself and is killed; nothing is lost, it recovers at the next start"
        );
        child.kill().await?;
    }
    Ok(())
}
