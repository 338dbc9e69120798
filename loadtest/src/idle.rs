//! `unjank-loadtest idle`: measures what a server and its engine take while nobody talks to them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde::Serialize;

use crate::console;
use crate::processes::{Resident, ThreadUsage, resident, threads, usage, written_bytes};
use crate::server::Server;

#[derive(Debug, Args)]
pub(crate) struct IdleArgs {
    /// Path of the `unjank` binary. Use a release build.
    #[arg(long)]
    server_bin: PathBuf,
    /// Folder of the server's data, such as one that `queries` has filled. Kept afterwards. Defaults to an empty temporary folder.
    #[arg(long)]
    data_dir: Option<PathBuf>,
    /// Duration of the measurement, in minutes.
    #[arg(long, default_value_t = 10.0)]
    minutes: f64,
}

/// The start and the last load leave work behind, such as merges.
const SETTLES: Duration = Duration::from_secs(60);
/// The most CPU time of server and engine together, in percent of one core, and their most memory.
const MOST_CORE_PERCENT: f64 = 1.0;
const MOST_BYTES: u64 = 350_000_000;
/// Number of thread names to show for each process.
const SHOWN_THREADS: usize = 6;

/// What a server and its engine took while nobody talked to them.
#[derive(Debug, Serialize)]
pub(crate) struct Idle {
    minutes: f64,
    processes: Vec<Idler>,
}

/// What one process took.
#[derive(Debug, Serialize)]
struct Idler {
    name: &'static str,
    /// CPU time in percent of one core.
    core_percent: f64,
    own_bytes: u64,
    /// Pages of files that are mapped into memory.
    file_bytes: u64,
    /// Bytes sent to the disk per minute.
    written_per_minute: f64,
    /// Threads by name, the busiest first.
    threads: Vec<Threads>,
}

/// All threads of one name.
#[derive(Debug, Serialize)]
struct Threads {
    name: String,
    core_percent: f64,
    wake_ups_per_s: f64,
}

/// Returns whether server and engine stayed within their limits.
pub(crate) async fn run(args: &IdleArgs) -> Result<bool> {
    ensure!(args.minutes > 0.0, "--minutes must be greater than 0");
    let folder = tempfile::tempdir().context("creating a folder for the server's data")?;
    let data_dir = match &args.data_dir {
        Some(dir) => dir.clone(),
        None => folder.path().join("data"),
    };
    let mut server = Server::start(&args.server_bin, &data_dir)?;
    server.ready().await?;
    let idle = measure(&server, args.minutes).await?;
    server.stop().await?;
    for line in idle.lines() {
        console::print(&line);
    }
    Ok(idle.is_within_limits())
}

/// Measures a running server after a minute of rest.
pub(crate) async fn measure(server: &Server, minutes: f64) -> Result<Idle> {
    console::say(&format!(
        "nothing at all for {:.1} minutes ...",
        minutes + 1.0
    ));
    tokio::time::sleep(SETTLES).await;
    let engine = server
        .engine_pid()?
        .context("the server has no running engine")?;
    let pids = [("server", server.pid()), ("engine", engine)];
    let before = pids.map(|(_, pid)| Moment::now(pid));
    let length = Duration::from_secs_f64(minutes * 60.0);
    tokio::time::sleep(length).await;
    let mut processes = Vec::new();
    for ((name, pid), before) in pids.into_iter().zip(before) {
        let moments = before.zip(Moment::now(pid));
        let (before, after) = moments.with_context(|| format!("the {name} has ended"))?;
        processes.push(Idler::between(name, &before, &after, length));
    }
    Ok(Idle { minutes, processes })
}

/// What a process has used until now.
struct Moment {
    cpu_s: f64,
    resident: Resident,
    written_bytes: u64,
    threads: BTreeMap<String, ThreadUsage>,
}

impl Moment {
    fn now(pid: u32) -> Option<Self> {
        Some(Self {
            cpu_s: usage(pid)?.cpu_s,
            resident: resident(pid)?,
            written_bytes: written_bytes(pid).unwrap_or_default(),
            threads: threads(pid)?,
        })
    }
}

impl Idler {
    fn between(name: &'static str, before: &Moment, after: &Moment, length: Duration) -> Self {
        let seconds = length.as_secs_f64();
        let percent = |cpu_s: f64| cpu_s.max(0.0) / seconds * 100.0;
        let mut threads: Vec<Threads> = after
            .threads
            .iter()
            .map(|(name, now)| {
                let then = before.threads.get(name).copied().unwrap_or_default();
                Threads {
                    name: name.clone(),
                    core_percent: percent(now.cpu_s - then.cpu_s),
                    wake_ups_per_s: now.wake_ups.saturating_sub(then.wake_ups) as f64 / seconds,
                }
            })
            .collect();
        threads.sort_by(|one, other| other.core_percent.total_cmp(&one.core_percent));
        let written = after.written_bytes.saturating_sub(before.written_bytes);
        Self {
            name,
            core_percent: percent(after.cpu_s - before.cpu_s),
            own_bytes: after.resident.own,
            file_bytes: after.resident.of_files,
            written_per_minute: written as f64 / seconds * 60.0,
            threads,
        }
    }
}

impl Idle {
    fn core_percent(&self) -> f64 {
        self.processes.iter().map(|one| one.core_percent).sum()
    }

    fn bytes(&self) -> u64 {
        let bytes = |one: &Idler| one.own_bytes + one.file_bytes;
        self.processes.iter().map(bytes).sum()
    }

    fn is_within_limits(&self) -> bool {
        self.core_percent() <= MOST_CORE_PERCENT && self.bytes() <= MOST_BYTES
    }

    /// Returns the measurement as lines of Markdown.
    pub(crate) fn lines(&self) -> Vec<String> {
        let head = [
            "process",
            "CPU, % of a core",
            "memory MB",
            "of mapped files MB",
            "written KB per minute",
        ];
        let mut lines = vec![
            format!("\n## Idle for {:.1} minutes\n", self.minutes),
            format!("| {} |", head.join(" | ")),
            "| --- | --- | --- | --- | --- |".to_owned(),
        ];
        for one in &self.processes {
            lines.push(format!(
                "| {} | {:.2} | {} | {} | {:.0} |",
                one.name,
                one.core_percent,
                megabytes(one.own_bytes + one.file_bytes),
                megabytes(one.file_bytes),
                one.written_per_minute / 1e3
            ));
        }
        lines.push("\n| process | threads | CPU, % of a core | wake-ups/s |".to_owned());
        lines.push("| --- | --- | --- | --- |".to_owned());
        for one in &self.processes {
            for threads in one.threads.iter().take(SHOWN_THREADS) {
                lines.push(format!(
                    "| {} | {} | {:.3} | {:.1} |",
                    one.name, threads.name, threads.core_percent, threads.wake_ups_per_s
                ));
            }
        }
        lines.push(format!(
            "\nServer and engine: {:.2} % of a core (limit: {MOST_CORE_PERCENT:.0} %), {} MB (limit: {} MB).",
            self.core_percent(),
            megabytes(self.bytes()),
            megabytes(MOST_BYTES)
        ));
        lines
    }
}

fn megabytes(bytes: u64) -> u64 {
    bytes / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(cpu_s: f64, own: u64, wake_ups: u64) -> Moment {
        Moment {
            cpu_s,
            resident: Resident { own, of_files: 0 },
            written_bytes: 0,
            threads: BTreeMap::from([("worker".to_owned(), ThreadUsage { cpu_s, wake_ups })]),
        }
    }

    #[test]
    fn a_process_above_a_limit_is_noticed() {
        let idle = |cpu_s: f64, own: u64| {
            let (before, after) = (moment(5.0, 0, 10), moment(5.0 + cpu_s, own, 610));
            let length = Duration::from_secs(600);
            let processes = vec![Idler::between("server", &before, &after, length)];
            Idle {
                minutes: 10.0,
                processes,
            }
        };
        assert!(idle(5.9, 300_000_000).is_within_limits());
        assert!(!idle(6.1, 300_000_000).is_within_limits());
        assert!(!idle(5.9, 351_000_000).is_within_limits());
        let lines = idle(3.0, 300_000_000).lines();
        assert!(lines.contains(&"| server | worker | 0.500 | 1.0 |".to_owned()));
    }
}
