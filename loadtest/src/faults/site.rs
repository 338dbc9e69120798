//! The server under test, its engine and its store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};

use crate::clickhouse::{Access, ClickHouse, Rows};
use crate::drain::{gauge, metrics};
use crate::faults::wait::eventually;
use crate::server::{Server, Settings};

pub(super) struct Site {
    pub(super) server: Server,
    pub(super) clickhouse: ClickHouse,
    pub(super) data_dir: PathBuf,
    /// How often the test had to restart a server that did not recover on its own.
    pub(super) started_by_hand: u32,
    /// Whether the engine is embedded in the server.
    embedded: bool,
}

const START_PATIENCE: Duration = Duration::from_secs(60);
const ANSWER_PATIENCE: Duration = Duration::from_secs(5);

impl Site {
    /// Starts a server and waits until it and ClickHouse answer. Without `access`, the server has an embedded engine.
    pub(super) async fn start(
        binary: &Path,
        data_dir: &Path,
        settings: Settings,
        access: Option<Access>,
    ) -> Result<Self> {
        let server = Server::start_with(binary, data_dir, settings)?;
        let embedded = access.is_none();
        let access = access.unwrap_or_else(|| Access::Engine(data_dir.to_owned()));
        let mut site = Self {
            server,
            clickhouse: ClickHouse::new(access)?,
            data_dir: data_dir.to_owned(),
            started_by_hand: 0,
            embedded,
        };
        site.server.ready().await?;
        site.wait_for_tables().await?;
        Ok(site)
    }

    async fn wait_for_tables(&self) -> Result<()> {
        let found = eventually(START_PATIENCE, async || {
            Ok(self.ask("SELECT count() FROM spans_daily").await.is_ok())
        });
        ensure!(
            found.await?,
            "ClickHouse did not answer within {} s",
            START_PATIENCE.as_secs()
        );
        Ok(())
    }

    /// Queries ClickHouse as a user who may change the schema.
    pub(super) async fn ask(&self, sql: &str) -> Result<Rows> {
        tokio::time::timeout(ANSWER_PATIENCE, self.clickhouse.rows(sql))
            .await
            .with_context(|| format!("no answer within {} s", ANSWER_PATIENCE.as_secs()))?
    }

    /// Waits until the engine answers. Returns its process id.
    pub(super) async fn engine(&self) -> Result<u32> {
        self.wait_for_tables().await?;
        self.server.engine_pid()?.context("no engine is running")
    }

    pub(super) fn signal_engine(&self, signal: Signal) -> Result<()> {
        ensure!(
            self.server.signal_engine(signal)?,
            "found no engine to send a signal to"
        );
        Ok(())
    }

    /// Returns the value of a metric of the server; 0 if the server does not have the metric.
    pub(super) async fn metric(&self, name: &str) -> Result<f64> {
        let text = metrics(&self.server.admin_url()).await?;
        Ok(gauge(&text, name).unwrap_or_default())
    }

    /// Kills the server, starts it again, and waits until it and its engine answer.
    pub(super) async fn restart(&mut self) -> Result<()> {
        self.server.kill()?;
        self.start_again().await
    }

    pub(super) async fn start_again(&mut self) -> Result<()> {
        self.server.start_again()?;
        self.server.ready().await?;
        self.wait_for_tables().await
    }

    /// Kills the engine and the server at the same moment, and waits until both have ended.
    pub(super) async fn kill_both(&mut self) -> Result<()> {
        self.server.kill_engine()?;
        self.server.kill()?;
        // The server may just have started another engine. That engine would end on its own, but the disk is needed immediately.
        let gone = eventually(START_PATIENCE, async || {
            let engines = self.server.engines()?;
            for pid in &engines {
                let pid = i32::try_from(*pid).ok().and_then(Pid::from_raw);
                pid.into_iter()
                    .for_each(|pid| kill_process(pid, Signal::KILL).unwrap_or_default());
            }
            Ok(engines.is_empty())
        });
        ensure!(
            gone.await?,
            "an engine is still running although its server was killed"
        );
        Ok(())
    }

    /// Restarts a server that has ended, or that does not become ready on its own.
    pub(super) async fn recover(&mut self) -> Result<()> {
        const BY_ITSELF: Duration = Duration::from_secs(20);
        let ready = match tokio::time::timeout(BY_ITSELF, self.server.ready()).await {
            Ok(ready) => ready.is_ok(),
            Err(_) => false,
        };
        if !ready {
            self.started_by_hand += 1;
            if !self.server.has_ended() {
                self.server.kill()?;
            }
            self.server.start_again()?;
            self.server.ready().await?;
        }
        if self.embedded {
            self.wait_for_tables().await?;
        }
        Ok(())
    }

    /// Describes for the verdict how often the test had to restart the server.
    pub(super) fn help(&self) -> String {
        match self.started_by_hand {
            0 => String::new(),
            times => format!("; the test had to restart the server {times} times"),
        }
    }
}

/// Returns whether the process runs. A zombie does not.
pub(super) fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else {
        return false;
    };
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    !state.is_some_and(|state| state.starts_with(['Z', 'X']))
}

/// Runs a program until it ends.
pub(super) async fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let output = tokio::process::Command::new(program)
        .args(arguments)
        .output()
        .await
        .with_context(|| format!("running {program}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{program} {}: {}", arguments.join(" "), said.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_and_an_invalid_one_is_not() {
        assert!(is_alive(std::process::id()));
        assert!(!is_alive(u32::MAX));
    }
}
