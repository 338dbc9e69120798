//! A server that this tool starts, kills and restarts.

use std::fs::{File, OpenOptions};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use reqwest::Client;
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;

use crate::clickhouse::engine_login;

/// The file that the server writes once it accepts connections.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Address {
    pub(crate) admin_listen: String,
    #[serde(default)]
    pub(crate) pid: Option<u32>,
}

pub(crate) fn read_address(data_dir: &Path) -> Result<Address> {
    let path = data_dir.join("server.json");
    let text =
        std::fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("reading {}", path.display()))
}

/// The ingest key of servers started here.
pub(crate) const KEY: &str = "loadtest-key-of-a-throw-away-server";

/// A server process with its data folder. Dropping it ends the process.
pub(crate) struct Server {
    binary: PathBuf,
    data_dir: PathBuf,
    listen: String,
    admin_listen: String,
    settings: Settings,
    child: Child,
}

/// Environment variables of the server besides its addresses, folder and key.
pub(crate) type Settings = Vec<(&'static str, String)>;

const READY_TIMEOUT: Duration = Duration::from_secs(60);
const END_TIMEOUT: Duration = Duration::from_secs(30);

impl Server {
    /// Starts the server on free ports, which it keeps across restarts.
    pub(crate) fn start(binary: &Path, data_dir: &Path) -> Result<Self> {
        Self::start_with(binary, data_dir, Settings::new())
    }

    /// Like [`Server::start`], with additional settings.
    pub(crate) fn start_with(binary: &Path, data_dir: &Path, settings: Settings) -> Result<Self> {
        std::fs::create_dir_all(data_dir)
            .with_context(|| format!("creating the folder {}", data_dir.display()))?;
        let listen = free_address()?;
        let admin_listen = free_address()?;
        let mut server = Self {
            child: spawn(binary, data_dir, [&listen, &admin_listen], &settings)?,
            binary: binary.to_owned(),
            data_dir: data_dir.to_owned(),
            listen,
            admin_listen,
            settings,
        };
        server.check_alive()?;
        Ok(server)
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.listen)
    }

    pub(crate) fn admin_url(&self) -> String {
        format!("http://{}", self.admin_listen)
    }

    /// Returns host and port of the public listener.
    pub(crate) fn address(&self) -> &str {
        &self.listen
    }

    /// Creates an API token with the admin role, in the same way as an operator.
    pub(crate) fn api_token(&self) -> Result<String> {
        let output = Command::new(&self.binary)
            .args(["token", "create", "--name", "loadtest", "--role", "admin"])
            .env("UNJANK_DATA_DIR", &self.data_dir)
            .env_remove("UNJANK_DATABASE_URL")
            .output()
            .context("creating an API token")?;
        if !output.status.success() {
            bail!(
                "creating an API token: {}",
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    }

    /// Rebuilds roll-ups from raw rows.
    pub(crate) fn roll_up(&self, period: &[&str], signals: &[&str]) -> Result<()> {
        roll_up(&self.binary, &self.data_dir, period, signals)
    }

    /// Kills the process with SIGKILL.
    pub(crate) fn kill(&mut self) -> Result<()> {
        self.child.kill().context("killing the server")?;
        self.child.wait().context("waiting for the killed server")?;
        Ok(())
    }

    pub(crate) fn start_again(&mut self) -> Result<()> {
        self.child = spawn(
            &self.binary,
            &self.data_dir,
            [&self.listen, &self.admin_listen],
            &self.settings,
        )?;
        Ok(())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until the server reports that it is ready. Returns how long that took.
    pub(crate) async fn ready(&mut self) -> Result<Duration> {
        let begun = Instant::now();
        let client = Client::builder()
            .no_proxy()
            .timeout(Duration::from_secs(2))
            .build()?;
        let url = format!("{}/readyz", self.admin_url());
        while begun.elapsed() < READY_TIMEOUT {
            self.check_alive()?;
            let answer = client.get(&url).send().await;
            if answer.is_ok_and(|answer| answer.status().is_success()) {
                return Ok(begun.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        bail!(
            "the server was not ready after {} s: see {}",
            READY_TIMEOUT.as_secs(),
            log_path(&self.data_dir).display()
        )
    }

    /// Kills the engine of this server's data folder. Returns `false` if there is none.
    pub(crate) fn kill_engine(&self) -> Result<bool> {
        self.signal_engine(Signal::KILL)
    }

    /// Sends a signal to the engine of this server's data folder. Returns `false` if there is none.
    pub(crate) fn signal_engine(&self, signal: Signal) -> Result<bool> {
        let Some(pid) = self.engine_pid()? else {
            return Ok(false);
        };
        let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
            bail!("engine.json contains the invalid process id {pid}");
        };
        match kill_process(pid, signal) {
            Ok(()) => Ok(true),
            // The process ended after it was looked up.
            Err(rustix::io::Errno::SRCH) => Ok(false),
            Err(error) => Err(error).context("sending a signal to the engine"),
        }
    }

    /// Returns the process id of the engine of this server's data folder, if it is running.
    pub(crate) fn engine_pid(&self) -> Result<Option<u32>> {
        let login = engine_login(&self.data_dir).ok();
        let Some(pid) = login.and_then(|login| login.pid) else {
            return Ok(None);
        };
        let cmdline = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        Ok(is_engine(&cmdline, &self.data_dir.canonicalize()?).then_some(pid))
    }

    /// Returns every engine of this server's data folder, including engines that are starting or ending.
    pub(crate) fn engines(&self) -> Result<Vec<u32>> {
        let data_dir = self.data_dir.canonicalize()?;
        let mut pids = Vec::new();
        for entry in std::fs::read_dir("/proc").context("looking for engines")? {
            let entry = entry.context("looking for engines")?;
            let pid: Option<u32> = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok());
            // A process that has ended since has no command line, and is skipped.
            let cmdline = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            pids.extend(pid.filter(|_| is_engine(&cmdline, &data_dir)));
        }
        Ok(pids)
    }

    /// Returns the version that the server prints.
    pub(crate) fn version(&self) -> Option<String> {
        let output = Command::new(&self.binary).arg("--version").output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
            .filter(|text| !text.is_empty())
    }

    /// Sends SIGTERM to the server and waits until it ends.
    pub(crate) async fn stop(&mut self) -> Result<()> {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            kill_process(pid, Signal::TERM).context("ending the server")?;
        }
        let begun = Instant::now();
        while begun.elapsed() < END_TIMEOUT {
            if self
                .child
                .try_wait()
                .context("waiting for the server")?
                .is_some()
            {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        bail!("the server did not end within {END_TIMEOUT:?} after SIGTERM")
    }

    fn check_alive(&mut self) -> Result<()> {
        if let Some(status) = self.child.try_wait().context("checking the server")? {
            bail!(
                "the server ended unexpectedly ({status}): see {}",
                log_path(&self.data_dir).display()
            );
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Dropped because of an error: leave no process behind.
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill_engine().unwrap_or_default();
            self.kill().unwrap_or_default();
        }
    }
}

/// Rebuilds roll-ups from raw rows, because a server only rolls up rows that it received from devices. `period` are options of
/// `unjank rollups rebuild`.
pub(crate) fn roll_up(
    binary: &Path,
    data_dir: &Path,
    period: &[&str],
    signals: &[&str],
) -> Result<()> {
    let signals = signals.iter().flat_map(|signal| ["--signal", *signal]);
    let status = Command::new(binary)
        .args(["rollups", "rebuild"])
        .args(period)
        .args(signals)
        .env("UNJANK_DATA_DIR", data_dir)
        .env_remove("UNJANK_DATABASE_URL")
        .status()
        .context("rebuilding the roll-ups")?;
    if !status.success() {
        bail!("the roll-ups were not rebuilt: {status}");
    }
    Ok(())
}

/// Returns whether a process is the engine of `data_dir`. Guards against killing an unrelated process whose id was read from a
/// file.
fn is_engine(cmdline: &[u8], data_dir: &Path) -> bool {
    let argument = format!("\"--path={}\"", data_dir.join("engine").display());
    String::from_utf8_lossy(cmdline).contains(&argument)
}

fn log_path(data_dir: &Path) -> PathBuf {
    let mut name = data_dir.as_os_str().to_owned();
    name.push(".server.log");
    PathBuf::from(name)
}

fn spawn(
    binary: &Path,
    data_dir: &Path,
    [listen, admin_listen]: [&str; 2],
    settings: &Settings,
) -> Result<Child> {
    let log: File = OpenOptions::new()
        .create(true)
        .append(true)
        .open(log_path(data_dir))
        .context("opening a file for the server's log")?;
    Command::new(binary)
        .arg("serve")
        .env("UNJANK_LISTEN", listen)
        .env("UNJANK_ADMIN_LISTEN", admin_listen)
        .env("UNJANK_DATA_DIR", data_dir)
        .env("UNJANK_INGEST_KEYS", format!("{KEY}=*"))
        .env_remove("UNJANK_CLICKHOUSE_URL")
        .env_remove("UNJANK_DATABASE_URL")
        // Disable retention: the simulated data lies in the past.
        .envs(["", "_HOURLY", "_DAILY"].map(|of| (format!("UNJANK_RETENTION{of}_DAYS"), "0")))
        .envs(settings.iter().map(|(name, value)| (name, value)))
        // Ctrl-C is handled by the load test, which then ends the server.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(
            log.try_clone()
                .context("opening a file for the server's log")?,
        )
        .stderr(log)
        .spawn()
        .with_context(|| format!("starting {}", binary.display()))
}

fn free_address() -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").context("looking for a free port")?;
    Ok(listener.local_addr()?.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_engine_of_the_data_folder_is_recognized() {
        let engine = |cmdline: &[u8]| is_engine(cmdline, Path::new("/data/d"));
        let of = |folder: &str| {
            format!("/opt/unjank\0clickhouse\0{{\"arguments\":[\"--path={folder}/engine\"]}}\0")
        };
        assert!(engine(of("/data/d").as_bytes()));
        assert!(!engine(of("/data/other").as_bytes()));
        assert!(!engine(b"/opt/unjank\0serve\0--data-dir\0/data/d\0"));
        assert!(!engine(b""));
    }
}
